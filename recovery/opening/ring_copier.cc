// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/ring_copier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {
namespace {

// Pieces in flight: enough to keep both connections busy.
constexpr uint64_t kPiecesWanted = 4;
constexpr uint64_t kPiecesMax = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<RingCopier>> RingCopier::Make(
    uint32_t number, const Ends& ends, std::vector<CopyRange> ranges,
    uint64_t bytes_max, fabric::Fabric& fabric) {
  const uint64_t wanted = std::max(bytes_max / kPiecesWanted, kLineBytes);
  const uint64_t piece = std::min(wanted, fabric.limits().message_bytes_max);
  const uint64_t pieces =
      std::clamp<uint64_t>(bytes_max / piece, 1, kPiecesMax);
  std::unique_ptr<RingCopier> copier(
      new RingCopier(number, ends, std::move(ranges), piece, pieces));
  if (copier->NeedsBounce()) {
    ALPHEUS_ASSIGN_OR_RETURN(copier->bounce_, replication::MessageSlots::Make(
                                                  fabric, pieces, piece));
  }
  return copier;
}

bool RingCopier::NeedsBounce() const {
  return ends_.destination != nullptr &&
         std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const CopyRange& r) { return !OwnHas(r.sources); });
}

fabric::LocalBytes RingCopier::OwnBytes(const Piece& piece) const {
  return {ends_.own.key, {ends_.own.ring.data() + piece.place, piece.bytes}};
}

// Returns where a piece is read to.
fabric::LocalBytes RingCopier::Into(size_t index) const {
  const Piece& piece = slots_[index].piece;
  if (ends_.destination == nullptr) return OwnBytes(piece);
  const fabric::LocalBytes slot = bounce_->At(index);
  return {slot.key, slot.bytes.first(piece.bytes)};
}

void RingCopier::TakeNextPiece(Slot& slot) {
  const CopyRange& range = ranges_[next_];
  const uint64_t bytes = std::min(range.bytes - next_offset_, piece_bytes_);
  slot.piece = {range.place + next_offset_, bytes, range.sources};
  next_offset_ += bytes;
  if (next_offset_ < range.bytes) return;
  ++next_;
  next_offset_ = 0;
}

void RingCopier::Free(Slot& slot) {
  slot = Slot();
  --busy_;
}

absl::Status RingCopier::Post() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    // A failed source brings nothing more: the piece is read again.
    if (slot.step == Step::kReading && slot.source->failed()) {
      slot.step = Step::kToRead;
    }
    if (slot.step == Step::kFree && !stopped_ && next_ < ranges_.size()) {
      TakeNextPiece(slot);
      ++busy_;
      slot.step = OwnHas(slot.piece.sources) ? Step::kToWrite : Step::kToRead;
    }
    if (stopped_ && slot.step == Step::kToRead) Free(slot);
    if (slot.step == Step::kToRead) ALPHEUS_RETURN_IF_ERROR(Read(i));
    if (slot.step == Step::kToWrite) Write(i);
  }
  return absl::OkStatus();
}

// Reads from any source that is there and has room; else waits.
absl::Status RingCopier::Read(size_t index) {
  Slot& slot = slots_[index];
  bool any_left = false;
  for (size_t i = 0; i < ends_.sources.size(); ++i) {
    OpeningPeer* const source = ends_.sources[i];
    if (!Contains(slot.piece.sources, i) || source == nullptr) continue;
    if (source->failed()) continue;
    any_left = true;
    if (!source->MayBeRead() || !source->HasRoom()) continue;
    slot.step = Step::kReading;
    slot.source = source;
    source->PostRead(WorkOf(index), Into(index), slot.piece.place);
    return absl::OkStatus();
  }
  if (any_left) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      slot.piece.bytes, " bytes at byte ", slot.piece.place,
      " of the ring can't be copied: no replica that holds them is reachable "
      "any more. Open the log again"));
}

void RingCopier::Write(size_t index) {
  Slot& slot = slots_[index];
  OpeningPeer* const to = ends_.destination;
  if (to->failed() || !to->HasRoom()) return;
  slot.step = Step::kWriting;
  const bool own = OwnHas(slot.piece.sources);
  to->PostWrite(WorkOf(index), own ? OwnBytes(slot.piece) : Into(index),
                slot.piece.place);
}

void RingCopier::OnCompletion(const fabric::Completion& completion) {
  const size_t index = completion.work.value & 0xffffffff;
  ALPHEUS_CHECK(index < slots_.size(), "works are the copier's own");
  Slot& slot = slots_[index];
  ++progress_;
  if (slot.step == Step::kReading && ends_.destination != nullptr &&
      !stopped_) {
    slot.step = Step::kToWrite;
    Write(index);
  } else if (slot.step != Step::kFree) {
    Free(slot);
  }
}

void RingCopier::Stop() {
  stopped_ = true;
  for (Slot& slot : slots_) {
    const bool reads = slot.step == Step::kReading && !slot.source->failed();
    if (slot.step != Step::kFree && !reads) Free(slot);
  }
}

}  // namespace alpheus::recovery
