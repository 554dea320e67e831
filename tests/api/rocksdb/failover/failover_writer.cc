// SPDX-License-Identifier: Apache-2.0
#include "tests/api/rocksdb/failover/failover_writer.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>

#include "api/rocksdb/fs/wal_file_system.h"
#include "rocksdb/write_batch.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kKeys = 40;  // of each thread
constexpr uint64_t kSyncEvery = 4;

std::string KeyOf(int thread, uint64_t number) {
  return "t" + std::to_string(thread) + ":" + std::to_string(number % kKeys);
}
std::string LastKeyOf(int thread) {
  return "t" + std::to_string(thread) + ":last";
}
// Some 300 bytes that belong to the number and to the process.
std::string ValueOf(size_t process, uint64_t number) {
  std::string value;
  while (value.size() < 300) {
    value += std::to_string(process) + "/" + std::to_string(number) + " ";
  }
  return value;
}

}  // namespace

FailoverWriter::FailoverWriter(const wal::WalOptions& wal,
                               const std::string& database,
                               std::span<ProcessNotes> notes)
    : notes_(notes), own_(notes.back()), path_(database) {
  env_ = rocksdb::NewCompositeEnv(std::make_shared<wal::WalFileSystem>(
      wal, rocksdb::FileSystem::Default()));
  options_.env = env_.get();
  options_.create_if_missing = notes.size() == 1;
  // Flushes and compactions are always under way.
  options_.write_buffer_size = 64 << 10;
  options_.level0_file_num_compaction_trigger = 2;
  options_.max_background_jobs = 3;
  // No two_write_queues and no unordered_write: where RocksDB is built with
  // assertions, as Debian's is, some of what it does there about a WAL that
  // fails ends the process (docs/use/rocksdb.md#errors).
  options_.enable_pipelined_write = notes.size() % 4 == 2;
  options_.avoid_flush_during_recovery = notes.size() % 5 == 2;
  options_.track_and_verify_wals_in_manifest = notes.size() % 2 == 1;
}

bool FailoverWriter::Open() {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options_, path_, &db);
  db_.reset(db);
  if (!opened.ok()) std::cerr << "open: " << opened.ToString() << "\n";
  return opened.ok();
}

std::string FailoverWriter::Get(const std::string& key) {
  std::string value;
  const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), key, &value);
  return got.ok() ? value : got.ToString();
}

size_t FailoverWriter::OwnerOf(int thread, uint64_t number) const {
  size_t owner = 0;
  for (size_t process = 0; process + 1 < notes_.size(); ++process) {
    // One that was killed while it opened has none.
    const uint64_t first = notes_[process].threads[thread].first.load();
    if (first != 0 && first <= number) owner = process;
  }
  return owner;
}

bool FailoverWriter::Verify() {
  for (int thread = 0; thread < kFailoverThreads; ++thread) {
    if (!VerifyThread(thread)) return false;
  }
  if (!VerifyCount()) return false;
  own_.has_verified.store(true);
  return true;
}

bool FailoverWriter::VerifyThread(int thread) {
  const std::string last = Get(LastKeyOf(thread));
  const uint64_t found = std::strtoull(last.c_str(), nullptr, 10);
  uint64_t synced = 0;
  uint64_t tried = 0;
  for (const ProcessNotes& process : notes_) {
    const ProcessNotes::OfThread& of_thread = process.threads[thread];
    synced = std::max(synced, of_thread.synced.load());
    // The last process that opened sets it: numbers that those before it tried,
    // from its first number on, must not be there.
    if (of_thread.first.load() != 0) tried = of_thread.tried.load();
  }
  if (found < synced || found > tried) {
    std::cerr << "thread " << thread << ": found " << last << ", synced "
              << synced << ", tried " << tried << "\n";
    return false;
  }
  for (uint64_t number = found < kKeys ? 1 : found - kKeys + 1; number <= found;
       ++number) {
    const std::string value = Get(KeyOf(thread, number));
    if (value != ValueOf(OwnerOf(thread, number), number)) {
      std::cerr << "thread " << thread << ": last is " << found << ", but "
                << number << ", of process " << OwnerOf(thread, number)
                << ", is " << value << "\n";
      return false;
    }
  }
  own_.threads[thread].tried.store(found);
  own_.threads[thread].first.store(found + 1);
  return true;
}

// Every table that is there is read, and nothing else is in it.
bool FailoverWriter::VerifyCount() {
  uint64_t expected = 0;
  for (const ProcessNotes::OfThread& own : own_.threads) {
    const uint64_t found = own.first.load() - 1;
    expected += std::min(found, kKeys) + (found > 0 ? 1 : 0);
  }
  const std::unique_ptr<rocksdb::Iterator> all(
      db_->NewIterator(rocksdb::ReadOptions()));
  uint64_t count = 0;
  for (all->SeekToFirst(); all->Valid(); all->Next()) ++count;
  if (all->status().ok() && count == expected) return true;
  std::cerr << "a scan found " << count << " of " << expected << " keys, "
            << all->status().ToString() << "\n";
  return false;
}

rocksdb::Status FailoverWriter::Put(int thread, uint64_t number) {
  rocksdb::WriteBatch batch;
  rocksdb::Status put =
      batch.Put(KeyOf(thread, number), ValueOf(notes_.size() - 1, number));
  if (put.ok()) put = batch.Put(LastKeyOf(thread), std::to_string(number));
  if (!put.ok()) return put;
  rocksdb::WriteOptions options;
  options.sync = number % kSyncEvery == 0;
  ProcessNotes::OfThread& own = own_.threads[thread];
  own.tried.store(number);
  put = db_->Write(options, &batch);
  if (put.ok() && options.sync) own.synced.store(number);
  if (put.ok()) own_.puts.fetch_add(1);
  return put;
}

FailoverExit FailoverWriter::WriteUntilFenced() {
  std::array<rocksdb::Status, kFailoverThreads> ends;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kFailoverThreads; ++thread) {
      threads.emplace_back([this, thread, &ends] {
        uint64_t number = own_.threads[thread].first.load();
        while ((ends[thread] = Put(thread, number)).ok()) ++number;
      });
    }
  }
  for (const rocksdb::Status& end : ends) {
    if (end.IsIOFenced()) continue;
    std::cerr << "a put ended with " << end.ToString() << "\n";
    return kWentWrong;
  }
  return IsStoppedForGood() ? kWasFenced : kWentWrong;
}

bool FailoverWriter::IsStoppedForGood() {
  rocksdb::WriteOptions unsynced;
  rocksdb::WriteOptions without_wal;
  without_wal.disableWAL = true;
  const std::array<rocksdb::Status, 4> statuses = {
      db_->Resume(), db_->Put(unsynced, "late", "1"),
      db_->Put(without_wal, "late", "1"), db_->Flush(rocksdb::FlushOptions())};
  for (const rocksdb::Status& status : statuses) {
    if (!status.ok()) continue;
    std::cerr << "fenced, but a later call succeeded\n";
    return false;
  }
  return true;
}

}  // namespace alpheus::testing
