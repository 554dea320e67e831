// SPDX-License-Identifier: Apache-2.0
// reserved_record: one record between reserve and complete, as a value.
//
// Thread safety: Copy may be called by several threads on one record, so the
// fields that it changes beside the payload belong to the reserving thread
// alone; `filled_by_others` is how another thread says that it wrote.
#ifndef ALPHEUS_LOG_CORE_WRITE_RESERVED_RECORD_H_
#define ALPHEUS_LOG_CORE_WRITE_RESERVED_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "log/base/ids.h"

namespace alpheus {

struct ReservedRecord {
  Lsn lsn;
  RingOffset begin;   // of the PAD in front, or of the record if it has none
  RingOffset offset;  // of the record's header
  size_t payload_bytes = 0;
  std::byte* payload = nullptr;  // in the ring
  uint32_t owner = 0;            // thread that reserved it

  // CRC of payload[0, copied_bytes), as long as the owner alone copies in
  // sequence; complete computes it anew when anybody did otherwise.
  uint32_t copied_crc = 0;
  size_t copied_bytes = 0;
  bool filled_in_place = false;   // set by the owner of the handle
  bool filled_by_others = false;  // accessed through std::atomic_ref
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_RESERVED_RECORD_H_
