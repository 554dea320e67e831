// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/wal_folder_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/checkpoint.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;
using ::testing::HasSubstr;

TEST(WalLogNameTest, NoTwoDirectoriesHaveTheSame) {
  EXPECT_EQ(WalLogName("/data/db"), "data+db.wal");
  EXPECT_EQ(WalLogName("/data+db"), "data%2Bdb.wal");
  EXPECT_EQ(WalLogName("/data%2Bdb"), "data%252Bdb.wal");
  EXPECT_EQ(WalLogName("/a+/b%"), "a%2B+b%25.wal");
}

class WalFolderTest : public ::testing::Test {
 protected:
  using Database = std::unique_ptr<rocksdb::DB>;

  WalFolderTest() {
    std::filesystem::create_directory(directory_.File("wals"));
    wal_options_.log.path = directory_.File("wals") + "/";
    wal_options_.is_folder = true;
    wal_options_.create_bytes = 1 << 20;
    options_.create_if_missing = true;
    Restart();
  }
  void Restart() {
    env_ = rocksdb::NewCompositeEnv(std::make_shared<WalFolderFileSystem>(
        wal_options_, rocksdb::FileSystem::Default()));
    options_.env = env_.get();
  }
  Status TryOpen(const std::string& name, Database* db) {
    rocksdb::DB* raw = nullptr;
    Status opened = rocksdb::DB::Open(options_, directory_.File(name), &raw);
    db->reset(raw);
    return opened;
  }
  Database Open(const std::string& name) {
    Database db;
    const Status opened = TryOpen(name, &db);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    return db;
  }
  static void Put(Database& db, const std::string& key) {
    rocksdb::WriteOptions sync;
    sync.sync = true;
    const Status put = db->Put(sync, key, "1");
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  static bool Has(Database& db, const std::string& key) {
    std::string value;
    return db->Get(rocksdb::ReadOptions(), key, &value).ok();
  }
  std::string LogOf(const std::string& name) const {
    return wal_options_.log.path + WalLogName(directory_.File(name));
  }

  testing::TempDirectory directory_;
  WalOptions wal_options_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(WalFolderTest, EachDatabaseHasItsLog) {
  {
    Database one = Open("one");
    Database two = Open("two");
    Put(one, "a");
    Put(two, "b");
  }
  EXPECT_TRUE(std::filesystem::exists(LogOf("one")));
  EXPECT_TRUE(std::filesystem::exists(LogOf("two")));
  Restart();
  Database two = Open("two");
  Database one = Open("one");
  EXPECT_TRUE(Has(one, "a") && !Has(one, "b"));
  EXPECT_TRUE(Has(two, "b") && !Has(two, "a"));
}

TEST_F(WalFolderTest, DatabaseInsideAnotherHasItsOwn) {
  {
    Database outer = Open("outer");
    Database inner = Open("outer/inner");
    Put(outer, "a");
    Put(inner, "b");
  }
  Restart();
  Database inner = Open("outer/inner");
  EXPECT_TRUE(Has(inner, "b") && !Has(inner, "a"));
}

TEST_F(WalFolderTest, ReadOnlyInstanceFindsTheWal) {
  {
    Database one = Open("one");
    Put(one, "a");
  }
  Restart();
  rocksdb::DB* raw = nullptr;
  const Status opened =
      rocksdb::DB::OpenForReadOnly(options_, directory_.File("one"), &raw);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  Database db(raw);
  EXPECT_TRUE(Has(db, "a"));
}

TEST_F(WalFolderTest, CheckpointIsPlainAndGetsALogWhenItIsOpened) {
  {
    Database one = Open("one");
    Put(one, "a");
    rocksdb::Checkpoint* raw = nullptr;
    ASSERT_OK(rocksdb::Checkpoint::Create(one.get(), &raw));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
    ASSERT_OK(checkpoint->CreateCheckpoint(directory_.File("copy"), 1 << 30));
  }
  EXPECT_FALSE(std::filesystem::exists(LogOf("copy")));
  Database copy;
  EXPECT_THAT(TryOpen("copy", &copy).ToString(),
              HasSubstr("a log that never had a WAL file"));
  wal_options_.adopt = true;
  Restart();
  copy = Open("copy");
  EXPECT_TRUE(Has(copy, "a"));
}

TEST_F(WalFolderTest, WithoutCreateADatabaseWithoutALogIsRefused) {
  wal_options_.create_bytes = 0;
  Restart();
  Database db;
  EXPECT_THAT(TryOpen("one", &db).ToString(), HasSubstr("there is no log"));
}

TEST_F(WalFolderTest, DestroyedDatabaseBeginsAgain) {
  {
    Database one = Open("one");
    Put(one, "a");
  }
  ASSERT_OK(rocksdb::DestroyDB(directory_.File("one"), options_));
  EXPECT_FALSE(std::filesystem::exists(directory_.File("one")));
  Database one = Open("one");
  EXPECT_FALSE(Has(one, "a"));
}

TEST_F(WalFolderTest, MemtablesAreLimitedByTheLogOfTheDatabase) {
  Database one = Open("one");
  EXPECT_GT(one->GetDBOptions().db_write_buffer_size, 0u);
  EXPECT_LT(one->GetDBOptions().db_write_buffer_size, 1u << 19);
}

TEST_F(WalFolderTest, DatabaseThatIsRepairedKeepsItsWal) {
  {
    Database one = Open("one");
    Put(one, "a");
    ASSERT_OK(one->Flush(rocksdb::FlushOptions()));
    Put(one, "b");
  }
  std::filesystem::remove(directory_.File("one/CURRENT"));
  Restart();
  ASSERT_OK(rocksdb::RepairDB(directory_.File("one"), options_));
  Database one = Open("one");
  EXPECT_TRUE(Has(one, "a") && Has(one, "b"));
}

}  // namespace
}  // namespace alpheus::wal
