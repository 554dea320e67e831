// SPDX-License-Identifier: Apache-2.0
// A command judges the words that nodes say of a change: rounds of three nodes
// and a newcomer, by a clock of the test. Node 1 is the primary's.
#include "api/admin/change_inquiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/base/ids.h"

namespace alpheus {
namespace {

using recovery::ChangeState;
using recovery::ChangeWord;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Answer = ChangeInquiry::Answer;
using Over = std::optional<absl::StatusOr<AskedPrimary>>;

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kId = 7;
constexpr Epoch kRuns(5);

// From nodes 1, 2 and 3 to `to`; the newcomer is node 4.
recovery::AskChange Asked(const std::vector<NodeId>& to = {NodeId(1), NodeId(2),
                                                           NodeId(4)}) {
  const quorum::QuorumSizes sizes{3, 2, 2};
  recovery::AskChange asked{
      kId, {1, sizes, {NodeId(1), NodeId(2), NodeId(3)}, 2, sizes, to, {}}, {}};
  for (uint64_t node = 1; node <= 4; ++node) {
    asked.peers.push_back({NodeId(node), "host:" + std::to_string(node)});
  }
  return asked;
}

Answer Says(ChangeWord word, Epoch epoch = kRuns) {
  ChangeState said;
  said.id = kId;
  said.word = word;
  said.epoch = epoch;
  return {said, absl::OkStatus()};
}

Answer Because(Answer answer, const absl::Status& why) {
  answer.said->why = why;
  return answer;
}

// A node that serves its replica itself.
Answer Nobody() { return Says(ChangeWord::kNobody, Epoch(0)); }
// A node whose replica a process has that says nothing.
Answer Waiting() { return Says(ChangeWord::kWaiting, Epoch(0)); }
Answer Slow() { return {}; }
Answer Down() { return {std::nullopt, absl::UnavailableError("refused")}; }

Answer Made(std::vector<NodeId> missing) {
  Answer made = Says(ChangeWord::kInstalled, kRuns + 2);
  made.said->head_lsn = Lsn(3);
  made.said->next_lsn = Lsn(9);
  made.said->missing = std::move(missing);
  return made;
}

class ChangeInquiryTest : public ::testing::Test {
 protected:
  explicit ChangeInquiryTest(const recovery::AskChange& asked = Asked())
      : inquiry_({.log_name = "main",
                  .log_id = Uuid{1, 2},
                  .begun_by = Deadline::AtNanos(20 * kSecond),
                  .deadline = Deadline::AtNanos(60 * kSecond),
                  .gather_ns = 5 * kSecond},
                 asked) {}

  // The primary's node says this, the others that nobody is there.
  Over At(int64_t seconds, Answer of_primary) {
    return All(seconds, {std::move(of_primary), Nobody(), Nobody(), Nobody()});
  }
  Over All(int64_t seconds, std::vector<Answer> answers) {
    return inquiry_.Take(std::move(answers), seconds * kSecond);
  }
  static const RecoveryReport& ReportOf(const Over& over) {
    static const RecoveryReport kNone{};
    const bool is_made = over && over->ok() && (*over)->made;
    EXPECT_TRUE(is_made);
    return is_made ? *(*over)->made : kNone;
  }
  // Nobody is left: the caller opens the log.
  static bool IsLeftToTheCaller(const Over& over) {
    return over && over->ok() && !(*over)->made;
  }
  static absl::Status ErrorOf(const Over& over) {
    EXPECT_TRUE(over && !over->ok());
    return over && !over->ok() ? over->status() : absl::OkStatus();
  }

  ChangeInquiry inquiry_;
};

TEST_F(ChangeInquiryTest, ChangeThatWasMadeIsReported) {
  EXPECT_FALSE(At(0, Waiting()));
  EXPECT_FALSE(At(1, Says(ChangeWord::kRunning)));
  const Over over = At(2, Made({}));
  const RecoveryReport& report = ReportOf(over);
  EXPECT_TRUE(report.was_running);
  EXPECT_EQ(report.log_id, (Uuid{1, 2}));
  EXPECT_EQ(report.epoch, kRuns + 2);
  EXPECT_EQ(report.head_lsn, Lsn(3));
  EXPECT_EQ(report.end_lsn, Lsn(8));
  EXPECT_THAT(report.absent_members, IsEmpty());
}

// A newcomer gets its copy, as long as there is time; others have gather_ns.
TEST_F(ChangeInquiryTest, NewcomersAreWaitedForAndOthersForAWhile) {
  EXPECT_FALSE(At(1, Made({NodeId(4), NodeId(2)})));
  EXPECT_FALSE(At(5, Made({NodeId(2)})));
  EXPECT_THAT(ReportOf(At(6, Made({NodeId(2)}))).absent_members,
              ElementsAre(HasSubstr("node 2: not in sync yet")));
}

TEST_F(ChangeInquiryTest, NewcomerIsNotWaitedForForEver) {
  EXPECT_FALSE(At(1, Made({NodeId(4)})));
  EXPECT_FALSE(At(59, Made({NodeId(4)})));
  EXPECT_THAT(ReportOf(At(60, Made({NodeId(4)}))).absent_members,
              ElementsAre(HasSubstr("node 4")));
}

// CIQ3. A node that is slow for a round is no primary that is gone.
TEST_F(ChangeInquiryTest, WhatIsMadeStaysMade) {
  EXPECT_FALSE(At(1, Made({NodeId(4)})));
  EXPECT_FALSE(At(2, Slow()));
  EXPECT_FALSE(At(2, Made({NodeId(4)})));
  EXPECT_FALSE(At(3, Down()));
  EXPECT_THAT(ReportOf(At(4, Nobody())).absent_members,
              ElementsAre(HasSubstr("node 4")));
}

TEST_F(ChangeInquiryTest, RefusalSaysThatNothingWasChanged) {
  const absl::Status error =
      ErrorOf(At(1, Because(Says(ChangeWord::kRefused),
                            absl::FailedPreconditionError("another list"))));
  EXPECT_TRUE(absl::IsFailedPrecondition(error)) << error;
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("log main: its primary, in epoch 5"),
                    HasSubstr("another list. Nothing was changed")));
}

