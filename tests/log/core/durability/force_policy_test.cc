// SPDX-License-Identifier: Apache-2.0
// Which records are forced when, and who is told (Arcadia §4.4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/thread_token.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LogHarness;

using Code = absl::StatusCode;

class ForcePolicyTest : public ::testing::Test {
 protected:
  ForcePolicyTest()
      : harness_({.ring_capacity = 4096, .exposure_records_max = 32}) {
    EXPECT_TRUE(harness_.Open().ok());
  }

  RingLog<model::ModelPersistence>& log() { return harness_.log(); }

  absl::StatusOr<Lsn> Append(ForcePolicy policy) {
    const std::span<const std::byte> part = AsBytes("record");
    return log().Append({&part, 1}, policy, Deadline());
  }
  // The highest LSN that a watermark line on media names.
  Lsn PersistedWatermark() {
    const std::vector<std::byte> image = harness_.pmem().CutKeepingNone();
    std::vector<std::byte> copy = image;
    return ReadWatermarks(copy, harness_.opened().start.superline.log_id)
        .Proven(harness_.opened().epoch);
  }
  // Notes "LSN:code" when it is called.
  DurableCallback Note(Lsn lsn) {
    return [this, lsn](const absl::Status& status) {
      notified_.push_back(std::to_string(lsn.value) + ":" +
                          absl::StatusCodeToString(status.code()));
    };
  }

  std::vector<std::string> notified_;
  LogHarness harness_;
};

TEST_F(ForcePolicyTest, GroupIsForcedByTheRecordThatFillsIt) {
  const ForcePolicy group(1, 4);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(group).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(0));
  ASSERT_TRUE(Append(group).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(4));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(group).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(4));
}

TEST_F(ForcePolicyTest, GroupCoversRecordsThatJoinedOutOfOrder) {
  ReservedRecord low = *log().Reserve(8, Deadline());
  ReservedRecord high = *log().Reserve(8, Deadline());
  ASSERT_TRUE(log().Complete(high).ok());
  ASSERT_TRUE(log().Force(high.lsn, {1, 2}, Deadline()).ok());
  ASSERT_TRUE(log().Complete(low).ok());
  ASSERT_TRUE(log().Force(low.lsn, {1, 2}, Deadline()).ok());
  EXPECT_EQ(log().durable_lsn(), high.lsn);
}

TEST_F(ForcePolicyTest, GroupCostsOneFence) {
  ASSERT_TRUE(Append(1).ok());
  const uint64_t fences = harness_.pmem().fence_count();
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(Append({1, 16}).ok());
  EXPECT_EQ(harness_.pmem().fence_count() - fences, 1u);
}

TEST_F(ForcePolicyTest, PoliciesThatContradictThemselvesAreRefused) {
  for (const ForcePolicy policy : {ForcePolicy(0), ForcePolicy(2, 2),
                                   ForcePolicy(17), ForcePolicy(1, 17)}) {
    const absl::Status refused = Append(policy).status();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_EQ(log().Force(Lsn(1), policy, Deadline()).code(),
              Code::kInvalidArgument);
  }
  EXPECT_EQ(log().next_lsn(), Lsn(1));
  EXPECT_THAT(std::string(Append(17).status().message()),
              HasSubstr("Raise exposure_records_max"));
  EXPECT_TRUE(Append(16).ok());
}

// A large record goes past the cache, and then it is persisted anyway.
TEST_F(ForcePolicyTest, LargeRecordsAreDurableAtOnce) {
  const std::string large(1000, 'x');
  const std::span<const std::byte> part = AsBytes(large);
  ASSERT_TRUE(log().Append({&part, 1}, 8, Deadline()).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(1));
  // Behind an exposed one it is not: the log has no holes.
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().Append({&part, 1}, 8, Deadline()).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(1));
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_EQ(log().durable_lsn(), Lsn(3));
}

// IK1, IK2 (idle_keeper.h).
TEST_F(ForcePolicyTest, ExposedRecordsAreForcedTwoPollsLater) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(Append(8).ok());
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  EXPECT_EQ(log().durable_lsn(), Lsn(0));
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_EQ(log().durable_lsn(), Lsn(2));
  EXPECT_EQ(PersistedWatermark(), Lsn(2));
}

