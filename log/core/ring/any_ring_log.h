// SPDX-License-Identifier: Apache-2.0
// any_ring_log: a RingLog in any memory, as the public log calls it.
//
// Idea: the memory backend is a template parameter of the ring and of
// everything below. This is the one virtual step between the public classes and
// that template: one call per user's call, none per store.
//
// Thread safety: all members concurrently, but Close and the destructor alone.
// References: ring_log.h.
#ifndef ALPHEUS_LOG_CORE_RING_ANY_RING_LOG_H_
#define ALPHEUS_LOG_CORE_RING_ANY_RING_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/waiter.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/force_policy.h"
#include "log/core/durability/persisted_by.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/reserved_record.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"

namespace alpheus {

struct RingLogStart;

class AnyRingLog {
 public:
  virtual ~AnyRingLog() = default;

  // Calls of alpheus/log.h, with their contracts.
  virtual absl::StatusOr<ReservedRecord> Reserve(size_t bytes,
                                                 Deadline deadline) = 0;
  virtual absl::Status Copy(ReservedRecord& record, size_t offset,
                            std::span<const std::byte> bytes) = 0;
  virtual absl::Status Complete(ReservedRecord& record) = 0;
  virtual void Abort(const ReservedRecord& record) = 0;
  virtual void Detach(ReservedRecord& record) = 0;
  virtual absl::Status Force(Lsn lsn, ForcePolicy policy,
                             Deadline deadline) = 0;
  virtual absl::Status BeginForce(Lsn lsn) = 0;
  // `in_ring`, if given, is set to the payload's place in the ring.
  virtual absl::StatusOr<Lsn> Append(
      std::span<const std::span<const std::byte>> parts, ForcePolicy policy,
      Deadline deadline, std::span<const std::byte>* in_ring) = 0;
  virtual absl::Status WaitDurable(Lsn lsn, Deadline deadline) = 0;
  virtual absl::Status OnPersisted(Lsn lsn, PersistedBy by,
                                   DurableCallback callback) = 0;
  absl::Status OnDurable(Lsn lsn, DurableCallback callback) {
    return OnPersisted(lsn, PersistedBy::kQuorum, std::move(callback));
  }
  virtual absl::Status ConfirmEpoch(Deadline deadline) = 0;
  virtual absl::Status OnEpochConfirmed(DurableCallback callback) = 0;
  virtual absl::StatusOr<bool> OnResumed(DurableCallback callback) = 0;
  virtual absl::Status Cleanup(Lsn lsn) = 0;
  virtual absl::Status CleanupThrough(Lsn lsn) = 0;
  virtual absl::Status CleanupAll() = 0;
  virtual absl::Status Close() = 0;
  // Copies the next durable record of a tail (RCL4 of reclaimer.h); also once
  // the log is closed or has failed. Returns false if there is none yet.
  // Errors: as Reclaimer::CopyNext; OutOfRange (an LSN after the next one); the
  // log's failure, if nothing is left to be shown.
  virtual absl::StatusOr<bool> CopyNext(TailPlace& place) const = 0;

  // Returns true if the log is neither closed nor failed.
  virtual bool IsUsable() const = 0;
  // Returns the error of the log's medium; OK if there was none.
  virtual absl::Status MediumError() const = 0;

  // Scrubbing, as the calls of RegionRepair. RestoreBytes and RepairCopies:
  // errors as those of any other call once the log is closed or has failed,
  // with nothing written.
  virtual void WithRingFrozen(absl::FunctionRef<void()> work) const = 0;
  virtual std::byte* RingOnMedium() const = 0;
  virtual absl::Status RestoreBytes(RingOffset offset,
                                    std::span<const std::byte> bytes) = 0;
  virtual absl::StatusOr<int> RepairCopies() = 0;

