// SPDX-License-Identifier: Apache-2.0
// owner_checker: checks that each place of the log has the epoch that owns it,
// and one chain for good.
//
// Idea: the places at which epochs opened are recorded apart from the replicas'
// tables. For each record that an opening shows, the epoch must be the newest
// one that opened at or before its LSN (P-INV-13). The chain before an LSN that
// was shown or durable once never changes (P-INV-8).
//
// Not seen: epochs that were installed by a process that ended before it could
// show its log; they have no records.
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

  // Notes that the epoch owns all LSNs from there on.
  void Activated(Epoch epoch, const LogPosition& start);
  // Judges a record that an opening of `by` shows.
  void Shown(Epoch by, Lsn lsn, Epoch epoch);
  // Notes the chain of all before the position, which never changes again.
  void ChainKnown(const LogPosition& position);

  std::optional<uint64_t> ChainBefore(Lsn lsn) const;
  // Returns the LSN from which a later epoch owns the log, so that a medium of
  // that log epoch says nothing; nothing: it is the latest.
  std::optional<Lsn> EndOf(Epoch log_epoch) const;

 private:
  World& world_;
  std::map<uint64_t, Lsn> starts_;       // by epoch
  std::map<uint64_t, uint64_t> chains_;  // before an LSN
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_OWNER_CHECKER_H_
