// SPDX-License-Identifier: Apache-2.0
// Appends over a fabric, without an adapter: over a simulated network what is
// posted is what the plan's account says, and the records are at the server.
#include "bench/remotelog/fabric_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "bench/remotelog/rows.h"
#include "replication/persist/plan/update_cost.h"
#include "replication/persist/platform/method_steps.h"
#include "tests/support/fabrics/counting_fabric.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::bench::remotelog {
namespace {

using alpheus::testing::CountingFabric;

constexpr int64_t kDelayNanos = 1000;
constexpr uint64_t kClientsMax = 2;
// Few enough that credits go by themselves with acks only, and are not sent.
constexpr uint64_t kAppends = 7;

// Nothing takes time but the way from host to host.
model::SimOptions NothingButDelay(bool atomic_write) {
  model::SimOptions options;
  options.hosts = 2;
  options.delay_ns_min = kDelayNanos;
  options.delay_ns_max = kDelayNanos;
  options.step_ns_max = 0;
  options.limits.atomic_write = atomic_write;
  return options;
}

class World {
 public:
  explicit World(bool atomic_write, bool is_pmem = true)
      : network_(NothingButDelay(atomic_write)),
        memory_((kClientsMax * kClientBytes + kLineBytes) / kLineBytes) {
    transport_ = *FabricTransport::Make(
        {.client = client_,
         .server = server_,
         .clock = network_.clock(),
         .listen_address = model::SimNetwork::Address(1, 0),
         .memory = std::as_writable_bytes(std::span(memory_))
                       .first(kClientsMax * kClientBytes),
         .is_pmem = is_pmem,
         .pass = [this] { return network_.Step(); }});
  }

  absl::StatusOr<AppendTimes> Append(const replication::Platform& platform,
                                     std::span<const replication::Step> steps,
                                     uint64_t clients = 1,
                                     uint64_t appends = kAppends) {
    client_.Forget();
    server_.Forget();
    return transport_->Append({.platform = platform,
                               .steps = steps,
                               .clients = clients,
                               .appends = appends});
  }
  const CountingFabric::Counts& client() const { return client_.counts(); }
  const CountingFabric::Counts& server() const { return server_.counts(); }
  // A word of the server's memory, in the part of this client.
  uint64_t WordAt(uint64_t client, uint64_t offset) const {
    uint64_t word = 0;
    std::memcpy(&word,
                reinterpret_cast<const char*>(memory_.data()) +
                    client * kClientBytes + offset,
                sizeof word);
    return word;
  }

 private:
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes];
  };

  model::SimNetwork network_;
  CountingFabric client_{network_.fabric(0)};
  CountingFabric server_{network_.fabric(1)};
  std::vector<Line> memory_;
  std::unique_ptr<FabricTransport> transport_;
};

bool IsCompound(const BenchRow& row) {
  return row.name.find("compound") != std::string::npos;
}

// Goal: verbs and round trips of each row are the plan's, and the bytes arrive.
TEST(FabricTransportTest, EachRowPostsWhatThePlanSaysAndTheRecordsArrive) {
  World world(/*atomic_write=*/true);
  for (const BenchRow& row : BenchRows()) {
    SCOPED_TRACE(row.name);
    const auto times = world.Append(row.platform, row.steps);
    ASSERT_TRUE(times.ok()) << times.status();
    const replication::UpdateCost plan = replication::UpdateCostOf(
        row.steps,
        replication::SizesOfUpdate(kRecordBytes, IsCompound(row) ? 8 : 0));
    EXPECT_EQ(world.client().Of(fabric::Operation::kWrite),
              kAppends * plan.writes);
    EXPECT_EQ(world.client().Of(fabric::Operation::kWriteImmediate),
              kAppends * plan.immediates);
    EXPECT_EQ(world.client().Of(fabric::Operation::kSend),
              kAppends * plan.sends);
    EXPECT_EQ(world.client().Of(fabric::Operation::kFlush),
              kAppends * plan.flushes);
    EXPECT_EQ(world.client().doorbells, kAppends * plan.doorbells);
    EXPECT_EQ(world.client().bytes, kAppends * plan.bytes);
    EXPECT_EQ(world.server().Of(fabric::Operation::kSend),
              kAppends * plan.acks);
    ASSERT_EQ(times->latency.size(), kAppends);
    for (const double latency : times->latency) {
      EXPECT_EQ(static_cast<uint64_t>(latency) / (2 * kDelayNanos),
                plan.round_trips);
    }
    EXPECT_EQ(world.WordAt(0, 0), IsCompound(row) ? kAppends : 0);
    for (uint64_t append = 1; append <= kAppends; ++append) {
      EXPECT_EQ(world.WordAt(0, PlaceOfRecord(append)), append);
      EXPECT_EQ(world.WordAt(0, PlaceOfRecord(append) + kRecordBytes - 8),
                append);
    }
  }
}

