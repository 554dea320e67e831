// SPDX-License-Identifier: Apache-2.0
// owner_checker: whether each place of the log has the epoch that owns it, and
// one chain for good.
//
// Idea: what epochs opened, and where, is kept apart from the tables that
// replicas keep of it. Of each record that an opening shows the epoch must be
// the newest one that opened at or before its LSN (P-INV-13); and the chain
// before an LSN that was shown or durable once is the same ever after
// (P-INV-8).
//
// What it can't see: epochs that were installed by a process that ended before
// it could show its log; they have no records.
// Thread safety: one thread.
// References: protocol P-INV-8, P-INV-13, P-H8, P-H13.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_OWNER_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_OWNER_CHECKER_H_

#include <cstdint>
#include <map>
#include <optional>

#include "log/core/read/record_cursor.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class OwnerChecker {
 public:
  explicit OwnerChecker(World& world) : world_(world) {}

  // The epoch owns all from there on.
  void Activated(Epoch epoch, const LogPosition& start);
  // An opening of `by` shows this record.
  void Shown(Epoch by, Lsn lsn, Epoch epoch);
  // All before the position is settled, with this chain.
  void Settled(const LogPosition& position);

  std::optional<uint64_t> ChainBefore(Lsn lsn) const;
  // From where on a medium of that log epoch answers for nothing: a later epoch
  // owns it. Not set: it is the latest.
  std::optional<Lsn> EndOf(Epoch log_epoch) const;

 private:
  World& world_;
  std::map<uint64_t, Lsn> starts_;       // by epoch
  std::map<uint64_t, uint64_t> chains_;  // before an LSN
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_OWNER_CHECKER_H_
