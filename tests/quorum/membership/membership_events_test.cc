// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/membership_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace alpheus::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kSession = MembershipEvent::kSessionChanged;
constexpr auto kMembers = MembershipEvent::kRegistrationsChanged;

TEST(MembershipEventsTest, EachKindIsTakenOnceInTheOrderOfItsFirst) {
  MembershipEvents events;
  EXPECT_THAT(events.Take(), IsEmpty());
  events.Note(kMembers);
  events.Note(kSession);
  events.Note(kMembers);
  EXPECT_THAT(events.Take(), ElementsAre(kMembers, kSession));
  EXPECT_THAT(events.Take(), IsEmpty());
}

TEST(MembershipEventsTest, WhatWasTakenMayComeAgain) {
  MembershipEvents events;
  events.Note(kSession);
  events.Take();
  events.Note(kSession);
  EXPECT_THAT(events.Take(), ElementsAre(kSession));
}

}  // namespace
}  // namespace alpheus::quorum
