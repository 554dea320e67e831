// SPDX-License-Identifier: Apache-2.0
#include "api/store/index/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/index/segment.h"
#include "api/store/index/slot.h"
#include "log/base/mix.h"
#include "log/base/random.h"

namespace alpheus::testing {
namespace {

using store::BucketHeader;
using store::Index;
using store::Segment;
using store::Slot;
using ::testing::HasSubstr;

// Objects of which only hash and place matter: their places say who they are.
class Objects {
 public:
  // Returns a slot for a new object of the key with this hash.
  Slot Add(uint64_t hash) {
    next_ += 64;
    hashes_[next_] = hash;
    return Slot(next_, 48, hash);
  }
  uint64_t HashOf(Slot slot) const { return hashes_.at(slot.offset()); }

 private:
  uint64_t next_ = 0;
  std::map<uint64_t, uint64_t> hashes_;  // by offset
};

class IndexTest : public ::testing::Test {
 protected:
  IndexTest() : index_(*Make()) {}

  absl::StatusOr<Index> Make() {
    return Index::Create(
        [this](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
          if (bytes > bytes_left_) {
            return absl::ResourceExhaustedError("no memory, says the test");
          }
          bytes_left_ -= bytes;
          auto* const memory = static_cast<std::byte*>(
              std::aligned_alloc(Segment::kBucketBytes, bytes));
          memory_.emplace_back(memory);
          std::fill_n(memory, bytes, std::byte{0});
          return std::span(memory, bytes);
        },
        [this](Slot slot) {
          on_hash_();
          return objects_.HashOf(slot);
        },
        /*directory_bits=*/5);
  }

