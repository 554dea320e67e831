// SPDX-License-Identifier: Apache-2.0
// Does the judge of clients' calls see each answer that the log must not give?
#include "tools/sim/checkers/call_judge.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "log/base/clock.h"
#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kCallsStart = 1'000'000'000;
constexpr int64_t kSlack = CallJudge::kSlackNanos;

class SetClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now; }
  int64_t now = kCallsStart;
};

class CallJudgeTest : public ::testing::Test {
 protected:
  BegunCall Begin(ClientCall call, int64_t patience_ns,
                  bool owns_open = false) {
    return judge_.Begin(call, Deadline::AtNanos(kCallsStart + patience_ns),
                        owns_open);
  }
  void Returned(const BegunCall& call, const absl::Status& status,
                bool log_has_failed = false, int64_t steady_since = 0) {
    judge_.Returned(call, Lsn(1), status, log_has_failed, steady_since);
  }
  std::string violated() const { return ViolatedBy(oracle_); }

  SetClock clock_;
  Oracle oracle_{clock_};
  CallJudge judge_{oracle_, clock_, 7};
};

TEST_F(CallJudgeTest, WhatALogMayAnswerViolatesNothing) {
  Returned(Begin(ClientCall::kAppend, 5), absl::OkStatus());
  Returned(Begin(ClientCall::kReserve, 5), absl::ResourceExhaustedError(""));
  Returned(Begin(ClientCall::kForce, 0), absl::DeadlineExceededError(""));
  Returned(judge_.Begin(ClientCall::kCleanup), absl::NotFoundError(""));
  Returned(judge_.Begin(ClientCall::kCleanupAll),
           absl::FailedPreconditionError(""));
  const bool owns_open = true;
  Returned(Begin(ClientCall::kReserve, 5, owns_open),
           absl::FailedPreconditionError(""));
  Returned(Begin(ClientCall::kAppend, 5, owns_open), absl::CancelledError(""));
  Returned(Begin(ClientCall::kForce, 5), absl::UnavailableError(""),
           /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "");
}

