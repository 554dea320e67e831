// SPDX-License-Identifier: Apache-2.0
// forcer: makes finished records persistent, in order, and publishes the
// durable LSN.
//
// Idea: forming a batch is serialised and short; flushing and waiting are not.
// A leader forms a batch of the run of finished records after the last batch,
// flushes the unflushed ones, fences once, and marks them persisted. Meanwhile
// another leader forms the next batch. Then the first thread to see an unbroken
// run of persisted records moves the durable LSN over it. A thread that
// persisted record durable_lsn + 1 itself moves it without a lock.
//
// Invariants:
//   FC1. durable_lsn never decreases, and every record up to it is persisted.
//   FC2. A record is flushed by exactly one thread: its own appender, or the
//        one leader that formed its batch.
//   FC3. Only one thread at a time may store the watermark: the one that alone
//        can make record durable_lsn + 1 persisted. So each write is fenced
//        before the next begins (WMK2, watermark.h).
//   FC4. A watermark names a durable LSN from before its own fence (WMK1): the
//        fence of batch b carries the end of batch b - 1.
//   FC5. Only two kinds of thread move the durable LSN, and the places with it,
//        never both at once. The holder of advance_mutex_ moves them over a
//        record that is marked persisted. The appender of the record after
//        durable_lsn moves them over its own record while that is not marked.
//        The thread of FC3 may read the places: nobody moves them meanwhile.
// Persistence: a crash in a batch leaves any subset of its words.
// Thread safety: all members concurrently.
// May block: for this thread's own fence (on a plain file: for the disk), and
// for page faults of the ring. batch_mutex_ and advance_mutex_ are held over no
// fence.
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

  // `last` is the place of the record before `next`, if it is known.
  // Requires: everything before `next` is durable, and both watermark lines on
  // media are of this epoch.
  Forcer(P& pmem, std::span<std::byte> region, Ring ring, Uuid log_id,
         Epoch epoch, const WatermarkPlace& last, const LogPosition& next,
         CompletionTracker& tracker, LsnIndex& index, Progress& progress,
         LogFailure& failure);

  Lsn durable_lsn() const {
    return Lsn(durable_lsn_.load(std::memory_order_acquire));
  }
  // Word for the reserver's gate.
  const std::atomic<uint64_t>& durable_lsn_word() const { return durable_lsn_; }

  // Makes one step towards making all records up to `lsn` durable: forms a
  // batch, flushes and fences finished records, then advances the durable LSN.
  // Notifies of a failure.
  Progressed Step(Lsn lsn);

  // Step in two halves, for a single caller that has other work while the
  // flushes are in flight. No other thread may call Step meanwhile, and this
  // thread must not fence between the halves. The caller notifies of a failure.
  struct Batch {
    Lsn first;
    Lsn last;                 // first - 1: none
    bool is_flushed = false;  // at least one record was flushed
  };
  Batch BeginStep(Lsn lsn);
  Progressed EndStep(const Batch& batch, Lsn lsn);

  // Persists the calling thread's own record, which was stored past the cache:
  // stores the watermark if FC3 allows it, and fences. Then either moves the
  // durable LSN (FC5) or marks the record persisted. Spins up to `spins` times
  // for its turn: the predecessor's fence takes as long as this one, and
  // spinning is cheaper than advance_mutex_. Notifies of a failure.
  Progressed PersistOwn(const Reserver::Space& space, uint32_t header_crc,
                        int spins);

  // Writes a watermark that names the durable LSN, unless the last one does
  // (P-A3.5). The caller notifies of a failure.
  // Requires: nothing is reserved, and no thread can reserve
  // (Reserver::TryQuiesce).
  absl::Status WriteIdleWatermark();

  // Goes on in the next epoch. Returns false, and changes nothing, unless
  // `next` is the end of this log. Requires: nothing is reserved, no thread can
  // reserve, and no other call is active; both watermark lines on media are of
  // `epoch`.
  bool Continue(Uuid log_id, Epoch epoch, const LogPosition& next);

  // Makes both watermark lines name the durable LSN, for a clean close.
  // Notifies of a failure.
  // Requires: no other call is active.
  absl::Status WriteFinalWatermarks();

 private:
  Batch FormBatch(Lsn lsn);
  Progressed FenceBatch(const Batch& batch);
  // Flushes the batch's records that are not persisted yet. Returns false if
  // there were none.
  bool FlushUnpersisted(const Batch& batch);
  void StoreWatermarkIfMine(Lsn own_lsn);
  void StoreWatermark(Lsn lsn);
  // Records the medium's failure.
  Progressed Fail();
  Progressed FailAndNotify();
  bool IsMyTurn(Lsn lsn, int spins) const;
  // Moves the durable LSN over the records that are marked persisted.
  void AdvanceDurable();
  // Moves both places over record durable_lsn + 1, which ends at `end`.
  void Extend(Lsn lsn, RingOffset end, uint32_t header_crc);

  P& pmem_;
  const std::span<std::byte> region_;
  const Ring ring_;
  std::array<WatermarkEncoder, 2> watermarks_;  // of this epoch
  CompletionTracker& tracker_;
  LsnIndex& index_;
  Progress& progress_;
  LogFailure& failure_;

  alignas(kLineBytes) std::atomic<uint64_t> durable_lsn_;
  // Places of the records durable_lsn and durable_lsn + 1; guarded by FC5.
  WatermarkPlace last_;
  WatermarkPlace next_;
  // Guarded by FC3, handed from thread to thread through durable_lsn_.
  int watermark_line_ = 0;
  Lsn watermark_lsn_{0};  // named by the last line
  uint64_t batches_since_watermark_ = 0;

  alignas(kLineBytes) Mutex advance_mutex_;
  alignas(kLineBytes) Mutex batch_mutex_;
  Lsn batched_lsn_ ABSL_GUARDED_BY(batch_mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_FORCER_H_
