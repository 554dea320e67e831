// SPDX-License-Identifier: Apache-2.0
// A node whose replica is marked as deleted, and removes its records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "recovery/protocol/messages.h"
#include "tests/recovery/server/replica_server_fixture.h"
#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {
namespace {

using recovery::DeletionState;
using recovery::Mark;
using recovery::Message;

Deletion SaidBy(const std::optional<Message>& reply) {
  if (!reply.has_value()) return Deletion::kNone;
  const auto* const state = std::get_if<DeletionState>(&*reply);
  return state == nullptr ? Deletion::kNone : state->deletion;
}

Deletion MarkOf(ServedWorld& world) {
  return world.log(kLogA).deletion().deletion;
}

// From a new connection to a mark.
Peer& Marking(ServedWorld& world, Epoch epoch) {
  Peer& peer = world.Connected(1, 1);
  world.GetPromise(peer, epoch);
  EXPECT_EQ(world.Ask(peer, Mark{epoch}),
            Message(DeletionState{Deletion::kMarked, MembersOf()}));
  return peer;
}

// P-D1. On media when it is acknowledged; the records stay.
TEST(ReplicaServerDeletionTest, MarkIsOnMediaBeforeItsReply) {
  ServedWorld world({});
  PrimaryLog log(kLogA);
  SessionWithOneRecord(world, log);
  Marking(world, Epoch(6));
  EXPECT_EQ(PayloadsAfterACut(world, kLogA), std::vector<std::string>({"a"}));
  EXPECT_EQ(world.State(kLogA).superline.deletion, Deletion::kMarked);
  EXPECT_TRUE(world.State(kLogA).superline_cell.copies_agree());
}

// P-D1: by the owner of the promise alone, in its turn.
TEST(ReplicaServerDeletionTest, MarkNeedsThePromise) {
  {
    ServedWorld world({});
    EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), Mark{Epoch(5)})),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(MarkOf(world), Deletion::kNone);
  }
  {
    ServedWorld world({});
    Peer& owner = world.Connected(1, 1);
    world.GetPromise(owner, Epoch(5));
    EXPECT_EQ(FailedWith(world.Ask(owner, Mark{Epoch(4)})),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(MarkOf(world), Deletion::kNone);
  }
  // Another one was promised more meanwhile: the connection is gone.
  ServedWorld world({});
  Peer& owner = world.Connected(1, 1);
  world.GetPromise(owner, Epoch(5));
  world.GetPromise(world.Connected(2, 1), Epoch(6));
  world.Run(kMillisecond);
  EXPECT_TRUE(owner.ended);
  EXPECT_EQ(MarkOf(world), Deletion::kNone);
}

// P-D2, RS5: whoever asks for the replica, or for its records, hears of it.
TEST(ReplicaServerDeletionTest, MarkedReplicaPromisesAndShowsNothing) {
  ServedWorld world({});
  Marking(world, Epoch(5));
  Peer& opener = world.Connected(2, 1);
  EXPECT_EQ(
      SaidBy(world.Ask(opener, recovery::Prepare{{Epoch(9), opener.self()}})),
      Deletion::kMarked);
  EXPECT_EQ(world.log(kLogA).current_promise().epoch, Epoch(5));
  const Message requests[] = {recovery::View{},
                              recovery::Follow{},
                              recovery::Release{},
                              recovery::Scrub{},
                              recovery::Fetch{RingOffset(0), 64},
                              recovery::AskCreation{},
                              recovery::AskDeletion{}};
  for (const Message& request : requests) {
    EXPECT_EQ(SaidBy(world.Ask(opener, request)), Deletion::kMarked)
        << request.index();
  }
  Peer& maker = world.Connected(2, 2);
  EXPECT_EQ(FailedWith(world.Ask(
                maker, recovery::Format{1 << 20, MembersOf(), "orders"})),
            absl::StatusCode::kAlreadyExists);
}

