// SPDX-License-Identifier: Apache-2.0
// ring_engine: a log engine on one region, for every kind of memory and of
// opening.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_LOG_RING_ENGINE_H_
#define ALPHEUS_API_LOG_RING_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "alpheus/options.h"
#include "api/log/log_engine.h"
#include "api/log/recovered_source.h"
#include "api/log/tail_pages.h"
#include "api/wiring/service_thread.h"
#include "log/base/clock.h"
#include "log/base/fork_watch.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"
#include "log/base/waiter.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/region_check.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/region.h"
#include "recovery/replica/primary_replica.h"

namespace alpheus {

// Replication parts of an engine: the adapter, and the sender of the ring.
class EngineReplication {
 public:
  virtual ~EngineReplication() = default;
  virtual ReplicationSink& sink() = 0;
  // Returns the status; any thread.
  virtual ReplicationStatus status() const = 0;
  // Gives the log's own region, if it is a replica. Called before the log
  // exists, whose Poll uses it.
  virtual void ClaimReplica(PrimaryReplica& replica) = 0;
};

template <Persistence P>
class RingEngine final : public LogEngine, private PrimaryReplica {
 public:
  // `start` comes from opening the epoch; all of it is recovered. Without
  // `replication` the log is local.
  RingEngine(Region region, std::unique_ptr<P> pmem, const RingLogStart& start,
             RecoveryReport report, const LogOptions& options,
             std::unique_ptr<EngineReplication> replication = nullptr)
      : region_(std::move(region)),
        pmem_(std::move(pmem)),
        replication_(std::move(replication)),
        waiter_(Clock::Real(), PatienceOf(options)),
        is_watched_(region_.is_watched()),
        is_shared_(replication_ != nullptr ||
                   region_.medium() != RegionMedium::kAnonymous),
        recovered_end_(start.end.lsn - 1),
        ring_offset_(start.superline.ring_offset),
        report_(std::move(report)),
        log_(*pmem_, region_.bytes(), start, OptionsOf(options), Clock::Real(),
             waiter_),
        tail_pages_(log_.ring(), log_.tail(), WayToMap(region_)),
        service_({[this] {
                    const Polled polled = log_.Poll();
                    tail_pages_.KeepAhead(log_.tail());
                    return polled;
                  },
                  [this](uint32_t seen, Deadline until) {
                    log_.WaitForWork(seen, until);
                  },
                  [this](Deadline until, const std::atomic<uint32_t>& stop) {
                    return log_.WaitForAcks(until, stop);
                  },
                  [this] { return RecheckFile(); }},
                 log_.progress(), log_.waiter(),
                 std::chrono::microseconds(options.idle_force_us)),
        has_thread_(options.idle_force_us != 0) {
    if (replication_ != nullptr) replication_->ClaimReplica(*this);
  }

  absl::Status StartService() { return service_.Start(); }

  // Counts the records for the report, after an opening that did not. Requires:
  // no append yet.
  void CountRecovered() {
    RecordCursor cursor(log_.ring(), log_.table(), log_.head(),
                        log_.head().offset + log_.ring().capacity(),
                        RecordCursor::Payloads::kTrust);
    while (cursor.position().lsn <= recovered_end_ &&
           cursor.Next() == RecordCursor::Step::kRecord) {
      const RecordView& record = cursor.record();
      report_.cleaned_records += record.cleaned ? 1 : 0;
      report_.aborted_records += !record.cleaned && record.aborted() ? 1 : 0;
      if (record.cleaned || record.aborted()) continue;
      ++report_.records;
      report_.payload_bytes += record.payload.size();
    }
  }

  // A child has its own copy of memory that is in no file.
  bool IsOfParent() const override {
    return fork_watch_.IsForksChild() && is_shared_;
  }
  void LeaveToParent() override { const Region left(std::move(region_)); }

