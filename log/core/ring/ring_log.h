// SPDX-License-Identifier: Apache-2.0
// ring_log: the log on one node, as its writing threads see it.
//
// Idea: only two steps of a write need an order: reserving, which is one
// compare-and-swap, and becoming durable, which is one counter. The steps
// between (filling, checksums, flushing) run in parallel (Arcadia §4.3). This
// class joins the parts:
//
//   Reserver           reserve: LSN and space         (reserver.h)
//   CompletionTracker  which records are finished      (completion_tracker.h)
//   RecordWriter       header, PAD, checksums, stores  (record_writer.h)
//   LogDurability      forcing, waiting, callbacks     (log_durability.h)
//                      of a local or of a replicated log
//   Reclaimer          cleaned records, head           (reclaimer.h)
//   IdleKeeper         forces what callers left        (idle_keeper.h)
//   RegionRepair       scrubbing of a log in use       (region_repair.h)
//
// It checks each call before anything changes, and makes room when a
// reservation finds none.
//
// Invariants:
//   RL1. head_lsn <= durable_lsn + 1 <= next_lsn.
//   RL2. next_lsn - 1 - durable_lsn <= exposure_records_max, rounded up to a
//        power of two (P-F6).
//   RL3. Ring bytes are assigned only if the head in the persisted superline of
//        every replica in sync has passed them (P-L4), and they lie before the
//        ceiling there (P-A3.7).
//   RL4. After a failed fence nothing more is acknowledged (P-H20).
//   RL5. The epoch changes only while every record of the one before is durable
//        and no thread has a reservation: so each record is written, persisted
//        and acknowledged in one epoch (P-A5.4).
// Persistence: a crash leaves the superline of the last update, and any subset
// of the record words that no fence covered. scan.h recovers the log from that.
// Thread safety: all members concurrently, but Close and the destructor alone.
// May block: any call that touches the ring, for page faults. Poll, and a
// call that forces, for a fence (on a plain file: for the disk), for locks of
// the log, and for the sink (log_durability.h). Cleanup and
// CleanupThrough for the superline's update and for a tail's copy. Calls with a
// deadline wait until then for other threads, space and W replicas; CleanupAll
// and Close wait for W replicas until the log fails.
// References: Arcadia §4.3, §4.4; protocol P-A3, P-A6.
#ifndef ALPHEUS_LOG_CORE_RING_RING_LOG_H_
#define ALPHEUS_LOG_CORE_RING_RING_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/waiter.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/flush_order.h"
#include "log/core/durability/force_policy.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/idle_keeper.h"
#include "log/core/durability/log_durability.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/lsn_index.h"
#include "log/core/ring/any_ring_log.h"
#include "log/core/ring/region_repair.h"
#include "log/core/space/ceiling.h"
#include "log/core/space/reclaimer.h"
#include "log/core/space/superline_store.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/core/write/record_writer.h"
#include "log/core/write/reserved_record.h"
#include "log/core/write/reserver.h"
#include "log/core/write/writer_watch.h"
#include "log/format/watermark.h"
#include "log/pmem/persistence.h"

namespace alpheus {

struct RingLogOptions {
  std::string name;                      // name of the region, for messages
  uint32_t exposure_records_max = 4096;  // rounded up to a power of two
  // Sink of a replicated log; it must outlive the log, and has all recovered
  // records durable. Null: a local log.
  ReplicationSink* sink = nullptr;
  FlushOrder flush_order = FlushOrder::kRemoteFirst;
  // Bytes by which the ceiling is raised; a multiple of a line.
  uint64_t ceiling_step_bytes = kCeilingStepBytes;
};

// State in which opening an epoch left the region (local_opening.h of a local
// log, LocalReplica::StartOfLog of a replicated one).
struct RingLogStart {
  Superline superline;
  uint64_t superline_seq = 0;
  EpochTable table;
  WatermarkPlace last;  // of the record before `end`, if it is known
  LogPosition end;      // next LSN, tail, chain
  // Where the opening began to read. Records before it, from the head on, are
  // checked when they are shown.
  LogPosition read_from{Lsn(0), RingOffset(0), 0};
  std::shared_ptr<LsnIndex> index;  // of the recovered records
};

template <Persistence P>
class RingLog final : public AnyRingLog {
 public:
  // `pmem`, `region`, `clock` and `waiter` must outlive the log.
  RingLog(P& pmem, std::span<std::byte> region, const RingLogStart& start,
          const RingLogOptions& options, const Clock& clock, Waiter& waiter);
  // Requires: no open reservation.
  ~RingLog() override;

