// SPDX-License-Identifier: Apache-2.0
// session_terms: what both ends agreed on when a session began.
#ifndef ALPHEUS_REPLICATION_SESSION_TERMS_H_
#define ALPHEUS_REPLICATION_SESSION_TERMS_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/core/record_cursor.h"
#include "replication/ack.h"
#include "replication/persist/platform.h"

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
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_SESSION_TERMS_H_
