// SPDX-License-Identifier: Apache-2.0
// fence_checker: checks that no bytes of a primary land after the replica has
// promised another one.
//
// Idea: the simulated network reports each part of a write that lands, with the
// adapter and the connection that it came over. Inside a machine's region
//   P-INV-6   it comes from the process that has the last promise of the ring
//             (P-R2), over a connection that has written under no other promise
//   P-INV-S4  it lies in the ring: only their own process writes superline,
//             watermark and table
// So no byte of a session of epoch e lands after a promise of e' > e. A promise
// counts from the moment at which the replica begins to scan its ring. Between
// persisting the promise and that moment it ends the sessions, and with them
// drops their bytes in the machine's adapter.
//
// Not seen: a connection of the promised process that wrote nothing before that
// process was promised a later epoch, or the same one again; and stores of a
// primary of the machine itself, which has the region's lock.
// Thread safety: one thread.
// References: protocol P-H6, P-R2, P-S4; sim_network.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_FENCE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_FENCE_CHECKER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/promise.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class FenceChecker {
 public:
  explicit FenceChecker(World& world) : world_(world) {}

  // Notes the program that uses the host's adapter until it ends.
  void Names(int host, const quorum::PrimaryId& process);
  // Notes that the machine's replica has promised, and begins to scan its ring.
  void Promised(int machine, const quorum::Promise& promise);
  void OnLanding(const model::LandedBytes& landed);

 private:
  struct Link {
    int to = 0;
    int from = 0;
    uint64_t incarnation = 0;
    uint64_t connection = 0;

    auto operator<=>(const Link&) const = default;
  };

  void Judge(int machine, const model::LandedBytes& landed);

  World& world_;
  std::map<std::pair<int, uint64_t>, quorum::PrimaryId> processes_;
  std::map<Link, Epoch> epochs_;
  std::map<int, quorum::Promise> promised_;  // by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_FENCE_CHECKER_H_
