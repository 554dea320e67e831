// SPDX-License-Identifier: Apache-2.0
// failover_writer: one process in a line of them that write to the same
// RocksDB; what it has to find of those before it, and what it notes for those
// behind it.
//
// Idea: each process puts numbered batches, in several threads, some of them
// synced, and notes in memory that outlives it which number it tried and which
// was acknowledged as synced. Values carry the process that wrote them. Numbers
// of a thread go on where the process before it ended, as far as the next one
// found them; so of each number it is known whose value must be there.
//
// Invariants, of each thread:
//   FOW1. The next process finds all numbers up to one of them, and nothing
//         behind that.
//   FOW2. That number is at least the last one that its predecessor was told to
//         be durable, whenever it is told, and at most the last that it tried.
//   FOW3. Each value is that of the process whose number it is.
// Thread safety: ProcessNotes by all processes at once; Writer by its threads.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FAILOVER_FAILOVER_WRITER_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FAILOVER_FAILOVER_WRITER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "api/rocksdb/store/wal_options.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"

namespace alpheus::testing {

constexpr int kFailoverThreads = 3;

// The notes of one process, in memory that all share.
struct ProcessNotes {
  struct OfThread {
    std::atomic<uint64_t> first{0};  // number; 0: has not opened yet
    std::atomic<uint64_t> tried{0};
    std::atomic<uint64_t> synced{0};  // acknowledged so; 0: none
  };
  std::array<OfThread, kFailoverThreads> threads;
  std::atomic<uint64_t> puts{0};
  std::atomic<bool> has_verified{false};
};

// How a process ends by itself.
enum FailoverExit : int {
  kFoundAllRight = 0,
  kFoundWrong = 1,
  kCouldNotOpen = 2,
  kWasFenced = 3,  // and stopped for good, as it should
  kWentWrong = 4,  // an error of another kind, or none where one is due
};

class FailoverWriter {
 public:
  // `notes` are of all processes in their order, of which this is the last.
  FailoverWriter(const wal::WalOptions& wal, const std::string& database,
                 std::span<ProcessNotes> notes);

  bool Open();
  // FOW1 to FOW3, by point reads and by a scan of everything.
  bool Verify();
  // Returns when all threads were refused; what they were told decides.
  FailoverExit WriteUntilFenced();

 private:
  std::string Get(const std::string& key);
  bool VerifyThread(int thread);
  bool VerifyCount();
  // The process whose value of this number must be there.
  size_t OwnerOf(int thread, uint64_t number) const;
  rocksdb::Status Put(int thread, uint64_t number);
  bool IsStoppedForGood();

  const std::span<ProcessNotes> notes_;
  ProcessNotes& own_;
  const std::string path_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FAILOVER_FAILOVER_WRITER_H_
