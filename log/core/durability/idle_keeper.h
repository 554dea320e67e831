// SPDX-License-Identifier: Apache-2.0
// idle_keeper: forces, notifies and drives replication when no caller does.
//
// Idea: without it two things would wait for the next append: records that were
// completed and not forced (up to F - 1 with frequency F), and the watermark,
// which is one batch behind. The log starts no thread: its owner has one that
// calls Poll once per interval while anything happens.
// * It forces records that were completed at one call and are still exposed at
//   the next.
// * If nothing moved in between and nothing is exposed, it writes the last
//   watermark and sends the backups the durable LSN. Then there is nothing to
//   do until the next append.
//
// Invariants:
//   IK1. A completed record with no open one before it is durable at most two
//        intervals later.
//   IK2. A log that was idle for two intervals has a watermark that names its
//        last record (P-A3.5).
//   IK3. By then it was announced to the backups that this record is durable.
//   IK4. A log is idle only if its backups are. A backup that lags, although W
//        others do not, must be dropped after a while, and no arrival triggers
//        that.
// Thread safety: Poll by one thread; the others append meanwhile.
// References: protocol P-A3.3, P-A3.5, P-F6, P-F7.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_IDLE_KEEPER_H_
#define ALPHEUS_LOG_CORE_DURABILITY_IDLE_KEEPER_H_

#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/waiter.h"
#include "log/core/durability/log_durability.h"
#include "log/core/write/reserver.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class IdleKeeper {
 public:
  // Requires: everything reserved is durable, and the watermarks name it.
  IdleKeeper(LogDurability<P>& durability, Reserver& reserver,
             Progress& progress)
      : durability_(durability),
        reserver_(reserver),
        progress_(progress),
        last_assigned_(reserver.next().lsn - 1),
        watermark_lsn_(last_assigned_) {}

  // Returns kMoved to be polled again after an interval; kIdle: after the next
  // progress.
  Polled Poll();

 private:
  // Forces what is left, and says so. Returns kIdle if nothing is.
  Polled ForceRest();
  // Writes the last watermark. Returns false if that is not possible yet.
  bool WriteWatermark();

  LogDurability<P>& durability_;
  Reserver& reserver_;
  Progress& progress_;
  Lsn last_assigned_;  // at the last Poll
  Lsn watermark_lsn_;  // named by the last idle watermark
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_IDLE_KEEPER_H_