TEST_F(ForcePolicyTest, IdleLogGetsItsLastWatermarkOnce) {
  harness_.Append("one");
  harness_.Append("two");
  EXPECT_EQ(PersistedWatermark(), Lsn(1));
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  EXPECT_EQ(PersistedWatermark(), Lsn(1));
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_EQ(PersistedWatermark(), Lsn(2));
  const uint64_t fences = harness_.pmem().fence_count();
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_EQ(harness_.pmem().fence_count(), fences);
  // The log continues as if nothing had been.
  harness_.Append("three");
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("one", "two", "three"));
}

TEST_F(ForcePolicyTest, OpenReservationPutsTheIdleWatermarkOff) {
  harness_.Append("one");
  ReservedRecord open = *log().Reserve(8, Deadline());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(log().Poll(), Polled::kMoved);
  log().Abort(open);
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_EQ(log().durable_lsn(), open.lsn);
}

TEST_F(ForcePolicyTest, FailureInTheBackgroundIsTold) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().OnDurable(Lsn(1), Note(Lsn(1))).ok());
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  harness_.pmem().FailFence(1);
  EXPECT_EQ(log().Poll(), Polled::kIdle);
  EXPECT_THAT(notified_, ElementsAre("1:UNAVAILABLE"));
  EXPECT_EQ(Append(8).status().code(), Code::kUnavailable);
}

TEST_F(ForcePolicyTest, CallbacksComeInOrderWhenTheirRecordsAreDurable) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(8).ok());
  for (const uint64_t lsn : {3, 1, 2}) {
    ASSERT_TRUE(log().OnDurable(Lsn(lsn), Note(Lsn(lsn))).ok());
  }
  EXPECT_THAT(notified_, ElementsAre());
  ASSERT_TRUE(log().Force(Lsn(2), 1, Deadline()).ok());
  EXPECT_THAT(notified_, ElementsAre("1:OK", "2:OK"));
  ASSERT_TRUE(Append(1).ok());
  EXPECT_THAT(notified_, ElementsAre("1:OK", "2:OK", "3:OK"));
  ASSERT_TRUE(log().OnDurable(Lsn(1), Note(Lsn(1))).ok());
  EXPECT_EQ(notified_.size(), 4u);
}

TEST_F(ForcePolicyTest, BegunForceOfALocalLogIsOver) {
  EXPECT_EQ(log().BeginForce(Lsn(1)).code(), Code::kOutOfRange);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().OnDurable(Lsn(2), Note(Lsn(2))).ok());
  const uint64_t fences = harness_.pmem().fence_count();
  ASSERT_TRUE(log().BeginForce(Lsn(2)).ok());
  EXPECT_EQ(harness_.pmem().fence_count() - fences, 1u);
  EXPECT_THAT(notified_, ElementsAre("2:OK"));
  EXPECT_EQ(log().durable_lsn(), Lsn(2));
  harness_.pmem().FailFence(1);
  EXPECT_EQ(log().BeginForce(Lsn(3)).code(), Code::kUnavailable);
  EXPECT_EQ(log().BeginForce(Lsn(3)).code(), Code::kUnavailable);
}

TEST_F(ForcePolicyTest, ClosedLogBeginsNoForce) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().Close().ok());
  EXPECT_EQ(log().BeginForce(Lsn(1)).code(), Code::kFailedPrecondition);
}

TEST_F(ForcePolicyTest, CallbackMayUseTheLog) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log()
                  .OnDurable(Lsn(1),
                             [this](const absl::Status&) {
                               const absl::StatusOr<Lsn> lsn = Append(1);
                               ASSERT_TRUE(lsn.ok());
                               ASSERT_TRUE(
                                   log().OnDurable(*lsn, Note(*lsn)).ok());
                             })
                  .ok());
  ASSERT_TRUE(log().Force(Lsn(1), 1, Deadline()).ok());
  EXPECT_THAT(notified_, ElementsAre("2:OK"));
}

// Nobody else forces, as the idle timer's thread runs the callback.
TEST_F(ForcePolicyTest, CallbackThatWaitsIsNotWaitedFor) {
  ASSERT_TRUE(Append(8).ok());
  const auto wait = [this](const absl::Status&) {
    const absl::StatusOr<Lsn> lsn = Append(8);
    ASSERT_TRUE(lsn.ok());
    EXPECT_TRUE(log().WaitDurable(*lsn, Deadline::AtNanos(1'000'000)).ok());
    notified_.emplace_back("waited");
  };
  ASSERT_TRUE(log().OnDurable(Lsn(1), wait).ok());
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  EXPECT_EQ(log().Poll(), Polled::kMoved);
  EXPECT_THAT(notified_, ElementsAre("waited"));
  EXPECT_EQ(log().durable_lsn(), Lsn(2));
}

