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
//   Forcer             batches, watermark, durable LSN (forcer.h)
//   IdleKeeper         forces what callers left        (idle_keeper.h)
//   GroupCommit        the window of that policy       (group_commit.h)
//   DurableCallbacks   OnDurable                       (durable_callbacks.h)
//   Reclaimer          cleaned records, head           (reclaimer.h)
//
// and, in a log that is replicated, between the Forcer and the rest:
//
//   ReplicatedForcer   durable on W replicas           (replicated_forcer.h)
//   ActivityWatch      which thread polls the network  (activity_watch.h)
//
// Sources: ring_log.cc reserves, completes and appends; beside it are
// ring_log_space.cc, _force.cc, _cleanup.cc, _replicate.cc, _mend.cc and
// _checks.cc.
//
// Invariants:
//   RL1. head_lsn <= durable_lsn + 1 <= next_lsn.
//   RL2. next_lsn - 1 - durable_lsn <= exposure_records_max, rounded up to a
//        power of two (P-F6).
//   RL3. Ring bytes are assigned only if the head in the persisted superline of
//        every replica in sync has passed them (P-L4).
//   RL4. After a failed fence nothing more is acknowledged (P-H20).
// Persistence: a crash leaves the superline of the last update, and any subset
// of the record words that no fence covered. scan.h recovers the log from that.
// Thread safety: all members concurrently, but Close and the destructor alone.
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
#include "log/base/waiter.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/group_commit.h"
#include "log/core/durability/idle_keeper.h"
#include "log/core/durability/replicated_forcer.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/lsn_index.h"
#include "log/core/space/reclaimer.h"
#include "log/core/space/superline_store.h"
#include "log/core/write/appended_record.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/core/write/record_writer.h"
#include "log/core/write/reserved_record.h"
#include "log/core/write/reserver.h"
#include "log/core/write/writer_watch.h"
#include "log/pmem/persistence.h"

namespace alpheus {

struct RingLogOptions {
  std::string name;                      // name of the region, for messages
  uint32_t exposure_records_max = 4096;  // rounded up to a power of two
  // Sink of a replicated log; it must outlive the log, and has all recovered
  // records durable. Null: a local log.
  ReplicationSink* sink = nullptr;
  FlushOrder flush_order = FlushOrder::kRemoteFirst;
};

// Policy that decides which completed records are forced (Arcadia §4.4).
struct ForcePolicy {
  // NOLINTNEXTLINE(google-explicit-constructor): a frequency is a policy.
  constexpr ForcePolicy(uint32_t f) : frequency(f) {}
  constexpr ForcePolicy(uint32_t f, uint32_t g) : frequency(f), group(g) {}

  uint32_t frequency;  // forces LSNs divisible by it
  uint32_t group = 0;  // size of forced groups; 0: off
};

// State in which opening an epoch left the region; see
// recovery/replica/local_opening.h.
struct RingLogStart {
  Superline superline;
  uint64_t superline_seq = 0;
  EpochTable table;
  LogPosition end;                  // next LSN, tail, chain
  std::shared_ptr<LsnIndex> index;  // of the recovered records
};

template <Persistence P>
class RingLog {
 public:
  // `pmem`, `region`, `clock` and `waiter` must outlive the log.
  RingLog(P& pmem, std::span<std::byte> region, const RingLogStart& start,
          const RingLogOptions& options, const Clock& clock, Waiter& waiter);
  // Requires: no open reservation.
  ~RingLog();

  // Calls of alpheus/log.h, with their contracts.
  absl::StatusOr<ReservedRecord> Reserve(size_t bytes, Deadline deadline);
  absl::Status Copy(ReservedRecord& record, size_t offset,
                    std::span<const std::byte> bytes);
  absl::Status Complete(ReservedRecord& record);
  void Abort(const ReservedRecord& record);
  void HandOver(ReservedRecord& record);
  absl::Status Force(Lsn lsn, ForcePolicy policy, Deadline deadline);
  absl::Status BeginForce(Lsn lsn);
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             ForcePolicy policy, Deadline deadline);
  absl::StatusOr<AppendedRecord> AppendInRing(
      std::span<const std::span<const std::byte>> parts, Deadline deadline);
  absl::Status WaitDurable(Lsn lsn, Deadline deadline);
  absl::Status OnDurable(Lsn lsn, DurableCallback callback);
  absl::Status Cleanup(Lsn lsn);
  absl::Status CleanupThrough(Lsn lsn);
  absl::Status CleanupAll();
  absl::Status Close();
  // Copies the next durable record of a tail (RCL4 of reclaimer.h); also once
  // the log is closed or has failed. Returns false if there is none yet.
  // Errors: as Reclaimer::CopyNext; OutOfRange (an LSN after the next one); the
  // log's failure, if nothing is left to be shown.
  absl::StatusOr<bool> CopyNext(TailPlace& place) const;

