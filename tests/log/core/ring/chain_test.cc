// SPDX-License-Identifier: Apache-2.0
// The chain that the log carries along as records become durable must be the
// one that a scan computes, whoever moved the durable LSN.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

constexpr uint64_t kRegionBytes = 1 << 20;

// A log on memory as a program has it, for threads.
class MemoryLog {
 public:
  MemoryLog()
      : region_(*Region::Anonymous(kRegionBytes)),
        waiter_(Clock::Real()),
        pmem_({}) {
    EXPECT_TRUE(FormatRegion(pmem_, region_.bytes(),
                             *Layout::ForRegion(kRegionBytes),
                             NewLocalIdentity(random_))
                    .ok());
    recovery::LocalOpeningOptions options;
    options.name = "memory";
    opened_ =
        recovery::OpenEpochLocally(pmem_, region_.bytes(), options, random_);
    EXPECT_TRUE(opened_.ok()) << opened_.status();
    log_ = std::make_unique<RingLog<LibpmemPersistence>>(
        pmem_, region_.bytes(), opened_->start,
        RingLogOptions{.name = "memory", .exposure_records_max = 64},
        Clock::Real(), waiter_);
  }

  RingLog<LibpmemPersistence>& log() { return *log_; }

 private:
  Random random_{1};
  Region region_;
  FutexWaiter waiter_;
  LibpmemPersistence pmem_;
  absl::StatusOr<recovery::OpenedEpoch> opened_;
  std::unique_ptr<RingLog<LibpmemPersistence>> log_;
};

// The position behind `last`, from the headers alone.
template <Persistence P>
LogPosition Walk(const RingLog<P>& log, const LogPosition& from, Lsn last) {
  RecordCursor cursor(log.ring(), log.table(), from,
                      from.offset + log.ring().capacity());
  while (cursor.position().lsn <= last) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      ADD_FAILURE() << "LSN " << cursor.position().lsn;
      break;
    }
  }
  return cursor.position();
}

// One record in one of the ways to write one.
template <Persistence P>
void WriteOne(RingLog<P>& log, Random& random) {
  const std::string text(random.Below(200), 'x');
  const std::span<const std::byte> part = AsBytes(text);
  const uint64_t way = random.Below(5);
  if (way < 2) {
    const uint32_t frequency = way == 0 ? 1 : 4;
    ASSERT_TRUE(log.Append({&part, 1}, frequency, Deadline()).ok());
    return;
  }
  auto record = log.Reserve(text.size(), Deadline());
  ASSERT_TRUE(record.ok()) << record.status();
  if (way == 2) return log.Abort(*record);
  ASSERT_TRUE(log.Copy(*record, 0, part).ok());
  ASSERT_TRUE(log.Complete(*record).ok());
  if (way == 3) {
    ASSERT_TRUE(log.Force(record->lsn, 1, Deadline()).ok());
  }
}

TEST(ChainTest, HeadHasTheChainOfTheRecordsBeforeIt) {
  testing::LogHarness harness(
      {.ring_capacity = 1 << 16, .exposure_records_max = 32});
  ASSERT_TRUE(harness.Open().ok());
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    RingLog<model::ModelPersistence>& log = harness.log();
    for (int i = 0; i < 70; ++i) WriteOne(log, random);
    ASSERT_TRUE(log.Force(log.next_lsn() - 1, 1, Deadline()).ok());
    const Lsn last(log.durable_lsn().value - random.Below(5));
    const LogPosition expected = Walk(log, log.head(), last);
    ASSERT_TRUE(log.CleanupThrough(last).ok());
    // Aborted records behind it are passed over too.
    const LogPosition head = log.head();
    EXPECT_EQ(head, Walk(log, expected, head.lsn - 1)) << "round " << round;
    // An opening starts from the same position.
    if (round % 10 == 9) {
      harness.PowerCut();
      ASSERT_TRUE(harness.Open().ok());
    }
  }
}

TEST(ChainTest, ThreadsExtendOneChain) {
  MemoryLog memory;
  RingLog<LibpmemPersistence>& log = memory.log();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&log, round, t] {
        Random random(Mix(static_cast<uint64_t>(round), t));
        for (int i = 0; i < 500; ++i) WriteOne(log, random);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(log.Force(log.next_lsn() - 1, 1, Deadline()).ok());
    const LogPosition expected = Walk(log, log.head(), log.durable_lsn());
    ASSERT_TRUE(log.CleanupThrough(log.durable_lsn()).ok());
    EXPECT_EQ(log.head(), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace alpheus
