// SPDX-License-Identifier: Apache-2.0
// rocksdb_workload: an application that writes a log as RocksDB does, through
// its plugin.
//
// Idea: writers wait in a queue. The first one leads, and writes the data of
// those after it as one batch. One sync serves all, and a leader without a sync
// takes no writer that wants one. The WAL is switched when a memtable is full:
// a new file is made, then the old one's buffer is written, then the new one
// takes data. A flush job writes memtables, syncs the old files first or not,
// and removes them, the oldest first. By lot the database has a second queue
// with its own groups; writes its buffer late (manual_wal_flush); and keeps the
// files that it was opened with until its first flush
// (avoid_flush_during_recovery).
//
// Invariants:
//   RWL1. Data goes into a file only when all data of older files is written.
//         (Broken by a canary.)
// Thread safety: threads of the primary's process (threads.h).
// References: RocksDB, db/db_impl/db_impl_write.cc and db_impl_files.cc, for
// what is written, synced and removed when; rocksdb_files.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_WORKLOAD_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "tools/sim/actors/rocksdb_files.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class RocksDbApplication {
 public:
  RocksDbApplication(PrimaryProcess& primary, RocksDbFiles& files);

  // Runs a thread. Thread 0 flushes memtables, if there is another one.
  void RunThread(int thread);

 private:
  struct Writer {
    uint64_t bytes = 0;
    bool wants_sync = false;
    bool is_done = false;
  };
  using Queue = std::deque<Writer*>;

  struct Wal {
    RocksDbFiles::FilePtr file;
    uint64_t buffered = 0;  // accepted, and not written yet
  };

  uint64_t Draw(uint64_t below);
  bool OneIn(uint64_t n) { return Draw(n) == 0; }
  void Pause();

  void OpenOnce();
  void Open();
  void Write();
  void Lead(Queue& queue);
  bool WriteGroup(uint64_t bytes, bool wants_sync);
  bool WriteBuffer(Wal& wal);
  bool SyncWals();
  bool FlushWal(bool wants_sync);
  bool SwitchWal();
  bool MakeNextFile();
  void FlushMemtables();
  void BeginAgain();

  PrimaryProcess& primary_;
  World& world_;
  RocksDbFiles& files_;
  const bool has_two_queues_;
  const bool is_flushed_by_hand_;  // manual_wal_flush
  const bool keeps_recovered_;     // avoid_flush_during_recovery
  const uint64_t memtable_bytes_max_;
  std::array<Queue, 2> queues_;
  // Guards `active_`, `next_` and `closed_`, like RocksDB's log_write_mutex.
  FiberMutex log_write_;
  Wal active_;
  RocksDbFiles::FilePtr next_;  // made, and not used yet
  std::deque<Wal> closed_;      // the oldest first
  uint64_t memtable_bytes_ = 0;
  bool is_opening_ = false;
  bool is_opened_ = false;
  bool is_full_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_ROCKSDB_WORKLOAD_H_
