// SPDX-License-Identifier: Apache-2.0
// forcer: makes finished records persistent, in order, and says up to where.
//
// Idea: claiming a batch is serialised and short; flushing and waiting are
// not. A leader claims the run of finished records behind the last claim,
// flushes what nobody flushed, fences once, and marks the records persisted;
// meanwhile another leader claims the next run. The durable LSN then moves
// over every unbroken run of persisted records, by whoever is first. A thread
// that persisted the next record itself moves it without asking anybody.
//
// Invariants:
//   FC1. durable_lsn never decreases, and every record up to it is persisted.
//   FC2. A record is flushed by exactly one thread: by its own appender, or by
//        the one leader that claimed it.
//   FC3. The watermark is stored only by the thread that alone can make record
//        durable_lsn + 1 persisted: no two threads write it at once, and each
//        write is fenced before the next begins (WMK2, watermark.h).
//   FC4. A watermark names the durable LSN of a moment before its own fence
//        (WMK1): batch b's fence carries the end of batch b-1.
//   FC5. The durable LSN and its chain are moved by the holder of
//        advance_mutex_ over a record that is marked persisted, or by the
//        appender of record durable_lsn + 1 while it has not marked it: never
//        by two at once.
// Persistence: a crash in a batch leaves any subset of its words.
// Thread safety: all members concurrently.
// References: Arcadia §4.3, §4.4; protocol P-A3.2, P-A3.3, P-A3.5.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_FORCER_H_
#define ALPHEUS_LOG_CORE_DURABILITY_FORCER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/waiter.h"
#include "log/core/read/lsn_index.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/core/write/reserver.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class Forcer {
 public:
  enum class Progressed {
    kDurable,  // the wanted LSN is durable
    kWaiting,  // an earlier record is open, or another leader's batch runs
    kFailed,   // the medium failed; LogFailure has it
  };

  // Everything before `next` is durable. Watermark lines on media are both of
  // this epoch.
  Forcer(P& pmem, std::span<std::byte> region, Ring ring, Uuid log_id,
         Epoch epoch, const LogPosition& next, CompletionTracker& tracker,
         LsnIndex& index, Progress& progress, LogFailure& failure);

  Lsn durable_lsn() const {
    return Lsn(durable_lsn_.load(std::memory_order_acquire));
  }
  // For the reserver's gate.
  const std::atomic<uint64_t>& durable_lsn_word() const { return durable_lsn_; }

  // One step towards making all records up to `lsn` durable: claims, flushes
  // and fences what is finished, advances the durable LSN. Tells a failure.
  Progressed Step(Lsn lsn);

  // Step in two halves, for one caller that has something to do while the
  // flushes are under way, and who then is alone in calling Step's like.
  // Between them the thread fences nothing. A failure is the caller's to tell.
  struct Batch {
    Lsn first;
    Lsn last;                 // first - 1: nothing claimed
    bool is_flushed = false;  // anything of it
  };
  Batch BeginStep(Lsn lsn);
  Progressed EndStep(const Batch& batch, Lsn lsn);

  // For a thread that has stored its own record past the cache: adds the
  // watermark if that is this thread's to write, fences, moves the durable LSN
  // if that is this thread's to move, else marks the record persisted. It looks
  // so many times whether it is: who reserved before is in a fence as long as
  // its own, and handing on costs less than the lock. Tells a failure.
  Progressed PersistOwn(const Reserver::Space& space, uint32_t header_crc,
                        int looks);

  // A watermark that names the durable LSN, unless there is one (P-A3.5).
  // A failure is the caller's to tell.
  // Requires: nothing is reserved, and nobody can reserve (Reserver::TryHold).
  absl::Status WriteIdleWatermark();

  // Both watermark lines name the durable LSN; for a clean close. Tells a
  // failure.
  // Requires: no other call is active.
  absl::Status WriteFinalWatermarks();

 private:
  Batch Claim(Lsn lsn);
  Progressed FenceBatch(const Batch& batch);
  // Flushes the records of the batch that are not persisted yet; false if
  // there were none.
  bool FlushUnpersisted(const Batch& batch);
  void StoreWatermarkIfMine(Lsn own_lsn);
  void StoreWatermark(Lsn lsn);
  // Remembers the medium's failure.
  Progressed Fail();
  Progressed FailAndTell();
  bool IsMyTurn(Lsn lsn, int looks) const;
  // Moves the durable LSN over what is marked persisted.
  void AdvanceDurable();
  // The record that ends at `end` and is durable_lsn + 1 joins the chain.
  void Extend(Lsn lsn, RingOffset end, uint32_t header_crc);

  P& pmem_;
  const std::span<std::byte> region_;
  const Ring ring_;
  const std::array<WatermarkEncoder, 2> watermarks_;
  CompletionTracker& tracker_;
  LsnIndex& index_;
  Progress& progress_;
  LogFailure& failure_;

  alignas(kLineBytes) std::atomic<uint64_t> durable_lsn_;
  uint64_t chain_;  // after durable_lsn_; guarded by FC5
  // Guarded by FC3, handed from thread to thread through durable_lsn_.
  int watermark_line_ = 0;
  Lsn watermark_lsn_{0};  // that the last line named
  uint64_t batches_since_watermark_ = 0;

  alignas(kLineBytes) Mutex advance_mutex_;
  alignas(kLineBytes) Mutex claim_mutex_;
  Lsn claimed_lsn_ ABSL_GUARDED_BY(claim_mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_FORCER_H_