// DMG4 (damage_checker.h).
TEST_F(CallJudgeTest, OnlyCallsThatMoveTheHeadMeetDamage) {
  const auto meets = [&](ClientCall call, bool may) {
    judge_.Returned(Begin(call, 5), Lsn(1), absl::DataLossError(""),
                    /*log_has_failed=*/false, /*steady_since=*/0, may);
  };
  for (const ClientCall call :
       {ClientCall::kReserve, ClientCall::kAppend, ClientCall::kCleanup,
        ClientCall::kCleanupThrough, ClientCall::kCleanupAll}) {
    meets(call, true);
    EXPECT_EQ(violated(), "");
  }
  meets(ClientCall::kForce, true);
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, DamageThatNoFaultDidViolatesTheApi) {
  Returned(Begin(ClientCall::kAppend, 5), absl::DataLossError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, AFailureOfALogThatHasNotFailedIsSeen) {
  Returned(Begin(ClientCall::kForce, 5), absl::UnavailableError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, ACancelledForceOfALogThatHasNotFailedIsSeen) {
  const bool owns_open = true;  // that excuses appends only
  Returned(Begin(ClientCall::kForce, 5, owns_open), absl::CancelledError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, AnAbortedAppendOfALogThatHasNotFailedIsSeen) {
  const bool owns_open = true;
  Returned(Begin(ClientCall::kAppend, 5, owns_open), absl::AbortedError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, OnlyCleaningFindsNothing) {
  Returned(judge_.Begin(ClientCall::kCleanupThrough), absl::NotFoundError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, OnlyReservingRunsOutOfRoom) {
  Returned(Begin(ClientCall::kForce, 5), absl::ResourceExhaustedError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, AThreadWithoutReservationsIsNotInItsOwnWay) {
  Returned(Begin(ClientCall::kReserve, 5), absl::FailedPreconditionError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, ADeadlineThatHasNotPassedIsSeen) {
  Returned(Begin(ClientCall::kForce, 5), absl::DeadlineExceededError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, ACallWithoutADeadlineDoesNotReachOne) {
  Returned(judge_.Begin(ClientCall::kComplete),
           absl::DeadlineExceededError(""));
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, DamageIsNeverTold) {
  Returned(judge_.Begin(ClientCall::kCleanup), absl::DataLossError(""),
           /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "API");
}

TEST_F(CallJudgeTest, OkBehindAFailureThatWasToldViolatesInv20) {
  const BegunCall before = Begin(ClientCall::kForce, 5);
  Returned(Begin(ClientCall::kForce, 5), absl::UnavailableError(""),
           /*log_has_failed=*/true);
  // It may have been done by then.
  Returned(before, absl::OkStatus(), /*log_has_failed=*/true);
  // A copy writes into memory of the caller's.
  Returned(judge_.Begin(ClientCall::kCopy), absl::OkStatus(),
           /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "");
  Returned(Begin(ClientCall::kReserve, 5), absl::OkStatus(),
           /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "P-INV-20");
}

TEST_F(CallJudgeTest, ACallThatGoesOnBehindItsDeadlineIsSeen) {
  const BegunCall call = Begin(ClientCall::kForce, 5);
  clock_.now = kCallsStart + 5 + kSlack;
  Returned(call, absl::OkStatus());
  EXPECT_EQ(violated(), "");
  ++clock_.now;
  Returned(call, absl::OkStatus());
  EXPECT_EQ(violated(), "P-A3");
}

TEST_F(CallJudgeTest, WhoWaitsHearsSoonThatTheLogHasFailed) {
  const BegunCall call = Begin(ClientCall::kForce, 100 * kSlack);
  judge_.LogFailed();
  clock_.now = kCallsStart + kSlack;
  judge_.LogFailed();
  Returned(call, absl::UnavailableError(""), /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "");
  ++clock_.now;
  Returned(call, absl::UnavailableError(""), /*log_has_failed=*/true);
  EXPECT_EQ(violated(), "P-F7");
}

TEST_F(CallJudgeTest, ACallThatWaitsForNobodyIsOverSoon) {
  const BegunCall call = judge_.Begin(ClientCall::kCleanupThrough);
  clock_.now = kCallsStart + kSlack + 1;
  Returned(call, absl::OkStatus());
  EXPECT_EQ(violated(), "P-A3");
}

TEST_F(CallJudgeTest, AProcessThatStoodStillMayBeLate) {
  const BegunCall call = Begin(ClientCall::kForce, 5);
  clock_.now = kCallsStart + 10 * kSlack;
  constexpr int64_t kEver = std::numeric_limits<int64_t>::max();
  Returned(call, absl::OkStatus(), false, /*steady_since=*/clock_.now - kSlack);
  Returned(call, absl::OkStatus(), false, /*steady_since=*/kEver);
  // A call may take as long as its deadline lets it, and this one has none.
  Returned(judge_.Begin(ClientCall::kCleanupAll), absl::OkStatus());
  EXPECT_EQ(violated(), "");
  Returned(call, absl::OkStatus(), false,
           /*steady_since=*/clock_.now - kSlack - 1);
  EXPECT_EQ(violated(), "P-A3");
}

TEST_F(CallJudgeTest, WhoAskedToBeToldHearsOfTheEnd) {
  judge_.RequestedNotice();
  judge_.RequestedNotice();
  judge_.Notified();
  judge_.Notified();
  judge_.LogEnded("failed");
  EXPECT_EQ(violated(), "");
  judge_.RequestedNotice();
  judge_.LogEnded("gone");
  EXPECT_EQ(violated(), "P-F7");
}

TEST_F(CallJudgeTest, WhoRanACallbackMayBeLate) {
  const BegunCall call = Begin(ClientCall::kForce, 5);
  clock_.now = kCallsStart + 10 * kSlack;
  judge_.RanCallback();
  Returned(call, absl::OkStatus());
  EXPECT_EQ(violated(), "");
}

}  // namespace
}  // namespace alpheus::sim
