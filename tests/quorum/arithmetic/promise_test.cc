// SPDX-License-Identifier: Apache-2.0
#include "quorum/arithmetic/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using Verdict = PromiseVerdict;

Promise PromiseTo(uint64_t epoch, uint64_t node, uint64_t incarnation) {
  return {Epoch(epoch), {NodeId(node), incarnation}};
}

// Requests of two nodes with two processes each, in epochs 1 to 4.
std::vector<Promise> AllRequests() {
  std::vector<Promise> all;
  for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
    for (const uint64_t node : {1, 2}) {
      for (const uint64_t incarnation : {11, 12}) {
        all.push_back(PromiseTo(epoch, node, incarnation));
      }
    }
  }
  return all;
}

// The table of promise.h, row by row; the promise that stands is (2, 1, 11).
TEST(PromiseTest, EveryRowOfTheTableHolds) {
  constexpr Verdict kNew = Verdict::kNew;
  constexpr Verdict kAgain = Verdict::kAgain;
  constexpr Verdict kRefused = Verdict::kRefused;
  const struct {
    uint64_t epoch, node, incarnation;
    Verdict verdict;
  } rows[] = {
      {1, 1, 11, kRefused}, {1, 1, 12, kRefused}, {1, 2, 11, kRefused},
      {1, 2, 12, kRefused}, {2, 1, 11, kAgain},   {2, 1, 12, kRefused},
      {2, 2, 11, kRefused}, {2, 2, 12, kRefused}, {3, 1, 11, kNew},
      {3, 1, 12, kNew},     {3, 2, 11, kNew},     {3, 2, 12, kNew},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(JudgePromise(PromiseTo(2, 1, 11),
                           PromiseTo(row.epoch, row.node, row.incarnation)),
              row.verdict)
        << row.epoch << " of node " << row.node << ", " << row.incarnation;
  }
}

// PRO1, PRO2 (promise.h), P-H5: after every sequence of three requests, what
// was promised once is the highest so far, and no epoch went to two processes.
TEST(PromiseTest, EverySequenceOfThreeKeepsTheRule) {
  for (const Promise& a : AllRequests()) {
    for (const Promise& b : AllRequests()) {
      for (const Promise& c : AllRequests()) {
        Promise current;
        std::vector<std::optional<PrimaryId>> promised(5);
        for (const Promise& request : {a, b, c}) {
          const Verdict verdict = JudgePromise(current, request);
          if (verdict == Verdict::kRefused) {
            ASSERT_GE(current.epoch, request.epoch);
            ASSERT_NE(current, request);
            continue;
          }
          ASSERT_GE(request.epoch, current.epoch);
          ASSERT_EQ(verdict == Verdict::kAgain, current == request);
          auto& owner = promised[request.epoch.value];
          ASSERT_EQ(owner.value_or(request.primary), request.primary);
          owner = request.primary;
          current = request;
        }
      }
    }
  }
}

// Promises that the first of two processes gets, and the second, when both ask
// all N replicas for one epoch; `first_at` has a bit for each replica that
// the first one reaches first.
std::pair<uint32_t, uint32_t> PromisesOfBoth(uint32_t n, uint32_t first_at) {
  const Promise first = PromiseTo(5, 1, 11);
  const Promise second = PromiseTo(5, 1, 12);
  std::pair<uint32_t, uint32_t> promises;
  for (uint32_t i = 0; i < n; ++i) {
    const bool is_first = (first_at >> i & 1) != 0;
    Promise current;
    for (const Promise& request :
         {is_first ? first : second, is_first ? second : first}) {
      if (JudgePromise(current, request) == Verdict::kRefused) continue;
      current = request;
      ++(request == first ? promises.first : promises.second);
    }
  }
  return promises;
}

