// SPDX-License-Identifier: Apache-2.0
// The verbs fabric's requests to an adapter, held against a fake one.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/verbs/adapter.h"
#include "replication/fabric/verbs/connection.h"
#include "replication/fabric/verbs/device_news.h"
#include "replication/fabric/verbs/queue_pair.h"
#include "replication/fabric/verbs/region_key_parts.h"
#include "replication/fabric/verbs/registered_memory.h"
#include "replication/fabric/verbs/wake_up.h"
#include "tests/replication/fabric/verbs/fake_adapter.h"

namespace alpheus::fabric::verbs {
namespace {

using testing::FakeAdapter;

class VerbsQueuePairTest : public ::testing::Test {
 protected:
  VerbsQueuePairTest() {
    making_.domain = &adapter_.domain;
    making_.limits = {.sends_max = 100, .receives_max = 30};
    making_.counters = &counters_;
    auto made = QueuePair::Make(&adapter_.manager, ConnectionId(1), making_);
    EXPECT_TRUE(made.ok()) << made.status();
    pair_ = *std::move(made);
  }

  void Post(Operation operation, uint64_t work) {
    WorkRequest request;
    request.operation = operation;
    request.work = WorkId(work);
    pair_->Post(request, {.addr = 0, .length = 8, .lkey = 1});
  }
  std::vector<Completion> Poll() {
    std::vector<Completion> done;
    is_whole_ = pair_->DrainCompletions({&done, &greetings_});
    return done;
  }
  unsigned FlagsOf(size_t doorbell, size_t at) const {
    return adapter_.doorbells[doorbell][at].send_flags;
  }

  FakeAdapter adapter_;
  VerbsFabricCounters counters_;
  QueuePair::Making making_;
  std::unique_ptr<QueuePair> pair_;
  std::vector<Completion> greetings_;
  bool is_whole_ = true;
};

// QP2: greetings, too.
TEST_F(VerbsQueuePairTest, CompletionQueueHasRoomForAllThatMayBePosted) {
  EXPECT_EQ(adapter_.queue_entries, 100 + 30 + 2 * kGreetingsPosted);
}

// QP5.
TEST_F(VerbsQueuePairTest, FirstCompletionIsToldOf) {
  EXPECT_EQ(adapter_.arms, 1);
}

// QP1, FB3: one completion for all of a chain, in the order of posting.
TEST_F(VerbsQueuePairTest, LastOfAChainCompletesAllOfIt) {
  for (uint64_t work = 1; work <= 3; ++work) Post(Operation::kWrite, work);
  EXPECT_TRUE(adapter_.doorbells.empty());
  ASSERT_TRUE(pair_->RingDoorbell().ok());
  ASSERT_EQ(adapter_.doorbells.size(), 1u);
  ASSERT_EQ(adapter_.doorbells[0].size(), 3u);
  EXPECT_EQ(FlagsOf(0, 0) & IBV_SEND_SIGNALED, 0u);
  EXPECT_EQ(FlagsOf(0, 1) & IBV_SEND_SIGNALED, 0u);
  EXPECT_NE(FlagsOf(0, 2) & IBV_SEND_SIGNALED, 0u);
  adapter_.Complete(adapter_.doorbells[0][2].wr_id);
  const auto done = Poll();
  ASSERT_EQ(done.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].work, WorkId(i + 1));
    EXPECT_EQ(done[i].status, CompletionStatus::kOk);
  }
  EXPECT_EQ(pair_->sends(), 0u);
}

