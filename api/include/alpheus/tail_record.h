// SPDX-License-Identifier: Apache-2.0
// tail_record: a record that a tail of a log shows; see log_tail.h and
// cluster_tail.h.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_TAIL_RECORD_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_TAIL_RECORD_H_

#include <cstddef>
#include <span>

#include "log/base/ids.h"

namespace alpheus {

struct TailRecord {
  Lsn lsn;
  Epoch epoch;                         // in which it was written
  std::span<const std::byte> payload;  // a copy, until the tail's next call
  // Where the payload lies, for the tail of a log (Log::ring).
  RingOffset offset = {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_TAIL_RECORD_H_
