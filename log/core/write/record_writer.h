// SPDX-License-Identifier: Apache-2.0
// record_writer: turns reserved space into a record.
//
// Idea: there are two ways to the same bytes. `Seal` finishes a record whose
// payload was stored through the cache by any thread in any way. It stores
// checksum and header, and last the publish word in one atomic store; a flush
// and a fence of any thread make the record persistent. `WriteWhole` knows all
// bytes beforehand. It stores whole lines past the cache, payload first, so
// that they drain while the header is made; one fence of its own is the whole
// cost.
//
// Invariants:
//   RWR1. Seal stores the publish word, with both checksums, last (P-A1).
//         WriteWhole stores in any order: nothing is read before its fence.
//   RWR2. The PAD in front of a record is written with the record and belongs
//         to its extent, so it is persisted by the same fence (P-L5).
// Thread safety: one thread per record.
// References: Arcadia §3 listing 1, §4.3; protocol P-A1, P-A3.2, P-F3 to P-F5.
#ifndef ALPHEUS_LOG_CORE_WRITE_RECORD_WRITER_H_
#define ALPHEUS_LOG_CORE_WRITE_RECORD_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "log/base/ids.h"
#include "log/core/write/reserved_record.h"
#include "log/core/write/reserver.h"
#include "log/format/checksum.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Content of one record: parts that are joined in order. Its CRC needs no LSN,
// so it is computed before anything is reserved. `bytes` is checked before
// that: data of a size that is too large may be no memory at all.
struct Payload {
  explicit Payload(std::span<const std::span<const std::byte>> p) : parts(p) {
    for (const auto& part : parts) {
      const size_t sum = bytes + part.size();
      bytes = sum < bytes ? std::numeric_limits<size_t>::max() : sum;
    }
  }
  void ComputeCrc() {
    for (const auto& part : parts) crc = Crc32c(crc, part);
  }

  std::span<const std::span<const std::byte>> parts;
  size_t bytes = 0;  // the largest number if the sum overflows
  uint32_t crc = kCrcStart;
};

// Writes a PAD from `begin` to the end of the ring with cached stores; not
// persisted. `next_lsn` is of the record after it.
template <Persistence P>
void WritePad(P& pmem, const Ring& ring, const EpochKey& key, Epoch epoch,
              Lsn next_lsn, Lsn durable_lsn, RingOffset begin);

template <Persistence P>
class RecordWriter {
 public:
  RecordWriter(P& pmem, Ring ring, const EpochKey& key, Epoch epoch)
      : pmem_(pmem), ring_(ring), key_(key), epoch_(epoch) {}

  // Goes on in the next epoch. Requires: nothing is reserved, and no thread can
  // reserve.
  void Continue(const EpochKey& key, Epoch epoch) {
    key_ = key;
    epoch_ = epoch;
  }
  // Requires: a record is reserved; so nothing calls Continue meanwhile.
  Epoch epoch() const { return epoch_; }

  // Copies into the payload with cached stores, so that any thread's flush
  // covers it (P-F3). `is_owner`: this thread reserved the record; only then is
  // the checksum computed along the way. Requires: fits.
  void Copy(ReservedRecord& record, size_t offset,
            std::span<const std::byte> bytes, bool is_owner);

  // Writes header and PAD of a record whose payload is filled, or of an aborted
  // one (kAborted). The record is completed on return, not persisted. Returns
  // the header's checksum.
  uint32_t Seal(const ReservedRecord& record, RecordType type, Lsn durable_lsn);

  // Writes PAD, header and payload past the cache: persisted after the caller's
  // next fence. Returns the header's checksum.
  uint32_t WriteWhole(const Reserver::Space& space, const Payload& payload,
                      Lsn durable_lsn);

  // Writes PAD, header and payload through the cache: persisted after any
  // thread's flush and fence. Returns the header's checksum.
  uint32_t WriteCached(const Reserver::Space& space, const Payload& payload,
                       Lsn durable_lsn);

 private:
  RecordHeader MakeHeader(Lsn lsn, RingOffset offset, RecordType type,
                          uint64_t payload_bytes, uint32_t payload_crc,
                          Lsn durable_lsn) const;
  // Writes the PAD in front of the record. Returns false if there is none.
  bool WritePadBefore(Lsn lsn, RingOffset begin, RingOffset offset,
                      Lsn durable_lsn);

  P& pmem_;
  const Ring ring_;
  EpochKey key_;
  Epoch epoch_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_RECORD_WRITER_H_