// FB3: what failed has a completion of its own; what is behind it is flushed.
TEST_F(VerbsQueuePairTest, FailureInAChainIsOfItsOwnRequest) {
  for (uint64_t work = 1; work <= 4; ++work) Post(Operation::kWrite, work);
  ASSERT_TRUE(pair_->RingDoorbell().ok());
  adapter_.Complete(adapter_.doorbells[0][1].wr_id, IBV_WC_REM_ACCESS_ERR);
  adapter_.Complete(adapter_.doorbells[0][2].wr_id, IBV_WC_WR_FLUSH_ERR);
  adapter_.Complete(adapter_.doorbells[0][3].wr_id, IBV_WC_WR_FLUSH_ERR);
  auto done = Poll();
  EXPECT_FALSE(is_whole_);
  pair_->Destroy();
  pair_->Flush({&done, &greetings_});
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[0].status, CompletionStatus::kOk);
  EXPECT_EQ(done[1].status, CompletionStatus::kRemoteAccess);
  EXPECT_EQ(done[2].status, CompletionStatus::kFlushed);
  EXPECT_EQ(done[3].status, CompletionStatus::kFlushed);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].work, WorkId(i + 1));
}

// Requests are used again: what the first ones asked for is not asked of later
// ones.
TEST_F(VerbsQueuePairTest, ManyChainsLeaveNothingToTheNextOnes) {
  uint64_t work = 0;
  for (size_t chain = 0; chain < 200; ++chain) {
    const bool reads = chain % 2 == 0;
    const size_t length = 1 + chain % 7;
    for (size_t i = 0; i < length; ++i) {
      Post(reads ? Operation::kRead : Operation::kSend, ++work);
    }
    ASSERT_TRUE(pair_->RingDoorbell().ok());
    ASSERT_EQ(adapter_.doorbells.back().size(), length);
    for (size_t i = 0; i < length; ++i) {
      const ibv_send_wr& asked = adapter_.doorbells.back()[i];
      EXPECT_EQ(asked.opcode, reads ? IBV_WR_RDMA_READ : IBV_WR_SEND);
      EXPECT_EQ(asked.num_sge, 1);
      EXPECT_EQ((asked.send_flags & IBV_SEND_SIGNALED) != 0, i + 1 == length);
      EXPECT_EQ((asked.send_flags & IBV_SEND_FENCE) != 0, reads && i > 0);
    }
    adapter_.Complete(adapter_.doorbells.back().back().wr_id);
    const auto done = Poll();
    ASSERT_EQ(done.size(), length);
    EXPECT_EQ(done.back().work, WorkId(work));
  }
}

// QP3, FB5.
TEST_F(VerbsQueuePairTest, FenceDestroysTheQueuePair) {
  EXPECT_EQ(adapter_.queue_pairs, 1);
  pair_->Destroy();
  EXPECT_EQ(adapter_.queue_pairs, 0);
}

// QP4, FB1.
TEST_F(VerbsQueuePairTest, WhatFollowsAReadWaitsForIt) {
  Post(Operation::kRead, 1);
  Post(Operation::kWrite, 2);
  ASSERT_TRUE(pair_->RingDoorbell().ok());
  EXPECT_NE(FlagsOf(0, 1) & IBV_SEND_FENCE, 0u);
  adapter_.Complete(adapter_.doorbells[0][1].wr_id);
  ASSERT_EQ(Poll().size(), 2u);
  Post(Operation::kFlush, 3);
  Post(Operation::kWrite, 4);
  ASSERT_TRUE(pair_->RingDoorbell().ok());
  EXPECT_EQ(FlagsOf(1, 1) & IBV_SEND_FENCE, 0u) << "a flush is not waited for";
}

class VerbsMemoryTest : public ::testing::Test {
 protected:
  FakeAdapter adapter_;
  Random random_{/*seed=*/1};
  RegisteredMemory memory_{&adapter_.domain, /*pages_on_demand=*/false,
                           random_};
  alignas(8) std::byte bytes_[64];
};

// P-R4, VF2.
TEST_F(VerbsMemoryTest, NothingIsRegisteredWithRelaxedOrdering) {
  for (const RemoteAccess access :
       {RemoteAccess::kNone, RemoteAccess::kRead, RemoteAccess::kWrite,
        RemoteAccess::kReadWrite, RemoteAccess::kAll}) {
    ASSERT_TRUE(memory_.Register(bytes_, access).ok());
    EXPECT_EQ(adapter_.access & IBV_ACCESS_RELAXED_ORDERING, 0u);
  }
}

