// SPDX-License-Identifier: Apache-2.0
// ring_log: the log on one node, as the threads that write it see it.
//
// Idea: only two steps of a write need an order: reserving, which is one
// compare-and-swap, and becoming durable, which is one counter. Everything
// between (filling, checksums, flushing) runs in parallel (Arcadia §4.3). This
// class joins the parts, each of which is one thing:
//
//   Reserver           reserve: LSN and space         (reserver.h)
//   CompletionTracker  which records are finished      (completion_tracker.h)
//   RecordWriter       header, PAD, checksums, stores  (record_writer.h)
//   Forcer             batches, watermark, durable LSN (forcer.h)
//   IdleKeeper         what nobody else would force    (idle_keeper.h)
//   GroupCommit        the window of that policy       (group_commit.h)
//   DurableCallbacks   who is told                     (durable_callbacks.h)
//   Reclaimer          cleaned records, head           (reclaimer.h)
//
// and, in a log that is replicated, between the Forcer and the rest:
//
//   ReplicatedForcer   durable on W replicas           (replicated_forcer.h)
//   ActivityWatch      who waits for the network       (activity_watch.h)
//
// Sources: ring_log.cc reserves, completes and appends; beside it are
// ring_log_space.cc, _force.cc, _cleanup.cc, _replicate.cc, _mend.cc and
// _checks.cc.
//
// Invariants:
//   RL1. head_lsn <= durable_lsn + 1 <= next_lsn.
//   RL2. next_lsn - 1 - durable_lsn <= exposure_records_max, rounded up to a
//        power of two (P-F6).
//   RL3. Ring bytes are given out only if the head in the persisted superline
//        has passed them (P-L4), of every replica in sync.
//   RL4. After a failed fence nothing is acknowledged any more (P-H20).
// Persistence: a crash leaves the superline of the last update, and of the
// records any subset of the words that no fence covered; scan.h makes a log of
// it.
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
  std::string name;                      // of the region, for messages
  uint32_t exposure_records_max = 4096;  // rounded up to a power of two
  // Null: the log is local. Else it must outlive the log, and all that the log
  // begins with is durable with it.
  ReplicationSink* sink = nullptr;
  FlushOrder flush_order = FlushOrder::kRemoteFirst;
};

// Which of the records that are completed are forced (Arcadia §4.4).
struct ForcePolicy {
  // NOLINTNEXTLINE(google-explicit-constructor): a frequency is a policy.
  constexpr ForcePolicy(uint32_t f) : frequency(f) {}
  constexpr ForcePolicy(uint32_t f, uint32_t g) : frequency(f), group(g) {}

  uint32_t frequency;  // LSNs divisible by it
  uint32_t group = 0;  // if not 0, instead: groups of so many
};

