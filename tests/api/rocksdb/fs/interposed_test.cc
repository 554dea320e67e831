// SPDX-License-Identifier: Apache-2.0
// libalpheus_rocksdb.so under programs that say nothing of it: it has memtables
// flushed before the ring is full.
#include "api/rocksdb/fs/interposed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_buffer_manager.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::ColumnFamilyDescriptor;
using rocksdb::Status;

class FlushedInTimeTest : public testing::DatabaseFixture {
 protected:
  FlushedInTimeTest() {
    wal_options_.memtable_bytes.reset();
    wal_options_.create_bytes = 4 << 20;
    // Room is made by flushes that are under way; no write fails meanwhile.
    wal_options_.stall_ms = 60'000;
    Restart();
  }
  // Several times what the ring can hold.
  void Fill() {
    const std::string value(1000, 'v');
    for (int i = 0; i < 20'000; ++i) Put(std::to_string(i), value);
  }
  uint64_t RingBytes() { return (*fs().Store())->space().limit_bytes(); }
};

// With memtables of 64 MiB, RocksDB's default.
TEST_F(FlushedInTimeTest, RingOfOneColumnFamilyNeverStopsWrites) {
  Open();
  Fill();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, RingBytes() / 2);
  Reopen();
  EXPECT_EQ(Get("19999"), std::string(1000, 'v'));
}

TEST_F(FlushedInTimeTest, RingOfTransactionsNeverStopsWrites) {
  rocksdb::TransactionDB* raw = nullptr;
  ASSERT_OK(rocksdb::TransactionDB::Open(
      options_, rocksdb::TransactionDBOptions(), path_, &raw));
  db_.reset(raw);
  Fill();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, RingBytes() / 2);
}

TEST_F(FlushedInTimeTest, SmallRingIsNotFlushedWithEachWrite) {
  wal_options_.create_bytes = 1 << 20;
  wal_options_.log.path = directory_.File("small");
  Restart();
  Open();
  for (int i = 0; i < 100; ++i) Put(std::to_string(i), std::string(100, 'v'));
  EXPECT_EQ(LogWalFiles().size(), 1u);
}

TEST_F(FlushedInTimeTest, UriSaysHowMuch) {
  wal_options_.memtable_bytes = 123'456;
  Restart();
  Open();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, 123'456u);
  Close();
  wal_options_.memtable_bytes = 0;
  Restart();
  Open();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, 0u);
}

TEST_F(FlushedInTimeTest, WhatOptionsSayStays) {
  options_.db_write_buffer_size = 1 << 20;
  Open();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, 1u << 20);
  Close();
  options_.db_write_buffer_size = 0;
  options_.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(2 << 20);
  Open();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, 0u);
}

TEST_F(FlushedInTimeTest, DatabaseElsewhereIsLeftAlone) {
  options_.env = rocksdb::Env::Default();
  Open();
  EXPECT_EQ(db_->GetDBOptions().db_write_buffer_size, 0u);
}

TEST(LimitMemtablesTest, ArenasAreSmallBesideTheLimit) {
  rocksdb::DBOptions options;
  std::vector<ColumnFamilyDescriptor> families(2);
  families[1].options.arena_block_size = 12'345;
  LimitMemtables(0, options, families);
  EXPECT_EQ(options.db_write_buffer_size, 0u);
  EXPECT_EQ(families[0].options.arena_block_size, 0u);
  LimitMemtables(1 << 20, options, families);
  EXPECT_EQ(options.db_write_buffer_size, 1u << 20);
  EXPECT_EQ(families[0].options.arena_block_size, 64u << 10);
  EXPECT_EQ(families[1].options.arena_block_size, 12'345u);
}

}  // namespace
}  // namespace alpheus::wal
