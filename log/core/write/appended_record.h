// SPDX-License-Identifier: Apache-2.0
// appended_record: a record that was appended, and where it is.
#ifndef ALPHEUS_LOG_CORE_WRITE_APPENDED_RECORD_H_
#define ALPHEUS_LOG_CORE_WRITE_APPENDED_RECORD_H_

#include <cstddef>
#include <span>

#include "log/base/ids.h"

namespace alpheus {

struct AppendedRecord {
  Lsn lsn;
  std::span<const std::byte> payload;  // in the ring
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_APPENDED_RECORD_H_
