// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/region_state.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "log/format/layout.h"
#include "log/format/record.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

constexpr uint64_t kRecordBytes = 512;
constexpr uint64_t kRingCapacity = 8 * kRecordBytes;

// A region whose reader is overtaken: when it comes to a page for the n-th
// time, all that a writer does meanwhile has been done. Only the two pages that
// were read last can be read without being noticed.
class OvertakenRegion {
 public:
  OvertakenRegion(std::span<const std::byte> before,
                  std::span<const std::byte> after, int overtake_at)
      : after_(after),
        overtake_at_(overtake_at),
        region_(static_cast<std::byte*>(
                    mmap(nullptr, before.size(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
                before.size()) {
    std::ranges::copy(before, region_.begin());
    mprotect(region_.data(), region_.size(), PROT_NONE);
    TheOne() = this;
    struct sigaction on_fault = {};
    on_fault.sa_sigaction = [](int, siginfo_t* fault, void*) {
      TheOne()->OnFault(static_cast<std::byte*>(fault->si_addr));
    };
    on_fault.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &on_fault, &handler_before_);
  }
  OvertakenRegion(const OvertakenRegion&) = delete;
  OvertakenRegion& operator=(const OvertakenRegion&) = delete;
  ~OvertakenRegion() {
    sigaction(SIGSEGV, &handler_before_, nullptr);
    TheOne() = nullptr;
    munmap(region_.data(), region_.size());
  }

  bool was_overtaken() const { return faults_ >= overtake_at_; }
  std::span<std::byte> bytes() { return region_; }

 private:
  // A signal has no other way to it.
  static OvertakenRegion*& TheOne() {
    static OvertakenRegion* the_one = nullptr;
    return the_one;
  }

  void OnFault(std::byte* at) {
    if (at < region_.data() || at >= region_.data() + region_.size()) {
      sigaction(SIGSEGV, &handler_before_, nullptr);  // the test's own fault
      return;
    }
    if (++faults_ == overtake_at_) {
      mprotect(region_.data(), region_.size(), PROT_READ | PROT_WRITE);
      std::memcpy(region_.data(), after_.data(), after_.size());
      mprotect(region_.data(), region_.size(), PROT_NONE);
    } else if (last_pages_[0] != nullptr) {
      mprotect(last_pages_[0], kPageBytes, PROT_NONE);
    }
    last_pages_ = {
        last_pages_[1],
        region_.data() + (at - region_.data()) / kPageBytes * kPageBytes};
    mprotect(last_pages_[1], kPageBytes, PROT_READ);
  }

  const std::span<const std::byte> after_;
  const int overtake_at_;
  const std::span<std::byte> region_;
  struct sigaction handler_before_ = {};
  std::atomic<int> faults_ = 0;
  std::array<std::byte*, 2> last_pages_ = {};
};

// RGS1: a ring that is full, and cleaned and filled once more behind the back
// of its reader.
TEST(RegionStateTest, WhatIsProvenLiesInTheRingWhereverItsReaderIsOvertaken) {
  testing::LogHarness harness({.ring_capacity = kRingCapacity});
  ASSERT_TRUE(harness.Open().ok());
  const auto append_lap = [&harness] {
    const std::string text(kRecordBytes - kRecordHeaderBytes, 'x');
    for (int i = 0; i < 8; ++i) harness.Append(text);
  };
  append_lap();
  const std::vector<std::byte> before(harness.region().begin(),
                                      harness.region().end());
  ASSERT_TRUE(harness.log().CleanupThrough(harness.log().durable_lsn()).ok());
  append_lap();
  ASSERT_EQ(harness.log().head().offset, RingOffset(kRingCapacity));
  const std::vector<std::byte> after(harness.region().begin(),
                                     harness.region().end());

  // Superline, epoch table and watermark are two pages each at least.
  constexpr int kPagesMin = 6;
  bool was_overtaken = true;
  for (int page = 1; was_overtaken; ++page) {
    SCOPED_TRACE(page);
    OvertakenRegion region(before, after, page);
    const auto state = ReadRegionState(region.bytes(), "region");
    was_overtaken = region.was_overtaken();
    EXPECT_TRUE(was_overtaken || page > kPagesMin);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_LE(state->ProvenLsn().value * kRecordBytes,
              state->superline.head_offset.value + kRingCapacity);
  }
}

// P-S5: whatever a reader has of the time before a writer came, and of the time
// after it left, nobody has the region open when it looks.
TEST(RegionStateTest, WriterThatCameAndLeftIsNoDamage) {
  testing::LogHarness harness({.ring_capacity = kRingCapacity});
  const auto write = [&harness] {
    EXPECT_TRUE(harness.Open().ok());
    harness.Append("text");
    harness.Drop();
    return std::vector<std::byte>(harness.region().begin(),
                                  harness.region().end());
  };
  const std::vector<std::byte> before = write();
  const std::vector<std::byte> after = write();
  bool was_overtaken = true;
  int failed_reads = 0;
  for (int page = 1; was_overtaken; ++page) {
    SCOPED_TRACE(page);
    OvertakenRegion region(before, after, page);
    int reads = 0;
    const auto state = ReadSharedRegionState(region.bytes(), "region",
                                             ReadingMode::kExact, [&] {
                                               ++reads;
                                               return false;
                                             });
    was_overtaken = region.was_overtaken();
    EXPECT_TRUE(state.ok()) << state.status();
    failed_reads += reads;
  }
  EXPECT_GT(failed_reads, 0);
}

TEST(RegionStateTest, ErrorIsBelievedWhereNobodyWrites) {
  testing::LogHarness harness({.ring_capacity = kRingCapacity});
  std::vector<std::byte> region(harness.region().begin(),
                                harness.region().end());
  std::fill(region.begin(), region.begin() + 2 * kSuperlineCopyBytes,
            std::byte{1});
  std::vector<bool> writers = {true, false, true, false, false};
  size_t reads = 0;
  const auto state = ReadSharedRegionState(
      region, "region", ReadingMode::kExact, [&] { return writers[reads++]; });
  EXPECT_TRUE(absl::IsDataLoss(state.status())) << state.status();
  EXPECT_EQ(reads, writers.size());
}

TEST(RegionStateTest, BlankRegionOfAWriterIsBeingFormatted) {
  std::vector<std::byte> region(kTableOffset + kPageBytes);
  const auto state = ReadSharedRegionState(
      region, "region", ReadingMode::kExact, [] { return true; });
  EXPECT_TRUE(absl::IsUnavailable(state.status())) << state.status();
}

}  // namespace
}  // namespace alpheus
