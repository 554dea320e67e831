// SPDX-License-Identifier: Apache-2.0
// outbox: the bytes that one connection still has to send, gathered for one
// system call.
//
// Idea: small things are copied one after the other into one piece; long
// payloads stay where they are and are referred to.
//
// Invariants:
//   TOB1. Bytes leave in the order in which they were appended.
//   TOB2. A reference is followed only while its region is registered.
//   TOB3. It counts the bytes of answers. A peer that accepts none gets no
//         further ones (responder.h).
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

namespace alpheus::fabric::tcp {

class Outbox {
 public:
  // Bytes up to which a payload is copied: an entry of its own in the kernel's
  // list costs more than the copy.
  static constexpr size_t kCopyBytesMax = 4096;

  void Append(std::span<const std::byte> bytes);
  // Append bytes of an answer.
  void AppendAnswer(std::span<const std::byte> bytes);
  void AppendAnswer(std::vector<std::byte> bytes);
  // Appends a reference to this host's memory, which must not change until it
  // has been sent.
  void AppendLocal(const LocalBytes& from);

  bool empty() const { return end_position_ == sent_position_; }
  // Returns the bytes of answers kept here: those not sent yet, and the sent
  // beginning of the first piece (TOB3).
  uint64_t answer_bytes() const { return answer_bytes_; }
  // Return the bytes ever appended, and ever sent.
  uint64_t end_position() const { return end_position_; }
  uint64_t sent_position() const { return sent_position_; }

  // Fills `pieces` from the front and returns how many; 0 if a region that is
  // referred to is no longer registered.
  size_t Gather(const RegionTable& regions, std::span<iovec> pieces) const;
  // Drops `bytes` from the front, as they were sent.
  void Consume(size_t bytes);

  // Copies everything that is referred to, so that the regions may go. Returns
  // false if one is gone already; the outbox is then useless.
  bool CopyReferences(const RegionTable& regions);

 private:
  struct Piece {
    std::vector<std::byte> owned;
    LocalBytes reference;     // used when its bytes are not empty
    size_t answer_bytes = 0;  // answers' bytes in `owned`

    std::span<const std::byte> bytes() const {
      if (!reference.bytes.empty()) return reference.bytes;
      return owned;
    }
  };

  std::deque<Piece> pieces_;
  size_t front_sent_ = 0;  // sent bytes of the first piece
  uint64_t end_position_ = 0;
  uint64_t sent_position_ = 0;
  uint64_t answer_bytes_ = 0;
  std::vector<std::byte> spare_;  // kept to reuse its memory
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_OUTBOX_H_