  auto HasHash(uint64_t hash) const {
    return [this, hash](Slot slot) { return objects_.HashOf(slot) == hash; };
  }
  std::optional<Slot> Find(uint64_t hash) const {
    return index_.Find(hash, HasHash(hash));
  }
  Slot Put(uint64_t hash) {
    const Slot slot = objects_.Add(hash);
    EXPECT_TRUE(index_.Put(hash, slot, HasHash(hash)).ok());
    return slot;
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  size_t bytes_left_ = size_t{1} << 30;
  std::function<void()> on_hash_ = [] {};  // called within each split
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  Objects objects_;
  Index index_;
};

TEST(SlotTest, KeepsWhatItIsMadeOf) {
  const uint64_t hash = 0x1fff'ff00'0000'0000 | 0x0012'3400'0000'0000;
  const Slot slot(uint64_t{5} << 40, 1000, hash, /*expires=*/true);
  EXPECT_EQ(slot.offset(), uint64_t{5} << 40);
  EXPECT_EQ(slot.fingerprint(), Slot::FingerprintOf(hash));
  EXPECT_GE(slot.bytes_max(), 1000U);
  EXPECT_TRUE(slot.expires());
  EXPECT_FALSE(Slot(8, 1000, hash).expires());
  EXPECT_FALSE(slot.is_empty());
  EXPECT_TRUE(Slot().is_empty());
}

// Places are known modulo 16 TiB.
TEST(SlotTest, PlaceWraps) {
  const uint64_t sixteen_tib = uint64_t{1} << 44;
  EXPECT_EQ(Slot(sixteen_tib + 64, 16, 0).offset(), 64U);
}

TEST(SlotTest, SizeClassIsAtMostAnEighthAboveTheSize) {
  for (uint64_t bytes = 8; bytes < (uint64_t{1} << 34);
       bytes += 8 + bytes / 1000 / 8 * 8) {
    const Slot slot(0, bytes, 0);
    ASSERT_GE(slot.bytes_max(), bytes);
    ASSERT_LE(slot.bytes_max(), bytes + bytes / 8) << bytes;
    ASSERT_EQ(Slot(0, slot.bytes_max(), 0), slot) << "not the smallest class";
  }
}

TEST_F(IndexTest, PutReplacesAndEraseRemoves) {
  const uint64_t a = Mix(1);
  const uint64_t b = Mix(2);
  EXPECT_EQ(Find(a), std::nullopt);
  Put(a);
  const Slot of_b = Put(b);
  const Slot of_a = Put(a);
  EXPECT_EQ(index_.size(), 2U);
  EXPECT_EQ(Find(a), of_a);
  EXPECT_TRUE(index_.Erase(a, HasHash(a)));
  EXPECT_FALSE(index_.Erase(a, HasHash(a)));
  EXPECT_EQ(Find(a), std::nullopt);
  EXPECT_EQ(Find(b), of_b);
  EXPECT_EQ(index_.size(), 1U);
}

// P-O11. Keys whose bucket and fingerprint are alike are told apart.
TEST_F(IndexTest, KeysOfOneFingerprintAreToldApart) {
  const uint64_t a = Mix(1);
  const uint64_t b = a ^ (uint64_t{1} << 60);
  ASSERT_EQ(Slot::FingerprintOf(a), Slot::FingerprintOf(b));
  const Slot of_a = Put(a);
  const Slot of_b = Put(b);
  EXPECT_EQ(Find(a), of_a);
  EXPECT_EQ(Find(b), of_b);
}

// P-O13.
TEST_F(IndexTest, ReplaceTakesOnlyTheSlotThatIsStillThere) {
  const uint64_t hash = Mix(1);
  const Slot first = Put(hash);
  const Slot second = Put(hash);
  const Slot copy = objects_.Add(hash);
  EXPECT_FALSE(index_.Replace(hash, first, copy));
  EXPECT_EQ(Find(hash), second);
  EXPECT_TRUE(index_.Replace(hash, second, copy));
  EXPECT_EQ(Find(hash), copy);
}

TEST_F(IndexTest, AgreesWithAMapThroughManySplits) {
  Random random(34);
  std::map<uint64_t, Slot> expected;
  const uint64_t keys = 60'000;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t hash = Mix(random.Next() % keys);
    if (random.Next() % 4 != 0) {
      expected[hash] = Put(hash);
    } else {
      EXPECT_EQ(index_.Erase(hash, HasHash(hash)), expected.erase(hash) == 1);
    }
  }
  ASSERT_EQ(index_.size(), expected.size());
  for (uint64_t key = 0; key < keys; ++key) {
    const auto found = expected.find(Mix(key));
    ASSERT_EQ(Find(Mix(key)), found == expected.end()
                                  ? std::nullopt
                                  : std::optional(found->second));
  }
}

// IDX4. Cursors stay good while segments are split.
TEST_F(IndexTest, ScanShowsAllThatIsThereThroughout) {
  Random random(34);
  std::set<uint64_t> throughout;
  for (uint64_t key = 0; key < 5'000; ++key) {
    throughout.insert(Mix(key));
    Put(Mix(key));
  }
  std::set<uint64_t> seen;
  std::optional<uint64_t> cursor = 0;
  uint64_t next_key = 5'000;
  while (cursor) {
    cursor = index_.Scan(
        *cursor, [&](Slot slot) { seen.insert(objects_.HashOf(slot)); });
    for (uint64_t i = random.Next() % 2'000; i > 0; --i) Put(Mix(next_key++));
  }
  for (const uint64_t hash : throughout) ASSERT_TRUE(seen.contains(hash));
}

TEST_F(IndexTest, ScanShowsAKeyOnceWhereNothingIsSplit) {
  for (uint64_t key = 0; key < 5'000; ++key) Put(Mix(key));
  std::vector<uint64_t> seen;
  for (std::optional<uint64_t> cursor = 0; cursor;) {
    const uint64_t from = *cursor;
    cursor = index_.Scan(from, [&](Slot slot) {
      const uint64_t hash = objects_.HashOf(slot);
      EXPECT_GE(Index::ScanOrder(hash), from);
      seen.push_back(hash);
    });
  }
  EXPECT_EQ(seen.size(), 5'000U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 5'000U);
}

// --- What readers see -------------------------------------------------------

// A reader at another host, with a copy of the directory.
class OneSidedReader {
 public:
  explicit OneSidedReader(const Index& index) : index_(index) { Refresh(); }

  void Refresh() {
    directory_.resize(index_.directory().size() / sizeof(uint64_t));
    std::memcpy(directory_.data(), index_.directory().data(),
                index_.directory().size());
    ++refreshes_;
  }

  // Looks as docs/design/object_store.md says. Returns nothing, too, if new
  // directories lead nowhere.
  std::optional<Slot> Find(uint64_t hash, Segment::HasKey has_key) {
    for (int tries = 0; tries < 3; ++tries) {
      const auto depth = static_cast<uint8_t>(directory_[0]);
      const auto number = static_cast<uint32_t>(
          directory_[Index::kDirectoryHeaderWords +
                     BucketHeader::PrefixOf(hash, depth)]);
      const Segment segment(
          index_.parts()[number / Index::kSegmentsPerPart].data() +
          number % Index::kSegmentsPerPart * Segment::kBytes);
      const BucketHeader header = segment.header(Segment::HomeOf(hash));
      if (header.is_moved || !header.Has(hash)) {
        Refresh();
        continue;
      }
      Segment::Position at;
      if (!segment.Find(hash, has_key, &at)) return std::nullopt;
      return segment.slot(at);
    }
    return std::nullopt;
  }

  int refreshes() const { return refreshes_; }

 private:
  const Index& index_;
  std::vector<uint64_t> directory_;
  int refreshes_ = 0;
};

// IDX1: also once the directory has grown into another array.
TEST_F(IndexTest, ReaderWithAnOldDirectoryIsSentToTheNewOne) {
  OneSidedReader reader(index_);
  uint64_t keys = 0;
  for (const uint64_t until : {100U, 3'000U, 30'000U, 100'000U}) {
    const uint64_t from = keys;
    for (; keys < until; ++keys) Put(Mix(keys));
    for (uint64_t key = from; key < keys; key += 97) {
      ASSERT_EQ(reader.Find(Mix(key), HasHash(Mix(key))), Find(Mix(key)));
    }
  }
  EXPECT_GT(reader.refreshes(), 3);
  EXPECT_LT(reader.refreshes(), 10);
}

// IDX2. In the middle of a split a reader finds all keys, in the old segment.
TEST_F(IndexTest, ReaderFindsAllKeysInTheMiddleOfASplit) {
  uint64_t keys = 0;
  for (; keys < 1'000; ++keys) Put(Mix(keys));
  int looks = 0;
  on_hash_ = [&] {
    if (++looks % 50 != 0) return;
    OneSidedReader reader(index_);
    for (uint64_t key = 0; key < 1'000; key += 7) {
      ASSERT_TRUE(reader.Find(Mix(key), HasHash(Mix(key))).has_value());
      ASSERT_EQ(reader.refreshes(), 1);
    }
  };
  for (; keys < 3'000; ++keys) Put(Mix(keys));
  EXPECT_GT(looks, 1'000);
}

// SEG1. Whatever is put and erased beside it.
TEST(SegmentTest, SlotOfAKeyStaysWhereItIs) {
  std::vector<std::unique_ptr<std::byte[]>> parts;
  absl::StatusOr<Index> index = Index::Create(
      [&](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
        parts.push_back(std::make_unique<std::byte[]>(bytes + 64));
        std::byte* at = parts.back().get();
        at += (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64;
        return std::span(at, bytes);
      },
      [](Slot) { return 0; }, /*directory_bits=*/1);
  ASSERT_TRUE(index.ok());
  // Objects are told apart by their places alone: key k lies at k * 8 + n *
  // 2^20.
  const auto slot_of = [](uint64_t key, uint64_t version) {
    return Slot(key * 8 + version * (1 << 20), 8, Mix(key));
  };
  const auto has_key = [](uint64_t key) {
    return [key](Slot slot) { return slot.offset() % (1 << 20) == key * 8; };
  };
  const Segment segment(index->parts()[0].data());
  const auto position_of = [&](uint64_t key) {
    Segment::Position at;
    EXPECT_TRUE(segment.Find(Mix(key), has_key(key), &at)) << key;
    return std::pair(at.bucket, at.slot);
  };
  std::map<uint64_t, std::pair<size_t, size_t>> positions;
  Random random(34);
  for (uint64_t i = 1; i < 3'000; ++i) {
    const uint64_t key = 1 + random.Next() % 200;
    if (random.Next() % 4 == 0) {
      EXPECT_EQ(index->Erase(Mix(key), has_key(key)),
                positions.erase(key) == 1);
    } else {
      ASSERT_TRUE(index->Put(Mix(key), slot_of(key, i), has_key(key)).ok());
      positions.emplace(key, position_of(key));
    }
    for (const auto& [one, position] : positions) {
      ASSERT_EQ(position_of(one), position) << one;
    }
  }
}

// IDX3. A split uses no memory that a reader may look at.
TEST_F(IndexTest, MemoryIsUsedAgainOnlyOnceNoReaderHasIt) {
  for (uint64_t key = 0; key < 3'000; ++key) Put(Mix(key));
  const Segment old(index_.parts()[0].data());
  ASSERT_TRUE(old.header(0).is_moved);
  const std::vector<std::byte> before(
      index_.parts()[0].begin(), index_.parts()[0].begin() + Segment::kBytes);
  const auto is_as_before = [&] {
    return std::ranges::equal(before, index_.parts()[0].first(Segment::kBytes));
  };
  index_.EndGeneration(7);
  for (uint64_t key = 3'000; key < 20'000; ++key) Put(Mix(key));
  EXPECT_TRUE(is_as_before());
  index_.FreeThrough(6);
  for (uint64_t key = 20'000; key < 40'000; ++key) Put(Mix(key));
  EXPECT_TRUE(is_as_before());
  index_.FreeThrough(7);
  for (uint64_t key = 40'000; key < 60'000; ++key) Put(Mix(key));
  EXPECT_FALSE(is_as_before());
}

// --- Limits -----------------------------------------------------------------

TEST_F(IndexTest, WithoutMemoryForASplitNothingChanges) {
  bytes_left_ = 0;
  std::map<uint64_t, Slot> expected;
  absl::Status put;
  uint64_t key = 0;
  for (; put.ok(); ++key) {
    const uint64_t hash = Mix(key);
    const Slot slot = objects_.Add(hash);
    put = index_.Put(hash, slot, HasHash(hash));
    if (put.ok()) expected[hash] = slot;
  }
  EXPECT_EQ(put.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(index_.size(), expected.size());
  for (const auto& [hash, slot] : expected) ASSERT_EQ(Find(hash), slot);
  EXPECT_EQ(Find(Mix(key - 1)), std::nullopt);
  // A key that is there may change all the same.
  const auto& [hash, slot] = *expected.begin();
  const Slot next = objects_.Add(hash);
  EXPECT_TRUE(index_.Put(hash, next, HasHash(hash)).ok());
  EXPECT_EQ(Find(hash), next);
}

// Else a few keys would take all memory for a directory.
TEST_F(IndexTest, KeysThatCollideAreRefused) {
  absl::Status put;
  uint64_t keys = 0;
  for (; put.ok() && keys < 1'000; ++keys) {
    const uint64_t hash = Mix(keys) << 44;  // one segment, one home
    put = index_.Put(hash, objects_.Add(hash), HasHash(hash));
  }
  EXPECT_EQ(put.code(), absl::StatusCode::kResourceExhausted) << put;
  EXPECT_THAT(std::string(put.message()), HasSubstr("end alike"));
  EXPECT_GT(keys, 20U);
  EXPECT_LT(index_.directory().size(), size_t{1} << 16);
}

// Slots are words, and there is room for most of them.
TEST_F(IndexTest, SegmentsAreWellFilled) {
  for (uint64_t key = 0; key < 200'000; ++key) Put(Mix(key));
  size_t segments = 0;
  for (const auto& part : index_.parts()) {
    for (size_t i = 0; i < Index::kSegmentsPerPart; ++i) {
      const Segment one(part.data() + i * Segment::kBytes);
      if (!one.header(0).is_moved && one.size() > 0) ++segments;
    }
  }
  const double load =
      200'000.0 / static_cast<double>(segments * Segment::kSlots);
  EXPECT_GT(load, 0.5);  // between splits half of it is empty
  RecordProperty("load", std::to_string(load));
}

}  // namespace
}  // namespace alpheus::testing
