// SPDX-License-Identifier: Apache-2.0
// Is an operator warned in time that the counters of ballots come to their end?
#include "quorum/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CounterWarningTest, CountersAreWarnedOfOnceHalfAreUsed) {
  const PrimaryId primary{NodeId(1), 7};
  EXPECT_THAT(CounterWarning(Epoch(0)), IsEmpty());
  EXPECT_THAT(CounterWarning(PackBallot({1, primary})), IsEmpty());
  EXPECT_THAT(CounterWarning(PackBallot({kBallotCounterAlarm, primary})),
              IsEmpty());
  EXPECT_THAT(CounterWarning(PackBallot({kBallotCounterAlarm + 1, primary})),
              HasSubstr("count up to 536870911, and are at 268435456"));
  EXPECT_THAT(CounterWarning(PackBallot({kBallotCounterMax, primary})),
              HasSubstr("are at 536870911"));
}

}  // namespace
}  // namespace alpheus::quorum
