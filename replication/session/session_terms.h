// SPDX-License-Identifier: Apache-2.0
// session_terms: what both ends agreed on when a session began.
#ifndef ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_
#define ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "replication/persist/platform/platform.h"
#include "replication/wire/ack.h"

namespace alpheus {

struct SessionTerms {
  Epoch epoch;
  SessionId session;
  // Everything before it is persisted at the backup.
  LogPosition next;
  // Batches that may be announced and not acknowledged: the backup has as many
  // receives posted.
  uint32_t credits = 0;
  // Of the backup: both ends make the plan for records from it.
  Platform platform = {};
  // The log's head, which is in the backup's superline.
  LogPosition head = {};
  // What the primary posts as one batch, if it is behind by more: bytes, of
  // whole records, one at least. What a backup persists at once takes it a few
  // milliseconds, and its node serves other logs, too.
  uint64_t batch_bytes_max = uint64_t{4} << 20;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_SESSION_SESSION_TERMS_H_
