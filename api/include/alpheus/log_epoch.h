// SPDX-License-Identifier: Apache-2.0
// log_epoch: an epoch of a log, as the log knows it.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_LOG_EPOCH_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_LOG_EPOCH_H_

#include <cstdint>

#include "log/base/ids.h"

namespace alpheus {

struct LogEpoch {
  Epoch epoch;
  // Node in whose name it was opened; 0: the log is local.
  uint64_t node = 0;
  // First and last LSN that it owns. It has written none if end_lsn is
  // start_lsn - 1: only the running epoch is listed then.
  Lsn start_lsn;
  Lsn end_lsn;

  bool operator==(const LogEpoch&) const = default;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_EPOCH_H_