  absl::StatusOr<ReservedRecord> Reserve(size_t bytes,
                                         Deadline deadline) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.Reserve(bytes, deadline);
  }
  absl::Status Copy(ReservedRecord& record, size_t offset,
                    std::span<const std::byte> bytes) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.Copy(record, offset, bytes);
  }
  absl::Status Complete(ReservedRecord& record) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.Complete(record);
  }
  void Abort(const ReservedRecord& record) override {
    if (!IsOfParent()) log_.Abort(record);
  }
  void Detach(ReservedRecord& record) override {
    if (!IsOfParent()) log_.Detach(record);
  }
  absl::Status Force(Lsn lsn, const ForceOptions& options) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return log_.Force(lsn, {options.frequency, options.group},
                      options.deadline);
  }
  absl::Status BeginForce(Lsn lsn) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return log_.BeginForce(lsn);
  }
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             const ForceOptions& options) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return log_.Append(parts, {options.frequency, options.group},
                       options.deadline);
  }
  absl::StatusOr<AppendedRecord> AppendInRing(
      std::span<const std::span<const std::byte>> parts,
      Deadline deadline) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return log_.AppendInRing(parts, deadline);
  }
  absl::Status WaitDurable(Lsn lsn, Deadline deadline) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    RecheckFileWithoutThread();
    return log_.WaitDurable(lsn, deadline);
  }
  absl::Status OnDurable(Lsn lsn, DurableCallback callback) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.OnDurable(lsn, std::move(callback));
  }
  absl::Status Cleanup(Lsn lsn) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.Cleanup(lsn);
  }
  absl::Status CleanupThrough(Lsn lsn) override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.CleanupThrough(lsn);
  }
  absl::Status CleanupAll() override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    return log_.CleanupAll();
  }
  absl::StatusOr<bool> CopyNext(TailPlace& place) const override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    absl::StatusOr<bool> copied = log_.CopyNext(place);
    ALPHEUS_RETURN_IF_ERROR(CheckPayloads());
    return copied;
  }
  // Payloads read before may be those of the process that has the region now.
  absl::Status CheckPayloads() const override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    std::atomic_thread_fence(std::memory_order_acquire);
    if (is_released_.load(std::memory_order_acquire)) return RegionReleased();
    return absl::OkStatus();
  }
  absl::Status Close() override {
    ALPHEUS_RETURN_IF_ERROR(CheckProcess());
    // Close wants to be alone with the log.
    service_.Stop();
    absl::Status closed = log_.Close();
    if (!absl::IsFailedPrecondition(closed)) return closed;
    // Refused: the log continues.
    const absl::Status started = service_.Start();
    if (started.ok()) return closed;
    return absl::FailedPreconditionError(absl::StrCat(
        closed.message(),
        "; while it is idle it now has no thread: ", started.message()));
  }

  Lsn durable_lsn() const override { return log_.durable_lsn(); }
  Lsn next_lsn() const override { return log_.next_lsn(); }
  Lsn head_lsn() const override { return log_.head_lsn(); }
  size_t payload_bytes_max() const override {
    return PayloadBytesMax(log_.ring().capacity());
  }
  uint64_t Exposed() const override { return log_.Exposed(); }
  uint64_t exposed_max() const override { return log_.exposed_max(); }
  std::unique_ptr<RecoveredRange::Source> Recovered() const override {
    return std::make_unique<RecoveredSource>(
        log_.ring(), ring_offset_, log_.table(), log_.head(), recovered_end_,
        is_released_, region_.path());
  }
  const RecoveryReport& report() const override { return report_; }
  ReplicationStatus replication_status() const override {
    return replication_ == nullptr || IsOfParent() ? ReplicationStatus()
                                                   : replication_->status();
  }

 private:
  absl::Status CheckProcess() const {
    if (IsOfParent()) [[unlikely]]
      return OfParent();
    return absl::OkStatus();
  }
  absl::Status OfParent() const {
    return absl::FailedPreconditionError(
        absl::StrCat(region_.path(),
                     ": this process is a fork's child, and its parent opened "
                     "the log. Nothing was changed; open the log again in the "
                     "child, after the parent has closed it"));
  }

  // Checks the file twice a second. Returns the time of the next check.
  Deadline RecheckFile() {
    if (!is_watched_) return Deadline();
    const int64_t now = Clock::Real().NowNanos();
    const int64_t due = recheck_at_.load(std::memory_order_relaxed);
    if (now < due) return Deadline::AtNanos(due);
    const MutexLock lock(region_mutex_);
    recheck_at_.store(now + kCheckNanos, std::memory_order_relaxed);
    if (!is_released_.load(std::memory_order_relaxed)) {
      CheckRegionFile(region_, report_.log_id);
    }
    return Deadline::AtNanos(now + kCheckNanos);
  }
  // Checks the file in calls that fence, if there is no service thread. A fence
  // into a page cache is a system call anyway; elsewhere a check would cost as
  // much as an append.
  void RecheckFileWithoutThread() {
    if (!has_thread_ && region_.medium() == RegionMedium::kFile) {
      (void)RecheckFile();
    }
  }

  absl::Status ReleaseRegion() override {
    // A process that takes the region over must know that it is suspect (ND3,
    // node.h), and nothing could tell it: so keep the region.
    if (!pmem_->Error().ok()) return pmem_->Error();
    // First: readers must know, before others write there.
    is_released_.store(true, std::memory_order_seq_cst);
    const MutexLock lock(region_mutex_);
    return region_.Detach();
  }
  bool IsUsable() const override { return log_.IsUsable(); }
  std::byte* RingOnMedium() const override { return log_.RingOnMedium(); }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    log_.WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return log_.RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override { return log_.RepairCopies(); }

  // Anonymous memory was touched when it was filled.
  static TailPages::MapPages WayToMap(const Region& region) {
    const bool is_mapped_by_need =
        region.medium() == RegionMedium::kPersistentMemory &&
        !region.is_shadowed();
    return is_mapped_by_need ? TailPages::MapPages(PopulateForReading)
                             : nullptr;
  }

  // Threads that wait for backups should not keep a core that the backups may
  // need.
  FutexWaiter::Patience PatienceOf(const LogOptions& options) const {
    if (replication_ == nullptr) return {};
    return {.spins = 0, .yields = options.replication.yields};
  }

  RingLogOptions OptionsOf(const LogOptions& options) const {
    RingLogOptions ring;
    ring.name = region_.path();
    ring.exposure_records_max = options.exposure_records_max;
    if (replication_ != nullptr) {
      ring.sink = &replication_->sink();
      ring.flush_order = options.replication.flush_order;
    }
    return ring;
  }

  absl::Status RegionReleased() const {
    return absl::AbortedError(
        absl::StrCat(region_.path(),
                     ": the replica was released for another primary; open "
                     "the log again"));
  }

  Region region_;
  std::atomic<bool> is_released_{false};
  std::unique_ptr<P> pmem_;
  std::unique_ptr<EngineReplication> replication_;  // outlives the log
  FutexWaiter waiter_;
  const bool is_watched_;
  const bool is_shared_;
  const ForkWatch fork_watch_;
  const Lsn recovered_end_;
  const uint64_t ring_offset_;
  RecoveryReport report_;
  RingLog<P> log_;
  TailPages tail_pages_;  // used by the service thread
  static constexpr int64_t kCheckNanos = 500'000'000;
  std::atomic<int64_t> recheck_at_{0};  // next check; races do no harm
  Mutex region_mutex_;                  // of checking the file and giving it up
  ServiceThread service_;               // stops before the log goes
  const bool has_thread_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_RING_ENGINE_H_
