// SPDX-License-Identifier: Apache-2.0
#include "recovery/election/membership_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "log/base/random.h"
#include "quorum/membership/membership.h"
#include "recovery/election/election.h"
#include "tests/quorum/membership/noted_membership.h"

namespace alpheus::testing {

using quorum::SessionState;
using recovery::Election;
using recovery::ElectionOptions;
using recovery::Heard;
using recovery::Instruction;
using recovery::InstructionKind;
using recovery::MembershipEntries;
using recovery::PrimaryWord;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

constexpr quorum::PrimaryId kSelf{NodeId(2), 0x102};
constexpr quorum::PrimaryId kOther{NodeId(1), 0x101};

class MembershipEntriesTest : public ::testing::Test {
 protected:
  MembershipEntriesTest()
      : random_(7),
        election_(random_, Options(), now_),
        entries_(membership_,
                 {.self = kSelf, .priority = 3, .address = "b:7000"}) {}

  static ElectionOptions Options() {
    ElectionOptions options;
    options.self = kSelf;
    options.members = {NodeId(1), NodeId(2), NodeId(3)};
    options.opening_quorum = 2;
    return options;
  }

  std::optional<Epoch> Poll() { return entries_.Poll(election_); }
  void OwnNodeHas(uint64_t log_epoch, uint64_t persisted,
                  PrimaryWord word = PrimaryWord::kGone) {
    Heard heard;
    heard.word = word;
    heard.log_epoch = Epoch(log_epoch);
    heard.persisted_lsn = Lsn(persisted);
    election_.OnHeard(kSelf.node, heard, now_);
  }
  void Instruct(InstructionKind kind, uint64_t id) {
    Heard heard;
    heard.instruction = Instruction{kind, kSelf.node, id};
    election_.OnHeard(NodeId(1), heard, now_);
    static_cast<void>(election_.Poll(now_));
  }
  std::optional<Epoch> ServiceNames(
      const std::optional<quorum::LivePrimary>& primary) {
    membership_.live = primary;
    return Poll();
  }
  // A session ends, and the next one has not read the lists yet.
  void SessionIsRenewed() {
    membership_.state = SessionState::kExpired;
    membership_.settled = false;
    EXPECT_EQ(Poll(), std::nullopt);
    EXPECT_EQ(membership_.state, SessionState::kConnecting);
    membership_.state = SessionState::kConnected;
    EXPECT_EQ(Poll(), std::nullopt);
  }

  int64_t now_ = 1'000'000'000;
  Random random_;
  Election election_;
  NotedMembership membership_;
  MembershipEntries entries_;
};

TEST_F(MembershipEntriesTest, CandidateStandsOnceAndSaysHowFreshItIs) {
  EXPECT_THAT(membership_.Calls(), ElementsAre("describe 0 0 3"));
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("stand"));
  OwnNodeHas(5, 100);
  Poll();
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("describe 5 100 3"));
}

// ENT5.
TEST_F(MembershipEntriesTest, ReplicaThatFollowsIsDescribedOnceAnEpoch) {
  Poll();
  membership_.Calls();
  for (const uint64_t persisted : {100u, 200u, 300u}) {
    OwnNodeHas(5, persisted, PrimaryWord::kHeard);
    Poll();
  }
  EXPECT_THAT(membership_.Calls(), ElementsAre("describe 5 100 3"));
  OwnNodeHas(6, 400, PrimaryWord::kHeard);
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("describe 6 400 3"));
  OwnNodeHas(6, 500, PrimaryWord::kSilent);
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("describe 6 500 3"));
}

TEST_F(MembershipEntriesTest, ReplicaThatTheNodeDoesNotHaveChangesNothing) {
  OwnNodeHas(5, 100);
  Poll();
  membership_.Calls();
  OwnNodeHas(0, 0);
  Poll();
  EXPECT_THAT(membership_.Calls(), IsEmpty());
}

// ENT1.
TEST_F(MembershipEntriesTest, PrimaryIsNamedWhileItHasTheLogOpen) {
  Poll();
  membership_.Calls();
  entries_.Opened(Epoch(9), {.configuration_id = 4});
  EXPECT_THAT(membership_.Calls(),
              ElementsAre("announce 9 b:7000", "publish 4"));
  // ENT4: the log goes on with other members.
  entries_.Opened(Epoch(11), {.configuration_id = 5});
  EXPECT_THAT(membership_.Calls(),
              ElementsAre("announce 11 b:7000", "publish 5"));
  entries_.Ended();
  EXPECT_THAT(membership_.Calls(), ElementsAre("retract"));
}

// ENT2.
TEST_F(MembershipEntriesTest, DrainedProcessStandsAgainOnceItIsElected) {
  Poll();
  membership_.Calls();
  Instruct(InstructionKind::kDrain, 1);
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("withdraw"));
  Instruct(InstructionKind::kElect, 2);
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("stand"));
}

// ENT3.
TEST_F(MembershipEntriesTest, ExpiredSessionIsRenewed) {
  Poll();
  membership_.Calls();
  membership_.state = SessionState::kExpired;
  Poll();
  EXPECT_THAT(membership_.Calls(), ElementsAre("renew"));
}

TEST_F(MembershipEntriesTest, PrimaryThatIsNamedNoMoreHasLeft) {
  EXPECT_EQ(ServiceNames(quorum::LivePrimary{Epoch(5), kOther, "a:7000"}),
            std::nullopt);
  EXPECT_EQ(ServiceNames(quorum::LivePrimary{Epoch(6), kOther, "a:7000"}),
            std::nullopt);
  EXPECT_EQ(ServiceNames(std::nullopt), Epoch(6));
  EXPECT_EQ(Poll(), std::nullopt);
}

// ENT6.
TEST_F(MembershipEntriesTest, PrimaryThatLeftBeforeTheNextSessionHasLeft) {
  ServiceNames(quorum::LivePrimary{Epoch(5), kOther, "a:7000"});
  SessionIsRenewed();
  membership_.settled = true;
  EXPECT_EQ(Poll(), Epoch(5));
  EXPECT_EQ(Poll(), std::nullopt);
}

// ENT6.
TEST_F(MembershipEntriesTest, PrimaryThatIsNamedInTheNextSessionHasNotLeft) {
  ServiceNames(quorum::LivePrimary{Epoch(5), kOther, "a:7000"});
  SessionIsRenewed();
  membership_.settled = true;
  EXPECT_EQ(ServiceNames(quorum::LivePrimary{Epoch(5), kOther, "a:7000"}),
            std::nullopt);
  EXPECT_EQ(ServiceNames(std::nullopt), Epoch(5));
}

// ENT6. Somebody deletes the znode of a primary that is there.
TEST_F(MembershipEntriesTest, PrimaryLeavesOnceHoweverOftenItsEntryGoes) {
  const quorum::LivePrimary named{Epoch(5), kOther, "a:7000"};
  ServiceNames(named);
  EXPECT_EQ(ServiceNames(std::nullopt), Epoch(5));
  EXPECT_EQ(ServiceNames(named), std::nullopt);
  EXPECT_EQ(ServiceNames(std::nullopt), std::nullopt);
  ServiceNames(quorum::LivePrimary{Epoch(6), kOther, "a:7000"});
  EXPECT_EQ(ServiceNames(std::nullopt), Epoch(6));
}

TEST_F(MembershipEntriesTest, OwnEntryThatGoesSaysNothing) {
  ServiceNames(quorum::LivePrimary{Epoch(5), kSelf, "b:7000"});
  EXPECT_EQ(ServiceNames(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace alpheus::testing
