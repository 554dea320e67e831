// SPDX-License-Identifier: Apache-2.0
// session_terms: the terms that both ends agreed on when a session began.
#ifndef ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_
#define ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "replication/persist/platform/platform.h"
#include "replication/wire/ack.h"

namespace alpheus::replication {

struct SessionTerms {
  Epoch epoch;
  SessionId session;
  // End of the records that the backup has persisted.
  LogPosition next;
  // Batches that may be unacknowledged: the backup has as many receives posted.
  uint32_t credits = 0;
  // The backup's platform: both ends make the plan for records from it.
  Platform platform = {};
  // The log's head, which is in the backup's superline.
  LogPosition head = {};
  // The ceiling in the backup's superline (P-A3.7).
  RingOffset ceiling = {};
  // Bytes, in whole records, that the primary posts as one batch to a backup
  // that is behind by more; one record at least. Persisting that much takes the
  // backup a few milliseconds, in which its node serves no other log.
  uint64_t batch_bytes_max = uint64_t{4} << 20;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_
