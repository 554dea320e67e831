// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/database.h"

#include <utility>

#include "log/base/status_macros.h"
#include "rocksdb/write_batch.h"

namespace alpheus::bench::wal {
namespace {

// Header of RocksDB's log format: checksum, length, type.
constexpr uint64_t kRecordHeaderBytes = 7;

rocksdb::Options OptionsFor(const Place& place) {
  rocksdb::Options options;
  options.env = place.env;
  options.wal_dir = place.wal_directory;
  options.create_if_missing = true;
  options.write_buffer_size = kWriteBufferBytes;
  options.compression = rocksdb::kNoCompression;
  options.avoid_flush_during_shutdown = true;
  options.avoid_flush_during_recovery = true;
  // Nothing but puts and their WAL while they are timed.
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log_level = rocksdb::FATAL_LEVEL;
  return options;
}

}  // namespace

absl::StatusOr<Database> Database::Open(const Place& place,
                                        const std::string& folder) {
  rocksdb::DB* db = nullptr;
  ALPHEUS_RETURN_IF_ERROR(
      ToStatus(rocksdb::DB::Open(OptionsFor(place), folder, &db)));
  return Database(std::unique_ptr<rocksdb::DB>(db), place.has_wal);
}

absl::Status Database::Destroy(const Place& place, const std::string& folder) {
  return ToStatus(rocksdb::DestroyDB(folder, OptionsFor(place)));
}

Database::Database(std::unique_ptr<rocksdb::DB> db, bool has_wal)
    : db_(std::move(db)) {
  // RocksDB refuses to sync without a log.
  with_sync_.sync = has_wal;
  with_sync_.disableWAL = without_sync_.disableWAL = !has_wal;
}

absl::Status Database::SyncWal() { return ToStatus(db_->SyncWAL()); }

absl::StatusOr<uint64_t> Database::CountKeys() const {
  const std::unique_ptr<rocksdb::Iterator> keys(
      db_->NewIterator(rocksdb::ReadOptions()));
  uint64_t count = 0;
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) ++count;
  ALPHEUS_RETURN_IF_ERROR(ToStatus(keys->status()));
  return count;
}

absl::Status Database::Close() {
  const absl::Status closed = ToStatus(db_->Close());
  db_.reset();
  return closed;
}

uint64_t WalBytesOfPut(std::string_view key, std::string_view value) {
  rocksdb::WriteBatch batch;
  // Into memory: it can't fail.
  (void)batch.Put(key, value);
  return kRecordHeaderBytes + batch.GetDataSize();
}

}  // namespace alpheus::bench::wal
