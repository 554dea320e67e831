// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/lsn_index.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace alpheus {
namespace {

constexpr uint64_t kCapacity = 1 << 20;

// Returns a record's place in a log of records of one line each.
LogPosition At(uint64_t lsn) {
  return {Lsn(lsn), RingOffset(lsn * kLineBytes), lsn + 1000};
}

class LsnIndexTest : public ::testing::Test {
 protected:
  void NoteAll(uint64_t first, uint64_t last) {
    for (uint64_t lsn = first; lsn <= last; ++lsn) index_.Note(At(lsn));
  }
  void Walk(uint64_t first, uint64_t last) {
    for (uint64_t lsn = first; lsn <= last; ++lsn) index_.NoteWalked(At(lsn));
  }

  LsnIndex index_{kCapacity};
};

TEST_F(LsnIndexTest, NearestIsTheStrideOrTheHead) {
  NoteAll(1, 300);
  EXPECT_EQ(index_.Nearest(Lsn(63), At(1)), At(1));
  EXPECT_EQ(index_.Nearest(Lsn(64), At(1)), At(64));
  EXPECT_EQ(index_.Nearest(Lsn(300), At(1)), At(256));
  EXPECT_EQ(index_.Nearest(Lsn(300), At(290)), At(290));
}

TEST_F(LsnIndexTest, InAGapNearestIsTheHead) {
  index_.BeginAt(At(200));
  NoteAll(200, 400);
  EXPECT_EQ(index_.Nearest(Lsn(199), At(1)), At(1));
  EXPECT_EQ(index_.Nearest(Lsn(130), At(1)), At(1));
  EXPECT_EQ(index_.Nearest(Lsn(200), At(1)), At(200));
  EXPECT_EQ(index_.Nearest(Lsn(255), At(1)), At(200));
  EXPECT_EQ(index_.Nearest(Lsn(256), At(1)), At(256));
  EXPECT_EQ(index_.Nearest(Lsn(255), At(230)), At(230));
}

// LIX1.
TEST_F(LsnIndexTest, WalkedPartOfAGapIsKnown) {
  index_.BeginAt(At(200));
  NoteAll(200, 400);
  Walk(1, 140);
  EXPECT_EQ(index_.Nearest(Lsn(100), At(1)), At(64));
  EXPECT_EQ(index_.Nearest(Lsn(140), At(1)), At(128));
  EXPECT_EQ(index_.Nearest(Lsn(141), At(1)), At(140));
  EXPECT_EQ(index_.Nearest(Lsn(199), At(150)), At(150));
  Walk(150, 260);
  EXPECT_EQ(index_.Nearest(Lsn(195), At(150)), At(192));
  EXPECT_EQ(index_.Nearest(Lsn(199), At(150)), At(192));
  EXPECT_EQ(index_.Nearest(Lsn(220), At(150)), At(200));
}

}  // namespace
}  // namespace alpheus
