// SPDX-License-Identifier: Apache-2.0
// ring_copier: copies ranges of the ring from replicas that hold them to one
// that does not.
//
// Idea: bytes that this process's own ring holds are written from there. The
// rest is read into a bounce buffer and written from it: piece by piece,
// several at once, within a limit of bytes. If the own ring is the destination,
// they are read directly into it. A source that fails costs nothing while
// another one holds the same range.
//
// Persistence: none; the destination persists and reads all of it when it
// installs (REP3 of local_replica.h).
// Thread safety: one thread.
// References: protocol P-A4.5.
#ifndef ALPHEUS_RECOVERY_OPENING_RING_COPIER_H_
#define ALPHEUS_RECOVERY_OPENING_RING_COPIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/format/layout.h"
#include "recovery/opening/copy_ranges.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::recovery {

// The ring of this process, registered.
struct OwnRing {
  Ring ring;
  fabric::RegionKey key;
  ReportSet reports = 0;  // reports whose records it has
  bool has_all = false;   // it has the whole chosen log
};

class RingCopier {
 public:
  struct Ends {
    // Sources by the index of their report; nullptr: the report of no peer.
    std::vector<OpeningPeer*> sources;
    OpeningPeer* destination = nullptr;  // nullptr: the own ring
    OwnRing own;
  };

  // Makes a copier. `number` distinguishes its works from those of other
  // copiers. `bytes_max` limits the bytes in flight. Errors: the fabric's.
  static absl::StatusOr<std::unique_ptr<RingCopier>> Make(
      uint32_t number, const Ends& ends, std::vector<CopyRange> ranges,
      uint64_t bytes_max, fabric::Fabric& fabric);

  // Posts the pieces for which there is room. Errors: Unavailable (no source is
  // left).
  absl::Status Post();
  // Takes a completion that is OpeningPeer::IsForeign and whose work has its
  // number.
  void OnCompletion(const fabric::Completion& completion);
  static uint32_t NumberOf(fabric::WorkId work) {
    return static_cast<uint32_t>(work.value >> 32) - 1;
  }
  // Gives up: posts nothing more. Reads in flight use its memory until it is
  // quiet.
  void Stop();

  // Grows with each piece that is read or written.
  uint64_t progress() const { return progress_; }
  bool is_done() const { return next_ == ranges_.size() && is_quiet(); }
  bool is_quiet() const { return busy_ == 0; }

 private:
  enum class Step { kFree, kToRead, kReading, kToWrite, kWriting };
  struct Piece {
    uint64_t place = 0;
    uint64_t bytes = 0;
    ReportSet sources = 0;
  };
  struct Slot {
    Step step = Step::kFree;
    Piece piece;
    OpeningPeer* source = nullptr;  // set in kReading
  };

  RingCopier(uint32_t number, const Ends& ends, std::vector<CopyRange> ranges,
             uint64_t piece_bytes, size_t slots)
      : number_(number),
        ends_(ends),
        ranges_(std::move(ranges)),
        piece_bytes_(piece_bytes),
        slots_(slots) {}

  bool OwnHas(ReportSet sources) const {
    return ends_.own.has_all || (ends_.own.reports & sources) != 0;
  }
  bool NeedsBounce() const;
  void TakeNextPiece(Slot& slot);
  absl::Status Read(size_t index);
  void Write(size_t index);
  void Free(Slot& slot);
  fabric::LocalBytes OwnBytes(const Piece& piece) const;
  fabric::LocalBytes Into(size_t index) const;
  fabric::WorkId WorkOf(size_t index) const {
    return fabric::WorkId((uint64_t{number_} + 1) << 32 | index);
  }

  const uint32_t number_;
  const Ends ends_;
  const std::vector<CopyRange> ranges_;
  const uint64_t piece_bytes_;
  std::vector<Slot> slots_;
  std::unique_ptr<replication::MessageSlots> bounce_;
  size_t next_ = 0;           // range of the next piece
  uint64_t next_offset_ = 0;  // offset in that range
  uint64_t progress_ = 0;
  size_t busy_ = 0;  // slots that are not free
  bool stopped_ = false;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_RING_COPIER_H_