// Round the ring, past all credits, and with two clients.
TEST(FabricTransportTest, ManyAppendsOfTwoClientsArrive) {
  World world(/*atomic_write=*/true);
  constexpr uint64_t kMany = kRecordSlots + 3;
  for (const BenchRow& row : BenchRows()) {
    SCOPED_TRACE(row.name);
    const auto times = world.Append(row.platform, row.steps, 2, kMany);
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->latency.size(), 2 * kMany);
    for (const uint64_t client : {0, 1}) {
      EXPECT_EQ(world.WordAt(client, PlaceOfRecord(kMany)), kMany);
      EXPECT_EQ(world.WordAt(client, PlaceOfRecord(4)), 4u);
    }
  }
}

TEST(FabricTransportTest, RowsThatNeedWhatIsNotThereAreUnimplemented) {
  World world(/*atomic_write=*/false, /*is_pmem=*/false);
  for (const BenchRow& row : BenchRows()) {
    SCOPED_TRACE(row.name);
    const bool has_atomic =
        std::ranges::any_of(row.steps, [](replication::Step step) {
          return step.action == replication::StepAction::kRequesterWriteAtomic;
        });
    const bool in_pmem =
        row.platform.receive_buffers == replication::ReceiveBuffers::kPmem;
    const auto times = world.Append(row.platform, row.steps);
    EXPECT_EQ(absl::IsUnimplemented(times.status()), has_atomic || in_pmem);
    EXPECT_EQ(times.ok(), !has_atomic && !in_pmem) << times.status();
  }
}

// The paper's estimate of an atomic WRITE is one round trip, as that is.
TEST(FabricTransportTest, EstimateIsReadWriteReadInOneRoundTrip) {
  World world(/*atomic_write=*/false);
  for (const BenchRow& row : BenchRows()) {
    if (!row.name.ends_with(",estimate")) continue;
    const auto times = world.Append(row.platform, row.steps);
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(world.client().Of(fabric::Operation::kWrite), 2 * kAppends);
    EXPECT_EQ(world.client().Of(fabric::Operation::kFlush), 2 * kAppends);
    EXPECT_EQ(world.client().doorbells, kAppends);
  }
}

// Without the ack that is waited for, and without what brings the bytes.
TEST(FabricTransportTest, StepsThatNeverEndAndRecordsThatDontArriveAreErrors) {
  World world(/*atomic_write=*/true);
  std::vector<replication::Step> steps(
      std::begin(replication::steps::kWriteImmediateThenAck),
      std::end(replication::steps::kWriteImmediateThenAck));
  std::erase(steps, replication::steps::kSendAck);
  EXPECT_TRUE(absl::IsFailedPrecondition(world.Append({}, steps).status()));
  steps.assign(std::begin(replication::steps::kSendThenAck),
               std::end(replication::steps::kSendThenAck));
  std::erase(steps, replication::Step{replication::StepAction::kResponderCopy,
                                      replication::UpdatePart::kA});
  steps.erase(std::ranges::find(steps, replication::steps::kSendAck));
  EXPECT_FALSE(world.Append({}, steps).ok());
  // The next run has new connections.
  EXPECT_TRUE(world.Append({}, replication::steps::kWriteThenAck).ok());
}

TEST(FabricTransportTest, MoreClientsThanMemoryAreRefused) {
  World world(/*atomic_write=*/true);
  EXPECT_TRUE(absl::IsInvalidArgument(
      world.Append({}, replication::steps::kWriteThenAck, kClientsMax + 1)
          .status()));
}

}  // namespace
}  // namespace alpheus::bench::remotelog