TEST_F(ChangeInquiryTest, CutOffChangeIsToBeMadeAgain) {
  const absl::Status error = ErrorOf(At(1, Says(ChangeWord::kCutOff)));
  EXPECT_TRUE(absl::IsUnavailable(error)) << error;
  EXPECT_THAT(error.message(), HasSubstr("run the same command again"));
}

// A process that was primary says no, and a later one has not said anything.
TEST_F(ChangeInquiryTest, LatestPrimaryDecides) {
  const Answer no = Because(Says(ChangeWord::kRefused, kRuns),
                            absl::UnavailableError("records are open"));
  EXPECT_FALSE(
      All(1, {no, Says(ChangeWord::kWaiting, kRuns + 1), Nobody(), Nobody()}));
  EXPECT_FALSE(
      All(2, {no, Says(ChangeWord::kRunning, kRuns + 1), Nobody(), Nobody()}));
  EXPECT_TRUE(ReportOf(All(3, {no, Made({}), Nobody(), Nobody()})).was_running);
}

// CIQ1.
TEST_F(ChangeInquiryTest, WithoutAPrimaryTheCallerMakesTheChangeAtOnce) {
  const Over over = All(0, {Nobody(), Nobody(), Nobody(), Down()});
  EXPECT_TRUE(IsLeftToTheCaller(over));
  EXPECT_EQ((*over)->leaving, std::nullopt);
}

TEST_F(ChangeInquiryTest, ProcessThatSaysNothingHasAThirdOfTheTime) {
  for (const Answer& answer : {Waiting(), Slow()}) {
    EXPECT_FALSE(At(0, answer));
    EXPECT_FALSE(At(19, answer));
    EXPECT_TRUE(IsLeftToTheCaller(At(20, answer)));
  }
}

// It makes somebody else's change; the second of two that wait says so.
TEST_F(ChangeInquiryTest, BusyPrimaryIsWaitedFor) {
  const Answer busy = Because(Says(ChangeWord::kWaiting),
                              absl::UnavailableError("another change"));
  EXPECT_FALSE(All(21, {Waiting(), busy, Nobody(), Nobody()}));
  EXPECT_FALSE(At(59, busy));
  EXPECT_THAT(ErrorOf(At(60, busy)).message(), HasSubstr("another change"));
}

// Its connection breaks while it opens the next epoch, and it says Claim anew.
TEST_F(ChangeInquiryTest, PrimaryThatHadBegunIsWaitedForBriefly) {
  EXPECT_FALSE(At(1, Says(ChangeWord::kRunning)));
  EXPECT_FALSE(At(2, Nobody()));
  EXPECT_TRUE(IsLeftToTheCaller(At(3, Nobody())));
}

// Its machine is gone, and does not even refuse.
TEST_F(ChangeInquiryTest, PrimaryThatMayGoOnIsWaitedForAsLongAsAChangeTakes) {
  EXPECT_FALSE(At(1, Says(ChangeWord::kRunning)));
  EXPECT_FALSE(At(10, Slow()));
  EXPECT_TRUE(IsLeftToTheCaller(At(11, Slow())));
}

// CIQ2.
TEST_F(ChangeInquiryTest, ChangeThatRunsAtTheDeadlineIsUnknown) {
  EXPECT_FALSE(At(59, Says(ChangeWord::kRunning)));
  const absl::Status error = ErrorOf(At(60, Says(ChangeWord::kRunning)));
  EXPECT_TRUE(absl::IsUnavailable(error)) << error;
  EXPECT_THAT(error.message(), AllOf(HasSubstr("the outcome is unknown"),
                                     HasSubstr("began to change"),
                                     HasSubstr("the same command completes")));
}

// A primary whose log has failed makes no change; the caller does.
TEST_F(ChangeInquiryTest, PrimaryWhoseLogHasFailedLeavesItToTheCaller) {
  EXPECT_FALSE(At(1, Says(ChangeWord::kRunning)));
  const Over over =
      At(3, Because(Says(ChangeWord::kNobody), absl::AbortedError("too few")));
  EXPECT_TRUE(IsLeftToTheCaller(over));
  EXPECT_EQ((*over)->leaving, std::nullopt) << "its node stays";
}

class LeavingPrimaryTest : public ChangeInquiryTest {
 protected:
  LeavingPrimaryTest()
      : ChangeInquiryTest(Asked({NodeId(2), NodeId(3), NodeId(4)})) {}
};

TEST_F(LeavingPrimaryTest, NodeOfThePrimaryIsNamed) {
  const Over over = At(0, Because(Says(ChangeWord::kNobody),
                                  absl::FailedPreconditionError("leaves")));
  ASSERT_TRUE(IsLeftToTheCaller(over));
  EXPECT_EQ((*over)->leaving, NodeId(1));
}

// One that was primary, and one that is: only the latter could hand over.
TEST_F(LeavingPrimaryTest, OnlyTheLatestPrimaryIsNamed) {
  const Over over =
      All(0, {Says(ChangeWord::kNobody, kRuns),
              Says(ChangeWord::kNobody, kRuns + 1), Nobody(), Nobody()});
  ASSERT_TRUE(IsLeftToTheCaller(over));
  EXPECT_EQ((*over)->leaving, std::nullopt);
}

}  // namespace
}  // namespace alpheus
