// SPDX-License-Identifier: Apache-2.0
// Operations of clients, on a simulated network: what they do, what they cost,
// and what they refuse.
#include "api/remote/memory_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/client_messages.h"
#include "replication/persist/plan/update_cost.h"
#include "replication/wire/message_slots.h"
#include "tests/api/remote/memory_world.h"

namespace alpheus::testing {

using fabric::Operation;
using remote::MemoryClient;
using replication::PersistenceDomain;
using replication::Platform;
using replication::Transport;

namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Filled(size_t bytes, unsigned char with) {
  return std::vector<std::byte>(bytes, std::byte{with});
}

uint64_t WordAt(std::span<const std::byte> bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

// All that updates may be planned for, with an adapter that is simulated.
std::vector<Platform> Platforms() {
  std::vector<Platform> platforms;
  for (const auto domain :
       {PersistenceDomain::kMemory, PersistenceDomain::kHierarchy,
        PersistenceDomain::kSystem}) {
    for (const bool ddio : {true, false}) {
      for (const auto transport : {Transport::kTcp, Transport::kInfiniBand}) {
        platforms.push_back(
            {.domain = domain, .ddio = ddio, .transport = transport});
      }
    }
  }
  return platforms;
}

TEST(MemoryClientTest, ReadShowsWhatIsThere) {
  MemoryWorld world;
  std::ranges::fill(world.ring(), std::byte{0x5a});
  const auto client = world.Open(world.Reading(world.reader.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  EXPECT_EQ(client->region_bytes(0), kRingBytes);
  EXPECT_EQ(client->node(), NodeId(7));
  EXPECT_EQ(client->incarnation(), 0x1234U);
  std::vector<std::byte> into(100);
  ASSERT_TRUE(world.Read(*client, 0, 200, into).ok());
  EXPECT_EQ(into, Filled(100, 0x5a));
}

// One read is one operation, one doorbell and one round trip, and the node's
// program takes no completion for it.
TEST(MemoryClientTest, ReadIsOneRoundTripAndNoWorkOfTheNode) {
  MemoryWorld world;
  const auto client = world.Open(world.Reading(world.reader.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  world.Settle();
  const uint64_t taken = world.server->counters().completions;
  world.at(0).Forget();
  world.at(kNodeHost).Forget();
  std::vector<std::byte> into(64);
  for (uint64_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(world.Read(*client, 0, 64 * n, into).ok());
    EXPECT_EQ(world.at(0).counts().Of(Operation::kRead), n);
    EXPECT_EQ(world.at(0).counts().doorbells, n);
    EXPECT_EQ(client->counters().reads, n);
    EXPECT_EQ(client->counters().messages, n);
    EXPECT_EQ(client->counters().round_trips, n);
    EXPECT_EQ(client->counters().bytes_received, 64 * n);
  }
  EXPECT_EQ(world.at(0).counts().posted.size(), 1U);
  EXPECT_TRUE(world.at(kNodeHost).counts().posted.empty());
  EXPECT_EQ(world.server->counters().completions, taken);
}

TEST(MemoryClientTest, SwapTellsWhatWasThere) {
  MemoryWorld world;
  const auto client = world.Open(world.Updating(world.writer.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  EXPECT_EQ(*world.Swap(*client, 16, 0, 5), 0U);
  EXPECT_EQ(WordAt(world.inbox(), 16), 5U);
  EXPECT_EQ(*world.Swap(*client, 16, 4, 6), 5U);
  EXPECT_EQ(WordAt(world.inbox(), 16), 5U);
  EXPECT_EQ(client->counters().swaps, 2U);
  EXPECT_EQ(client->counters().round_trips, 2U);
}

// Two hosts swap one word many times: each swap ends once, and each value is
// replaced once.
TEST(MemoryClientTest, SwapsOfTwoClientsAreAtomic) {
  MemoryWorld world;
  const auto a = world.Open(world.Updating(world.writer.token), 0);
  const auto b = world.Open(world.Updating(world.admin.token), 2);
  ASSERT_TRUE(a->is_open() && b->is_open());
  uint64_t won = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    size_t ended = 0;
    for (MemoryClient* client : {a.get(), b.get()}) {
      ASSERT_TRUE(
          client
              ->CompareAndSwap(8, round, round + 1,
                               [&](const absl::StatusOr<uint64_t>& was) {
                                 ++ended;
                                 won += *was == round ? 1 : 0;
                               })
              .ok());
    }
    ASSERT_TRUE(world.Run([&] { return ended == 2; }));
  }
  EXPECT_EQ(won, 20U);
  EXPECT_EQ(WordAt(world.inbox(), 8), 20U);
}

// On each platform an update costs what its plan says, at both ends.
TEST(MemoryClientTest, UpdateCostsWhatItsPlanSays) {
  for (const Platform& platform : Platforms()) {
    SCOPED_TRACE(replication::PlatformToString(platform));
    MemoryWorld world({.platform = platform});
    const auto client = world.Open(world.Updating(world.writer.token));
    ASSERT_TRUE(client->is_open()) << client->status();
    EXPECT_EQ(client->platform(), platform);
    const replication::UpdateCost cost = replication::UpdateCostOf(
        client->steps(), replication::SizesOfUpdate(24, 0));
    world.Settle();
    const uint64_t taken = world.server->counters().completions;
    world.at(0).Forget();
    world.at(kNodeHost).Forget();
    ASSERT_TRUE(world.Update(*client, 40, Filled(24, 9)).ok());
    // The node's program may still be told that its ack has left.
    world.Settle();
    EXPECT_TRUE(
        std::ranges::equal(world.inbox().subspan(40, 24), Filled(24, 9)));
    const CountingFabric::Counts& here = world.at(0).counts();
    EXPECT_EQ(here.Of(Operation::kWrite), cost.writes);
    EXPECT_EQ(here.Of(Operation::kSend), cost.sends);
    EXPECT_EQ(here.Of(Operation::kFlush), cost.flushes);
    EXPECT_EQ(here.bytes, cost.bytes);
    EXPECT_EQ(world.at(kNodeHost).counts().Of(Operation::kSend), cost.acks);
    EXPECT_EQ(world.server->counters().completions - taken,
              cost.wake_ups + cost.acks);
    EXPECT_EQ(client->counters().updates, 1U);
    EXPECT_EQ(client->counters().messages, cost.operations());
    EXPECT_EQ(client->counters().acks, cost.acks);
    EXPECT_EQ(client->counters().bytes_sent, cost.bytes);
    EXPECT_EQ(client->counters().bytes_received, cost.ack_bytes);
    EXPECT_EQ(client->counters().round_trips, cost.round_trips);
  }
}

// Updates go one after the other, and end in their order; reads between them
// are in flight meanwhile.
TEST(MemoryClientTest, ManyOperationsEndOnceEach) {
  MemoryWorld world;
  const auto client = world.Open(world.Updating(world.writer.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  std::vector<int> ended;
  std::vector<std::byte> into(8);
  for (int i = 0; i < 8; ++i) {
    const auto bytes = Filled(8, static_cast<unsigned char>(i + 1));
    ASSERT_TRUE(client
                    ->Update(0, bytes,
                             [&ended, i](const absl::Status& status) {
                               EXPECT_TRUE(status.ok()) << status;
                               ended.push_back(i);
                             })
                    .ok());
    ASSERT_TRUE(client
                    ->Read(1, 0, into,
                           [](const absl::Status& status) {
                             EXPECT_TRUE(status.ok()) << status;
                           })
                    .ok());
  }
  EXPECT_EQ(client->in_flight(), 16U);
  // MCL4.
  EXPECT_TRUE(absl::IsResourceExhausted(client->Read(1, 0, into, nullptr)));
  ASSERT_TRUE(world.Run([&] { return client->in_flight() == 0; }));
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(world.inbox()[0], std::byte{8});
}

// A callback may begin the next operation.
TEST(MemoryClientTest, CallbackMayBeginAnother) {
  MemoryWorld world;
  const auto client = world.Open(world.Reading(world.reader.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  std::vector<std::byte> into(8);
  int reads = 0;
  std::function<void(const absl::Status&)> next =
      [&](const absl::Status& status) {
        ASSERT_TRUE(status.ok()) << status;
        if (++reads < 5) {
          ASSERT_TRUE(client->Read(0, 0, into, next).ok());
        }
      };
  ASSERT_TRUE(client->Read(0, 0, into, next).ok());
  ASSERT_TRUE(world.Run([&] { return reads == 5; }));
}

TEST(MemoryClientTest, ImpossibleOperationsPostNothing) {
  MemoryWorld world;
  const auto client = world.Open(world.Updating(world.writer.token));
  const auto reading = world.Open(world.Reading(world.reader.token), 2);
  ASSERT_TRUE(client->is_open() && reading->is_open());
  world.at(0).Forget();
  std::vector<std::byte> into(16);
  const std::vector<std::byte> large(5000);
  for (const absl::Status& refused :
       {client->Read(0, kRingBytes - 8, into, nullptr),
        client->Read(0, UINT64_MAX, into, nullptr),
        client->Read(2, 0, into, nullptr), client->Read(0, 0, {}, nullptr),
        client->Update(0, large, nullptr), client->Update(0, {}, nullptr),
        client->Update(kInboxBytes - 8, into, nullptr),
        client->Persist(kInboxBytes, 8, nullptr),
        client->CompareAndSwap(4, 0, 1, nullptr),
        client->CompareAndSwap(kInboxBytes, 0, 1, nullptr)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(reading->Update(0, into, nullptr)));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(reading->CompareAndSwap(0, 0, 1, nullptr)));
  EXPECT_TRUE(world.at(0).counts().posted.empty());
  EXPECT_EQ(client->in_flight(), 0U);
}

TEST(MemoryClientTest, ImpossibleOptionsAreRefused) {
  MemoryWorld world;
  const auto refused = [&](auto change) {
    remote::MemoryClientOptions options = world.Reading("a token");
    change(options);
    return MemoryClient::Connect(world.at(0), world.network->clock(),
                                 world.randomness, world.address, options)
        .status();
  };
  using Options = remote::MemoryClientOptions;
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.token.clear(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(
      [](Options& options) { options.token = std::string(129, 't'); })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.read.clear(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.updated = "ring"; })));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(
      [](Options& options) { options.read = {std::string(65, 'r')}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.in_flight_max = 121; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.in_flight_max = 0; })));
  EXPECT_TRUE(absl::IsInvalidArgument(
      refused([](Options& options) { options.log = "/"; })));
  EXPECT_TRUE(refused([](Options&) {}).ok());
}

// MCL3: an error after the post says that the outcome is unknown, one of an
// update that still waited for its turn that nothing was posted.
TEST(MemoryClientTest, BrokenConnectionLeavesTheOutcomeUnknown) {
  MemoryWorld world;
  const auto client = world.Open(world.Updating(world.writer.token));
  ASSERT_TRUE(client->is_open()) << client->status();
  world.network->Cut(0, kNodeHost);
  std::vector<absl::Status> ends;
  std::vector<std::byte> into(8);
  const auto note = [&](const absl::Status& status) { ends.push_back(status); };
  ASSERT_TRUE(client->Update(0, into, note).ok());
  ASSERT_TRUE(client->Update(0, into, note).ok());
  ASSERT_TRUE(client->Read(0, 0, into, note).ok());
  ASSERT_TRUE(client
                  ->CompareAndSwap(8, 0, 1,
                                   [&](const absl::StatusOr<uint64_t>& was) {
                                     ends.push_back(was.status());
                                   })
                  .ok());
  ASSERT_TRUE(world.Run([&] { return ends.size() == 4; }));
  for (const absl::Status& end : ends) {
    EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  }
  EXPECT_THAT(ends[0].message(), HasSubstr("outcome is unknown"));
  EXPECT_THAT(ends[1].message(), HasSubstr("Nothing of this operation was"));
  EXPECT_THAT(ends[2].message(), ::testing::Not(HasSubstr("outcome")));
  EXPECT_THAT(ends[3].message(), HasSubstr("outcome is unknown"));
  EXPECT_EQ(client->Poll(), Polled::kDone);
  EXPECT_FALSE(client->is_open());
  EXPECT_TRUE(absl::IsUnavailable(client->status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(client->Read(0, 0, into, nullptr)));
}

// The node's adapter goes on, and its program does not: no ack comes.
TEST(MemoryClientTest, NodeThatStandsStillIsGivenUp) {
  MemoryWorld world;
  remote::MemoryClientOptions options = world.Updating(world.writer.token);
  options.operation_ns_max = 3'000'000;
  const auto client = world.Open(options);
  ASSERT_TRUE(client->is_open()) << client->status();
  world.stands_still = true;
  std::vector<std::byte> into(8);
  const absl::Status end = world.Update(*client, 0, into);
  EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  EXPECT_THAT(end.message(), HasSubstr("did not answer within 3 ms"));
  EXPECT_THAT(end.message(), HasSubstr("outcome is unknown"));
}

// MCL5: a process that has another token's digest under the same name.
TEST(MemoryClientTest, NodeThatProvesNothingIsNotBelieved) {
  MemoryWorld world;
  bool has_opened = false;
  // Another process at that address, which answers as a node would.
  class Impostor final : public PeerSink {
   public:
    explicit Impostor(MemoryWorld& world, bool& has_opened)
        : world_(world), has_opened_(has_opened) {
      slots_ = *replication::MessageSlots::Make(world.at(2), 3, 512);
      address = *world.at(2).Listen(model::SimNetwork::Address(2, 0));
      world.peers[2].push_back(this);
    }
    ~Impostor() override { world_.peers[2].clear(); }
    void OnConnectionEvent(const fabric::ConnectionEvent& event) override {
      if (event.kind != fabric::ConnectionEvent::Kind::kRequested) return;
      id_ = event.connection;
      Receive(0);
      Receive(1);
      EXPECT_TRUE(world_.at(2)
                      .Accept(id_, recovery::EncodeClientWelcome(
                                       {NodeId(7), 1, {1, 2}}))
                      .ok());
    }
    void OnCompletion(const fabric::Completion& completion) override {
      if (completion.operation != fabric::Operation::kReceive) return;
      if (completion.status != fabric::CompletionStatus::kOk) return;
      if (std::exchange(has_answered_, true)) {
        has_opened_ = true;
        return;
      }
      const auto bytes = recovery::EncodeClientMessage(
          quorum::LogIdOf(kRemoteCluster, "main"), recovery::ClientProved{});
      fabric::LocalBytes slot = slots_->At(2);
      std::ranges::copy(bytes, slot.bytes.begin());
      slot.bytes = slot.bytes.first(bytes.size());
      EXPECT_TRUE(world_.at(2).PostSend(id_, fabric::WorkId(2), slot).ok());
    }
    std::string address;

   private:
    void Receive(size_t slot) {
      EXPECT_TRUE(world_.at(2)
                      .PostReceive(id_, fabric::WorkId(slot), slots_->At(slot))
                      .ok());
    }
    MemoryWorld& world_;
    bool& has_opened_;
    bool has_answered_ = false;
    std::unique_ptr<replication::MessageSlots> slots_;
    fabric::ConnectionId id_;
  } impostor(world, has_opened);
  world.address = impostor.address;
  remote::MemoryClientOptions options = world.Reading(world.reader.token);
  options.open_ns_max = 50'000'000;
  const auto client = world.Open(options);
  EXPECT_TRUE(absl::IsUnauthenticated(client->status())) << client->status();
  world.Settle();
  EXPECT_FALSE(has_opened);
}

TEST(MemoryClientTest, NodeThatIsNotThereIsUnreachable) {
  MemoryWorld world;
  world.address = model::SimNetwork::Address(2, 9);
  const auto client = world.Open(world.Reading(world.reader.token));
  EXPECT_TRUE(absl::IsUnavailable(client->status())) << client->status();
}

// Persist is what follows the WRITE in the plan, and costs no more.
TEST(MemoryClientTest, PersistCostsAnUpdateWithoutItsWrite) {
  for (const Platform& platform : Platforms()) {
    SCOPED_TRACE(replication::PlatformToString(platform));
    MemoryWorld world({.platform = platform});
    const auto client = world.Open(world.Updating(world.writer.token));
    ASSERT_TRUE(client->is_open()) << client->status();
    ASSERT_EQ(*world.Swap(*client, 64, 0, 77), 0U);
    world.at(0).Forget();
    const remote::MemoryClientCounters before = client->counters();
    ASSERT_TRUE(world.Persist(*client, 64, 8).ok());
    EXPECT_EQ(world.at(0).counts().Of(Operation::kWrite), 0U);
    EXPECT_EQ(client->counters().persists, 1U);
    const uint64_t posted = world.at(0).counts().Of(Operation::kSend) +
                            world.at(0).counts().Of(Operation::kFlush);
    EXPECT_EQ(client->counters().messages - before.messages, posted);
    EXPECT_EQ(client->counters().round_trips - before.round_trips,
              posted == 0 ? 0 : 1);
  }
}

}  // namespace
}  // namespace alpheus::testing
