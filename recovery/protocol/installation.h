// SPDX-License-Identifier: Apache-2.0
// installation: the log and the epoch that a replica is asked to install.
//
// Thread safety: a value.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_INSTALLATION_H_
#define ALPHEUS_RECOVERY_PROTOCOL_INSTALLATION_H_

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"

namespace alpheus::recovery {

// The log with which an epoch begins; for a replica that joins an open epoch,
// the log with which its session begins.
struct Installation {
  Epoch epoch;
  EpochTable table;  // ends with the entry of `epoch`
  LogPosition head;
  LogPosition end;     // start of the epoch, or a place among its records
  RingOffset ceiling;  // of the superline (P-A3.7)
  // The members from this epoch on. Without members: as before. The working
  // copy of a primary, which is no member, has it so.
  Configuration configuration = {};

  bool operator==(const Installation&) const = default;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_INSTALLATION_H_
