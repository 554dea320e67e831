// SPDX-License-Identifier: Apache-2.0
// fence_checker: whether bytes of a primary land where another one was promised
// the replica.
//
// Idea: the simulated network tells of every part of a write that lands, with
// the adapter and the connection that it came over. Inside a machine's region
//   INV-6   it comes from the very process to which the machine's medium
//           promises its ring at that moment, and nobody else (R2)
//           over a connection that has written under no other promise
//   INV-S4  it lies in the ring: superline, watermark and table are written by
//           their own process alone
// so that a byte of a session of epoch e never lands behind a promise of e' >
// e. What the machine's adapter had before the promise may still land until the
// machine's program flushes its ring for the first time after it: nobody has
// looked, and the fence, which has it land or be dropped, comes before that.
//
// What it can't see: a connection of the promised process that wrote nothing
// before that process was promised a later epoch, or the same one again; and
// what a primary of the machine itself stores, which has the region's lock.
// Thread safety: one thread.
// References: protocol H6, R2, S4; sim_network.h.
#ifndef ALPHEUS_TOOLS_SIM_FENCE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_FENCE_CHECKER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

#include "quorum/ballot.h"
#include "replication/fabric/sim/sim_network.h"
#include "tools/sim/world.h"

namespace alpheus::sim {

class FenceChecker {
 public:
  explicit FenceChecker(World& world) : world_(world) {}

  // The program that uses the host's adapter is this one, until it ends.
  void Names(int host, const PrimaryId& process);
  void OnLanding(const LandedBytes& landed);
  // The machine's medium has another promise.
  void Promised(int machine);
  // A machine calls the persistence primitive, which has not acted yet.
  void OnPrimitive(int machine, const World::Model::Event& event);

 private:
  struct Link {
    int to = 0;
    int from = 0;
    uint64_t incarnation = 0;
    uint64_t connection = 0;

    auto operator<=>(const Link&) const = default;
  };

  // Since the promise of a machine.
  struct Since {
    uint64_t received = 0;  // what all adapters had got before
    bool has_flushed = true;
  };

  void Judge(int machine, const LandedBytes& landed);
  bool WasThereBefore(int machine, const LandedBytes& landed) const;

  World& world_;
  std::map<std::pair<int, uint64_t>, PrimaryId> processes_;
  std::map<Link, Epoch> epochs_;
  std::map<int, Since> promised_;  // by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FENCE_CHECKER_H_
