// SPDX-License-Identifier: Apache-2.0
// fence_checker: whether bytes of a primary land where another one was promised
// the replica.
//
// Idea: the simulated network tells of every part of a write that lands, with
// the adapter and the connection that it came over. Inside a machine's region
//   P-INV-6   it comes from the very process that was promised the ring last,
//             and nobody else (P-R2)
//             over a connection that has written under no other promise
//   P-INV-S4  it lies in the ring: superline, watermark and table are written
//             by their own process alone
// so that a byte of a session of epoch e never lands behind a promise of e' >
// e. A promise is given once the replica begins to look at its ring for the
// answer: between that and the promise on its medium it ends the sessions, and
// with them what the machine's adapter still has of them.
//
// What it can't see: a connection of the promised process that wrote nothing
// before that process was promised a later epoch, or the same one again; and
// what a primary of the machine itself stores, which has the region's lock.
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

  // The program that uses the host's adapter is this one, until it ends.
  void Names(int host, const PrimaryId& process);
  // The machine's replica has promised, and begins to look at its ring.
  void Promised(int machine, const Promise& promise);
  void OnLanding(const LandedBytes& landed);

 private:
  struct Link {
    int to = 0;
    int from = 0;
    uint64_t incarnation = 0;
    uint64_t connection = 0;

    auto operator<=>(const Link&) const = default;
  };

  void Judge(int machine, const LandedBytes& landed);

  World& world_;
  std::map<std::pair<int, uint64_t>, PrimaryId> processes_;
  std::map<Link, Epoch> epochs_;
  std::map<int, Promise> promised_;  // by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_FENCE_CHECKER_H_
