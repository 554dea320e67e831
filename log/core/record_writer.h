// SPDX-License-Identifier: Apache-2.0
// record_writer: turns reserved space into a record.
//
// Idea: two ways to the same bytes. `Seal` finishes a record whose payload was
// stored by anybody in any way (cached): checksum, header, and last the
// publish word in one atomic store; a flush and a fence of any thread make it
// persistent. `WriteWhole` knows all bytes beforehand: it assembles header and
// payload line by line and stores whole lines past the cache, so that one
// fence of its own is the whole cost.
//
// Invariants:
//   X1. The publish word, with both checksums, is stored last (A1).
//   X2. The PAD in front of a record is written with the record and belongs to
//       its extent, so it is persisted by the same fence (L5).
// Thread safety: one thread per record.
// References: Arcadia §3 listing 1, §4.3; protocol A1, A3.2, F3 to F5.
#ifndef ALPHEUS_LOG_CORE_RECORD_WRITER_H_
#define ALPHEUS_LOG_CORE_RECORD_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/base/ids.h"
#include "log/core/reserved_record.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/persistence.h"

namespace alpheus {

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

  // Copies into the payload with cached stores, so that any thread's flush
  // covers it (F3). `is_owner`: this thread reserved the record; only then may
  // the checksum be carried along. Requires: fits.
  void Copy(ReservedRecord& record, size_t offset,
            std::span<const std::byte> bytes, bool is_owner);

  // Header and PAD of a record whose payload is filled, or of one that is
  // given up (kAborted). Completed when it returns, not persisted.
  void Seal(const ReservedRecord& record, RecordType type, Lsn durable_lsn);

  // PAD, header and payload from `parts`, past the cache: persisted after the
  // caller's next fence. Requires: sizes of parts add up to payload_bytes.
  void WriteWhole(const ReservedRecord& record,
                  std::span<const std::span<const std::byte>> parts,
                  Lsn durable_lsn);

 private:
  RecordHeader MakeHeader(const ReservedRecord& record, RecordType type,
                          uint32_t payload_crc, uint64_t seed,
                          Lsn durable_lsn) const;
  bool WritePadBefore(const ReservedRecord& record, Lsn durable_lsn);

  P& pmem_;
  const Ring ring_;
  const EpochKey key_;
  const Epoch epoch_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RECORD_WRITER_H_
