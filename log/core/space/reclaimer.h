// SPDX-License-Identifier: Apache-2.0
// reclaimer: cleans records, moves the head, and says when space may be reused.
//
// Idea: cleaning is two things. Marking one record is an 8-byte word beside its
// header: a hint that need not survive. Moving the head is a superline update,
// which is expensive. So the head in memory runs ahead of the one on media, and
// is published every sixteenth of the ring, on demand and at close. Only the
// published head lets bytes be reused. The same update raises the ceiling
// (ceiling.h), below which bytes may be written.
//
// Invariants:
//   RCL1. published head <= head <= durable_lsn + 1 (P-L10).
//   RCL2. The reuse limit is the ceiling in the superline, which is at most a
//         lap after the head there. It is set after the superline update
//         returned (P-L4, P-A3.7).
//   RCL3. The head moves only over records that are cleaned or aborted, or up
//         to an LSN that the application named.
//   RCL4. A tail gets a copy of a record, made while its bytes could not be
//         reused: at the head or after it, under the lock that publishing a
//         head takes.
//   RCL5. A durable record may be marked while the fabric sends it to a slow
//         backup, which gets the old word or the new one: the word is aligned,
//         and no checksum covers it. Either will do (P-L9).
//   RCL6. While the head is held, another writer has the superline: the head in
//         memory moves on, and is published afterwards. A table that was shown
//         stays in memory as long as the log: iterators read it without a lock.
//         A caller that takes table and head without the lock takes the table
//         first: a later table may no longer name the owners of records at an
//         earlier head.
// Persistence: after a crash the head is the published one, and any subset of
// the cleaned words is there.
// Thread safety: all members concurrently.
// References: Arcadia §4.3 "Log Space Reclamation"; protocol P-A6, P-L4, P-L8
// to P-L11.
#ifndef ALPHEUS_LOG_CORE_SPACE_RECLAIMER_H_
#define ALPHEUS_LOG_CORE_SPACE_RECLAIMER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/core/read/lsn_index.h"
#include "log/core/read/record_cursor.h"
#include "log/core/space/ceiling.h"
#include "log/core/space/superline_store.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Place of a tail in the log, and a copy of the record before that place.
struct TailPlace {
  Lsn lsn{1};                                   // next to be read
  RingOffset offset = RecordCursor::kNoOffset;  // kNoOffset: not known yet

  Lsn copied_lsn;
  Epoch epoch;
  RingOffset copied_offset;  // of the payload
  std::vector<std::byte> payload;
};

template <Persistence P>
class Reclaimer {
 public:
  // `found` is the superline on media. `name` is the region's, for messages.
  // The ceiling is raised by `ceiling_step` bytes.
  Reclaimer(P& pmem, std::string name, Ring ring, EpochTable table,
            const Superline& found, uint64_t ceiling_step,
            std::shared_ptr<LsnIndex> index, SuperlineStore<P>& superline);

  Lsn head_lsn() const {
    return Lsn(head_lsn_.load(std::memory_order_acquire));
  }
  LogPosition head() const {
    const MutexLock lock(mutex_);
    return head_;
  }
  // Returns head and ceiling in the superline.
  RingBounds published() const {
    const MutexLock lock(mutex_);
    return {published_, ceiling_};
  }
  // Returns a number that grows each time head or ceiling change there.
  uint64_t publications() const {
    return publications_.load(std::memory_order_acquire);
  }
  // Returns the word for the reserver's gate: for this replica, offsets below
  // it may be reused.
  const std::atomic<uint64_t>& reuse_limit_word() const { return reuse_limit_; }
  // Returns the table of the running epoch. It stays valid. Take it before
  // head() (RCL6).
  const EpochTable& table() const {
    return *table_.load(std::memory_order_acquire);
  }

  // The caller notifies of a failure of the medium in the calls below
  // (log_failure.h).