// BA4 (ballot.h): two processes of a node that share an epoch. With R promises
// both could go on where 2R <= N; with those of an opening quorum they can't.
TEST(PromiseTest, TwoProcessesWithOneEpochNeverBothOpen) {
  bool both_have_r = false;
  for (uint32_t n = 1; n <= 5; ++n) {
    for (uint32_t w = 1; w <= n; ++w) {
      const QuorumSizes sizes = *MakeQuorumSizes(n, w);
      for (uint32_t first_at = 0; first_at < 1u << n; ++first_at) {
        const auto [first, second] = PromisesOfBoth(n, first_at);
        const uint32_t fewer = std::min(first, second);
        ASSERT_LT(fewer, OpeningQuorumSize(sizes)) << "N=" << n << " W=" << w;
        both_have_r |= fewer >= sizes.read_quorum;
      }
    }
  }
  EXPECT_TRUE(both_have_r) << "the test tries nothing that could go wrong";
}

TEST(PromiseTest, AnswerIsTheVerdict) {
  const Promise current = PromiseTo(2, 1, 11);
  EXPECT_EQ(*AnswerPromise(current, PromiseTo(3, 2, 12)), Verdict::kNew);
  EXPECT_EQ(*AnswerPromise(current, current), Verdict::kAgain);
  EXPECT_EQ(*AnswerPromise({}, PromiseTo(1, 1, 11)), Verdict::kNew);
}

// A loser must learn what to go above, and from whom.
TEST(PromiseTest, RefusalTellsThePromiseThatStands) {
  const Promise current = PromiseTo(5, 1, UINT64_MAX);
  for (const Promise& request : {PromiseTo(4, 1, 11), PromiseTo(5, 2, 11)}) {
    const absl::Status status = AnswerPromise(current, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("promised is epoch 5 of node 1, process "
                          "ffffffffffffffff"));
    EXPECT_EQ(RefusingPromise(status), current);
  }
}

TEST(PromiseTest, OtherErrorsTellNoPromise) {
  EXPECT_EQ(RefusingPromise(absl::OkStatus()), std::nullopt);
  absl::Status status = absl::FailedPreconditionError("another role");
  EXPECT_EQ(RefusingPromise(status), std::nullopt);
  status.SetPayload("alpheus/refusing-promise", absl::Cord("too short"));
  EXPECT_EQ(RefusingPromise(status), std::nullopt);
}

// A fresh replica has promised epoch 0 to nobody; a request made of nothing
// must not look like that promise asked for again.
TEST(PromiseTest, RequestsThatNameNobodyAreRefused) {
  for (const Promise& request :
       {Promise{}, PromiseTo(0, 1, 11), PromiseTo(3, 1, 0)}) {
    const absl::Status status = AnswerPromise({}, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(RefusingPromise(status), std::nullopt);
  }
}

// P-H5, P-H6: neither an older session, nor a newer one whose promise is not
// persisted yet, nor another process in the same epoch.
TEST(PromiseTest, OnlyThePromisedSessionMayWrite) {
  const Promise current = PromiseTo(2, 1, 11);
  for (const Promise& session : AllRequests()) {
    EXPECT_EQ(MayWrite(current, session),
              session.epoch.value == 2 && session.primary.node.value == 1 &&
                  session.primary.incarnation == 11);
    EXPECT_FALSE(MayWrite({}, session));
  }
  EXPECT_FALSE(MayWrite({}, {}));
}

TEST(PromiseTest, SuperlineKeepsThePromise) {
  Superline superline;
  EXPECT_EQ(PromiseOf(superline), Promise{});
  for (const Promise& promise :
       {PromiseTo(2, 1, 11), PromiseTo(2, 1, 11), PromiseTo(3, 2, 11)}) {
    SetPromise(promise, superline);
    EXPECT_EQ(PromiseOf(superline), promise);
  }
}

TEST(PromiseDeathTest, EpochZeroIsNotJudged) {
  EXPECT_DEATH(JudgePromise({}, {}), "epoch 0");
}

TEST(PromiseDeathTest, SuperlineNeverBreaksAPromise) {
  Superline superline;
  SetPromise(PromiseTo(2, 1, 11), superline);
  EXPECT_DEATH(SetPromise(PromiseTo(1, 1, 11), superline), "PRO1, PRO2");
  EXPECT_DEATH(SetPromise(PromiseTo(2, 1, 12), superline), "PRO1, PRO2");
}

}  // namespace
}  // namespace alpheus::quorum