TEST_F(ForcePolicyTest, CallbackOfADroppedLogIsTold) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().OnDurable(Lsn(1), Note(Lsn(1))).ok());
  harness_.Drop();
  EXPECT_THAT(notified_, ElementsAre("1:CANCELLED"));
}

TEST_F(ForcePolicyTest, CloseForcesAndTells) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log().OnDurable(Lsn(1), Note(Lsn(1))).ok());
  ASSERT_TRUE(log().Close().ok());
  EXPECT_THAT(notified_, ElementsAre("1:OK"));
  EXPECT_EQ(log().OnDurable(Lsn(1), Note(Lsn(1))).code(),
            Code::kFailedPrecondition);
}

TEST_F(ForcePolicyTest, CallbackForAnLsnThatWasNeverAssignedIsRefused) {
  EXPECT_EQ(log().OnDurable(Lsn(1), Note(Lsn(1))).code(), Code::kOutOfRange);
  EXPECT_THAT(notified_, ElementsAre());
}

// A record that is appended while the log closes stays in the log.
TEST_F(ForcePolicyTest, CallbackMayAppendWhileTheLogCloses) {
  ASSERT_TRUE(Append(8).ok());
  ASSERT_TRUE(log()
                  .OnDurable(Lsn(1),
                             [this](const absl::Status&) {
                               const absl::StatusOr<Lsn> lsn = Append(8);
                               ASSERT_TRUE(lsn.ok());
                               ASSERT_TRUE(
                                   log().OnDurable(*lsn, Note(*lsn)).ok());
                             })
                  .ok());
  ASSERT_TRUE(log().Close().ok());
  EXPECT_THAT(notified_, ElementsAre("2:OK"));
  EXPECT_EQ(PersistedWatermark(), Lsn(2));
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_TRUE(harness_.opened().was_closed_cleanly);
  EXPECT_THAT(harness_.Recovered(), ElementsAre("record", "record"));
}

TEST_F(ForcePolicyTest, CallbackThatReservesKeepsTheLogOpen) {
  ASSERT_TRUE(Append(8).ok());
  std::optional<ReservedRecord> open;
  ASSERT_TRUE(log()
                  .OnDurable(Lsn(1),
                             [&](const absl::Status&) {
                               open = *log().Reserve(8, Deadline());
                             })
                  .ok());
  EXPECT_EQ(log().Close().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(open);
  log().Abort(*open);
  EXPECT_TRUE(log().Close().ok());
}

// The callback runs within the force of a group, which only its own thread
// ends.
TEST_F(ForcePolicyTest, CallbackMayAppendUnderTheGroupPolicy) {
  absl::StatusOr<Lsn> within = absl::UnknownError("not called");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append({1, 4}).ok());
  ASSERT_TRUE(log()
                  .OnDurable(Lsn(1),
                             [&](const absl::Status&) {
                               const std::span<const std::byte> part =
                                   AsBytes("x");
                               within =
                                   log().Append({&part, 1}, {1, 4},
                                                Deadline::AtNanos(50'000'000));
                             })
                  .ok());
  ASSERT_TRUE(Append({1, 4}).ok());
  ASSERT_TRUE(within.ok()) << within.status();
  EXPECT_EQ(*within, Lsn(5));
  EXPECT_EQ(log().durable_lsn(), Lsn(5));
  // The window is as it was.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append({1, 4}).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(5));
  ASSERT_TRUE(Append({1, 4}).ok());
  EXPECT_EQ(log().durable_lsn(), Lsn(9));
}

// GC1 (group_commit.h): else the window would be no bound.
TEST(GroupCommitTest, NobodyJoinsWhileAGroupIsForced) {
  GroupCommit group;
  std::optional<Lsn> due;
  EXPECT_TRUE(group.TryJoin(Lsn(2), 2, &due));
  EXPECT_FALSE(due);
  EXPECT_TRUE(group.TryJoin(Lsn(1), 2, &due));
  EXPECT_EQ(due, Lsn(2));
  due.reset();
  const uint32_t self = ThreadToken();
  SetThreadToken(self + 1000);
  EXPECT_FALSE(group.TryJoin(Lsn(3), 2, &due));
  group.Done();
  SetThreadToken(self);
  EXPECT_TRUE(group.TryJoin(Lsn(3), 2, &due));
  EXPECT_FALSE(due);
}

}  // namespace
}  // namespace alpheus
