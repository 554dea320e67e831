// SPDX-License-Identifier: Apache-2.0
// A message out of turn ends its connection, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "recovery/server/replica_server.h"
#include "tests/recovery/server/replica_server_fixture.h"

namespace alpheus::testing {

using recovery::Install;
using recovery::Message;

namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

enum class At { kControl, kPromised, kRepairOpened };

Peer& PeerAt(ServedWorld& world, At phase, Epoch epoch) {
  Peer& peer = world.Connected(2, epoch.value);
  if (phase >= At::kPromised) world.GetPromise(peer, epoch);
  if (phase >= At::kRepairOpened) world.GetRepairOpened(peer, epoch);
  return peer;
}

std::vector<Message> EveryMessage(const Peer& peer, Epoch epoch,
                                  const recovery::Installation& installation) {
  return {recovery::Format{1 << 20, MembersOf(), "a"},
          recovery::Formatted{},
          recovery::Prepare{{epoch, peer.self()}},
          recovery::Promised{fabric::RegionKey(1), 1, fabric::RegionKey(2)},
          recovery::Refused{{epoch, peer.self()}},
          recovery::OpenForRepair{epoch, false},
          recovery::RepairOpened{fabric::RegionKey(1)},
          Install{installation, kTheSession, 4},
          recovery::Installed{},
          recovery::Failed{absl::InternalError("x")},
          recovery::View{},
          recovery::Viewed{fabric::RegionKey(1), 1},
          recovery::Release{},  // nobody here wants it
          recovery::Released{},
          recovery::Challenge{{1, 2}},  // nobody here has a key
          recovery::Challenged{{1, 2}, {}},
          recovery::Prove{},
          recovery::Proved{},
          recovery::Follow{},
          recovery::Followed{},
          recovery::Scrub{},
          recovery::Scrubbed{},
          recovery::Claim{{epoch, peer.self()}},  // of another machine
          recovery::Wanted{{epoch, peer.self()}},
          recovery::Fetch{RingOffset(0), 64},
          recovery::Fetched{},
          recovery::Changed{},
          recovery::AskCreation{},
          recovery::Created{MembersOf(), false},
          recovery::Hear{},
          recovery::Heard{},
          recovery::Instruct{{recovery::InstructionKind::kElect, NodeId(1), 1}},
          recovery::AskChange{1, {1, {}, {}, 2, {}, {}, {}}, {}},
          recovery::ChangeState{},
          recovery::Mark{epoch},
          recovery::Remove{},
          recovery::AskDeletion{},
          recovery::DeletionState{Deletion::kMarked, MembersOf()}};
}

// The log is of no more use after these (replica_server_deletion_test.cc).
bool DeletesInTurn(At phase, const Message& message) {
  if (std::holds_alternative<recovery::Mark>(message)) {
    return phase == At::kPromised;
  }
  return std::holds_alternative<recovery::Remove>(message) &&
         phase != At::kRepairOpened;
}

bool IsInTurn(At phase, const Message& message) {
  if (std::holds_alternative<recovery::Prepare>(message)) return true;
  if (std::holds_alternative<recovery::View>(message) ||
      std::holds_alternative<recovery::Follow>(message) ||
      std::holds_alternative<recovery::AskCreation>(message) ||
      std::holds_alternative<recovery::Scrub>(message) ||
      std::holds_alternative<recovery::Fetch>(message) ||
      std::holds_alternative<recovery::Hear>(message) ||
      std::holds_alternative<recovery::AskDeletion>(message) ||
      std::holds_alternative<recovery::Instruct>(message) ||
      std::holds_alternative<recovery::AskChange>(message)) {
    return phase == At::kControl;
  }
  if (phase == At::kPromised)
    return std::holds_alternative<recovery::OpenForRepair>(message);
  return phase == At::kRepairOpened && std::holds_alternative<Install>(message);
}

// In every phase every message that has no place there: Failed, and the end of
// that connection. A session of another log never notices.
TEST(ReplicaServerTest, MessageOutOfTurnEndsItsConnectionOnly) {
  for (const At phase : {At::kControl, At::kPromised, At::kRepairOpened}) {
    ServedWorld world(WithLogB());
    PrimaryLog log_b(kLogB);
    log_b.OpenEpoch(Epoch(3));
    Peer& bystander = world.Connected(1, 1, kLogB);
    world.GetInstalled(bystander, log_b);
    uint64_t failed = 0;
    for (uint64_t kind = 0; kind < std::variant_size_v<Message>; ++kind) {
      const Epoch epoch(10 + kind);
      PrimaryLog log(kLogA);
      log.OpenEpoch(epoch);
      Peer& peer = PeerAt(world, phase, epoch);
      const Message message =
          EveryMessage(peer, epoch, log.installation()).at(kind);
      if (DeletesInTurn(phase, message)) {
        ASSERT_TRUE(peer.Close().ok());
        world.Run(kMillisecond);
        continue;
      }
      const auto reply = world.Ask(peer, message);
      ASSERT_TRUE(reply.has_value()) << static_cast<int>(phase) << ", " << kind;
      if (IsInTurn(phase, message)) {
        EXPECT_EQ(FailedWith(reply), absl::StatusCode::kOk);
        ASSERT_TRUE(peer.Close().ok());
        world.Run(kMillisecond);
        continue;
      }
      EXPECT_NE(FailedWith(reply), absl::StatusCode::kOk)
          << static_cast<int>(phase) << ", " << kind;
      world.Run(kMillisecond);
      EXPECT_TRUE(peer.ended);
      EXPECT_EQ(world.server().counters().failed, ++failed);
      EXPECT_EQ(world.server().connection_count(), 1u);
    }
    EXPECT_FALSE(bystander.ended);
    Replicate(world, bystander, log_b, "b");
  }
}

TEST(ReplicaServerTest, NonsenseEndsItsConnectionOnly) {
  ServedWorld world(WithLogB());
  PrimaryLog log_b(kLogB);
  log_b.OpenEpoch(Epoch(3));
  Peer& bystander = world.Connected(1, 1, kLogB);
  world.GetInstalled(bystander, log_b);
  Random random(7);
  for (size_t bytes = 1; bytes <= 4096; bytes *= 4) {
    std::vector<std::byte> nonsense(bytes);
    for (std::byte& b : nonsense) b = static_cast<std::byte>(random.Next());
    Peer& peer = world.Connected(2, 1);
    peer.SendBytes(nonsense);
    world.Run(kMillisecond);
    ASSERT_THAT(peer.replies, SizeIs(1));
    // Bytes that are no message have no sum that holds.
    EXPECT_EQ(peer.replies.front(), Message(recovery::Changed{}));
    EXPECT_TRUE(peer.ended);
    Replicate(world, bystander, log_b, absl::StrCat(bytes));
  }
  // An immediate has no place before the session.
  Peer& early = world.Connected(2, 1);
  ASSERT_TRUE(early.Announce(1).ok());
  world.Run(kMillisecond);
  EXPECT_TRUE(early.ended);
  Replicate(world, bystander, log_b, "last");
  EXPECT_FALSE(bystander.ended);
}

TEST(ReplicaServerTest, OtherEpochsThanThePromisedOneFail) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(9));
  for (const uint64_t epoch : {7, 9}) {
    Peer& peer = PeerAt(world, At::kPromised, Epoch(8));
    EXPECT_EQ(FailedWith(
                  world.Ask(peer, recovery::OpenForRepair{Epoch(epoch), true})),
              absl::StatusCode::kFailedPrecondition);
    world.Run(kMillisecond);
  }
  Peer& peer = PeerAt(world, At::kRepairOpened, Epoch(8));
  EXPECT_EQ(
      FailedWith(world.Ask(peer, Install{log.installation(), kTheSession, 4})),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(world.State(kLogA).superline.repairing);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
}