// FB5, VF1.
TEST_F(VerbsMemoryTest, FenceDestroysTheRegion) {
  const RegionKey key = *memory_.Register(bytes_, RemoteAccess::kWrite);
  EXPECT_EQ(adapter_.regions, 1);
  ASSERT_TRUE(memory_.Deregister(key).ok());
  EXPECT_EQ(adapter_.regions, 0);
}

// By turns, more than are remembered, and those that are no more.
TEST_F(VerbsMemoryTest, OwnBytesAreFoundInEachOfManyRegions) {
  std::vector<std::byte> bytes(20 * 64);
  std::vector<RegionKey> keys;
  const auto part = [&](size_t i) {
    return std::span(bytes).subspan(i * 64, 64);
  };
  for (size_t i = 0; i < 20; ++i) {
    keys.push_back(*memory_.Register(part(i), RemoteAccess::kNone));
  }
  for (size_t turn = 0; turn < 400; ++turn) {
    const size_t i = turn * (turn % 3 + 1) % keys.size();
    ibv_sge name;
    ASSERT_TRUE(memory_.TryName({keys[i], part(i).subspan(8)}, &name));
    EXPECT_EQ(name.addr, PartsOf(keys[i]).address() + 8);
    EXPECT_EQ(name.length, 56u);
    EXPECT_FALSE(memory_.TryName({keys[i], part((i + 1) % 20)}, &name));
  }
  for (size_t i = 0; i < keys.size(); i += 2) {
    ASSERT_TRUE(memory_.Deregister(keys[i]).ok());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    ibv_sge name;
    EXPECT_EQ(memory_.TryName({keys[i], part(i)}, &name), i % 2 == 1);
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(memory_.Name({RegionKey(), part(0)}).status()));
}

TEST_F(VerbsMemoryTest, RegionThatTheAdapterKeepsStaysKnown) {
  const RegionKey key = *memory_.Register(bytes_, RemoteAccess::kWrite);
  adapter_.end_error = EBUSY;
  EXPECT_TRUE(absl::IsUnavailable(memory_.Deregister(key)));
  adapter_.end_error = 0;
  EXPECT_TRUE(memory_.Deregister(key).ok());
}

