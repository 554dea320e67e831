// SPDX-License-Identifier: Apache-2.0
// Executors post as much as the plan's account says: for all rows, and for
// records.
#include "replication/persist/plan/update_cost.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "replication/persist/plan/planner.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/persist/platform/method_table.h"
#include "tests/replication/persist/execute/update_world.h"
#include "tests/replication/session/data_path.h"
#include "tests/support/fabrics/counting_fabric.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using fabric::Operation;
using replication::UpdateCost;
using replication::UpdateCostOf;

namespace {

constexpr int64_t kDelayNanos = 1000;
constexpr uint64_t kCounted = 3;
// An update takes two at most; more than half of them never come back by
// themselves here.
constexpr uint32_t kCredits = 4 * (kCounted + 1);

// Nothing takes time but the way from host to host.
model::SimOptions NothingButDelay() {
  model::SimOptions options;
  options.hosts = 2;
  options.delay_ns_min = kDelayNanos;
  options.delay_ns_max = kDelayNanos;
  options.step_ns_max = 0;
  options.limits.atomic_write = true;
  return options;
}

class CountedUpdates {
 public:
  CountedUpdates(const replication::TableRow& row,
                 std::span<const replication::Step> steps)
      : is_compound_(row.kind == replication::UpdateKind::kCompound) {
    key_ = *there_.Register(memory_.region(), fabric::RemoteAccess::kReadWrite);
    const std::string address =
        *there_.Listen(model::SimNetwork::Address(1, 0));
    const fabric::ConnectionId at_here =
        *here_.Connect(address, "", Deadline());
    const fabric::ConnectionId at_there = Await(there_);
    const UpdateTerms terms = {
        .pmem_buffers =
            replication::PlatformOfTable(row.configuration).receive_buffers ==
            replication::ReceiveBuffers::kPmem,
        .credits = kCredits};
    responder_ = *replication::UpdateResponder<model::ModelPersistence>::Start(
        memory_, steps,
        {.session = kUpdateSession,
         .credits = terms.credits,
         .message_bytes_max = kUpdateSlotBytes,
         .region = memory_.region().first(kUpdateRegionBytes),
         .buffers = terms.pmem_buffers
                        ? fabric::LocalBytes{key_, memory_.region().subspan(
                                                       kUpdateRegionBytes)}
                        : fabric::LocalBytes{}},
        there_, at_there);
    EXPECT_TRUE(there_.Accept(at_there, "").ok());
    Await(here_);
    auto options = terms.ForRequester(key_);
    options.buffers_bytes = memory_.region().size() - kUpdateRegionBytes;
    requester_ =
        *replication::UpdateRequester::Start(steps, options, here_, at_here);
    here_.Forget();
    there_.Forget();
  }

  // The next update, up to where all of it has completed.
  UpdateCost Run() {
    const uint64_t wake_ups = responder_->wake_ups();
    const int64_t begin = network_.clock().NowNanos();
    int64_t persisted_at = 0;
    EXPECT_TRUE(
        requester_
            ->Post(source_.Make(requester_->posted() + 1, key_, is_compound_))
            .ok());
    do {
      Poll();
      if (persisted_at == 0 &&
          requester_->persisted() == requester_->posted()) {
        persisted_at = network_.clock().NowNanos();
      }
    } while (network_.Step() || !requester_->CanPost());
    Poll();
    const UpdateCost cost = {
        .writes = here_.counts().Of(Operation::kWrite),
        .immediates = here_.counts().Of(Operation::kWriteImmediate),
        .sends = here_.counts().Of(Operation::kSend),
        .flushes = here_.counts().Of(Operation::kFlush),
        .doorbells = here_.counts().doorbells,
        .bytes = here_.counts().bytes,
        .acks = there_.counts().Of(Operation::kSend),
        .ack_bytes = there_.counts().bytes,
        .wake_ups = responder_->wake_ups() - wake_ups,
        .round_trips =
            static_cast<uint64_t>((persisted_at - begin) / (2 * kDelayNanos))};
    EXPECT_EQ(there_.counts().doorbells, cost.acks);
    here_.Forget();
    there_.Forget();
    return cost;
  }

 private:
  fabric::ConnectionId Await(CountingFabric& fabric) {
    do {
      std::vector<fabric::ConnectionEvent> events;
      fabric.Poll({}, &events);
      if (!events.empty()) return events.front().connection;
    } while (network_.Step());
    ADD_FAILURE() << "no event";
    return {};
  }
  void Poll() {
    std::array<fabric::Completion, 16> some;
    size_t count = there_.Poll(some, nullptr);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(responder_->OnCompletion(some[i]).ok());
    }
    there_.FlushSends();
    count = here_.Poll(some, nullptr);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(requester_->OnCompletion(some[i]).ok());
    }
  }

  const bool is_compound_;
  model::SimNetwork network_{NothingButDelay()};
  CountingFabric here_{network_.fabric(0)};
  CountingFabric there_{network_.fabric(1)};
  model::ModelPersistence memory_{
      kUpdateRegionBytes +
      replication::MessageLog<model::ModelPersistence>::AreaBytes(
          kCredits, kUpdateSlotBytes)};
  UpdateSource source_{here_};
  fabric::RegionKey key_;
  std::unique_ptr<replication::UpdateRequester> requester_;
  std::unique_ptr<replication::UpdateResponder<model::ModelPersistence>>
      responder_;
};

