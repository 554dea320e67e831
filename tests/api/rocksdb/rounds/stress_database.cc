// SPDX-License-Identifier: Apache-2.0
#include "tests/api/rocksdb/rounds/stress_database.h"

#include <iostream>

#include "log/base/random.h"
#include "rocksdb/convenience.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/version.h"
#include "rocksdb/write_batch.h"

namespace alpheus::testing {
namespace {

using rocksdb::Status;

}  // namespace

rocksdb::Options StressDatabase::DrawOptions(uint64_t seed) {
  Random random(seed);
  const auto draw = [&random] { return random.Below(3) == 0; };
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  const Status made = rocksdb::MergeOperator::CreateFromString(
      rocksdb::ConfigOptions(), "stringappend", &options.merge_operator);
  if (!made.ok()) std::cerr << "merge operator: " << made.ToString() << "\n";
  options.write_buffer_size = (32 + random.Below(3) * 48) << 10;
  options.level0_file_num_compaction_trigger = 2;
  options.manual_wal_flush = draw();
  options.two_write_queues = draw();
  options.enable_pipelined_write = !options.two_write_queues && draw();
  options.atomic_flush = !options.enable_pipelined_write && draw();
  options.recycle_log_file_num = draw() ? 2 : 0;
  options.avoid_flush_during_recovery = draw();
  options.avoid_flush_during_shutdown = draw();
  options.track_and_verify_wals_in_manifest = draw();
  options.wal_bytes_per_sync = draw() ? 8192 : 0;
  options.max_total_wal_size = 256 << 10;
  options.wal_compression = draw() ? rocksdb::kZSTD : rocksdb::kNoCompression;
  if (draw()) {
    options.wal_recovery_mode =
        rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
    options.recycle_log_file_num = 0;  // RocksDB does not have both
  }
  // Atomic flushes for different reasons, at once, end RocksDB before 7.10 at
  // an assertion (facebook/rocksdb pull request 11111); and merges were seen
  // twice after a kill, with the default file system and its WAL, too.
  if (ROCKSDB_MAJOR == 7 && ROCKSDB_MINOR < 10) options.atomic_flush = false;
  return options;
}

Status StressDatabase::Open(const rocksdb::Options& options,
                            const std::string& path) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kStressFamilies; ++i) {
    families.emplace_back(i == 0 ? rocksdb::kDefaultColumnFamilyName
                                 : "family" + std::to_string(i),
                          rocksdb::ColumnFamilyOptions(options));
  }
  rocksdb::DB* db = nullptr;
  Status opened = rocksdb::DB::Open(options, path, families, &handles_, &db);
  db_.reset(db);
  return opened;
}

void StressDatabase::Close() {
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    (void)db_->DestroyColumnFamilyHandle(handle);  // it only frees memory
  }
  handles_.clear();
  db_.reset();
}

std::vector<StressModel> StressDatabase::Verify(
    uint64_t seed, const std::vector<StressBounds>& bounds) {
  std::vector<StressModel> models;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const int thread = static_cast<int>(i);
    std::string last;
    const Status got =
        db_->Get(rocksdb::ReadOptions(), StressLastKey(thread), &last);
    const uint64_t found = std::strtoull(last.c_str(), nullptr, 10);
    if ((!got.ok() && !got.IsNotFound()) || found < bounds[i].synced ||
        found > bounds[i].tried) {
      std::cerr << "thread " << thread << ": found " << found << " ("
                << got.ToString() << "), synced " << bounds[i].synced
                << ", tried " << bounds[i].tried << "\n";
      return {};
    }
    models.emplace_back(seed, thread);
    models.back().AdvanceTo(found);
    if (!IsAsIn(models.back(), thread, nullptr)) return {};
  }
  if (!HasNoOthers(static_cast<int>(bounds.size()))) return {};
  return models;
}

bool StressDatabase::IsAsIn(const StressModel& model, int thread,
                            const rocksdb::Snapshot* snapshot) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  const std::string prefix = StressPrefix(thread);
  for (size_t i = 0; i < kStressFamilies; ++i) {
    const std::unique_ptr<rocksdb::Iterator> found(
        db_->NewIterator(options, handles_[i]));
    auto expected = model.family(i).begin();
    const auto end = model.family(i).end();
    for (found->Seek(prefix); found->Valid() && expected != end;
         found->Next(), ++expected) {
      if (found->key() == expected->first &&
          found->value() == expected->second) {
        continue;
      }
      break;
    }
    const bool has_more = found->Valid() && found->key().starts_with(prefix);
    if (found->status().ok() && expected == end && !has_more) continue;
    std::cerr << "thread " << thread << ", family " << i << ", batch "
              << model.number() << ": expected "
              << (expected == end ? "the end" : expected->first) << ", found "
              << (has_more ? found->key().ToString() + " = " +
                                 found->value().ToString()
                           : "the end")
              << ", " << found->status().ToString() << "\n";
    return false;
  }
  return true;
}

bool StressDatabase::HasNoOthers(int threads) {
  for (size_t i = 0; i < kStressFamilies; ++i) {
    const std::unique_ptr<rocksdb::Iterator> found(
        db_->NewIterator(rocksdb::ReadOptions(), handles_[i]));
    for (found->SeekToFirst(); found->Valid(); found->Next()) {
      bool is_known = false;
      for (int thread = 0; thread < threads; ++thread) {
        is_known |= found->key().starts_with(StressPrefix(thread));
      }
      if (is_known) continue;
      std::cerr << "family " << i << ": nobody wrote "
                << found->key().ToString() << "\n";
      return false;
    }
  }
  return true;
}

Status StressDatabase::Write(const std::vector<StressWrite>& writes,
                             bool sync) {
  rocksdb::WriteBatch batch;
  Status status;
  for (const StressWrite& write : writes) {
    rocksdb::ColumnFamilyHandle* family = handles_[write.family];
    switch (write.kind) {
      case StressWrite::kPut:
        status = batch.Put(family, write.key, write.value);
        break;
      case StressWrite::kMerge:
        status = batch.Merge(family, write.key, write.value);
        break;
      case StressWrite::kDelete:
        status = batch.Delete(family, write.key);
        break;
      case StressWrite::kDeleteRange:
        status = batch.DeleteRange(family, write.key, write.end_key);
        break;
    }
    if (!status.ok()) return status;
  }
  rocksdb::WriteOptions options;
  options.sync = sync;
  return db_->Write(options, &batch);
}

}  // namespace alpheus::testing
