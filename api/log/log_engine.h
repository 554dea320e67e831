// SPDX-License-Identifier: Apache-2.0
// log_engine: owns the parts of one open log, behind the public Log.
//
// Idea: the public log calls the ring (log()), past this class, after
// CheckProcess or CheckToForce. This class joins the ring with its region, its
// replication and the thread that both need, for every kind of memory and of
// opening.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_LOG_LOG_ENGINE_H_
#define ALPHEUS_API_LOG_LOG_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/durability_plan.h"
#include "alpheus/log_epoch.h"
#include "alpheus/options.h"
#include "alpheus/recovered_range.h"
#include "alpheus/recovery_report.h"
#include "alpheus/replication_status.h"
#include "api/log/tail_pages.h"
#include "api/wiring/service_thread.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/fork_watch.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"
#include "log/base/waiter.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/any_ring_log.h"
#include "log/core/ring/ring_log.h"
#include "log/core/space/reclaimer.h"
#include "log/format/layout.h"
#include "log/pmem/persistence.h"
#include "log/pmem/region.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/members/configuration.h"
#include "quorum/membership/membership.h"
#include "recovery/replica/local_replica.h"
#include "recovery/replica/openers_replica.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/resync/epoch_succession.h"

namespace alpheus {

// Replication parts of an engine: the adapter, and the sender of the ring.
class EngineReplication {
 public:
  virtual ~EngineReplication() = default;
  virtual ReplicationSink& sink() = 0;
  // Returns the status; any thread.
  virtual ReplicationStatus status() const = 0;
  // Returns how each member has records persisted; any thread. The entry of the
  // own replica is the engine's to complete.
  virtual DurabilityPlan durability_plan() const = 0;
  // Gives the log's own region, if it is a replica, and the log. Called once,
  // before the log's first Poll, which uses both.
  virtual void ClaimReplica(recovery::PrimaryReplica& replica,
                            recovery::SucceedingLog& log) = 0;
  // Asks for a change of the members while the log runs. Any thread. Errors: as
  // EpochSuccession::Ask.
  virtual absl::Status AskChange(recovery::SuccessionRequest request) = 0;
  virtual recovery::EpochSuccession::Change change() const = 0;
  // Returns the running list of members. Any thread.
  virtual recovery::EpochSuccession::Members members() const = 0;
};

class LogEngine final : private recovery::PrimaryReplica,
                        private recovery::SucceedingLog {
 public:
  // `start` comes from opening the epoch; all of it is recovered. Without
  // `replication` the log is local.
  template <Persistence P>
  LogEngine(Region region, std::unique_ptr<P> pmem, const RingLogStart& start,
            RecoveryReport report, const LogOptions& options,
            std::unique_ptr<EngineReplication> replication = nullptr)
      : LogEngine(
            std::move(region), start, std::move(report), options,
            std::move(replication),
            [&](std::span<std::byte> bytes, const RingLogOptions& ring,
                Waiter& waiter) {
              auto log = std::make_unique<RingLog<P>>(*pmem, bytes, start, ring,
                                                      Clock::Real(), waiter);
              OpenOwn open = [&medium = *pmem, bytes,
                              name = ring.name](std::function<void()> fence) {
                return OpenOwnReplica<P>(medium, bytes, name, std::move(fence));
              };
              return OwnedRing{std::move(pmem), std::move(log),
                               std::move(open)};
            }) {}

  ~LogEngine() override;

  // Sets a function that takes the region of a log whose medium failed, once
  // nothing else has it: bytes that were persisted may be lost there (P-A8).
  void OnMediumFailed(std::function<void(Region)> give_up) {
    region_end_.give_up = std::move(give_up);
  }

  absl::Status StartService() { return service_.Start(); }
  // Counts the records that the opening read, for the report, after an opening
  // that did not, which is over then (OpeningMoments). Requires: no append yet.
  void CountRecovered();

  // Returns whether the parent of this fork's child opened it. Then the two
  // checks, and Close, fail with FailedPrecondition, and the child calls
  // nothing of log(). The destructor would join threads and end connections of
  // the parent, so LeaveToParent is called instead, which releases the child's
  // share of the file. A child has its own copy of memory that is in no file.
  bool IsOfParent() const { return fork_watch_.IsForksChild() && is_shared_; }
  void LeaveToParent() { const Region left(std::move(region_)); }

  // Checks that a call of this process may change or read the log.
  absl::Status CheckProcess() const {
    if (IsOfParent()) [[unlikely]]
      return OfParent();
    return absl::OkStatus();
  }
  // Checks as CheckProcess does, for a call that fences. Without a service
  // thread such a call checks the file, too.
  absl::Status CheckToForce() {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return absl::OkStatus();
  }
  // Returns the ring. Positions need no check before.
  AnyRingLog& log() { return *ring_.log; }
  const AnyRingLog& log() const { return *ring_.log; }

  // Returns whether the region that this process writes counts as a replica. A
  // cluster's log without a path is in memory alone.
  bool has_own_replica() const { return has_own_replica_; }

  absl::Status Close();
  absl::StatusOr<bool> CopyNext(TailPlace& place) const;
  // Returns OK if payloads read until now were this log's. Otherwise another
  // process has the region, and they may be that one's.
  absl::Status CheckPayloads() const;
  std::unique_ptr<RecoveredRange::Source> Recovered() const;
  const RecoveryReport& report() const { return report_; }
  // Asks the running primary to change the members (epoch_succession.h).
  // Returns at once. Errors: FailedPrecondition (a local log; no own replica);
  // Unavailable (another change is not done).
  absl::Status AskChange(recovery::SuccessionRequest request);
  // Returns what has become of the last change, and the running epoch.
  recovery::EpochSuccession::Change change() const {
    return replication_ == nullptr ? recovery::EpochSuccession::Change()
                                   : replication_->change();
  }
  // Returns the list of members of the running epoch. Requires: not a local
  // log.
  recovery::EpochSuccession::Members members() const {
    return replication_->members();
  }
  DurabilityPlan durability_plan() const;
  std::vector<LogEpoch> epochs() const;
  ReplicationStatus replication_status() const {
    return replication_ == nullptr || IsOfParent() ? ReplicationStatus()
                                                   : replication_->status();
  }

 private:
  using OwnReplica = absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>>;
  using OpenOwn = std::function<OwnReplica(std::function<void()> fence)>;

  // A ring, and the persistence below it, whose type only the ring knows.
  struct OwnedRing {
    std::shared_ptr<void> pmem;  // outlives the log
    std::unique_ptr<AnyRingLog> log;
    OpenOwn open;  // as SucceedingLog::OpenReplica
  };
  using MakeRing = absl::FunctionRef<OwnedRing(std::span<std::byte> region,
                                               const RingLogOptions& options,
                                               Waiter& waiter)>;

  LogEngine(Region region, const RingLogStart& start, RecoveryReport report,
            const LogOptions& options,
            std::unique_ptr<EngineReplication> replication, MakeRing make_ring);

  template <Persistence P>
  static OwnReplica OpenOwnReplica(P& pmem, std::span<std::byte> region,
                                   const std::string& name,
                                   std::function<void()> fence) {
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<recovery::LocalReplica<P>> replica,
        recovery::LocalReplica<P>::Open(pmem, region, {.name = name}));
    return std::make_unique<recovery::OwningOpenersReplica<P>>(
        std::move(replica), std::move(fence));
  }