TEST(UpdateCostTest, ExecutorsPostWhatThePlanSays) {
  for (const replication::TableRow& row : replication::RowsOfTable()) {
    for (const bool atomic_write : {true, false}) {
      replication::Platform platform =
          replication::PlatformOfTable(row.configuration);
      platform.atomic_write = atomic_write;
      const replication::TablePlan plan =
          replication::PlanOfTable(platform, row.kind, row.operation);
      const uint64_t bytes_of_b =
          row.kind == replication::UpdateKind::kCompound ? 8 : 0;
      const UpdateCost expected = UpdateCostOf(
          plan.steps,
          replication::SizesOfUpdate(8 * kUpdateWordsOfA, bytes_of_b));
      CountedUpdates updates(row, plan.steps);
      for (uint64_t i = 0; i < kCounted; ++i) {
        const UpdateCost counted = updates.Run();
        EXPECT_EQ(replication::UpdateCostToString(counted),
                  replication::UpdateCostToString(expected))
            << replication::CellOf(row);
      }
    }
  }
}

// By hand, for each kind of end.
TEST(UpdateCostTest, RowsThatWereCountedByHand) {
  const replication::UpdateSizes sizes = {
      .a = 100, .b = 8, .message_header = 64, .address = 64, .ack = 32};
  EXPECT_EQ(UpdateCostOf(replication::steps::kWritesThenAcks, sizes),
            (UpdateCost{.writes = 2,
                        .sends = 2,
                        .doorbells = 2,
                        .bytes = 100 + 64 + 8 + 64,
                        .acks = 2,
                        .ack_bytes = 64,
                        .wake_ups = 2,
                        .round_trips = 2}));
  EXPECT_EQ(UpdateCostOf(replication::steps::kWriteThenAtomicThenFlush, sizes),
            (UpdateCost{.writes = 2,
                        .flushes = 2,
                        .doorbells = 1,
                        .bytes = 108,
                        .round_trips = 1}));
  EXPECT_EQ(UpdateCostOf(replication::steps::kSendBothThenFlush, sizes),
            (UpdateCost{.sends = 1,
                        .flushes = 1,
                        .doorbells = 1,
                        .bytes = 64 + 108,
                        .round_trips = 1}));
  EXPECT_EQ(UpdateCostOf(replication::steps::kWriteImmediateThenAck, sizes),
            (UpdateCost{.immediates = 1,
                        .doorbells = 1,
                        .bytes = 100,
                        .acks = 1,
                        .ack_bytes = 32,
                        .wake_ups = 1,
                        .round_trips = 1}));
}

// A record that is appended and forced, from session to session.
TEST(UpdateCostTest, RecordIsOneImmediateAndOneAck) {
  DataPath path({});
  for (const size_t bytes : {size_t{1}, size_t{32}, size_t{300}}) {
    const uint64_t offset = path.session(0).posted().offset.value;
    path.Append(bytes);
    path.counted().Forget();
    path.backup(0).counted.Forget();
    ASSERT_TRUE(path.session(0).Advance(path.End()).ok());
    ASSERT_TRUE(path.Round().ok());
    const auto& here = path.counted().counts();
    const auto& there = path.backup(0).counted.counts();
    const UpdateCost counted = {
        .writes = here.Of(Operation::kWrite),
        .immediates = here.Of(Operation::kWriteImmediate),
        .sends = here.Of(Operation::kSend),
        .flushes = here.Of(Operation::kFlush),
        .doorbells = here.doorbells,
        .bytes = here.bytes,
        .acks = there.Of(Operation::kSend),
        .ack_bytes = there.bytes,
        .wake_ups = 1,     // the one Round
        .round_trips = 1,  // after which it is acknowledged
    };
    const uint64_t record = path.session(0).posted().offset.value - offset;
    const replication::Plan plan =
        *replication::MakeRecordPlan(replication::Platform());
    EXPECT_EQ(replication::UpdateCostToString(counted),
              replication::UpdateCostToString(UpdateCostOf(
                  plan.steps, replication::SizesOfRecord(record))));
    EXPECT_EQ(path.session(0).lag_bytes(), 0u);
    EXPECT_EQ(there.doorbells, 1u);
  }
}

}  // namespace
}  // namespace alpheus::testing