  // Changing the epoch of a log that goes on (EPS1 of epoch_succession.h).
  // Called from inside the sink's Poll, in this order:
  //   TryHold       holds new reservations. Returns false if they are held
  //                 already, or the log is closed, closing or failed
  //   IsAtRest      returns true once all that was reserved is durable
  //   HasRoomForEpoch
  //                 returns true if the epoch table has room for an epoch that
  //                 begins at the next record. Requires: at rest
  //   HandRegion    from now on the log writes neither superline nor watermark,
  //                 and nothing into the ring but CLEANED words, which are
  //                 hints. Requires: at rest
  //   Continue      goes on as the region was left, in the epoch that it was
  //                 installed with, and with its head if that is later. Errors:
  //                 DataLoss (another end than this log has, or an earlier
  //                 head; the log is of no more use)
  //   Resume        lets reservations continue, in whatever epoch; also before
  //                 HandRegion, and in place of Continue if the region is as it
  //                 was. Callers that wait are told after the Poll
  //                 (ReplicationState::has_resumed)
  virtual bool TryHold() = 0;
  virtual bool IsAtRest() const = 0;
  virtual bool HasRoomForEpoch() const = 0;
  virtual void HandRegion() = 0;
  virtual absl::Status Continue(const RingLogStart& start) = 0;
  virtual void Resume() = 0;

  // For the log's own thread.

  // Forces and notifies for callers that left; see idle_keeper.h. Called once
  // per interval, and in a replicated log whenever something arrives.
  virtual Polled Poll() = 0;
  // Waits like Progress::Wait, after Poll returned kIdle. In a replicated log
  // an arrival ends it too, such as a broken connection. While the log is used
  // the thread should sleep elsewhere, for an interval, so that callers are
  // woken directly.
  virtual void WaitForWork(uint32_t seen, Deadline deadline) = 0;
  // Drives replication between two calls of Poll while no application thread
  // does.
  // * While a call waits, the call processes acks; this one waits until all
  //   calls have left (RDU1, replicated_durability.h).
  // * Else, while a callback or a replica that catches up needs acks, it waits
  //   for acks and processes them.
  // * Else it rests until OnDurable or BeginForce has work.
  // Returns at the latest at `deadline`, or once `stop` is not 0 and the
  // waiter's WakeAll(stop) was called. Returns true: call again, unless
  // stopped. Returns false without waiting if the log is local or has failed,
  // or the deadline has passed.
  virtual bool WaitForAcks(Deadline deadline,
                           const std::atomic<uint32_t>& stop) = 0;
  // Object on which that thread sleeps.
  virtual Progress& progress() = 0;
  // Waiter that wakes that thread while it waits for the log or on words of its
  // own.
  virtual Waiter& waiter() = 0;

  // Returns the epoch in which open reservations are written. Requires: the
  // caller has one; so the epoch can't change (RL5, ring_log.h).
  virtual Epoch epoch() const = 0;
  // Returns the last LSN that W replicas have; in a local log, that is
  // persisted here.
  virtual Lsn durable_lsn() const = 0;
  // Returns the last LSN that these replicas have persisted, with all before.
  virtual Lsn persisted_lsn(PersistedBy by) const = 0;
  virtual uint64_t Exposed() const = 0;
  virtual uint64_t exposed_max() const = 0;
  virtual Lsn next_lsn() const = 0;
  // Returns the offset of the next record.
  virtual RingOffset tail() const = 0;
  virtual Lsn head_lsn() const = 0;
  virtual LogPosition head() const = 0;
  // Returns how many bytes of the ring no record has, or fewer.
  uint64_t free_bytes() const {
    // A head of before: what was cleaned since counts as held.
    const RingOffset from = head().offset;
    const uint64_t held = tail() - from;
    const uint64_t capacity = ring().capacity();
    return held < capacity ? capacity - held : 0;
  }
  virtual const EpochTable& table() const = 0;
  virtual const Ring& ring() const = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_ANY_RING_LOG_H_