  void DescribeOwn(ReplicaDurability* own) const;
  absl::Status OfParent() const;
  absl::Status RegionReleased() const;
  ServiceThread::Work ServiceWork();
  RingLogOptions OptionsOf(const LogOptions& options) const;

  // Checks the file twice a second. Returns the time of the next check.
  Deadline RecheckFile();
  // A fence into a page cache is a system call anyway; elsewhere a check would
  // cost as much as an append.
  void RecheckFileWithoutThread() {
    if (!has_thread_ && region_.medium() == RegionMedium::kFile) {
      (void)RecheckFile();
    }
  }

  // PrimaryReplica.
  absl::Status ReleaseRegion() override;
  bool IsUsable() const override { return log().IsUsable(); }
  std::byte* RingOnMedium() const override { return log().RingOnMedium(); }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    log().WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return log().RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override { return log().RepairCopies(); }

  // SucceedingLog.
  bool TryHold() override { return log().TryHold(); }
  bool IsAtRest() const override { return log().IsAtRest(); }
  bool HasRoomForEpoch() const override { return log().HasRoomForEpoch(); }
  void HandRegion() override { log().HandRegion(); }
  absl::Status Continue(const recovery::EpochOpened& opened) override {
    return log().Continue(opened.start);
  }
  void Resume() override { log().Resume(); }
  absl::Status MediumError() const override { return log().MediumError(); }
  OwnReplica OpenReplica(std::function<void()> fence) override {
    return ring_.open(std::move(fence));
  }

