// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/reserver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "log/base/random.h"

namespace alpheus {
namespace {

using Outcome = Reserver::Outcome;

constexpr uint64_t kTenLines = 10 * kLineBytes;

class ReserverTest : public ::testing::Test {
 protected:
  // A reserver that stands at `lsn` and `tail`, with everything before it
  // durable and cleaned.
  void StartAt(uint64_t lsn, uint64_t tail, uint32_t cap = 4) {
    durable_ = lsn - 1;
    limit_ = tail + kTenLines;
    reserver_.emplace(kTenLines, cap,
                      Reserver::Next{Lsn(lsn), RingOffset(tail)}, durable_,
                      limit_);
  }
  Outcome Reserve(uint64_t lines) {
    return reserver_->TryReserve(lines * kLineBytes, &space_);
  }

  std::atomic<uint64_t> durable_{0};
  std::atomic<uint64_t> limit_{0};
  std::optional<Reserver> reserver_;
  Reserver::Space space_;
};

TEST_F(ReserverTest, LsnsAreConsecutiveAndExtentsAdjacent) {
  StartAt(1, 0);
  ASSERT_EQ(Reserve(2), Outcome::kReserved);
  EXPECT_EQ(space_.lsn, Lsn(1));
  EXPECT_EQ(space_.offset, RingOffset(0));
  ASSERT_EQ(Reserve(3), Outcome::kReserved);
  EXPECT_EQ(space_.lsn, Lsn(2));
  EXPECT_EQ(space_.begin, RingOffset(128));
  EXPECT_EQ(space_.end, RingOffset(320));
  EXPECT_EQ(reserver_->next().lsn, Lsn(3));
  EXPECT_EQ(reserver_->next().tail, RingOffset(320));
}

// P-L5, RV1 (reserver.h): the gap before the ring's end becomes a PAD, which
// takes no LSN.
TEST_F(ReserverTest, RecordThatWouldCrossTheEndStartsAtTheBeginning) {
  StartAt(1, 8 * kLineBytes);
  ASSERT_EQ(Reserve(3), Outcome::kReserved);
  EXPECT_EQ(space_.begin, RingOffset(8 * kLineBytes));
  EXPECT_EQ(space_.offset, RingOffset(10 * kLineBytes));
  EXPECT_EQ(space_.end, RingOffset(13 * kLineBytes));
  EXPECT_EQ(space_.lsn, Lsn(1));
  EXPECT_EQ(reserver_->next().lsn, Lsn(2));
}

TEST_F(ReserverTest, RecordThatEndsAtTheEndNeedsNoPad) {
  StartAt(1, 8 * kLineBytes);
  ASSERT_EQ(Reserve(2), Outcome::kReserved);
  EXPECT_EQ(space_.begin, space_.offset);
}

// P-L4, P-L6: full is full, whatever the phase; a cleaned line makes room for
// one.
TEST_F(ReserverTest, RingFillsExactlyInEveryPhase) {
  for (uint64_t phase = 0; phase < 2 * kTenLines; phase += kLineBytes) {
    StartAt(1, phase, /*cap=*/16);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(Reserve(1), Outcome::kReserved);
    EXPECT_EQ(Reserve(1), Outcome::kRingFull);
    limit_ += kLineBytes;
    EXPECT_EQ(Reserve(1), Outcome::kReserved);
    EXPECT_EQ(Reserve(1), Outcome::kRingFull);
  }
}

// RL2 (ring_log.h), P-F6.
TEST_F(ReserverTest, ExposureCapHoldsUntilRecordsAreDurable) {
  StartAt(1, 0, /*cap=*/3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Reserve(1), Outcome::kReserved);
  EXPECT_EQ(Reserve(1), Outcome::kExposureFull);
  durable_ = 1;
  EXPECT_EQ(Reserve(1), Outcome::kReserved);
  EXPECT_EQ(Reserve(1), Outcome::kExposureFull);
}

TEST_F(ReserverTest, QuiescedReserverGivesNothing) {
  StartAt(1, 0);
  EXPECT_EQ(Reserve(1), Outcome::kReserved);
  EXPECT_FALSE(reserver_->TryQuiesce());  // not durable
  durable_ = 1;
  EXPECT_TRUE(reserver_->TryQuiesce());
  EXPECT_FALSE(reserver_->TryQuiesce());
  EXPECT_EQ(Reserve(1), Outcome::kQuiesced);
  EXPECT_EQ(reserver_->next().lsn, Lsn(2));
  reserver_->Unhold();
  EXPECT_EQ(Reserve(1), Outcome::kReserved);
  EXPECT_EQ(space_.lsn, Lsn(2));
}

// The packed word keeps 23 bits of the LSN and 40 of the tail's lines: both
// must wrap without a trace.
TEST_F(ReserverTest, PackedCountersWrapWithoutATrace) {
  const uint64_t lsn = (uint64_t{1} << 24) - 2;
  const uint64_t tail = ((uint64_t{1} << 40) - 15) * kLineBytes;
  StartAt(lsn, tail);
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(Reserve(1), Outcome::kReserved) << i;
    EXPECT_EQ(space_.lsn, Lsn(lsn + i));
    EXPECT_EQ(space_.offset, RingOffset(tail + i * kLineBytes));
    ++durable_;
    limit_ += kLineBytes;
  }
}

TEST_F(ReserverTest, ThreadsNeverShareSpace) {
  constexpr int kThreads = 8;
  constexpr int kPerThread = 5000;
  constexpr uint64_t kLarge = uint64_t{1} << 30;
  durable_ = 0;
  limit_ = kLarge;
  Reserver reserver(kLarge, 1 << 20, {Lsn(1), RingOffset(0)}, durable_, limit_);
  std::vector<std::vector<Reserver::Space>> taken(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(static_cast<uint64_t>(t));
        for (int i = 0; i < kPerThread; ++i) {
          Reserver::Space space;
          ASSERT_EQ(
              reserver.TryReserve((1 + random.Below(4)) * kLineBytes, &space),
              Outcome::kReserved);
          taken[t].push_back(space);
        }
      });
    }
  }
  std::vector<Reserver::Space> all;
  for (const auto& spaces : taken) {
    all.insert(all.end(), spaces.begin(), spaces.end());
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.lsn < b.lsn; });
  RingOffset end;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].lsn, Lsn(i + 1));
    ASSERT_EQ(all[i].begin, end);
    end = all[i].end;
  }
}

}  // namespace
}  // namespace alpheus
