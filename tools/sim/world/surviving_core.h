// SPDX-License-Identifier: Apache-2.0
// surviving_core: just enough replicas to continue with, which are healed
// before all others.
//
// Idea: a log must continue with max(R, W) of its replicas (P-C8), not only
// with all of them. So when faults have ended, a core is drawn by lot and
// healed: power, processes, links among its machines, the membership service.
// The other machines stay broken, each in its own way, until the log was opened
// and has acknowledged records. Only then they are healed.
//
//   core        at least max(R, W) members of the configuration in force. R of
//               them know what they have. (A replica that a crash caught while
//               `repairing` says "unknown" of most LSNs, P-H12; one with a
//               damaged medium may.) Lost replicas are not in it. If too few
//               know or exist, all members are the core
//   the others  stay as the faults left them; or without power; without a node;
//               standing still; cut off, both ways or one. A machine that is
//               cut off is cut off from the membership service too: its session
//               must expire, or it would be first for ever
//
// Thread safety: one thread.
// References: protocol P-B1 P-C8, P-H12; docs/verify/simulation.md, "Phases".
#ifndef ALPHEUS_TOOLS_SIM_WORLD_SURVIVING_CORE_H_
#define ALPHEUS_TOOLS_SIM_WORLD_SURVIVING_CORE_H_

#include <cstdint>
#include <set>
#include <vector>

#include "log/base/random.h"
#include "quorum/arithmetic/quorum.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Returns a random core; all members if there is none. `usable`: the members
// that exist, by number; and of these those that know what they hold.
std::set<int> DrawSurvivingCore(const quorum::QuorumSizes& sizes,
                                const std::set<int>& usable,
                                const std::set<int>& knowing,
                                RandomSource& random);

class SurvivingCore {
 public:
  // Draws it.
  explicit SurvivingCore(World& world);

  // Heals its machines; the others stay broken until EndFaults(). By lot no
  // application of the core survives.
  void Heal();
  // Allows healing of the others.
  void EndFaults();

  const std::vector<int>& machines() const { return machines_; }
  bool Contains(int machine) const;
  // Returns whether all machines are in it, so that there is nothing to see.
  bool is_all() const;

 private:
  enum class Fate {
    kAsItIs,
    kNoPower,
    kNoNode,
    kStandsStill,
    kCutOff,
    kDeaf,
    kMute,
  };

  void HealMachine(World::Machine& machine);
  void Break(World::Machine& machine);
  Fate DrawFate(const World::Machine& machine);
  void StandStill(World::Machine& machine);
  void CutOff(const World::Machine& machine, bool to_it, bool from_it);

  World& world_;
  std::vector<int> machines_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_SURVIVING_CORE_H_
