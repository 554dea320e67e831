// SPDX-License-Identifier: Apache-2.0
// The FLEX baseline keeps what it was given: else it would be no baseline.
#include "bench/rocksdb/flex_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench::wal {
namespace {

using ::testing::ElementsAre;

class FlexStoreTest : public ::testing::Test {
 protected:
  FlexStoreTest() {
    EXPECT_TRUE(FlexStore::Format(path_, 1 << 20).ok());
    Reopen();
  }

  void Reopen() {
    store_.reset();
    auto opened = FlexStore::Open(path_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  std::shared_ptr<FlexLog> Create(uint64_t number) {
    const auto file = store_->Create(number);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.value_or(nullptr);
  }

  static bool Append(FlexLog& file, std::string_view text) {
    return FlexStore::Append(file, std::as_bytes(std::span(text)));
  }

  std::string Content(uint64_t number) {
    const auto file = store_->Find(number);
    if (file == nullptr) return "(none)";
    const auto bytes = file->stored();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("region");
  std::unique_ptr<FlexStore> store_;
};

TEST_F(FlexStoreTest, BytesAreFoundInOrderWhenTheRegionIsOpenedAgain) {
  const auto file = Create(4);
  EXPECT_TRUE(Append(*file, "abc"));
  EXPECT_TRUE(Append(*file, std::string(200, 'd')));
  Create(7);
  Reopen();
  EXPECT_THAT(store_->List(), ElementsAre(4, 7));
  EXPECT_EQ(Content(4), "abc" + std::string(200, 'd'));
  EXPECT_EQ(Content(7), "");
}

TEST_F(FlexStoreTest, RemovedFileIsGoneAndItsSlotEmpty) {
  EXPECT_TRUE(Append(*Create(4), "old"));
  EXPECT_TRUE(store_->Remove(4));
  EXPECT_FALSE(store_->Remove(4));
  Reopen();
  EXPECT_EQ(Content(4), "(none)");
  Create(5);
  EXPECT_EQ(Content(5), "");
}

TEST_F(FlexStoreTest, FileOfTheSameNumberIsReplaced) {
  EXPECT_TRUE(Append(*Create(4), "old"));
  EXPECT_TRUE(Append(*Create(4), "new"));
  EXPECT_EQ(Content(4), "new");
}

TEST_F(FlexStoreTest, FullSlotTakesNothing) {
  const auto file = Create(4);
  EXPECT_TRUE(Append(*file, "kept"));
  EXPECT_FALSE(Append(*file, std::string(1 << 20, 'x')));
  EXPECT_EQ(Content(4), "kept");
}

TEST_F(FlexStoreTest, MoreFilesThanSlotsAreRefused) {
  for (uint64_t i = 1; i <= FlexStore::kSlots; ++i) Create(i);
  EXPECT_EQ(store_->Create(FlexStore::kSlots + 1).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_->Remove(1));
  Create(FlexStore::kSlots + 1);
}

}  // namespace
}  // namespace alpheus::bench::wal