  absl::StatusOr<ReservedRecord> Reserve(size_t bytes,
                                         Deadline deadline) override;
  absl::Status Copy(ReservedRecord& record, size_t offset,
                    std::span<const std::byte> bytes) override;
  absl::Status Complete(ReservedRecord& record) override;
  void Abort(const ReservedRecord& record) override;
  void Detach(ReservedRecord& record) override;
  absl::Status Force(Lsn lsn, ForcePolicy policy, Deadline deadline) override;
  absl::Status BeginForce(Lsn lsn) override;
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             ForcePolicy policy, Deadline deadline,
                             std::span<const std::byte>* in_ring) override;
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             ForcePolicy policy, Deadline deadline) {
    return Append(parts, policy, deadline, /*in_ring=*/nullptr);
  }
  absl::Status WaitDurable(Lsn lsn, Deadline deadline) override;
  absl::Status OnPersisted(Lsn lsn, PersistedBy by,
                           DurableCallback callback) override;
  absl::Status ConfirmEpoch(Deadline deadline) override;
  absl::Status OnEpochConfirmed(DurableCallback callback) override;
  absl::StatusOr<bool> OnResumed(DurableCallback callback) override;
  absl::Status Cleanup(Lsn lsn) override;
  absl::Status CleanupThrough(Lsn lsn) override;
  absl::Status CleanupAll() override;
  absl::Status Close() override;
  absl::StatusOr<bool> CopyNext(TailPlace& place) const override;

  bool IsUsable() const override;
  absl::Status MediumError() const override { return pmem_.Error(); }

  void WithRingFrozen(absl::FunctionRef<void()> work) const override {
    repair_.WithRingFrozen(work);
  }
  std::byte* RingOnMedium() const override { return repair_.RingOnMedium(); }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override;
  absl::StatusOr<int> RepairCopies() override;

  bool TryHold() override;
  bool IsAtRest() const override { return reserver_.Exposed() == 0; }
  bool HasRoomForEpoch() const override;
  void HandRegion() override { reclaimer_.HoldHead(); }
  absl::Status Continue(const RingLogStart& start) override;
  void Resume() override;

  Polled Poll() override { return idle_keeper_.Poll(); }
  void WaitForWork(uint32_t seen, Deadline deadline) override {
    durability_->WaitForWork(seen, deadline);
  }
  bool WaitForAcks(Deadline deadline,
                   const std::atomic<uint32_t>& stop) override {
    return durability_->WaitForAcks(deadline, stop);
  }
  Progress& progress() override { return progress_; }
  Waiter& waiter() override { return waiter_; }

  Epoch epoch() const override { return writer_.epoch(); }
  Lsn durable_lsn() const override {
    return Lsn(durable_lsn_word_.load(std::memory_order_acquire));
  }
  Lsn persisted_lsn(PersistedBy by) const override {
    return durability_->persisted_lsn(by);
  }
  uint64_t Exposed() const override { return reserver_.Exposed(); }
  uint64_t exposed_max() const override { return tracker_.size(); }
  Lsn next_lsn() const override { return reserver_.next().lsn; }
  RingOffset tail() const override { return reserver_.next().tail; }
  Lsn head_lsn() const override { return reclaimer_.head_lsn(); }
  LogPosition head() const override { return reclaimer_.head(); }
  const EpochTable& table() const override { return reclaimer_.table(); }
  const Ring& ring() const override { return ring_; }
  // Returns the lowest LSN that is reserved and not finished, or next_lsn().
  Lsn first_open_lsn() const { return durability_->first_open_lsn(); }

  // Aborts the process when RL1 or RL2 is broken.
  void CheckInvariants() const;

 private:
  // Reserves without waiting. Returns false if that fails.
  bool TryTakeSpace(size_t bytes, Reserver::Space* space);
  void Finish(const ReservedRecord& record, RecordType type);
  void MarkCompleted(Lsn lsn, uint32_t header_crc);
  // Writes through the cache; a later force persists the record.
  void WriteCompleted(const Reserver::Space& space, const Payload& payload);
  // Writes past the cache, with a fence of its own.
  typename Forcer<P>::Progressed WriteAndPersist(const Reserver::Space& space,
                                                 const Payload& payload,
                                                 int spins);

  // Forces a record that was written just now, as the policy asks.
  absl::Status ForceAppended(Lsn lsn, const ForcePolicy& policy,
                             Deadline deadline);

  // Reserves with checks, waiting and errors.
  absl::StatusOr<Reserver::Space> TakeSpace(size_t bytes, Deadline deadline);
  // Tries once to make room after a refusal. Returns true if another try to
  // reserve is worth it. `limit` is the reuse limit before the refusal,
  // `refused` the space that was refused for `bytes` of payload.
  absl::StatusOr<bool> MakeRoom(Reserver::Outcome refusal, uint64_t limit,
                                const Reserver::Space& refused, size_t bytes,
                                Deadline deadline);
  absl::Status RingFull(size_t bytes) const;

  absl::Status CloseWhole();
  // Writes the head of now into the superline; waits while it is held.
  absl::Status PublishHead();
  absl::Status ForceEverything();
  absl::Status WriteCleanCloseWord();
  // Notifies of a failure that a step may have met under locks; returns
  // `status`. Requires: the locks are released.
  absl::Status NotifyIfFailed(absl::Status status) {
    if (!status.ok()) [[unlikely]]
      failure_.Notify();
    return status;
  }

  absl::Status Usable() const;
  // Returns true if Append flushes and fences the record itself, instead of
  // leaving it to a later force: a forced one always, others if they are too
  // large to stay in the cache.
  bool IsPersistedAtOnce(Lsn lsn, size_t payload_bytes, bool forced);
  absl::Status CheckAssigned(Lsn lsn) const;
  // Fails if the log is not usable, or if the calling thread has any open
  // reservation.
  absl::Status CheckAppendable() const;
  bool HasOpenReservations() const { return first_open_lsn() < next_lsn(); }

  // Returns the watch of a replicated log, nullptr of a local one.
  static std::unique_ptr<ActivityWatch> MakeWatch(const RingLogOptions& options,
                                                  Waiter& waiter);
  std::unique_ptr<LogDurability<P>> MakeDurability(const RingLogStart& start);

  P& pmem_;
  const std::span<std::byte> region_;
  const RingLogOptions options_;
  const Ring ring_;
  const uint64_t payload_bytes_max_;
  const Clock& clock_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> is_closing_{false};  // the epoch changes no more
  std::atomic<bool> is_held_{false};     // by TryHold
  const std::unique_ptr<ActivityWatch> watch_;
  Waiter& waiter_;  // the watch, if there is one
  Progress progress_;
  LogFailure failure_{progress_};
  CompletionTracker tracker_;
  SuperlineStore<P> superline_;
  Reclaimer<P> reclaimer_;
  const std::unique_ptr<LogDurability<P>> durability_;
  const std::atomic<uint64_t>& durable_lsn_word_;
  Reserver reserver_;
  WriterWatch writer_watch_;
  IdleKeeper<P> idle_keeper_{*durability_, reserver_, progress_};
  RecordWriter<P> writer_;
  RegionRepair<P> repair_{pmem_,      region_,    ring_,
                          superline_, reclaimer_, failure_};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_RING_LOG_H_