// Where opening an epoch left the region; see recovery/replica/local_opening.h.
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

  // The calls of alpheus/log.h, with their contracts.
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
  // The next durable record of a tail, copied (RCL4 of reclaimer.h); also once
  // the log is closed or has failed. False: nothing new. Errors: as
  // Reclaimer::CopyNext; OutOfRange (an LSN behind the next one); why the log
  // failed, if it has and nothing is left to be shown.
  absl::StatusOr<bool> CopyNext(TailPlace& place) const;

  // Neither closed nor failed.
  bool IsUsable() const;

  // For who scrubs the region (recovery/scrub/own_scrub.h), from inside the
  // sink's Poll. `work` runs while nobody but itself writes a byte between the
  // head that the sink was told last and the last durable record; cleaning and
  // tails wait for it.
  void WhileAtRest(absl::FunctionRef<void()> work) const;
  // The ring's bytes as the medium holds them, between those two; the ring, if
  // it is not a copy (landing_persistence.h).
  std::byte* RingOnMedium() const;
  // Writes the bytes at their place in the ring, and persists them. Requires:
  // at rest, between those two; they don't cross the ring's end. Errors:
  // Unavailable (medium): the log has failed. As MendCopies, once the log is
  // closed or has failed: nothing is written.
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes);
  // Writes copies of superline and epoch table anew that are not as this log
  // wrote them; how many of the two had to be.
  absl::StatusOr<int> MendCopies();

  // To be called by one thread, once per interval; see idle_keeper.h. Of a
  // replicated log: whenever something arrives, too.
  typename IdleKeeper<P>::Next Poll();
  // For that thread to sleep on.
  Progress& progress() { return progress_; }
  // In place of progress().Wait, for that thread when Poll said kSleep: ends
  // also when something arrives for a replicated log, a broken connection say.
  // While the log is used it should sleep elsewhere, for an interval, so that
  // those who wait for their records are woken themselves.
  void WaitForWork(uint32_t seen, Deadline deadline);
  // For that thread between two calls of Poll, so that callbacks need not wait
  // for the next one: waits for acks and takes them in, or leaves that to calls
  // that wait themselves, and waits until they have left; at most until
  // `deadline`, or until `stop` is not 0 and waiter().WakeAll(stop) is called.
  // The same while a replica gets what it missed, which would else go on once
  // an interval only. While there are no acks to come that a callback or such a
  // replica wants it rests until OnDurable or BeginForce has some. True: to be
  // called again, unless stopped. False, without waiting: the log is local, or
  // has failed, or the deadline has passed.
  bool WaitForAcks(Deadline deadline, const std::atomic<uint32_t>& stop);
  // For that thread to be woken while it waits for the log or on words of its
  // own.
  Waiter& waiter() { return watch_ == nullptr ? waiter_ : *watch_; }

  // On W replicas; of a local log: here.
  Lsn durable_lsn() const {
    return Lsn(durable_lsn_word_.load(std::memory_order_acquire));
  }
  uint64_t Exposed() const { return reserver_.Exposed(); }
  uint64_t exposed_max() const { return tracker_.size(); }
  Lsn next_lsn() const { return reserver_.next().lsn; }
  // Where the next record goes.
  RingOffset tail() const { return reserver_.next().tail; }
  Lsn head_lsn() const { return reclaimer_.head_lsn(); }
  LogPosition head() const { return reclaimer_.head(); }
  const EpochTable& table() const { return reclaimer_.table(); }
  const Ring& ring() const { return ring_; }
  // Lowest LSN that is reserved and not finished, or next_lsn().
  Lsn first_open_lsn() const;

  // Aborts the process when RL1 or RL2 is broken.
  void CheckInvariants() const;

 private:
  // At once, or not at all.
  bool TryTakeSpace(size_t bytes, Reserver::Space* space);
  // Append, which tells where the record is.
  absl::Status AppendTo(std::span<const std::span<const std::byte>> parts,
                        ForcePolicy policy, Deadline deadline,
                        Reserver::Space* space);
  void Finish(const ReservedRecord& record, RecordType type);
  void MarkCompleted(Lsn lsn, uint32_t header_crc);
  // Through the cache; persisted by a later force.
  void WriteCompleted(const Reserver::Space& space, const Payload& payload);
  // Past the cache, with a fence of its own.
  typename Forcer<P>::Progressed WriteAndPersist(const Reserver::Space& space,
                                                 const Payload& payload,
                                                 int looks);

  // ring_log_space.cc
  // With checks, waiting and errors.
  absl::StatusOr<Reserver::Space> TakeSpace(size_t bytes, Deadline deadline);
  // One try to make room after a refusal. True: it is worth trying again.
  // `limit` is the reuse limit before the refusal.
  absl::StatusOr<bool> MakeRoom(Reserver::Outcome refusal, uint64_t limit,
                                size_t bytes, Deadline deadline);
  absl::Status RingFull(size_t bytes) const;

  // ring_log_force.cc
  // Forces what the policy wants forced now that `lsn` is completed.
  absl::Status ForceUnder(const ForcePolicy& policy, Lsn lsn,
                          Deadline deadline);
  absl::Status ForceInGroup(uint32_t group, Lsn lsn, Deadline deadline);
  absl::Status ForceUntilDurable(Lsn lsn, Deadline deadline);
  // What the policy asks for of a record that was written just now.
  absl::Status ForceAppended(Lsn lsn, const ForcePolicy& policy,
                             Deadline deadline);

  // ring_log_cleanup.cc
  absl::Status ForceEverything();
  absl::Status WriteCleanCloseWord();
  // `status` of a step that may have met a failure under locks. Requires: they
  // are released.
  absl::Status Told(absl::Status status) {
    if (!status.ok()) [[unlikely]]
      failure_.Tell();
    return status;
  }

  // ring_log_mend.cc
  absl::StatusOr<bool> MendTable();

  // ring_log_replicate.cc
  // One step towards making all up to `lsn` durable.
  typename Forcer<P>::Progressed ForceStep(Lsn lsn) {
    return replicated_ == nullptr ? forcer_.Step(lsn) : replicated_->Step(lsn);
  }
  const std::atomic<uint64_t>& reuse_limit_word() const {
    return replicated_ == nullptr ? reclaimer_.reuse_limit_word()
                                  : replicated_->reuse_limit_word();
  }
  // For those who wait for something else than a force.
  void PollReplication() {
    if (replicated_ != nullptr) replicated_->Poll();
  }
  // The published head goes on its way to the backups.
  void TellHead() {
    if (replicated_ != nullptr) replicated_->PollIfHeadMoved();
  }
  // A callback is to be told of what the backups were told.
  bool HasCallbackOnItsWay() const;
  // The thread of WaitForAcks goes on if there is one.
  void CallAttendantIfNeeded();
  // Waits until W superlines have the published head.
  absl::Status WaitHeadDurable(Deadline deadline);
  // Everything is durable, and nothing is to follow: the backups hear so.
  void TellRest();
  static std::unique_ptr<ActivityWatch> MakeWatch(const RingLogOptions& options,
                                                  Waiter& waiter);
  std::unique_ptr<ReplicatedForcer<P>> MakeReplicated(
      const RingLogStart& start);

  // ring_log_checks.cc
  absl::Status Usable() const;
  bool IsPossible(const ForcePolicy& policy) const;
  // Whether a record of so many bytes, which is not to be forced by itself, is
  // persisted at once all the same.
  bool IsPersistedAtOnce(Lsn lsn, size_t payload_bytes, bool forced);
  absl::Status CheckPolicy(const ForcePolicy& policy) const;
  absl::Status CheckGiven(Lsn lsn) const;
  // Fails if a reservation of the calling thread up to `lsn` is open.
  absl::Status CheckNotBlockedBySelf(Lsn lsn) const;
  // Fails if the log is not usable or any such reservation is open.
  absl::Status CheckAppendable() const;
  bool HasOpenReservations() const { return first_open_lsn() < next_lsn(); }

  // ring_log_wait.h
  // Runs `step` until it is finished, waiting for progress in between.
  // Step: StatusOr<bool>(); true or an error finishes.
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
  const std::unique_ptr<ActivityWatch> watch_;  // of a replicated log
  Progress progress_;
  // Of the forcer of a replicated log: nobody waits for what is persisted here
  // alone.
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