  // Ends after all that uses the region.
  struct RegionEnd {
    ~RegionEnd() {
      if (is_suspect && give_up) give_up(std::move(region));
    }
    Region& region;
    std::function<void(Region)> give_up = {};
    bool is_suspect = false;
  };

  Region region_;
  RegionEnd region_end_{region_};
  std::atomic<bool> is_released_{false};
  std::unique_ptr<EngineReplication> replication_;  // outlives the log
  FutexWaiter waiter_;
  const bool is_watched_;
  const bool is_shared_;
  const bool has_own_replica_;
  const ForkWatch fork_watch_;
  const Lsn recovered_end_;
  const LogPosition read_from_;  // records before it are recovered unread
  const uint64_t ring_offset_;
  RecoveryReport report_;
  OwnedRing ring_;
  TailPages tail_pages_;                // used by the service thread
  std::atomic<int64_t> recheck_at_{0};  // next check; races do no harm
  Mutex region_mutex_;                  // of checking the file and giving it up
  ServiceThread service_;               // stops before the log goes
  const bool has_thread_;
};

// Maps the region that `options` names, recovers it and opens an epoch.
absl::StatusOr<std::unique_ptr<LogEngine>> OpenLocalEngine(
    const LogOptions& options);

struct OpeningTries {
  // False: an opening that lost a race is not tried again. Others have won.
  bool until_deadline = true;
  // Nanoseconds in which the own replica must be there, and enough others
  // report, as EpochOpeningOptions::report_ns; 0: until the deadline.
  int64_t report_ns = 0;
  // As EpochOpeningOptions.
  uint32_t gather_factor = 0;
  // As EpochOpeningOptions::promised_max. The node's daemon keeps the own
  // replica, too, if that has promised a later epoch.
  std::optional<Epoch> promised_max = std::nullopt;
  // The cluster, which must outlive the call. Null: it is read from its file,
  // which may wait for a name server.
  const quorum::ClusterConfiguration* cluster = nullptr;
  // Process that opens, and its membership, which gives the ballots and must
  // outlive the call. Null: the opening has an identity and a membership of its
  // own, for its time.
  quorum::PrimaryId self = {};
  quorum::Membership* membership = nullptr;
};

// Opens an epoch of the cluster's log that options.replication names.
absl::StatusOr<std::unique_ptr<LogEngine>> OpenReplicatedEngine(
    const LogOptions& options, const OpeningTries& tries = {});

// Makes the replicas of the cluster's log that `options` names.
absl::StatusOr<Uuid> FormatReplicatedLog(const FormatOptions& options);

// Checks options that every engine has. Errors: InvalidArgument.
absl::Status CheckEngineOptions(const LogOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_LOG_ENGINE_H_
