// SPDX-License-Identifier: Apache-2.0
// Places of those who have no promise: by what they ask for, so that none of
// them keeps another kind out (ADM1 of connection_admission.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "log/base/random.h"
#include "quorum/members/cluster_key.h"
#include "tests/recovery/server/replica_server_fixture.h"
#include "tests/recovery/server/served_world.h"

namespace alpheus::testing {

using recovery::View;

namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr size_t kWaiting = 3;
constexpr size_t kFollowers = 2;

ServedWorld::Options FewPlaces() {
  ServedWorld::Options options;
  options.server.waiting_connections_max = kWaiting;
  options.server.followers_max = kFollowers;
  return options;
}

class ReplicaServerPlacesTest : public ::testing::Test {
 protected:
  Peer& NewPeer() {
    world_.Run(1'000);  // none is as old as another one
    return world_.Connected(1, ++incarnation_);
  }
  Peer& Follower() {
    Peer& peer = NewPeer();
    world_.Ask(peer, View{});
    world_.Ask(peer, recovery::Follow{});
    return peer;
  }
  uint64_t NoRoom() {
    return world_.server().rejects().count(recovery::RejectReason::kNoRoom);
  }
  void ExpectOthersGetIn() {
    const auto viewed = world_.Ask(NewPeer(), View{});
    EXPECT_TRUE(viewed && std::holds_alternative<recovery::Viewed>(*viewed));
    const auto scrubbed = world_.Ask(NewPeer(), recovery::Scrub{});
    EXPECT_TRUE(scrubbed &&
                std::holds_alternative<recovery::Scrubbed>(*scrubbed));
    Peer& primary = NewPeer();
    world_.GetPromise(primary, Epoch(++epoch_));
    EXPECT_FALSE(primary.ended);
  }

  ServedWorld world_{FewPlaces()};
  uint64_t incarnation_ = 0;
  uint64_t epoch_ = 4;
};

TEST_F(ReplicaServerPlacesTest, ReadersThatFollowKeepNobodyOut) {
  std::vector<Peer*> followers;
  for (size_t i = 0; i < kFollowers; ++i) followers.push_back(&Follower());
  for (int i = 0; i < 5; ++i) {
    Peer& late = NewPeer();
    world_.Ask(late, View{});
    EXPECT_EQ(FailedWith(world_.Ask(late, recovery::Follow{})),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(NoRoom(), 5u);
  ASSERT_THAT(world_.reports(), SizeIs(1));
  EXPECT_THAT(world_.reports().front(), HasSubstr("--followers-max"));
  ExpectOthersGetIn();
  for (const Peer* follower : followers) EXPECT_FALSE(follower->ended);
}

TEST_F(ReplicaServerPlacesTest, FollowerThatIsStoppedMakesRoom) {
  const Peer& stopped = Follower();
  Peer& goes_on = Follower();
  world_.Run(2'000 * kMillisecond);
  world_.Ask(goes_on, recovery::Follow{});
  const Peer& late = Follower();
  EXPECT_FALSE(late.ended);
  EXPECT_FALSE(goes_on.ended);
  EXPECT_TRUE(stopped.ended);
}

TEST_F(ReplicaServerPlacesTest, LooksMakeRoomForLooksOnly) {
  std::vector<Peer*> readers;
  for (size_t i = 0; i < kWaiting + 2; ++i) {
    readers.push_back(&NewPeer());
    const auto viewed = world_.Ask(*readers.back(), View{});
    EXPECT_TRUE(viewed && std::holds_alternative<recovery::Viewed>(*viewed));
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    EXPECT_EQ(readers[i]->ended, i < 2) << i;
  }
  EXPECT_EQ(NoRoom(), 2u);
  ASSERT_THAT(world_.reports(), SizeIs(1));
  EXPECT_THAT(world_.reports().front(), HasSubstr("--waiting-max"));
  ExpectOthersGetIn();
}

TEST_F(ReplicaServerPlacesTest, WhoAsksForNothingMakesRoom) {
  Peer& reader = NewPeer();
  world_.Ask(reader, View{});
  std::vector<Peer*> silent;
  for (size_t i = 0; i < 2 * kWaiting; ++i) silent.push_back(&NewPeer());
  for (size_t i = 0; i < silent.size(); ++i) {
    EXPECT_EQ(silent[i]->ended, i < kWaiting) << i;
  }
  EXPECT_FALSE(reader.ended);
  ExpectOthersGetIn();
}

// One that goes on asking stays before one that came later and does not.
TEST_F(ReplicaServerPlacesTest, WhoAskedForSomethingLatelyStays) {
  std::vector<Peer*> asking;
  for (size_t i = 0; i < kWaiting; ++i) {
    asking.push_back(&NewPeer());
    world_.Ask(*asking.back(), recovery::Scrub{});
  }
  world_.Run(kMillisecond);
  world_.Ask(*asking.front(), recovery::Scrub{});
  world_.Ask(NewPeer(), recovery::Scrub{});
  EXPECT_FALSE(asking[0]->ended);
  EXPECT_TRUE(asking[1]->ended);
  EXPECT_FALSE(asking[2]->ended);
}

TEST_F(ReplicaServerPlacesTest, PrimariesTakeNoPlace) {
  Peer& holder = NewPeer();
  world_.GetPromise(holder, Epoch(++epoch_));
  for (size_t i = 0; i < 2 * kWaiting; ++i) {
    Peer& late = NewPeer();
    // The request is of a lower epoch.
    const auto refused =
        world_.Ask(late, recovery::Prepare{{Epoch(1), late.self()}});
    EXPECT_TRUE(refused && std::holds_alternative<recovery::Refused>(*refused));
  }
  EXPECT_FALSE(holder.ended);
  world_.GetRepairOpened(holder, Epoch(epoch_));
}

// A host that floods a node loses connections of its own.
TEST(ReplicaServerUnauthenticatedTest, OnesOfTheHostThatHasMostMakeRoom) {
  Random random(5);
  ServedWorld::Options options;
  options.network.hosts = 3;
  options.server.unproved_connections_max = 4;
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{std::byte{1}};
  options.server.credentials = {quorum::ClusterKey(bytes), &random};
  ServedWorld world(options);
  const Peer& lone = world.Connected(1, 1);
  for (uint64_t i = 0; i < 20; ++i) {
    world.Run(1'000);
    world.Connected(2, 100 + i);
  }
  EXPECT_FALSE(lone.ended);
  EXPECT_EQ(world.server().rejects().count(recovery::RejectReason::kTooSlow),
            17u);
  EXPECT_EQ(world.server().connection_count(), 4u);
}

// Refusals of the adapter are counted and told with those of the node.
TEST(ReplicaServerUnauthenticatedTest, RefusalsOfTheAdapterAreCountedAndTold) {
  ServedWorld world({});
  for (int i = 0; i < 3; ++i) {
    world.server().NoteRejected(
        "10.0.0.9:" + std::to_string(1000 + i),
        recovery::Rejection(recovery::RejectReason::kTooSlow,
                            absl::DeadlineExceededError("said nothing")));
  }
  EXPECT_EQ(world.server().rejects().count(recovery::RejectReason::kTooSlow),
            3u);
  ASSERT_THAT(world.reports(), SizeIs(1));
  EXPECT_THAT(world.reports().front(), HasSubstr("10.0.0.9"));
  EXPECT_THAT(world.reports().front(), HasSubstr("counted, not reported"));
}

}  // namespace
}  // namespace alpheus::testing
