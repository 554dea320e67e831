// SPDX-License-Identifier: Apache-2.0
// primary_process: an application that opens the log and writes it.
//
// Idea: it is built like api/node's engine, from the same parts of recovery,
// replication and log, except for time, adapter and memory, which are the
// world's. Its threads: the main one, which opens and ends; the log's service;
// the clients of the workload.
//
// It ends by itself when its log has failed: some in good order, some as they
// are. Then another one is started.
//
// Thread safety: one thread.
// References: api/log/replicated_engine.cc, service_thread.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "log/core/ring/ring_log.h"
#include "recovery/resync/epoch_succession.h"
#include "tools/sim/actors/client_profiles.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/primary_opening.h"
#include "tools/sim/actors/replica_upkeep.h"
#include "tools/sim/actors/rocksdb_files.h"
#include "tools/sim/actors/rocksdb_workload.h"
#include "tools/sim/actors/service/service_server.h"
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

  // Starts to run. With a change: the operator's process that makes the change,
  // and ends.
  PrimaryProcess(World& world, World::Machine& machine,
                 std::optional<size_t> change = {});
  ~PrimaryProcess();

  ProcessId process() const { return process_; }
  bool is_open() const { return log_ != nullptr; }
  bool is_change() const { return change_.has_value(); }
  // Returns whether it is opening; it then has one thread.
  bool is_opening() const { return !judge_.has_value(); }
  ProcessClock& clock() { return clock_; }
  // Asks it to end, by lot in good order.
  void Close();
  // Asks it to end in good order.
  void CloseInOrder();
  // Asks it to make the operator's change of that number while its log runs.
  // Returns false, with nothing begun, if it can't.
  bool AskChange(size_t number);
  // Returns whether it was asked, and has not said what became of it.
  bool is_changing() const { return asked_.has_value(); }
  // Asks its clients to end; the log stays open.
  void Idle();
  // Returns whether no client is left and all replicas in sync have everything.
  bool is_idle() const;
  // Requires: is_open().
  uint32_t in_sync() const;
  // Returns the epoch that is open now. Requires: one was opened.
  Epoch epoch() const { return epoch_; }
  Lsn opened_end() const { return opening_.opened().end.lsn; }
  Lsn next_lsn() const { return log_->next_lsn(); }
  // Checks the log's counters (RL1 and RL2 of ring_log.h); a violation is a
  // CHECK.
  void CheckInvariants() const {
    if (log_ != nullptr) log_->CheckInvariants();
  }

  // Starts one more client. Requires: is_open() and not is_closing().
  void StartClient(std::function<void()> run);

  // Returns what serves the clients of the service; null: nobody does.
  ServiceServer* service() { return service_.get(); }

  // Members for clients.
  World& world() { return world_; }
  ClientProfiles& profiles() { return profiles_; }
  bool is_filling() const { return profiles_.fills_at(world_.now()); }
  RingLog<Model>& log() { return *log_; }
  PrimaryNumber number() const { return number_; }
  int machine() const { return machine_.number; }
  bool is_closing() const { return is_closing_ || becomes_idle_; }
  // Returns whether its log has lost its quorum, or its medium failed.
  bool has_failed() const;
  bool has_failed_medium() const { return opening_.has_failed_medium(); }
  // Called before and after each of their calls except Abort; see call_judge.h.
  BegunCall Begin(ClientCall call, Deadline deadline = {},
                  bool owns_open = false) const {
    return judge_->Begin(call, deadline, owns_open);
  }
  // Returns whether the call was OK. Closes a log that has failed.
  bool Returned(const BegunCall& call, Lsn lsn, const absl::Status& status);
  void RanCallback() { judge_->RanCallback(); }
  // Returns whether it was OK.
  bool CleanupAll();
  // Registers a callback. `then`, if set, is called after the history. Returns
  // the log's error, after which it is not called.
  absl::Status OnPersisted(Lsn lsn, PersistedBy by,
                           std::function<void(const absl::Status&)> then);
  // The same for a durable record, and a client that hears of an error by its
  // next call.
  void RequestNotice(Lsn lsn, std::function<void(const absl::Status&)> then) {
    OnPersisted(lsn, PersistedBy::kQuorum, std::move(then)).IgnoreError();
  }
  // Asks for a confirmation of the epoch, on the same terms.
  absl::Status OnEpochConfirmed(std::function<void(const absl::Status&)> then);

 private:
  class Sink;

  void Run();
  void TakeRegion();
  // Returns whether another one ran when this one was started, or was started
  // since.
  bool HasRival() const;
  void NotifyHistory();
  // Returns whether the log refuses a call for a record that was damaged.
  bool MayMeetDamage(const absl::Status& status) const;
  void StartLog();
  // The log goes on in this epoch.
  void GoOn(const recovery::EpochOpened& opened);
  // The change that it was asked for is over.
  void Changed(const recovery::EpochSuccession::Change& change);
  void ClaimRegion();
  void StartClients();
  // Confirms the epoch again and again (P-INV-23).
  void RunConfirmingClient();
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
  // False: its starter knows that there is no usable replica here.
  const bool is_member_;
  PrimaryNumber number_ = 0;
  const bool started_alone_;
  const uint64_t started_;  // primaries started in the world, this one included
  ProcessClock clock_;
  ProcessFabric fabric_;
  PrimaryOpening opening_;
  Epoch epoch_;
  Configuration configuration_;  // of that epoch
  std::optional<size_t> asked_;  // change, while it is being made
  ThreadsWaiter waiter_;
  std::unique_ptr<ImageChecker> images_;
  std::optional<CallJudge> judge_;
  std::unique_ptr<WalApplication> wal_;
  std::unique_ptr<RocksDbFiles> rocksdb_files_;
  std::unique_ptr<RocksDbApplication> rocksdb_;
  std::unique_ptr<ServiceServer> service_;
  std::unique_ptr<OwnRegion> own_;  // outlives the log
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<RingLog<Model>> log_;
  ClientProfiles profiles_;
  int clients_ = 0;  // not ended yet
  bool is_serving_ = false;
  const std::atomic<uint32_t> service_stop_{0};  // it ends between two waits
  bool is_closing_ = false;
  bool becomes_idle_ = false;
  bool must_end_in_order_ = false;
  bool must_end_well_ = false;  // nobody has a reason to take the log away
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_PRIMARY_PROCESS_H_
