// SPDX-License-Identifier: Apache-2.0
// The options of RocksDB that change how it writes its WAL, on the plugin.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "rocksdb/db.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::Options;

// The options of RocksDB that change how it writes its WAL, each with a load
// that makes many WAL files, a crash, and a look at everything.
struct WalCase {
  const char* name;
  std::function<void(Options&)> set;
};
void PrintTo(const WalCase& wal_case, std::ostream* out) {
  *out << wal_case.name;
}

class WalOptionsCaseTest : public testing::DatabaseFixture,
                           public ::testing::WithParamInterface<WalCase> {};

TEST_P(WalOptionsCaseTest, EverySyncedPutIsThereAfterACrash) {
  options_.write_buffer_size = 64 << 10;
  GetParam().set(options_);
  Open();
  const std::string value(500, 'v');
  constexpr int kPuts = 1500;
  for (int i = 0; i < kPuts; ++i) {
    Put(std::to_string(i), value + std::to_string(i),
        !options_.manual_wal_flush);
    if (i % 500 == 250) {
      ASSERT_OK(db_->SyncWAL());
      ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
    }
  }
  ASSERT_OK(db_->FlushWAL(/*sync=*/true));
  EXPECT_TRUE(PlainWalFiles(path_).empty());
  Crash();
  Open();
  for (int i = 0; i < kPuts; ++i) {
    ASSERT_EQ(Get(std::to_string(i)), value + std::to_string(i));
  }
  Reopen();
  ASSERT_EQ(Get("0"), value + "0");
}

const WalCase kWalCases[] = {
    {"Default", [](Options&) {}},
    {"ManualWalFlush", [](Options& o) { o.manual_wal_flush = true; }},
    {"WalBytesPerSync", [](Options& o) { o.wal_bytes_per_sync = 4096; }},
    {"StrictBytesPerSync",
     [](Options& o) {
       o.wal_bytes_per_sync = 4096;
       o.strict_bytes_per_sync = true;
     }},
    {"RecycleLogFiles", [](Options& o) { o.recycle_log_file_num = 3; }},
    {"TwoWriteQueues", [](Options& o) { o.two_write_queues = true; }},
    {"PipelinedWrite", [](Options& o) { o.enable_pipelined_write = true; }},
    {"UnorderedWrite", [](Options& o) { o.unordered_write = true; }},
    {"WalCompression", [](Options& o) { o.wal_compression = rocksdb::kZSTD; }},
    {"TrackWals",
     [](Options& o) { o.track_and_verify_wals_in_manifest = true; }},
    {"AvoidFlush",
     [](Options& o) {
       o.avoid_flush_during_recovery = true;
       o.avoid_flush_during_shutdown = true;
     }},
    {"UseFsync", [](Options& o) { o.use_fsync = true; }},
    {"DirectIo",
     [](Options& o) { o.use_direct_io_for_flush_and_compaction = true; }},
    {"MaxTotalWalSize", [](Options& o) { o.max_total_wal_size = 128 << 10; }},
    {"WriteBufferInOneWal", [](Options& o) { o.max_write_buffer_number = 6; }},
    {"AbsoluteConsistency",
     [](Options& o) {
       o.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
     }},
    {"TolerateCorruptedTail",
     [](Options& o) {
       o.wal_recovery_mode =
           rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
     }},
    {"SkipAnyCorrupted",
     [](Options& o) {
       o.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
     }},
};

INSTANTIATE_TEST_SUITE_P(All, WalOptionsCaseTest,
                         ::testing::ValuesIn(kWalCases),
                         [](const ::testing::TestParamInfo<WalCase>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace alpheus::wal