// OSV4: a reader's key of before is void.
TEST(ReplicaServerDeletionTest, MarkVoidsTheKeysOfReaders) {
  ServedWorld world({});
  Peer& reader = world.Connected(2, 1);
  const auto viewed = world.Ask(reader, recovery::View{});
  ASSERT_TRUE(viewed && std::holds_alternative<recovery::Viewed>(*viewed));
  Marking(world, Epoch(5));
  world.Run(kMillisecond);
  EXPECT_TRUE(reader.ended);
}

TEST(ReplicaServerDeletionTest, UnmarkedReplicaSaysSo) {
  ServedWorld world({});
  EXPECT_EQ(world.Ask(world.Connected(1, 1), recovery::AskDeletion{}),
            Message(DeletionState{Deletion::kNone, MembersOf()}));
}

// Keeps what it was asked, and makes a small replica of it, or fails.
class TestRemover final : public recovery::LogCreator {
 public:
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Create(
      Uuid /*log_id*/, const recovery::Format& /*format*/) override {
    return absl::UnimplementedError("nothing is made here");
  }
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> RemoveRecords(
      Uuid log_id) override {
    removed.push_back(log_id);
    if (!error.ok()) return error;
    pmem_ = FormattedRegion(log_id, kNode);
    auto left = std::make_unique<WatchedLog>(*pmem_, nullptr);
    EXPECT_TRUE(left->MarkDeleted(Deletion::kDecided).ok());
    return left;
  }

  std::vector<Uuid> removed;
  absl::Status error;

 private:
  std::unique_ptr<model::ModelPersistence> pmem_;
};

// P-D4. All connections end before the records go, but for the asker's, which
// hears of it, and may ask again.
TEST(ReplicaServerDeletionTest, RemovedLogIsServedAsDeleted) {
  TestRemover remover;
  ServedWorld::Options options;
  options.server.creator = &remover;
  ServedWorld world(options);
  Peer& other = world.Connected(2, 1);
  Peer& asker = Marking(world, Epoch(5));
  EXPECT_EQ(SaidBy(world.Ask(asker, recovery::Remove{})), Deletion::kDecided);
  EXPECT_EQ(remover.removed, std::vector<Uuid>({kLogA}));
  world.Run(kMillisecond);
  EXPECT_TRUE(other.ended);
  EXPECT_EQ(SaidBy(world.Ask(asker, recovery::AskDeletion{})),
            Deletion::kDecided);
  EXPECT_EQ(SaidBy(world.Ask(world.Connected(2, 2), recovery::AskDeletion{})),
            Deletion::kDecided);
  EXPECT_TRUE(world.server().RemoveLog(kLogA).ok());
}

// The mark is on media before the records go, whatever comes of those.
TEST(ReplicaServerDeletionTest, RemovalThatFailsLeavesTheDecision) {
  TestRemover remover;
  remover.error = absl::ResourceExhaustedError("full");
  ServedWorld::Options options;
  options.server.creator = &remover;
  ServedWorld world(options);
  EXPECT_EQ(FailedWith(world.Ask(world.Connected(1, 1), recovery::Remove{})),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(world.State(kLogA).superline.deletion, Deletion::kDecided);
}

// A node that keeps no files has the mark alone.
TEST(ReplicaServerDeletionTest, RemovalWithoutACreatorIsAMark) {
  ServedWorld world({});
  EXPECT_EQ(SaidBy(world.Ask(world.Connected(1, 1), recovery::Remove{})),
            Deletion::kDecided);
  EXPECT_EQ(MarkOf(world), Deletion::kDecided);
  Peer& late = world.Connected(1, 2);
  EXPECT_EQ(SaidBy(world.Ask(late, recovery::Remove{})), Deletion::kDecided);
}

// Out of turn: in the middle of an opening.
TEST(ReplicaServerDeletionTest, RemovalByAnOpenerIsRefused) {
  ServedWorld world({});
  Peer& opener = world.Connected(1, 1);
  world.GetPromise(opener, Epoch(5));
  world.GetRepairOpened(opener, Epoch(5));
  EXPECT_EQ(FailedWith(world.Ask(opener, recovery::Remove{})),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MarkOf(world), Deletion::kNone);
}

}  // namespace
}  // namespace alpheus::testing
