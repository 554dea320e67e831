// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/pmem/counters.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "log/pmem/region_alarm.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;

struct SyncCall {
  uintptr_t address;
  size_t bytes;
};
std::vector<SyncCall> sync_calls;
int sync_result = 0;

int RecordSync(const void* address, size_t bytes) {
  sync_calls.push_back({reinterpret_cast<uintptr_t>(address), bytes});
  return sync_result;
}

class MsyncPersistenceTest : public ::testing::Test {
 protected:
  MsyncPersistenceTest()
      : region_(*Region::Anonymous(64 * kPageBytes)),
        pmem_("some file", RecordSync) {
    sync_calls.clear();
    sync_result = 0;
  }
  std::byte* At(size_t offset) { return region_.bytes().data() + offset; }

  Region region_;
  MsyncPersistence pmem_;
};

TEST_F(MsyncPersistenceTest, PiecesOfOneRecordAreOneSystemCall) {
  const std::vector<std::byte> lines(10 * kLineBytes, std::byte{7});
  pmem_.CopyLinesNt(At(kPageBytes), lines.data(), 1);
  pmem_.CopyLinesNt(At(kPageBytes + kLineBytes), lines.data(), 9);
  pmem_.Flush(At(2 * kPageBytes), 10);
  ASSERT_TRUE(pmem_.Fence());
  ASSERT_EQ(sync_calls.size(), 1u);
  EXPECT_EQ(sync_calls[0].address, reinterpret_cast<uintptr_t>(At(kPageBytes)));
  EXPECT_EQ(sync_calls[0].bytes, 2 * kPageBytes);
  EXPECT_EQ(std::memcmp(At(kPageBytes), lines.data(), kLineBytes), 0);
}

TEST_F(MsyncPersistenceTest, DistantPagesAreSyncedApartAndOnce) {
  pmem_.Flush(At(0), 1);
  pmem_.Flush(At(10 * kPageBytes), 1);
  ASSERT_TRUE(pmem_.Fence());
  EXPECT_EQ(sync_calls.size(), 2u);
  ASSERT_TRUE(pmem_.Fence());
  EXPECT_EQ(sync_calls.size(), 2u);
}

// A retry after a failed msync may succeed without the data: it must not count.
TEST_F(MsyncPersistenceTest, FailureSticks) {
  sync_result = EIO;
  pmem_.Flush(At(0), 1);
  EXPECT_FALSE(pmem_.Fence());
  sync_result = 0;
  pmem_.Flush(At(0), 1);
  EXPECT_FALSE(pmem_.Fence());
  EXPECT_EQ(pmem_.Error().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(pmem_.Error().message()),
              AllOf(HasSubstr("some file"), HasSubstr("Input/output error")));
}

// Two logs in one thread: each fence answers for its own pages only.
TEST_F(MsyncPersistenceTest, FenceTakesOnlyItsOwnPages) {
  MsyncPersistence other("other file", RecordSync);
  pmem_.Flush(At(0), 1);
  ASSERT_TRUE(other.Fence());
  EXPECT_EQ(sync_calls.size(), 0u);
  sync_result = EIO;
  EXPECT_FALSE(pmem_.Fence());
  EXPECT_EQ(sync_calls.size(), 1u);
  EXPECT_TRUE(other.Error().ok());
}

// Goal: a run that finds no place among the noted ones is persisted all the
// same, and its failure is told by the fence.
TEST_F(MsyncPersistenceTest, MoreRunsThanAreNotedAreSyncedAtOnce) {
  constexpr size_t kRuns = MsyncPersistence::kRangesMax;
  for (size_t i = 0; i < kRuns; ++i) pmem_.Flush(At(2 * i * kPageBytes), 1);
  EXPECT_EQ(sync_calls.size(), 0u);
  pmem_.Flush(At(2 * kRuns * kPageBytes), 1);
  ASSERT_EQ(sync_calls.size(), 1u);
  EXPECT_EQ(sync_calls[0].address,
            reinterpret_cast<uintptr_t>(At(2 * kRuns * kPageBytes)));
  ASSERT_TRUE(pmem_.Fence());
  EXPECT_EQ(sync_calls.size(), kRuns + 1);
}

TEST_F(MsyncPersistenceTest, FailureOfARunThatIsSyncedAtOnceSticks) {
  constexpr size_t kRuns = MsyncPersistence::kRangesMax;
  for (size_t i = 0; i < kRuns; ++i) pmem_.Flush(At(2 * i * kPageBytes), 1);
  sync_result = EIO;
  pmem_.Flush(At(2 * kRuns * kPageBytes), 1);
  sync_result = 0;
  EXPECT_FALSE(pmem_.Fence());
}

