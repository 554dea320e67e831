// SPDX-License-Identifier: Apache-2.0
// One fail-over, by what the programs have told: which rounds count, who the
// next primary is, and what the parts are (FOV1 to FOV3 of fail_over.h).
#include "bench/failover/alpheus/fail_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/failover/alpheus/notes.h"
#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kFault = 1'000 * kMilli;

class FailOverTest : public ::testing::Test {
 protected:
  FailOverTest() { Open(programs_[0], kMilli); }

  // Tells of an opening that took a millisecond for each step.
  static void Open(Notes& program, int64_t began_ns) {
    program.began_ns = began_ns;
    program.promised_ns = began_ns + kMilli;
    program.chosen_ns = began_ns + 2 * kMilli;
    program.installed_ns = began_ns + 3 * kMilli;
    program.opened_ns = began_ns + 4 * kMilli;
    program.first_ack_ns = began_ns + 5 * kMilli;
  }
  FailOver Begin() const {
    return FailOver({&programs_[0], &programs_[1], &programs_[2]});
  }

  std::array<Notes, 3> programs_{};
};

TEST_F(FailOverTest, UntouchedPrimaryMayBeLost) {
  programs_[1].failed_openings = 3;  // before
  const absl::Status status = Begin().CheckBegin();
  EXPECT_TRUE(status.ok()) << status;
}

// FOV1.
TEST_F(FailOverTest, LogThatChangedHandsBeforeTheFaultIsVoid) {
  const FailOver fail_over = Begin();
  Open(programs_[1], kFault - 20 * kMilli);
  const absl::Status status = fail_over.CheckBegin();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("node 2"));
}

// FOV1: also if the log came back to the first program.
TEST_F(FailOverTest, WrongSuspicionBeforeTheFaultIsVoid) {
  const FailOver fail_over = Begin();
  programs_[2].wrong_suspicions = 1;
  const absl::Status status = fail_over.CheckBegin();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("node 3"));
}

// FOV1.
TEST_F(FailOverTest, OpeningThatFailedBeforeTheFaultIsVoid) {
  const FailOver fail_over = Begin();
  ++programs_[1].failed_openings;
  EXPECT_TRUE(absl::IsAborted(fail_over.CheckBegin()));
}

// FOV1, FOV3: its record was durable after the fault only.
TEST_F(FailOverTest, OpeningThatBeganBeforeTheFaultIsVoid) {
  const FailOver fail_over = Begin();
  Open(programs_[1], kFault - 2 * kMilli);
  ASSERT_EQ(fail_over.Next(kFault), &programs_[1]);
  EXPECT_TRUE(
      absl::IsAborted(fail_over.PartsOf(programs_[1], kFault).status()));
}

// FOV2: not the first program, whose record is older, nor the one with the
// higher number.
TEST_F(FailOverTest, NextPrimaryIsTheFirstOneAfterTheFault) {
  const FailOver fail_over = Begin();
  EXPECT_EQ(fail_over.Next(kFault), nullptr);
  Open(programs_[2], kFault + 40 * kMilli);
  EXPECT_EQ(fail_over.Next(kFault), &programs_[2]);
  Open(programs_[1], kFault + 30 * kMilli);
  EXPECT_EQ(fail_over.Next(kFault), &programs_[1]);
}

// FOV3. Openings that failed before count for nothing.
TEST_F(FailOverTest, PartsMakeUpTheTotal) {
  programs_[1].failed_openings = 3;
  const FailOver fail_over = Begin();
  programs_[1].failed_openings = 5;
  Open(programs_[1], kFault + 10 * kMilli);
  const absl::StatusOr<Parts> parts = fail_over.PartsOf(programs_[1], kFault);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(*parts, (Parts{{"detection", 10},
                           {"promises", 1},
                           {"choice", 1},
                           {"repair", 1},
                           {"open", 2},
                           {"total", 15},
                           {kFailedOpenings, 2}}));
}

}  // namespace
}  // namespace alpheus::bench::failover
