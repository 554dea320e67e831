// SPDX-License-Identifier: Apache-2.0
// A RocksDB database with its WAL in a FLEX region.
#include "bench/rocksdb/flex_file_system.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "bench/rocksdb/database.h"
#include "bench/rocksdb/fill.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench::wal {
namespace {

class FlexFileSystemTest : public ::testing::Test {
 protected:
  FlexFileSystemTest() {
    EXPECT_TRUE(FlexStore::Format(region_, 16 << 20).ok());
    Restart();
  }

  // Opens the store as a process that starts now.
  void Restart() {
    env_.reset();
    store_.reset();
    auto opened = FlexStore::Open(region_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    env_ = rocksdb::NewCompositeEnv(std::make_shared<FlexFileSystem>(store_));
  }

  Database Open() {
    auto database = Database::Open({.env = env_.get()}, folder_);
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  testing::TempDirectory directory_;
  const std::string region_ = directory_.File("region");
  const std::string folder_ = directory_.File("db");
  std::shared_ptr<FlexStore> store_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(FlexFileSystemTest, PutsAreRecoveredFromTheRegion) {
  {
    Database database = Open();
    // One thread: RocksDB joins what several put at once into one record, and
    // then the file's size is not known.
    const auto filled = RunFill(database, {.is_random = true,
                                           .with_sync = true,
                                           .value_bytes = 100,
                                           .threads = 1,
                                           .puts = 200,
                                           .duration_ns_max = INT64_MAX / 2});
    ASSERT_TRUE(filled.ok()) << filled.status();
    EXPECT_EQ(filled->put_ns.size(), 200u);
    EXPECT_TRUE(database.Close().ok());
  }
  EXPECT_EQ(store_->List().size(), 1u);
  const auto file = store_->Find(store_->List().front());
  EXPECT_EQ(file->stored().size(), 200 * WalBytesPerPut(100));
  Restart();
  Database database = Open();
  const auto count = database.CountKeys();
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 200u);
}

TEST_F(FlexFileSystemTest, DestroyedDatabaseLeavesNoFiles) {
  Database database = Open();
  EXPECT_TRUE(database.Put(true, "key", "value").ok());
  EXPECT_TRUE(database.Close().ok());
  EXPECT_TRUE(Database::Destroy({.env = env_.get()}, folder_).ok());
  EXPECT_TRUE(store_->List().empty());
}

}  // namespace
}  // namespace alpheus::bench::wal
