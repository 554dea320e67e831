// SPDX-License-Identifier: Apache-2.0
// FLUSH and atomic WRITE, held against a fake adapter that has both. Where the
// library has neither the choice is tested all the same; what the library is
// called with, only where it has them (tools/dev vm-test native).
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/verbs/native_operations.h"
#include "replication/fabric/verbs/native_sends.h"
#include "replication/fabric/verbs/queue_pair.h"
#include "replication/fabric/verbs/region_key_parts.h"
#include "replication/fabric/verbs/registered_memory.h"
#include "replication/fabric/work_request.h"
#include "tests/replication/fabric/verbs/fake_adapter.h"

namespace alpheus::fabric::verbs {
namespace {

using testing::FakeAdapter;

constexpr RegionKeyParts kGranting = {
    .rkey = 7, .tag = 3, .grants_flush = true};
constexpr RegionKeyParts kOther = {.rkey = 8, .tag = 4, .grants_flush = true};
constexpr RegionKeyParts kUngranted = {.rkey = 9, .tag = 5};

RemoteAddress At(uint64_t offset, const RegionKeyParts& parts = kGranting) {
  return {MakeRegionKey(parts), offset};
}

class VerbsNativeTest : public ::testing::Test {
 protected:
  VerbsNativeTest() { Make({.flush = true, .atomic_write = true}); }

  void Make(NativeAbilities abilities) {
    pair_.reset();
    QueuePair::Making making;
    making.domain = &adapter_.domain;
    making.limits = {.sends_max = 100,
                     .receives_max = 30,
                     .native_flush = abilities.flush,
                     .atomic_write = abilities.atomic_write};
    making.inline_bytes_max = 16;
    making.flush_target = {.addr = 1, .length = 1, .lkey = 1};
    making.counters = &counters_;
    auto made = QueuePair::Make(&adapter_.manager, ConnectionId(1), making);
    ASSERT_TRUE(made.ok()) << made.status();
    pair_ = *std::move(made);
  }

  void Post(WorkRequest request) {
    request.work = WorkId(++works_);
    pair_->Post(request, request.local.bytes.empty()
                             ? ibv_sge{}
                             : ibv_sge{.addr = 4096,
                                       .length = static_cast<uint32_t>(
                                           request.local.bytes.size()),
                                       .lkey = 1});
  }
  void Write(const RemoteAddress& to, uint64_t bytes) {
    Post({.local = {{}, std::span(bytes_).first(bytes)}, .remote = to});
  }
  void Send() {
    Post({.operation = Operation::kSend,
          .local = {{}, std::span(bytes_).first(64)}});
  }
  void AtomicWrite(const RemoteAddress& to) {
    Post({.local = {{}, std::span(bytes_).first(8)},
          .remote = to,
          .is_atomic_write = true});
  }
  void Flush(const RemoteAddress& range, uint64_t bytes) {
    Post({.operation = Operation::kFlush,
          .remote = range,
          .range_bytes = bytes});
  }
  // All that is posted, in one chain.
  const std::vector<ibv_send_wr>& Ring() {
    EXPECT_TRUE(pair_->RingDoorbell().ok());
    return adapter_.doorbells.back();
  }
  void CompleteAll() {
    adapter_.Complete(adapter_.doorbells.back().back().wr_id);
    std::vector<Completion> done;
    EXPECT_TRUE(pair_->DrainCompletions({&done, &done}));
    EXPECT_EQ(pair_->sends(), 0u);
  }
  void ExpectLastIsFlush(uint64_t begin, uint64_t end) {
    const ibv_send_wr& last = Ring().back();
    EXPECT_EQ(last.opcode, kFlushOpcode);
    EXPECT_EQ(last.wr.rdma.remote_addr, kGranting.address() + begin);
    EXPECT_EQ(last.wr.rdma.rkey, kGranting.rkey);
    EXPECT_EQ(adapter_.own.back().back().length, end - begin);
  }
  void ExpectLastIsRead() {
    EXPECT_EQ(Ring().back().opcode, IBV_WR_RDMA_READ);
    EXPECT_LE(adapter_.own.back().back().length, 1u);
  }
  static bool Waits(const ibv_send_wr& request) {
    return (request.send_flags & IBV_SEND_FENCE) != 0;
  }

