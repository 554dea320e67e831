// SPDX-License-Identifier: Apache-2.0
// outbox: what one connection has still to send, gathered for one system call.
//
// Idea: small things are copied behind each other into one piece; long payloads
// stay where they are and are referred to.
//
// Invariants:
//   TOB1. Bytes leave in the order in which they were appended.
//   TOB2. A reference is followed only while its region is registered.
//   TOB3. It knows how much of it are answers to the peer: a peer that takes
//         none gets no more of them made (responder.h).
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_OUTBOX_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_OUTBOX_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "replication/fabric/region_table.h"

namespace alpheus::tcp {

class Outbox {
 public:
  // Payloads up to this are copied: dearer than a copy is an entry of its own
  // in the list for the kernel.
  static constexpr size_t kCopyBytesMax = 4096;

  void Append(std::span<const std::byte> bytes);
  // The same of an answer.
  void AppendAnswer(std::span<const std::byte> bytes);
  void AppendAnswer(std::vector<std::byte> bytes);
  // From own memory that stays untouched until it has been sent.
  void AppendLocal(const LocalBytes& from);

  bool empty() const { return end_position_ == sent_position_; }
  // Answers that are kept here: those not sent yet, and of what was sent the
  // beginning of the first piece (TOB3).
  uint64_t answer_bytes() const { return answer_bytes_; }
  // Bytes ever appended, and of those ever sent.
  uint64_t end_position() const { return end_position_; }
  uint64_t sent_position() const { return sent_position_; }

  // Fills `pieces` from the front and returns how many; 0 when a region that
  // is referred to is no longer registered.
  size_t Gather(const RegionTable& regions, std::span<iovec> pieces) const;
  // Drops `bytes` from the front: they were sent.
  void Consume(size_t bytes);

  // Makes copies of all that is referred to, so that the regions may go. False
  // when one has gone already; the outbox then is useless.
  bool CopyReferences(const RegionTable& regions);

 private:
  struct Piece {
    std::vector<std::byte> owned;
    LocalBytes reference;     // used when its bytes are not empty
    size_t answer_bytes = 0;  // of `owned`

    std::span<const std::byte> bytes() const {
      if (!reference.bytes.empty()) return reference.bytes;
      return owned;
    }
  };

  std::deque<Piece> pieces_;
  size_t front_sent_ = 0;  // of the first piece
  uint64_t end_position_ = 0;
  uint64_t sent_position_ = 0;
  uint64_t answer_bytes_ = 0;
  std::vector<std::byte> spare_;  // its memory is used again
};

}  // namespace alpheus::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_OUTBOX_H_