  // Returns true if the log is neither closed nor failed.
  bool IsUsable() const;

  // Runs `work` while no other thread writes a byte between the last head given
  // to the sink and the last durable record. Cleaning and tails wait for it.
  // For scrubbing (recovery/scrub/own_scrub.h), from inside the sink's Poll.
  void WhileAtRest(absl::FunctionRef<void()> work) const;
  // Returns the ring's bytes on the medium, between the same two places; the
  // ring itself unless it is a shadow (landing_persistence.h).
  std::byte* RingOnMedium() const;
  // Writes the bytes at their place in the ring, and persists them. Requires:
  // called in WhileAtRest; the bytes lie between the same two places and don't
  // cross the ring's end. Errors: Unavailable (medium: the log has failed); as
  // MendCopies once the log is closed or has failed: nothing is written.
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes);
  // Rewrites the copies of superline and epoch table that differ from what this
  // log wrote. Returns how many of the two were repaired.
  absl::StatusOr<int> MendCopies();

  // Forces and notifies for callers that left; see idle_keeper.h. One thread
  // calls it once per interval, and in a replicated log whenever something
  // arrives.
  typename IdleKeeper<P>::Next Poll();
  // Object on which that thread sleeps.
  Progress& progress() { return progress_; }
  // Waits like progress().Wait, for that thread after Poll returned kSleep. In
  // a replicated log an arrival ends it too, such as a broken connection. While
  // the log is used the thread should sleep elsewhere, for an interval, so that
  // callers are woken directly.
  void WaitForWork(uint32_t seen, Deadline deadline);
  // Drives replication between two calls of Poll while no application thread
  // does, so that callbacks and a replica that catches up need not wait for an
  // interval. For that thread.
  // * While a call waits, the call processes acks; this one waits until all
  //   calls have left.
  // * Else, while a callback or such a replica needs acks, it waits for acks
  //   and processes them.
  // * Else it rests until OnDurable or BeginForce has work.
  // Returns at the latest at `deadline`, or once `stop` is not 0 and
  // waiter().WakeAll(stop) was called. Returns true: call again, unless
  // stopped. Returns false without waiting if the log is local or has failed,
  // or the deadline has passed.
  bool WaitForAcks(Deadline deadline, const std::atomic<uint32_t>& stop);
  // Waiter that wakes that thread while it waits for the log or on words of its
  // own.
  Waiter& waiter() { return watch_ == nullptr ? waiter_ : *watch_; }

  // Returns the last LSN that W replicas have; in a local log, that is
  // persisted here.
  Lsn durable_lsn() const {
    return Lsn(durable_lsn_word_.load(std::memory_order_acquire));
  }
  uint64_t Exposed() const { return reserver_.Exposed(); }
  uint64_t exposed_max() const { return tracker_.size(); }
  Lsn next_lsn() const { return reserver_.next().lsn; }
  // Returns the offset of the next record.
  RingOffset tail() const { return reserver_.next().tail; }
  Lsn head_lsn() const { return reclaimer_.head_lsn(); }
  LogPosition head() const { return reclaimer_.head(); }
  const EpochTable& table() const { return reclaimer_.table(); }
  const Ring& ring() const { return ring_; }
  // Returns the lowest LSN that is reserved and not finished, or next_lsn().
  Lsn first_open_lsn() const;

  // Aborts the process when RL1 or RL2 is broken.
  void CheckInvariants() const;

 private:
  // Reserves without waiting. Returns false if that fails.
  bool TryTakeSpace(size_t bytes, Reserver::Space* space);
  // Appends a record, and gives its place.
  absl::Status AppendTo(std::span<const std::span<const std::byte>> parts,
                        ForcePolicy policy, Deadline deadline,
                        Reserver::Space* space);
  void Finish(const ReservedRecord& record, RecordType type);
  void MarkCompleted(Lsn lsn, uint32_t header_crc);
  // Writes through the cache; a later force persists the record.
  void WriteCompleted(const Reserver::Space& space, const Payload& payload);
  // Writes past the cache, with a fence of its own.
  typename Forcer<P>::Progressed WriteAndPersist(const Reserver::Space& space,
                                                 const Payload& payload,
                                                 int looks);

  // ring_log_space.cc
  // Reserves with checks, waiting and errors.
  absl::StatusOr<Reserver::Space> TakeSpace(size_t bytes, Deadline deadline);
  // Tries once to make room after a refusal. Returns true if another try to
  // reserve is worth it. `limit` is the reuse limit before the refusal.
  absl::StatusOr<bool> MakeRoom(Reserver::Outcome refusal, uint64_t limit,
                                size_t bytes, Deadline deadline);
  absl::Status RingFull(size_t bytes) const;

  // ring_log_force.cc
  // Forces the records that the policy asks for once `lsn` is completed.
  absl::Status ForceUnder(const ForcePolicy& policy, Lsn lsn,
                          Deadline deadline);
  absl::Status ForceInGroup(uint32_t group, Lsn lsn, Deadline deadline);
  absl::Status ForceUntilDurable(Lsn lsn, Deadline deadline);
  // Forces a record that was written just now, as the policy asks.
  absl::Status ForceAppended(Lsn lsn, const ForcePolicy& policy,
                             Deadline deadline);

  // ring_log_cleanup.cc
  absl::Status ForceEverything();
  absl::Status WriteCleanCloseWord();
  // Notifies of a failure that a step may have met under locks; returns
  // `status`. Requires: the locks are released.
  absl::Status Told(absl::Status status) {
    if (!status.ok()) [[unlikely]]
      failure_.Tell();
    return status;
  }

  // ring_log_mend.cc
  absl::StatusOr<bool> MendTable();

  // ring_log_replicate.cc
  // Makes one step towards making all records up to `lsn` durable.
  typename Forcer<P>::Progressed ForceStep(Lsn lsn) {
    return replicated_ == nullptr ? forcer_.Step(lsn) : replicated_->Step(lsn);
  }
  const std::atomic<uint64_t>& reuse_limit_word() const {
    return replicated_ == nullptr ? reclaimer_.reuse_limit_word()
                                  : replicated_->reuse_limit_word();
  }
  // Polls, for calls that wait for something else than a force.
  void PollReplication() {
    if (replicated_ != nullptr) replicated_->Poll();
  }
  // Sends the published head to the backups if it has moved.
  void TellHead() {
    if (replicated_ != nullptr) replicated_->PollIfHeadMoved();
  }
  // Returns true if a callback waits for a record that was offered to the
  // backups.
  bool HasCallbackOnItsWay() const;
  // Wakes the thread in WaitForAcks if a callback needs it.
  void CallAttendantIfNeeded();
  // Waits until W superlines have the published head.
  absl::Status WaitHeadDurable(Deadline deadline);
  // Tells the backups that everything is durable. Requires: nothing more is
  // appended.
  void TellRest();
  static std::unique_ptr<ActivityWatch> MakeWatch(const RingLogOptions& options,
                                                  Waiter& waiter);
  std::unique_ptr<ReplicatedForcer<P>> MakeReplicated(
      const RingLogStart& start);

  // ring_log_checks.cc
  absl::Status Usable() const;
  bool IsPossible(const ForcePolicy& policy) const;
  // Returns whether a record of `payload_bytes` is persisted at once, `forced`
  // or not.
  bool IsPersistedAtOnce(Lsn lsn, size_t payload_bytes, bool forced);
  absl::Status CheckPolicy(const ForcePolicy& policy) const;
  absl::Status CheckGiven(Lsn lsn) const;
  // Fails if the calling thread has an open reservation up to `lsn`.
  absl::Status CheckNotBlockedBySelf(Lsn lsn) const;
  // Fails if the log is not usable, or if the calling thread has any open
  // reservation.
  absl::Status CheckAppendable() const;
  bool HasOpenReservations() const { return first_open_lsn() < next_lsn(); }

  // ring_log_wait.h
  // Runs `step` until it finishes, and waits for progress in between. Step:
  // StatusOr<bool>(); true or an error finishes.
  template <class Step>
  absl::Status WaitFor(const char* call, Deadline deadline, Step step);

  P& pmem_;
  const std::span<std::byte> region_;
  const RingLogOptions options_;
  const Ring ring_;
  const uint64_t payload_bytes_max_;
  const Clock& clock_;
  Waiter& waiter_;
  std::atomic<bool> closed_{false};
  const std::unique_ptr<ActivityWatch> watch_;  // null: local
  Progress progress_;
  // Progress of the forcer in a replicated log. No thread waits on it, since a
  // record that is persisted here alone is no news.
  Progress own_progress_;
  LogFailure failure_{progress_};
  CompletionTracker tracker_;
  SuperlineStore<P> superline_;
  Reclaimer<P> reclaimer_;
  Forcer<P> forcer_;
  const std::unique_ptr<ReplicatedForcer<P>> replicated_;  // null: local
  const std::atomic<uint64_t>& durable_lsn_word_;
  Reserver reserver_;
  GroupCommit group_commit_;
  WriterWatch writer_watch_;
  DurableCallbacks callbacks_{durable_lsn_word_, failure_, progress_};
  IdleKeeper<P> idle_keeper_{forcer_, replicated_.get(), reserver_, progress_};
  RecordWriter<P> writer_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_RING_LOG_H_