  alignas(8) std::array<std::byte, 4096> bytes_{};
  FakeAdapter adapter_;
  VerbsFabricCounters counters_;
  std::unique_ptr<QueuePair> pair_;
  uint64_t works_ = 0;
};

// NS1: of everything, not of what the caller named.
TEST_F(VerbsNativeTest, FlushNamesAllThatWasWrittenSinceTheLast) {
  Write(At(64), 64);
  Write(At(1000), 8);
  Write(At(8), 8);
  Write(At(5000), 0);  // touches nothing
  Flush(At(1000), 8);
  ExpectLastIsFlush(8, 1008);
  CompleteAll();
  Flush(At(1000), 8);
  ExpectLastIsFlush(1000, 1008);
  Write(At(24), 8);
  Post({.operation = Operation::kFetchAdd,
        .local = {{}, std::span(bytes_).first(8)},
        .remote = At(32)});
  AtomicWrite(At(40));
  Flush(At(0), 8);
  ExpectLastIsFlush(0, 48);
  EXPECT_EQ(counters_.native_flushes, 3u);
}

// NS1: each of these would leave something unflushed, or break the connection.
TEST_F(VerbsNativeTest, FlushThatCanNotNameAllIsARead) {
  Flush(At(0, kUngranted), 8);
  ExpectLastIsRead();
  Flush(At(0), 0);
  ExpectLastIsRead();
  Send();
  Flush(At(0), 8);
  ExpectLastIsRead();
  Write(At(0, kOther), 8);
  Flush(At(0), 8);
  ExpectLastIsRead();
  Write(At(0, kOther), 8);
  Write(At(0), 8);
  Flush(At(0), 8);
  ExpectLastIsRead();
  Write(At(kFlushBytesMax), 8);
  Flush(At(0), 8);
  ExpectLastIsRead();
  Flush(At(8), ~uint64_t{0});
  ExpectLastIsRead();
  Flush(At(~uint64_t{0}), 1);
  ExpectLastIsRead();
  EXPECT_EQ(counters_.native_flushes, 0u);
  // A read says as much of all before it: the next one begins again.
  Write(At(kFlushBytesMax - 8), 8);
  Flush(At(0), 8);
  ExpectLastIsFlush(0, kFlushBytesMax);
  Make({.flush = false, .atomic_write = true});
  Flush(At(0), 8);
  ExpectLastIsRead();
}

// A write that no region can hold makes no range that wraps around.
TEST_F(VerbsNativeTest, WriteBeyondAllBoundsIsNotFlushedNatively) {
  Write({At(0).key, ~uint64_t{0}}, 8);
  Flush(At(0), 8);
  ExpectLastIsRead();
}

TEST_F(VerbsNativeTest, AtomicWriteBringsItsWordAndCompletesAsAWrite) {
  AtomicWrite(At(16));
  const ibv_send_wr& asked = Ring().back();
  EXPECT_EQ(asked.opcode, kAtomicWriteOpcode);
  EXPECT_EQ(asked.wr.rdma.remote_addr, kGranting.address() + 16);
  EXPECT_EQ(asked.send_flags & IBV_SEND_INLINE, 0u);
  EXPECT_EQ(adapter_.own.back().back().addr,
            reinterpret_cast<uintptr_t>(bytes_.data()));
  adapter_.Complete(asked.wr_id);
  std::vector<Completion> done;
  EXPECT_TRUE(pair_->DrainCompletions({&done, &done}));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].operation, Operation::kWrite);
  EXPECT_EQ(done[0].work, WorkId(1));
  EXPECT_EQ(counters_.atomic_writes, 1u);
}

// NS2: an adapter may carry it out before a read is answered.
TEST_F(VerbsNativeTest, AtomicWriteWaitsForAFlushThatIsARead) {
  Flush(At(0), 8);
  AtomicWrite(At(0));
  EXPECT_FALSE(Waits(Ring()[1])) << "it is behind a FLUSH by itself";
  Flush(At(0, kUngranted), 8);
  AtomicWrite(At(0));
  EXPECT_TRUE(Waits(Ring()[1]));
  CompleteAll();
  AtomicWrite(At(0));
  EXPECT_FALSE(Waits(Ring()[0])) << "the read is done";
}

// NS3, FB1.
TEST_F(VerbsNativeTest, NoWriteOvertakesAnAtomicWrite) {
  AtomicWrite(At(0));
  Write(At(0), 8);
  Send();
  Flush(At(0), 8);
  AtomicWrite(At(8));
  const std::vector<ibv_send_wr>& chain = Ring();
  EXPECT_TRUE(Waits(chain[1]));
  EXPECT_TRUE(Waits(chain[2]));
  EXPECT_FALSE(Waits(chain[3])) << "answered operations stay in order";
  EXPECT_TRUE(Waits(chain[4])) << "for the read that this flush was";
  CompleteAll();
  Write(At(0), 8);
  EXPECT_FALSE(Waits(Ring()[0])) << "it is done";
}