TEST(ReplicaServerTest, OnlyThePromiseOwnerInstalls) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& holder = world.Connected(1, 1);
  world.GetPromise(holder, Epoch(5));
  world.GetRepairOpened(holder, Epoch(5));
  Peer& other = world.Connected(2, 1);
  const Install install{log.installation(), kTheSession, 4};
  EXPECT_EQ(FailedWith(world.Ask(other, install)),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
  EXPECT_EQ(world.Ask(holder, install), Message(recovery::Installed{}));
}

TEST(ReplicaServerTest, LogThatIsNotThereIsNotInstalled) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  log.Append("a");
  log.OpenEpoch(Epoch(6));
  Peer& peer = PeerAt(world, At::kRepairOpened, Epoch(6));
  EXPECT_EQ(
      FailedWith(world.Ask(peer, Install{log.installation(), kTheSession, 4})),
      absl::StatusCode::kDataLoss);
  world.Run(kMillisecond);
  EXPECT_TRUE(peer.ended);
  // The replica is ready for the next one.
  log.OpenEpoch(Epoch(7));
  world.GetInstalled(world.Connected(2, 2), log);
  EXPECT_THAT(PayloadsAfterACut(world, kLogA), ElementsAre("a"));
}

TEST(ReplicaServerTest, MoreCreditsThanReceivesAreRefused) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  log.OpenEpoch(Epoch(5));
  Peer& peer = PeerAt(world, At::kRepairOpened, Epoch(5));
  EXPECT_EQ(FailedWith(
                world.Ask(peer, Install{log.installation(), kTheSession, 129})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world.State(kLogA).superline.log_epoch, Epoch(0));
}

// Two requests at once: the second waits for its turn.
TEST(ReplicaServerTest, RequestThatDoesNotWaitForItsReplyIsRepliedTo) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ServedWorld world(Seeded(seed));
    Peer& peer = world.Connected(1, 1);
    peer.Send(recovery::Prepare{{Epoch(5), peer.self()}});
    peer.Send(recovery::Prepare{{Epoch(5), peer.self()}});
    world.Run(kMillisecond);
    EXPECT_FALSE(peer.ended) << seed;
    EXPECT_EQ(world.server().counters().promised, 2u) << seed;
  }
}

}  // namespace
}  // namespace alpheus::testing