  // Marks one record; moves the head if it was the oldest.
  // Errors: NotFound (already cleaned), FailedPrecondition (beyond durable),
  // DataLoss (a header on the way can't be read), Unavailable (medium).
  absl::Status Clean(Lsn lsn, Lsn durable_lsn);

  // Moves the head past `lsn`; OK if it is there already. Errors: as Clean.
  absl::Status CleanThrough(Lsn lsn, Lsn durable_lsn);

  // Copies the first record from `place` on that is not aborted, and moves
  // `place` past it. Waits while another thread moves the head; that thread
  // waits for at most one copy. Returns false if there is none up to
  // `durable_lsn`. Errors: OutOfRange (the head has passed the place), DataLoss
  // (the record can't be read any more); the place then stays.
  absl::StatusOr<bool> CopyNext(TailPlace& place, Lsn durable_lsn) const;

  // Runs `work` while no record is cleaned, no head moves and no tail copies.
  void WithRingFrozen(absl::FunctionRef<void()> work) const {
    const MutexLock lock(mutex_);
    work();
  }

  // Moves the head over cleaned records. Then updates the superline if that
  // frees space, or if the ceiling is below `wanted`, the end of a record that
  // found no room, and can be raised. Returns false if the head is held: then
  // the superline was not updated. DataLoss: a record that the head should pass
  // can't be read, and the ceiling is as high as it can be.
  absl::StatusOr<bool> Publish(Lsn durable_lsn,
                               RingOffset wanted = RingOffset(0));

  // Publishes nothing from now on (RCL6). Returns once nobody does.
  void HoldHead();
  // Publishes again, in the last epoch of `table`. `superline` is the one on
  // media. Its head is shown if it is later than the one in memory. Requires:
  // the head is held; the superline's head is not before the last one that was
  // published, and its ceiling is no lower.
  void Continue(EpochTable table, const Superline& superline);
  // Publishes again, with the superline as it was.
  void UnholdHead();

  // Raises the ceiling once less than half a step is left below it after `end`,
  // the end of the finished records; in a small ring, less than a sixteenth of
  // the ring. So backups know the new ceiling before it is needed.
  // Does nothing while the head is held, nor at the end of a lap, where the
  // ceiling could rise by next to nothing.
  absl::Status RaiseAhead(RingOffset end);

 private:
  absl::Status CheckDurable(Lsn lsn, Lsn durable_lsn) const;
  absl::Status AlreadyCleaned(Lsn lsn) const;
  absl::Status AdvanceOverCleaned(Lsn durable_lsn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LetsEpochsGo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishLazily() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishLocked(RingOffset wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the ceiling to publish with the present head.
  RingOffset NextCeiling(RingOffset wanted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetHead(const LogPosition& head) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RecordCursor HeaderCursor(const LogPosition& from) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogPosition Locate(const TailPlace& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the record at `place` and copies its payload, unverified.
  absl::StatusOr<RecordView> CopyAt(TailPlace& place) const;
  absl::Status Unreadable(const LogPosition& at) const;

  P& pmem_;
  const std::string name_;
  const uint64_t ring_offset_;
  const Ring ring_;
  const uint64_t ceiling_step_;
  const uint64_t raise_room_;  // bytes; see RaiseAhead
  const std::shared_ptr<LsnIndex> index_;
  SuperlineStore<P>& superline_;

  mutable Mutex mutex_;
  LogPosition head_ ABSL_GUARDED_BY(mutex_);
  LogPosition published_ ABSL_GUARDED_BY(mutex_);
  RingOffset ceiling_ ABSL_GUARDED_BY(mutex_);  // in the superline
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  // Tables of all epochs that this log had; the last one is in force.
  std::vector<std::unique_ptr<const EpochTable>> tables_
      ABSL_GUARDED_BY(mutex_);

  std::atomic<const EpochTable*> table_;
  std::atomic<uint64_t> head_lsn_;
  std::atomic<uint64_t> reuse_limit_;
  std::atomic<uint64_t> publications_{0};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_SPACE_RECLAIMER_H_
