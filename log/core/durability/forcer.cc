// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/forcer.h"

#include <algorithm>

#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
Forcer<P>::Forcer(P& pmem, std::span<std::byte> region, Ring ring, Uuid log_id,
                  Epoch epoch, const WatermarkPlace& last,
                  const LogPosition& next, CompletionTracker& tracker,
                  LsnIndex& index, Progress& progress, LogFailure& failure)
    : pmem_(pmem),
      region_(region),
      ring_(ring),
      watermarks_{WatermarkEncoder(log_id, 0, epoch),
                  WatermarkEncoder(log_id, 1, epoch)},
      tracker_(tracker),
      index_(index),
      progress_(progress),
      failure_(failure),
      durable_lsn_(next.lsn.value - 1),
      last_(last),
      next_{next.offset, next.chain},
      watermark_lsn_(next.lsn - 1),
      batched_lsn_(next.lsn - 1) {
  index_.Note(next);
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::Step(Lsn lsn) {
  if (durable_lsn() >= lsn) return Progressed::kDurable;
  if (failure_.failed()) return Progressed::kFailed;
  const Progressed progressed = EndStep(BeginStep(lsn), lsn);
  if (progressed == Progressed::kFailed) failure_.Notify();
  return progressed;
}

template <Persistence P>
typename Forcer<P>::Batch Forcer<P>::BeginStep(Lsn lsn) {
  Batch batch = FormBatch(lsn);
  if (batch.last < batch.first) return batch;
  batch.is_flushed = FlushUnpersisted(batch);
  // FC3: only a record that its appender does not persist belongs to this
  // thread.
  if (batch.is_flushed &&
      tracker_.StateOf(batch.first) == CompletionTracker::State::kCompleted) {
    StoreWatermarkIfMine(batch.first);
  }
  return batch;
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::EndStep(const Batch& batch, Lsn lsn) {
  if (batch.is_flushed && FenceBatch(batch) == Progressed::kFailed) {
    return Progressed::kFailed;
  }
  AdvanceDurable();
  return durable_lsn() >= lsn ? Progressed::kDurable : Progressed::kWaiting;
}

template <Persistence P>
typename Forcer<P>::Batch Forcer<P>::FormBatch(Lsn lsn) {
  pmem_.YieldPoint("force: form a batch");
  const MutexLock lock(batch_mutex_);
  // Appenders make their own records durable without a batch. A durable record
  // needs no batch, and its slot may belong to a later LSN by now.
  batched_lsn_ = std::max(batched_lsn_, durable_lsn());
  Batch batch{batched_lsn_ + 1, batched_lsn_};
  while (batch.last < lsn && tracker_.IsFinished(batch.last + 1)) {
    batch.last = batch.last + 1;
  }
  batched_lsn_ = batch.last;
  return batch;
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::FenceBatch(const Batch& batch) {
  if (!pmem_.Fence()) return Fail();
  // Another thread's fence may have failed meanwhile. Its record could be in
  // this batch, finished only because it failed (RL4, ring_log.h).
  if (failure_.failed()) return Progressed::kFailed;
  for (Lsn lsn = batch.first; lsn <= batch.last; lsn = lsn + 1) {
    if (tracker_.StateOf(lsn) == CompletionTracker::State::kCompleted) {
      tracker_.MarkPersisted(lsn);
    }
  }
  return Progressed::kWaiting;
}

template <Persistence P>
bool Forcer<P>::FlushUnpersisted(const Batch& batch) {
  // Adjacent records become one range; the ring's end splits it in two.
  RingOffset begin;
  RingOffset end;
  bool any = false;
  const auto flush = [this](RingOffset from, RingOffset to) {
    const uint64_t bytes = to - from;
    const uint64_t until_end = ring_.UntilEnd(from);
    pmem_.Flush(ring_.At(from), std::min(bytes, until_end));
    if (bytes > until_end) {
      pmem_.Flush(ring_.At(from + until_end), bytes - until_end);
    }
  };
  for (Lsn lsn = batch.first; lsn <= batch.last; lsn = lsn + 1) {
    if (tracker_.StateOf(lsn) != CompletionTracker::State::kCompleted) continue;
    const CompletionTracker::Extent extent = tracker_.ExtentOf(lsn);
    if (any && extent.begin == end) {
      end = extent.end;
      continue;
    }
    if (any) flush(begin, end);
    begin = extent.begin;
    end = extent.end;
    any = true;
  }
  if (any) flush(begin, end);
  return any;
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::PersistOwn(
    const Reserver::Space& space, uint32_t header_crc, int spins) {
  StoreWatermarkIfMine(space.lsn);
  if (!pmem_.Fence()) return FailAndNotify();
  if (failure_.failed()) return Progressed::kFailed;
  pmem_.YieldPoint("append: fenced");
  if (IsMyTurn(space.lsn, spins)) [[likely]] {
    Extend(space.lsn, space.end, header_crc);
    // Release: a thread that sees the new durable LSN sees the record
    // persisted.
    durable_lsn_.store(space.lsn.value, std::memory_order_release);
    progress_.Notify();
    AdvanceDurable();
    return Progressed::kDurable;
  }
  tracker_.NoteReserved(space.lsn, {space.begin, space.end}, 0);
  tracker_.MarkPersisted(space.lsn, header_crc);
  AdvanceDurable();
  return durable_lsn() >= space.lsn ? Progressed::kDurable
                                    : Progressed::kWaiting;
}

template <Persistence P>
bool Forcer<P>::IsMyTurn(Lsn lsn, int spins) const {
  for (;;) {
    if (durable_lsn() + 1 == lsn) return true;
    if (--spins <= 0) return false;
    PauseCore();
  }
}

template <Persistence P>
void Forcer<P>::StoreWatermarkIfMine(Lsn own_lsn) {
  // Acquire (in durable_lsn): the thread that moved it to own_lsn - 1 had seen
  // the previous watermark writer's record persisted. So that writer's fields
  // belong to this thread now.
  const Lsn durable = durable_lsn();
  if (durable + 1 != own_lsn) return;
  if constexpr (P::kWatermarkPeriod > 1) {
    if (++batches_since_watermark_ < P::kWatermarkPeriod) return;
    batches_since_watermark_ = 0;
  }
  StoreWatermark(durable);
}

template <Persistence P>
void Forcer<P>::StoreWatermark(Lsn lsn) {
  pmem_.StoreLineNt(WatermarkLine(region_, watermark_line_),
                    watermarks_[watermark_line_].Encode(lsn, last_));
  watermark_line_ = 1 - watermark_line_;
  watermark_lsn_ = lsn;
}

template <Persistence P>
absl::Status Forcer<P>::WriteIdleWatermark() {
  if (watermark_lsn_ == durable_lsn()) return absl::OkStatus();
  StoreWatermark(durable_lsn());
  if (pmem_.Fence()) return absl::OkStatus();
  Fail();
  return failure_.status();
}

// The next thread that stores a watermark sees all of this: it persists a
// record that was reserved after Reserver::Unhold, or quiesces the reserver
// itself.
template <Persistence P>
bool Forcer<P>::Continue(Uuid log_id, Epoch epoch, const LogPosition& next) {
  if (next.lsn != durable_lsn() + 1 || next.chain != next_.chain) return false;
  watermarks_ = {WatermarkEncoder(log_id, 0, epoch),
                 WatermarkEncoder(log_id, 1, epoch)};
  watermark_line_ = 0;
  watermark_lsn_ = next.lsn - 1;
  batches_since_watermark_ = 0;
  return true;
}

template <Persistence P>
absl::Status Forcer<P>::WriteFinalWatermarks() {
  for (int i = 0; i < 2; ++i) {
    StoreWatermark(durable_lsn());
    if (!pmem_.Fence()) {
      FailAndNotify();
      return failure_.status();
    }
  }
  return absl::OkStatus();
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::Fail() {
  failure_.Fail(pmem_.Error());
  return Progressed::kFailed;
}

template <Persistence P>
typename Forcer<P>::Progressed Forcer<P>::FailAndNotify() {
  Fail();
  failure_.Notify();
  return Progressed::kFailed;
}

template <Persistence P>
void Forcer<P>::AdvanceDurable() {
  pmem_.YieldPoint("force: advance");
  // A thread that stops here because its neighbour is not persisted yet may
  // miss the neighbour's store. Then the neighbour, or this thread's own wait
  // for its LSN, advances for both.
  const auto is_persisted = [this](Lsn lsn) {
    return tracker_.StateOf(lsn) == CompletionTracker::State::kPersisted;
  };
  if (!is_persisted(durable_lsn() + 1)) [[likely]]
    return;
  {
    const MutexLock lock(advance_mutex_);
    const Lsn before = durable_lsn();
    Lsn lsn = before;
    while (is_persisted(lsn + 1)) {
      lsn = lsn + 1;
      Extend(lsn, tracker_.ExtentOf(lsn).end, tracker_.HeaderCrcOf(lsn));
    }
    if (lsn == before) return;
    // Release: as in PersistOwn.
    durable_lsn_.store(lsn.value, std::memory_order_release);
  }
  progress_.Notify();
}

template <Persistence P>
void Forcer<P>::Extend(Lsn lsn, RingOffset end, uint32_t header_crc) {
  last_ = next_;
  next_ = {end, ExtendChain(next_.chain, header_crc)};
  index_.Note({lsn + 1, end, next_.chain});
}

ALPHEUS_INSTANTIATE_CLASS(Forcer);

}  // namespace alpheus