// Every kind of request, by the one way and by the other.
TEST_F(VerbsNativeTest, ChainWithAFlushAsksForTheSameOfAllOthers) {
  const auto post_all = [this] {
    const LocalBytes few = {{}, std::span(bytes_).first(8)};  // inline
    const LocalBytes many = {{}, std::span(bytes_).first(64)};
    Post({.local = few, .remote = At(1)});
    Post({.local = many, .remote = At(2)});
    Post({.remote = At(3)});
    Post({.operation = Operation::kWriteImmediate,
          .local = many,
          .remote = At(4),
          .immediate = 5});
    Post({.operation = Operation::kSend, .local = many});
    Post({.operation = Operation::kRead, .local = many, .remote = At(6)});
    Post({.operation = Operation::kCompareSwap,
          .local = few,
          .remote = At(8),
          .operands = {9, 10}});
    Post({.operation = Operation::kFetchAdd,
          .local = few,
          .remote = At(16),
          .operands = {11, 0}});
  };
  post_all();
  const std::vector<ibv_send_wr> expected = Ring();
  const std::vector<ibv_sge> own = adapter_.own.back();
  EXPECT_EQ(adapter_.extended_doorbells, 0) << "nothing native is in it";
  CompleteAll();
  post_all();
  Flush(At(0, kUngranted), 8);
  AtomicWrite(At(0));
  const std::vector<ibv_send_wr> chain = Ring();
  EXPECT_EQ(adapter_.doorbells.size(), 2u) << "one doorbell";
#ifdef ALPHEUS_NATIVE_VERBS
  EXPECT_EQ(adapter_.extended_doorbells, 1);
#endif
  ASSERT_EQ(chain.size(), expected.size() + 2);
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_last = i + 1 == expected.size();
    EXPECT_EQ(chain[i].wr_id, expected[i].wr_id + expected.size());
    EXPECT_EQ(chain[i].opcode, expected[i].opcode) << i;
    EXPECT_EQ(chain[i].send_flags | (is_last ? IBV_SEND_SIGNALED : 0),
              expected[i].send_flags)
        << i;
    EXPECT_EQ(adapter_.own.back()[i].addr, own[i].addr) << i;
    EXPECT_EQ(adapter_.own.back()[i].length, own[i].length) << i;
    if (chain[i].opcode == IBV_WR_SEND) continue;
    const auto& atomic = chain[i].wr.atomic;
    EXPECT_EQ(atomic.remote_addr, expected[i].wr.atomic.remote_addr) << i;
    const bool is_atomic = chain[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                           chain[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (!is_atomic) {
      EXPECT_EQ(chain[i].wr.rdma.rkey, expected[i].wr.rdma.rkey) << i;
      EXPECT_EQ(chain[i].imm_data, expected[i].imm_data) << i;
      continue;
    }
    EXPECT_EQ(atomic.rkey, expected[i].wr.atomic.rkey);
    EXPECT_EQ(atomic.compare_add, expected[i].wr.atomic.compare_add);
    EXPECT_EQ(atomic.swap, expected[i].wr.atomic.swap);
  }
}

TEST_F(VerbsNativeTest, RefusalOfAChainIsHeard) {
  adapter_.post_error = ENOMEM;
  Flush(At(0), 8);
  EXPECT_TRUE(absl::IsUnavailable(pair_->RingDoorbell()));
  adapter_.post_error = 0;
  Write(At(0), 8);
  EXPECT_EQ(Ring().size(), 1u);
}

TEST_F(VerbsNativeTest, QueuePairIsRefusedWithWhatItIsToDo) {
#ifdef ALPHEUS_NATIVE_VERBS
  EXPECT_NE(adapter_.operations & IBV_QP_EX_WITH_FLUSH, 0u);
  EXPECT_NE(adapter_.operations & IBV_QP_EX_WITH_ATOMIC_WRITE, 0u);
  adapter_.operations_refused = IBV_QP_EX_WITH_FLUSH;
  QueuePair::Making making;
  making.domain = &adapter_.domain;
  making.limits.native_flush = true;
  making.counters = &counters_;
  EXPECT_TRUE(absl::IsUnavailable(
      QueuePair::Make(&adapter_.manager, ConnectionId(1), making).status()));
#endif
  Make({});
  EXPECT_EQ(adapter_.operations, 0u) << "as ever";
}

constexpr uint64_t kSaysFlush = uint64_t{1} << 38 | uint64_t{1} << 39;
constexpr uint64_t kSaysWrite = uint64_t{1} << 40;

#ifdef ALPHEUS_NATIVE_VERBS

// NO1.
TEST(VerbsNativeAbilitiesTest, AreWhatIsSaidAndCanBeMade) {
  FakeAdapter adapter;
  const auto abilities = [&adapter](uint64_t capabilities) {
    return NativeAbilitiesOf(&adapter.context, capabilities);
  };
  using Able = NativeAbilities;
  EXPECT_EQ(abilities(0), Able{});
  EXPECT_EQ(abilities(kSaysFlush), Able{.flush = true});
  EXPECT_EQ(abilities(uint64_t{1} << 38), Able{}) << "visible is not enough";
  EXPECT_EQ(abilities(uint64_t{1} << 39), Able{});
  EXPECT_EQ(abilities(kSaysWrite), Able{.atomic_write = true});
  EXPECT_EQ(abilities(kSaysFlush | kSaysWrite), (Able{true, true}));
  adapter.operations_refused = IBV_QP_EX_WITH_FLUSH;
  EXPECT_EQ(abilities(kSaysFlush | kSaysWrite), Able{.atomic_write = true});
  adapter.operations_refused = IBV_QP_EX_WITH_ATOMIC_WRITE;
  EXPECT_EQ(abilities(kSaysFlush | kSaysWrite), Able{.flush = true});
  EXPECT_EQ(adapter.queue_pairs, 0) << "nothing is left of it";
}

#else

TEST(VerbsNativeAbilitiesTest, AreNoneWhereTheLibraryHasNone) {
  FakeAdapter adapter;
  EXPECT_EQ(NativeAbilitiesOf(&adapter.context, kSaysFlush | kSaysWrite),
            NativeAbilities{});
}

#endif

class VerbsFlushedMemoryTest : public ::testing::Test {
 protected:
  bool IsGranted(RemoteAccess access) {
    const auto key = memory_.Register(bytes_, access);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() && PartsOf(*key).grants_flush;
  }
  bool IsAskedFor() const { return (adapter_.access & kFlushAccess) != 0; }

  FakeAdapter adapter_;
  Random random_{/*seed=*/1};
  RegisteredMemory memory_{&adapter_.domain, /*pages_on_demand=*/false, random_,
                           /*native_flush=*/true};
  alignas(8) std::byte bytes_[64];
};

TEST_F(VerbsFlushedMemoryTest, RegionThatMayBeReadGrantsFlush) {
  for (const RemoteAccess access :
       {RemoteAccess::kRead, RemoteAccess::kReadWrite, RemoteAccess::kAll}) {
    EXPECT_TRUE(IsGranted(access));
    EXPECT_EQ(adapter_.access & kFlushAccess, kFlushAccess);
    EXPECT_NE(adapter_.access & IBV_ACCESS_REMOTE_READ, 0u);
  }
  for (const RemoteAccess access :
       {RemoteAccess::kNone, RemoteAccess::kWrite}) {
    EXPECT_FALSE(IsGranted(access));
    EXPECT_FALSE(IsAskedFor());
  }
}

// As Soft-RoCE does with memory that is not persistent.
TEST_F(VerbsFlushedMemoryTest, RegionThatIsRefusedSoIsRegisteredWithout) {
  adapter_.access_refused = kFlushAccess;
  EXPECT_FALSE(IsGranted(RemoteAccess::kReadWrite));
  EXPECT_FALSE(IsAskedFor());
  EXPECT_EQ(adapter_.regions, 1);
  adapter_.access_refused = IBV_ACCESS_REMOTE_READ;
  EXPECT_TRUE(absl::IsUnavailable(
      memory_.Register(bytes_, RemoteAccess::kReadWrite).status()));
}

TEST_F(VerbsFlushedMemoryTest, AdapterWithoutFlushIsNotAskedForIt) {
  RegisteredMemory memory(&adapter_.domain, /*pages_on_demand=*/false, random_);
  const auto key = memory.Register(bytes_, RemoteAccess::kAll);
  ASSERT_TRUE(key.ok());
  EXPECT_FALSE(PartsOf(*key).grants_flush);
  EXPECT_FALSE(IsAskedFor());
}

TEST(AtomicWriteRequestTest, TakesOneWholeWord) {
  std::array<std::byte, 16> bytes;
  const auto check = [&](uint64_t length, uint64_t offset) {
    return CheckWorkRequest({.local = {{}, std::span(bytes).first(length)},
                             .remote = {{}, offset},
                             .is_atomic_write = true},
                            /*message_bytes_max=*/64);
  };
  EXPECT_TRUE(check(8, 16).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(check(4, 16)));
  EXPECT_TRUE(absl::IsInvalidArgument(check(16, 16)));
  EXPECT_TRUE(absl::IsInvalidArgument(check(8, 12)));
  EXPECT_TRUE(absl::IsInvalidArgument(check(0, 0)));
}

}  // namespace
}  // namespace alpheus::fabric::verbs
