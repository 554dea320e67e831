// SPDX-License-Identifier: Apache-2.0
// primary_process: an application that opens the log and writes it.
//
// Idea: what api/node makes of an application's options, with the same parts of
// recovery, replication and log, but for time, adapter and memory, which are
// the world's. Its threads: the main one, which opens and ends; the log's
// service; the clients of the workload.
//
// It ends by itself when its log has failed: some in good order, some as they
// are. Somebody else then starts one anew.
//
// Thread safety: one thread.
// References: api/log/replicated_engine.cc, service_thread.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "log/core/ring/ring_log.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/replica/replica.h"
#include "recovery/resync/rejoining.h"
#include "tools/sim/actors/client_moods.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/region_care.h"
#include "tools/sim/actors/rocksdb_files.h"
#include "tools/sim/actors/rocksdb_workload.h"
#include "tools/sim/actors/wal_workload.h"
#include "tools/sim/checkers/call_judge.h"
#include "tools/sim/checkers/image_checker.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class PrimaryProcess {
 public:
  using Model = World::Model;

  // Begins to run by itself. With a change: the operator's process that makes
  // it, and ends.
  PrimaryProcess(World& world, World::Machine& machine,
                 std::optional<size_t> change = {});
  ~PrimaryProcess();

  ProcessId process() const { return process_; }
  bool is_open() const { return log_ != nullptr; }
  bool is_change() const { return change_.has_value(); }
  // It has one thread.
  bool is_opening() const { return !judge_.has_value(); }
  ProcessClock& clock() { return clock_; }
  // Asks it to end, by lot in good order.
  void Close();
  // Asks it to end in good order.
  void CloseInOrder();
  // Asks its clients to end; the log stays open.
  void Rest();
  // No client is left, and all that is in sync has all there is.
  bool is_at_rest() const;
  // Requires: is_open().
  uint32_t in_sync() const;
  Epoch epoch() const { return opened_->epoch; }
  Lsn opened_end() const { return opened_->end.lsn; }
  Lsn next_lsn() const { return log_->next_lsn(); }
  // Of the log's counters (RL1 and RL2 of ring_log.h): a broken one is a CHECK.
  void CheckInvariants() const {
    if (log_ != nullptr) log_->CheckInvariants();
  }

  // One more client. Requires: is_open() and not is_closing().
  void StartClient(std::function<void()> run);

  // For clients.
  World& world() { return world_; }
  ClientMoods& moods() { return moods_; }
  bool is_filling() const { return moods_.fills_at(world_.now()); }
  RingLog<Model>& log() { return *log_; }
  PrimaryNumber number() const { return number_; }
  bool is_closing() const { return is_closing_ || is_resting_; }
  // Its log has lost its quorum, or its medium failed.
  bool has_failed() const;
  bool has_failed_medium() const {
    return pmem_ != nullptr && !pmem_->Error().ok();
  }
  // Around each of their calls but Abort; see call_judge.h.
  BegunCall Begin(ClientCall call, Deadline deadline = {},
                  bool owns_open = false) const {
    return judge_->Begin(call, deadline, owns_open);
  }
  // True: it was OK. A log that has failed is closed.
  bool Returned(const BegunCall& call, Lsn lsn, const absl::Status& status);
  void RanCallback() { judge_->RanCallback(); }
  // True: it was OK.
  bool CleanupAll();
  // `then`, if set, is called behind the history.
  void AskToBeTold(Lsn lsn, std::function<void(const absl::Status&)> then);

 private:
  class Sink;

  void Run();
  void TakeRegion();
  void OpenReplica();
  bool OpenEpoch();
  bool TryOnce(EpochOpeningOptions& options, BallotSource& ballots,
               bool& again);
  bool MayFail(const absl::Status& status) const;
  EpochOpeningOptions OpeningOptions() const;
  std::vector<int> Asked() const;
  uint32_t WriteQuorum() const;
  bool IsListOutdated() const;
  // Another one was there when this one was started, or has been started since.
  bool HasRival() const;
  RejoiningOptions RejoinOptions() const;
  absl::StatusOr<std::unique_ptr<OwnReplica>> MakeCache(uint64_t capacity);
  std::unique_ptr<Membership> MakeMembership(const PrimaryId& self);
  bool PumpInto(EpochOpening& opening);
  void TellHistory();
  void StartLog();
  void HoldRegion();
  void StartClients();
  void RunClient(int number);
  void Serve();
  void EndInOrder();
  void Sleep(int64_t ns);

  World& world_;
  World::Machine& machine_;
  const int host_;
  const ProcessId process_;
  Random random_;
  const std::optional<size_t> change_;
  const MemberList list_;  // its cluster file
  // False: whoever starts it knows that there is no replica here, or none that
  // can be used.
  const bool is_member_;
  PrimaryNumber number_ = 0;
  const bool started_alone_;
  const uint64_t started_;  // of the world's primaries, with this one
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::unique_ptr<Model> cache_pmem_;
  Model* pmem_ = nullptr;
  std::unique_ptr<Replica<Model>> replica_;
  std::unique_ptr<Membership> membership_;  // while it opens
  PrimaryId self_;
  absl::Status opening_status_;     // of the last try
  bool had_outdated_list_ = false;  // when that began
  std::optional<EpochOpened> opened_;
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
  ThreadsWaiter waiter_;
  std::unique_ptr<ImageChecker> images_;
  std::optional<CallJudge> judge_;
  std::unique_ptr<WalApplication> wal_;
  std::unique_ptr<RocksDbFiles> rocksdb_files_;
  std::unique_ptr<RocksDbApplication> rocksdb_;
  std::unique_ptr<OwnRegion> own_;  // outlives the log
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<RingLog<Model>> log_;
  ClientMoods moods_;
  int clients_ = 0;  // that have not ended
  bool is_serving_ = false;
  const std::atomic<uint32_t> service_stop_{0};  // it ends between two waits
  bool is_closing_ = false;
  bool is_resting_ = false;
  bool must_end_in_order_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_
