// SPDX-License-Identifier: Apache-2.0
#include "api/log/tail_pages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace alpheus {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kCapacity = 64 * kMiB;

// Nothing is touched, so there is no memory behind the ring.
class TailPagesTest : public ::testing::Test {
 protected:
  // A mapped part, as offsets from the start of the ring.
  struct Mapped {
    uint64_t begin;
    uint64_t end;
    bool operator==(const Mapped&) const = default;
  };

  TailPages PagesFrom(uint64_t tail) {
    return TailPages(ring_, RingOffset(tail), [this](std::span<std::byte> b) {
      if (fails_) return false;
      const auto begin = static_cast<uint64_t>(b.data() - ring_.data());
      mapped_.push_back({begin, begin + b.size()});
      return true;
    });
  }
  std::vector<Mapped> Take() { return std::exchange(mapped_, {}); }

  const Ring ring_{reinterpret_cast<std::byte*>(kPageBytes), kCapacity};
  std::vector<Mapped> mapped_;
  bool fails_ = false;
};

TEST_F(TailPagesTest, ALittleIsMappedAheadOfATailThatRests) {
  TailPages pages = PagesFrom(0);
  pages.KeepAhead(RingOffset(0));
  EXPECT_EQ(Take(), (std::vector<Mapped>{{0, kMiB}}));
  pages.KeepAhead(RingOffset(0));
  EXPECT_EQ(Take(), std::vector<Mapped>());
}

TEST_F(TailPagesTest, TwiceWhatWasAppendedIsMappedAhead) {
  TailPages pages = PagesFrom(0);
  pages.KeepAhead(RingOffset(0));
  Take();
  pages.KeepAhead(RingOffset(3 * kMiB));
  EXPECT_EQ(Take(), (std::vector<Mapped>{{3 * kMiB, 9 * kMiB}}));
  pages.KeepAhead(RingOffset(5 * kMiB));
  EXPECT_EQ(Take(), std::vector<Mapped>());
}

// TP2.
TEST_F(TailPagesTest, ACallMapsNoMoreThanItsShare) {
  TailPages pages = PagesFrom(0);
  pages.KeepAhead(RingOffset(40 * kMiB));
  EXPECT_EQ(Take(), (std::vector<Mapped>{{40 * kMiB, 56 * kMiB}}));
}

// TP1: a lap behind the first tail all is mapped.
TEST_F(TailPagesTest, EachPageIsMappedOnce) {
  TailPages pages = PagesFrom(60 * kMiB);
  std::vector<int> times(kCapacity / kMiB);
  for (uint64_t tail = 60 * kMiB; tail < 4 * kCapacity; tail += kMiB) {
    pages.KeepAhead(RingOffset(tail));
    for (const Mapped& part : Take()) {
      for (uint64_t at = part.begin; at < part.end; at += kMiB) {
        ++times[at / kMiB];
      }
    }
  }
  EXPECT_EQ(times, std::vector<int>(times.size(), 1));
}

TEST_F(TailPagesTest, APartEndsWhereTheRingEnds) {
  TailPages pages = PagesFrom(62 * kMiB);
  pages.KeepAhead(RingOffset(62 * kMiB));
  Take();
  pages.KeepAhead(RingOffset(kCapacity - kMiB));
  EXPECT_EQ(Take(), (std::vector<Mapped>{{63 * kMiB, 64 * kMiB}, {0, kMiB}}));
}

TEST_F(TailPagesTest, AfterAFailureNothingIsAskedForAgain) {
  TailPages pages = PagesFrom(0);
  fails_ = true;
  pages.KeepAhead(RingOffset(0));
  fails_ = false;
  pages.KeepAhead(RingOffset(10 * kMiB));
  EXPECT_EQ(Take(), std::vector<Mapped>());
}

TEST_F(TailPagesTest, WithoutAWayToMapThereIsNothingToDo) {
  TailPages pages(ring_, RingOffset(0), nullptr);
  pages.KeepAhead(RingOffset(10 * kMiB));
}

}  // namespace
}  // namespace alpheus
