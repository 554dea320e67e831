// SPDX-License-Identifier: Apache-2.0
// wal_workload: an application that uses the log as a database uses its
// write-ahead log.
//
// Idea: committers reserve all records of a transaction, fill them in any
// order, and pass some to each other; then one force commits them. A committer
// may write a record about a commit from within its callback. A checkpointer
// cleans, in half of the runs only when the ring is full. Some transactions are
// bulk loads, with the largest records possible. It is written apart from
// workload.cc, so that each may do what the other never does.
//
// Thread safety: threads of the primary's process (threads.h).
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_WAL_WORKLOAD_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_WAL_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/core/ring/ring_log.h"
#include "tools/sim/checkers/call_judge.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class PrimaryProcess;

class WalApplication {
 public:
  // Must outlive the primary's log, which calls it back.
  explicit WalApplication(PrimaryProcess& primary);

  // Runs a thread. Thread 0 writes checkpoints, if there is another one.
  void RunThread(int thread);

 private:
  struct Filling {
    ReservedRecord record;
    OperationId operation = 0;
  };
  uint64_t Draw(uint64_t below);
  bool OneIn(uint64_t n) { return Draw(n) == 0; }
  Deadline DrawDeadline();
  size_t DrawBytes(bool is_bulk);
  void Pause();

  // Judges a call. Returns whether it was OK.
  bool Judge(const BegunCall& call, Lsn lsn, const absl::Status& status);

  void RunTransaction();
  bool ReserveOne(bool is_bulk, std::vector<Filling>& open);
  void FinishOne(Filling filling);
  void Copy(ReservedRecord& record, size_t offset,
            std::span<const std::byte> bytes);
  void FinishDetached(bool all);
  void Commit(Lsn last);
  void NoteWhenDurable(Lsn lsn, int depth);
  void OnCommitted(int depth, const absl::Status& outcome);
  void AppendNote(int depth);
  void Checkpoint();

  PrimaryProcess& primary_;
  World& world_;
  const bool is_lazy_;  // checkpoints only when the ring is full
  std::deque<Filling> detached_;
  bool is_full_ = false;
  bool has_failed_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_WAL_WORKLOAD_H_
