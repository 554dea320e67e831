// SPDX-License-Identifier: Apache-2.0
// core: just enough replicas to go on with, which are healed before all others.
//
// Idea: a log must go on with max(R, W) of its replicas (P-C8), not only with
// all of them. So when faults have ended a core is drawn by lot, and healed:
// power, processes, links among its machines, the membership service. What is
// no part of it stays broken, each machine in its own way, until the log was
// opened and has acknowledged records. Only then the rest is healed.
//
//   core        max(R, W) members of the configuration in force or more, R of
//   them such as know what they
//               hold: one that a crash caught while it was `repairing` says
//               "unknown" of most (P-H12), and one whose medium is hurt may.
//               One that is gone is no part of it. Where fewer know, all are
//   the others  as the faults left them, and as these end; without power;
//               without a node; standing still; cut off, both ways or one. Who
//               is cut off is cut off from the membership service, too: its
//               session must expire, or it would be first for ever
//
// Thread safety: one thread.
// References: protocol P-B1 P-C8, P-H12; design of the tests, section 3.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_CORE_H_
#define ALPHEUS_TOOLS_SIM_WORLD_CORE_H_

#include <cstdint>
#include <set>
#include <vector>

#include "log/base/random.h"
#include "quorum/arithmetic/quorum.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Of members by number: those that are there, and of these those that know what
// they hold. A random core; all members if there is none.
std::set<int> DrawCore(const QuorumSizes& sizes, const std::set<int>& usable,
                       const std::set<int>& knowing, RandomSource& random);

class Core {
 public:
  // Draws it.
  explicit Core(World& world);

  // Heals its machines, and has the others stay broken until EndFaults().
  // By lot no application lives on in the core.
  void Heal();
  // What is broken may be healed again.
  void EndFaults();

  const std::vector<int>& machines() const { return machines_; }
  bool Contains(int machine) const;
  // All machines are in it, so that there is nothing to see.
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

#endif  // ALPHEUS_TOOLS_SIM_WORLD_CORE_H_