// FB6, P-R1: 7 would be for ever, with some adapters also for silent peers.
TEST_F(VerbsMemoryTest, CallAsksForRetriesThatEnd) {
  Shared shared;
  shared.context = &adapter_.context;
  shared.memory = &memory_;
  shared.making.domain = &adapter_.domain;
  shared.making.counters = &shared.counters;
  Connection connection(ConnectionId(1), CommunicationId(&adapter_.manager),
                        "peer", "", Deadline(), &shared);
  connection.OnEvent(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(connection.state(), Connection::State::kConnecting);
  EXPECT_GT(adapter_.called.retry_count, 0);
  EXPECT_LT(adapter_.called.retry_count, 7);
  EXPECT_GT(adapter_.called.rnr_retry_count, 0);
  EXPECT_LT(adapter_.called.rnr_retry_count, 7);
}

class VerbsNewsTest : public VerbsMemoryTest {
 protected:
  VerbsNewsTest() {
    adapter_.context.async_fd = eventfd(0, EFD_CLOEXEC);
    news_ = *DeviceNews::Of(&adapter_.context, &wake_);
    other_ = *DeviceNews::Of(&adapter_.context, &wake_);
  }
  ~VerbsNewsTest() override { (void)close(adapter_.context.async_fd); }

  void Tell(ibv_event_type type, int port = 0) {
    ibv_async_event event = {};
    event.event_type = type;
    event.element.port_num = port;
    adapter_.news.push_back(event);
  }

  WakeUp wake_;
  std::unique_ptr<DeviceNews> news_;
  std::unique_ptr<DeviceNews> other_;
};

// VA1: a fabric that did not take the event hears of it, too, once.
TEST_F(VerbsNewsTest, EachFabricHearsOfEachFailureOnce) {
  EXPECT_EQ(news_->Take().all, nullptr);
  Tell(IBV_EVENT_PORT_ACTIVE, 1);
  EXPECT_EQ(news_->Take().all, nullptr);
  Tell(IBV_EVENT_PORT_ERR, 1);
  for (DeviceNews* const news : {news_.get(), other_.get()}) {
    const DeviceFailures failures = news->Take();
    ASSERT_NE(failures.all, nullptr);
    EXPECT_EQ(failures.port, 1);
    EXPECT_EQ(news->Take().all, nullptr);
    EXPECT_FALSE(news->IsGone());
  }
}

TEST_F(VerbsNewsTest, FailuresOfTwoPortsAreOfAll) {
  Tell(IBV_EVENT_PORT_ERR, 1);
  Tell(IBV_EVENT_PORT_ERR, 2);
  EXPECT_EQ(news_->Take().port, 0);
  Tell(IBV_EVENT_PORT_ERR, 2);
  Tell(IBV_EVENT_CQ_ERR);
  EXPECT_EQ(other_->Take().port, 0);
}

TEST_F(VerbsNewsTest, QueuePairThatFailedIsNamed) {
  ibv_qp pair = {};
  pair.qp_num = 17;
  ibv_async_event event = {};
  event.event_type = IBV_EVENT_QP_FATAL;
  event.element.qp = &pair;
  adapter_.news.push_back(event);
  const DeviceFailures failures = news_->Take();
  EXPECT_EQ(failures.all, nullptr);
  EXPECT_EQ(failures.queue_pairs, std::set<uint32_t>{17});
}

// A region that the adapter refuses to end is not fenced, unless there is no
// adapter any more.
TEST_F(VerbsNewsTest, AdapterThatWasTakenAwayKeepsNoRegion) {
  memory_.set_news(news_.get());
  const RegionKey key = *memory_.Register(bytes_, RemoteAccess::kWrite);
  adapter_.end_error = EIO;
  EXPECT_TRUE(absl::IsUnavailable(memory_.Deregister(key)));
  Tell(IBV_EVENT_DEVICE_FATAL);
  EXPECT_TRUE(memory_.Deregister(key).ok());
}

TEST(VerbsLimitsTest, AreLoweredToWhatTheAdapterHas) {
  Adapter adapter;
  adapter.attributes.max_qp_wr = 100;
  adapter.attributes.max_cqe = 1'000;
  adapter.message_bytes_max = 1 << 23;
  const Fabric::Limits few = LowerTo(
      adapter,
      {.sends_max = 512, .receives_max = 8, .message_bytes_max = 1u << 30});
  EXPECT_EQ(few.sends_max, 100 - kGreetingsPosted);
  EXPECT_EQ(few.receives_max, 8u);
  EXPECT_EQ(few.message_bytes_max, 1u << 23);
  adapter.attributes.max_cqe = 100;
  EXPECT_EQ(LowerTo(adapter, {.sends_max = 512}).sends_max,
            50 - kGreetingsPosted)
      << "both sides share a completion queue";
  EXPECT_EQ(LowerTo(adapter, {.message_bytes_max = 4096}).message_bytes_max,
            4096u);
  for (const bool able : {false, true}) {
    for (const bool wanted : {false, true}) {
      adapter.native = {.flush = able, .atomic_write = !able};
      const Fabric::Limits limits =
          LowerTo(adapter, {.native_flush = wanted, .atomic_write = wanted});
      EXPECT_EQ(limits.native_flush, wanted && able);
      EXPECT_EQ(limits.atomic_write, wanted && !able);
    }
  }
}

}  // namespace
}  // namespace alpheus::fabric::verbs
