// SPDX-License-Identifier: Apache-2.0
#include "log/format/atomic_cell.h"

#include <gtest/gtest.h>

#include <set>

#include "tools/model/memory/crash_model.h"

namespace alpheus {

using model::ModelPersistence;

namespace {

constexpr uint64_t kMagic = 0x1234;

class AtomicCellTest : public ::testing::Test {
 protected:
  AtomicCellTest() : pmem_(2 * kPageBytes) {
    place_.copies = {pmem_.region().data(), pmem_.region().data() + kPageBytes};
    place_.capacity_bytes = kPageBytes;
    place_.magic = kMagic;
  }

  static std::vector<std::byte> Value(int n) {
    return std::vector<std::byte>(100, static_cast<std::byte>(n));
  }
  bool Write(uint64_t seq, int value) {
    return WriteCell(pmem_, place_, ReadCell(place_).newest, seq, Value(value));
  }
  // The value that holds, as its first byte; -1 if none does.
  int Read() const {
    const CellState state = ReadCell(place_);
    return state.newest
               ? std::to_integer<int>(state.copies[*state.newest].content[0])
               : -1;
  }

  ModelPersistence pmem_;
  CellPlace place_;
};

TEST_F(AtomicCellTest, ZeroedMemoryHoldsNoValue) { EXPECT_EQ(Read(), -1); }

TEST_F(AtomicCellTest, BothCopiesAreEqualWhenIdle) {
  ASSERT_TRUE(Write(1, 7));
  EXPECT_TRUE(ReadCell(place_).copies_agree());
  EXPECT_EQ(Read(), 7);
}

// ACL2 (atomic_cell.h): damage to one copy never brings back an older value.
TEST_F(AtomicCellTest, OneDamagedCopyNeverHidesAnAcknowledgedValue) {
  ASSERT_TRUE(Write(1, 7));
  ASSERT_TRUE(Write(2, 8));
  for (std::byte* copy : place_.copies) {
    for (size_t bit = 0; bit < 8 * (kCellHeaderBytes + 100); ++bit) {
      copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_EQ(Read(), 8) << "bit " << bit;
      copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
  }
}

TEST_F(AtomicCellTest, CopyOfTheOtherIndexDoesNotValidate) {
  ASSERT_TRUE(Write(1, 7));
  std::memset(place_.copies[0], 0, kPageBytes);
  std::memcpy(place_.copies[0], place_.copies[1], kPageBytes);
  EXPECT_FALSE(ReadCell(place_).copies[0].valid);
}

TEST_F(AtomicCellTest, OtherOwnerDoesNotValidate) {
  ASSERT_TRUE(Write(1, 7));
  place_.owner = 99;
  EXPECT_EQ(Read(), -1);
}

// ACL4: with copy 0 damaged, an update that is cut at its first fence must not
// have touched copy 1.
TEST_F(AtomicCellTest, UpdateOverwritesTheDamagedCopyFirst) {
  ASSERT_TRUE(Write(1, 7));
  for (const int damaged : {0, 1}) {
    place_.copies[damaged][kCellHeaderBytes] ^= std::byte{1};
    const CellCopy good = ReadCellCopy(place_, 1 - damaged);
    bool first = true;
    pmem_.SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      if (!first) return;
      first = false;
      EXPECT_EQ(ReadCellCopy(place_, 1 - damaged), good);
    });
    ASSERT_TRUE(Write(good.seq + 1, 9));
    pmem_.SetHook({});
    EXPECT_FALSE(first);
    EXPECT_TRUE(ReadCell(place_).copies_agree());
  }
}

// ACL3, P-S1: an update that is cut between its copies leaves the newer value,
// whichever copy came first.
TEST_F(AtomicCellTest, CopyWithTheLargerNumberHolds) {
  uint64_t seq = 0;
  for (const int first : {0, 1}) {
    ASSERT_TRUE(Write(++seq, 7));
    ASSERT_TRUE(WriteCellCopy(pmem_, place_, first, ++seq, Value(8)));
    EXPECT_EQ(ReadCell(place_).newest, first);
    EXPECT_EQ(Read(), 8);
  }
}

// ACL1: a power cut tears at most one copy, and after the update none.
TEST_F(AtomicCellTest, OnlyOneCopyIsOpenAtATime) {
  ASSERT_TRUE(Write(1, 7));
  for (const uint64_t seq : {2, 3}) {
    int fences = 0;
    pmem_.SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      ++fences;
      std::set<size_t> open_copies;
      for (const auto& word : pmem_.DirtyWords()) {
        open_copies.insert(word.offset / kPageBytes);
      }
      EXPECT_EQ(open_copies.size(), 1u) << "fence " << fences;
    });
    ASSERT_TRUE(Write(seq, static_cast<int>(seq)));
    pmem_.SetHook({});
    EXPECT_EQ(fences, 2);
    EXPECT_TRUE(pmem_.DirtyWords().empty());
  }
}

TEST_F(AtomicCellTest, LengthBeyondTheCopyIsRefusedBeforeItIsUsed) {
  ASSERT_TRUE(Write(1, 7));
  const uint32_t huge = 0xffffffff;
  for (std::byte* copy : place_.copies) {
    std::memcpy(copy + offsetof(CellHeader, content_bytes), &huge, 4);
  }
  EXPECT_EQ(Read(), -1);
}

TEST_F(AtomicCellTest, FailedFenceIsReported) {
  pmem_.FailFence(2);
  EXPECT_FALSE(Write(1, 7));
}

}  // namespace
}  // namespace alpheus
