// SPDX-License-Identifier: Apache-2.0
// reclaimer: cleaned records, the head, and when space may be used again.
//
// Idea: cleaning is two things. Marking one record is an 8-byte word beside
// its header, a hint that need not survive. Moving the head is a superline
// update, which is dear, so the head in memory runs ahead of the one on media
// and is published every sixteenth of the ring, on demand and at close. Only
// the published head lets bytes be reused.
//
// Invariants:
//   RCL1. published head <= head <= durable_lsn + 1 (P-L10).
//   RCL2. The reuse limit is the published head's offset + capacity, and is set
//         after the superline update returned (P-L4).
//   RCL3. The head moves only over records that are cleaned or aborted, or
//         through an LSN that the application named.
//   RCL4. What a tail is given was copied while its bytes could not be used
//         again: from the head on, under the lock that publishing a head takes.
// Persistence: a crash brings back the published head, and of the cleaned
// words any subset.
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
#include "log/core/space/superline_store.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Where a tail of the log is, and a copy of the record before that.
struct TailPlace {
  Lsn lsn{1};                                   // to be read next
  RingOffset offset = RecordCursor::kNoOffset;  // kNoOffset: not known yet

  Lsn copied_lsn;
  Epoch epoch;
  std::vector<std::byte> payload;
};

template <Persistence P>
class Reclaimer {
 public:
  // `name` is of the region, `ring_offset` where its ring starts; both for
  // messages.
  Reclaimer(P& pmem, std::string name, uint64_t ring_offset, Ring ring,
            EpochTable table, const LogPosition& head,
            std::shared_ptr<LsnIndex> index, SuperlineStore<P>& superline);

  Lsn head_lsn() const {
    return Lsn(head_lsn_.load(std::memory_order_acquire));
  }
  LogPosition head() const {
    const MutexLock lock(mutex_);
    return head_;
  }
  // The head that is in the superline.
  LogPosition published() const {
    const MutexLock lock(mutex_);
    return published_;
  }
  // For the reserver's gate: offsets below it may be given out, as far as this
  // replica goes.
  const std::atomic<uint64_t>& reuse_limit_word() const { return reuse_limit_; }
  const EpochTable& table() const { return table_; }

  // A failure of the medium, below, is the caller's to tell (log_failure.h).

  // Marks one record; moves the head if it was the oldest.
  // Errors: NotFound (already cleaned), FailedPrecondition (beyond durable),
  // DataLoss (a header on the way can't be read), Unavailable (medium).
  absl::Status Clean(Lsn lsn, Lsn durable_lsn);

  // Moves the head behind `lsn`; OK if it is there already. Same errors.
  absl::Status CleanThrough(Lsn lsn, Lsn durable_lsn);

  // Copies the first record at `place` or behind that is not aborted, and moves
  // `place` behind it. Waits for whoever moves the head, who waits for one
  // copy. False: up to `durable_lsn` there is none. Errors: OutOfRange (the
  // head has passed the place), DataLoss (the record can't be read any more);
  // the place stays.
  absl::StatusOr<bool> CopyNext(TailPlace& place, Lsn durable_lsn) const;

  // Runs `work` while no record is cleaned, no head moves and no tail copies.
  void WhileAtRest(absl::FunctionRef<void()> work) const {
    const MutexLock lock(mutex_);
    work();
  }

  // Moves the head over what is cleaned, then writes it to the superline if
  // that frees space.
  absl::Status Publish(Lsn durable_lsn);

 private:
  absl::Status CheckDurable(Lsn lsn, Lsn durable_lsn) const;
  absl::Status AlreadyCleaned(Lsn lsn) const;
  absl::Status AdvanceOverCleaned(Lsn durable_lsn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LetsEpochsGo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishLazily() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PublishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetHead(const LogPosition& head) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RecordCursor HeaderCursor(const LogPosition& from) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogPosition Locate(const TailPlace& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With the bytes of its payload, whatever they are.
  absl::StatusOr<RecordView> CopyAt(TailPlace& place) const;
  absl::Status Unreadable(const LogPosition& at) const;

  P& pmem_;
  const std::string name_;
  const uint64_t ring_offset_;
  const Ring ring_;
  const EpochTable table_;
  const std::shared_ptr<LsnIndex> index_;
  SuperlineStore<P>& superline_;

  mutable Mutex mutex_;
  LogPosition head_ ABSL_GUARDED_BY(mutex_);
  LogPosition published_ ABSL_GUARDED_BY(mutex_);

  std::atomic<uint64_t> head_lsn_;
  std::atomic<uint64_t> reuse_limit_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_SPACE_RECLAIMER_H_