// Pages of a log that failed may stay noted by a thread for ever.
TEST_F(MsyncPersistenceTest, PagesThatNobodyFencesStandInNobodysWay) {
  for (int i = 0; i < 100; ++i) {
    MsyncPersistence abandoned("abandoned", RecordSync);
    abandoned.Flush(At(0), 1);
  }
  sync_calls.clear();
  pmem_.Flush(At(kPageBytes), 1);
  ASSERT_TRUE(pmem_.Fence());
  ASSERT_EQ(sync_calls.size(), 1u);
  EXPECT_EQ(sync_calls[0].address, reinterpret_cast<uintptr_t>(At(kPageBytes)));
}

TEST_F(MsyncPersistenceTest, HintCostsNoSystemCall) {
  pmem_.FlushHint(At(0), 8);
  ASSERT_TRUE(pmem_.Fence());
  EXPECT_EQ(sync_calls.size(), 0u);
}

// RGA2 (region_alarm.h).
TEST_F(MsyncPersistenceTest, NoFenceSucceedsOnceTheAlarmIsRaised) {
  const auto alarm = std::make_shared<RegionAlarm>("a file");
  MsyncPersistence pmem("a file", RecordSync, alarm);
  EXPECT_TRUE(pmem.Fence());
  EXPECT_TRUE(pmem.Error().ok());
  alarm->RaiseByBusError();
  EXPECT_FALSE(pmem.Fence());
  EXPECT_EQ(pmem.Error().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(pmem.Error().message()), HasSubstr("SIGBUS"));
}

TEST_F(MsyncPersistenceTest, RealSyncSucceeds) {
  MsyncPersistence pmem("anonymous");
  pmem.Store8(reinterpret_cast<uint64_t*>(At(8)), 42);
  pmem.Flush(At(8), 8);
  EXPECT_TRUE(pmem.Fence());
  EXPECT_TRUE(pmem.Error().ok());
}

TEST(AlarmedLibpmemPersistenceTest, NoFenceSucceedsOnceTheAlarmIsRaised) {
  const auto alarm = std::make_shared<RegionAlarm>("a file");
  LibpmemPersistence pmem({.alarm = alarm});
  EXPECT_TRUE(pmem.Fence());
  EXPECT_TRUE(pmem.Error().ok());
  alarm->Raise(absl::DataLossError("truncated"));
  EXPECT_FALSE(pmem.Fence());
  EXPECT_EQ(pmem.Error(), absl::UnavailableError("truncated"));
}

class LibpmemPersistenceTest : public ::testing::Test {
 protected:
  LibpmemPersistenceTest() : region_(*Region::Anonymous(64 * kPageBytes)) {}
  std::byte* At(size_t offset) { return region_.bytes().data() + offset; }

  Region region_;
};

TEST_F(LibpmemPersistenceTest, StoresArriveAndAreCounted) {
  LibpmemPersistence pmem({});
  std::vector<std::byte> source(3 * kLineBytes + 1);
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::byte>(i * 7);
  }
  const PersistenceCounters before = ThreadPersistenceCounters();
  pmem.CopyLinesNt(At(kLineBytes), source.data() + 1, 3);  // unaligned source
  pmem.Copy(At(1000), source.data(), 5);
  pmem.Store8(reinterpret_cast<uint64_t*>(At(2048)), 42);
  pmem.Flush(At(1000), 100);  // three lines: 960, 1024 and 1088
  ASSERT_TRUE(pmem.Fence());
  const PersistenceCounters after = ThreadPersistenceCounters();
  EXPECT_EQ(std::memcmp(At(kLineBytes), source.data() + 1, 3 * kLineBytes), 0);
  EXPECT_EQ(std::memcmp(At(1000), source.data(), 5), 0);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(At(2048)), 42u);
  EXPECT_EQ(after.fences - before.fences, 1u);
  EXPECT_EQ(after.flushed_lines - before.flushed_lines, 3u);
}

// eADR: the caches are in the persistence domain, the fence alone remains.
TEST_F(LibpmemPersistenceTest, AutoFlushLeavesOnlyTheFence) {
  LibpmemPersistence pmem({.auto_flush = true});
  const PersistenceCounters before = ThreadPersistenceCounters();
  pmem.Flush(At(0), 4096);
  ASSERT_TRUE(pmem.Fence());
  const PersistenceCounters after = ThreadPersistenceCounters();
  EXPECT_EQ(after.flushed_lines, before.flushed_lines);
  EXPECT_EQ(after.fences - before.fences, 1u);
}

TEST_F(LibpmemPersistenceTest, EmulatedLatencyIsAddedToTheFence) {
  LibpmemPersistence pmem({.emulated_latency_ns = 100'000});
  const int64_t before = Clock::Real().NowNanos();
  ASSERT_TRUE(pmem.Fence());
  // A lower bound only: spinning can't be early, and may always be late.
  EXPECT_GE(Clock::Real().NowNanos() - before, 100'000);
}

}  // namespace
}  // namespace alpheus
