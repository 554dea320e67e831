// SPDX-License-Identifier: Apache-2.0
// rocksdb_files: WAL files in a simulated log, as the RocksDB plugin keeps
// them.
//
// Idea: it follows api/rocksdb/store/wal_store.cc step for step, on the log of
// a simulated primary: the same records, the same index and the same limits of
// room (wal_record.h, wal_index.h, wal_space.h), with fibers for threads. Each
// record starts with its operation number, by which history.h knows it.
//
// Not here: files without a record, and removal by cleaning alone (WST4): the
// rings are large enough for the leftovers of a run's crashes (options.cc).
//
// Invariants: WST1 to WST3 of api/rocksdb/store/wal_store.h.
// Thread safety: threads of the primary's process (threads.h).
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_FILES_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/rocksdb/store/wal_file.h"
#include "api/rocksdb/store/wal_index.h"
#include "api/rocksdb/store/wal_record.h"
#include "api/rocksdb/store/wal_space.h"
#include "log/core/write/reserved_record.h"
#include "tools/sim/checkers/call_judge.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/threads.h"

namespace alpheus::sim {

class PrimaryProcess;

// Lock for fibers; waiting ones are woken when it is free.
class FiberMutex {
 public:
  explicit FiberMutex(Threads& threads) : threads_(threads) {}
  void Lock();
  void Unlock();

 private:
  Threads& threads_;
  bool is_locked_ = false;
};

class FiberLock {
 public:
  explicit FiberLock(FiberMutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~FiberLock() { mutex_.Unlock(); }
  FiberLock(const FiberLock&) = delete;
  FiberLock& operator=(const FiberLock&) = delete;

 private:
  FiberMutex& mutex_;
};

class RocksDbFiles {
 public:
  using FilePtr = std::shared_ptr<wal::WalFile>;

  explicit RocksDbFiles(PrimaryProcess& primary);

  // Applies the records that an opening has shown. Called before all others.
  void Recover(std::span<const History::Shown> records);
  // Returns the files as RocksDB lists them: the oldest first.
  std::vector<FilePtr> List() const;
  bool has_home() const { return index_.home_lsn() != Lsn(0); }

  // Calls of threads. They return false, or null, if they failed; the call
  // judge has seen the error, and a full ring does no harm.
  bool SetHome();
  FilePtr Create();
  // Writes `bytes` bytes at the end, in several records if needed. Returns the
  // number written, lower if it failed.
  uint64_t Append(wal::WalFile& file, uint64_t bytes);
  bool Sync(wal::WalFile& file);
  bool Remove(const FilePtr& file);

 private:
  struct Write {
    wal::WalHeader header;
    std::string body;         // of metadata
    uint64_t data_bytes = 0;  // after the header, in kData
  };
  struct Written {
    Lsn lsn;
    uint64_t position = 0;
    std::span<const std::byte> body;
  };

  static std::string NameOf(uint64_t id);
  bool Judge(const BegunCall& call, Lsn lsn, const absl::Status& status);
  absl::StatusOr<Written> Complete(const Write& write);
  void NotifyChecker(const Write& write, OperationId operation);
  bool FillRecord(ReservedRecord& record, std::span<const std::byte> payload,
                  size_t header_bytes);
  // Writes a record of metadata and applies it.
  absl::Status Change(const Write& write);
  bool WriteHome();
  bool CleanBeforeOldest();
  bool WaitForRoom(size_t payload_bytes);
  void BeginForce(Lsn lsn);
  bool ForceThrough(Lsn lsn);

  PrimaryProcess& primary_;
  wal::WalSpace space_;
  wal::WalIndex index_;
  Lsn last_change_;
  FiberMutex metadata_;
  FiberMutex appending_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_FILES_H_
