// SPDX-License-Identifier: Apache-2.0
// configuration_checker: which configuration each epoch has, which one is in
// force, and whether replicas install only what names them.
//
// Idea: media say it: a configuration is written with the epoch that brings it
// (P-A5). All checkers that count replicas ask here by whose members and by
// which W, so that what is durable has to be on W media of the configuration
// whose primary says so, and not on any that are there.
//
// What is held:
//   P-INV-18  all media of one epoch have one configuration, the one that its
//             opening says; a configuration comes only with an installation,
//             names the replica that installs it, and has no lower number than
//             the one before
// Thread safety: one thread.
// References: protocol P-A5, P-H16, P-H18; recovery/opening/opening_quorums.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CONFIGURATION_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CONFIGURATION_CHECKER_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "log/format/superline.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Replicas by node and incarnation.
using ReplicaSet = std::set<std::pair<uint64_t, uint64_t>>;

class ConfigurationChecker {
 public:
  explicit ConfigurationChecker(World& world);

  // On the machine's medium, which had `before`.
  void Installed(int machine, Epoch epoch, const Configuration& configuration,
                 const Configuration& before);
  // A primary, or who changes the members, is about to show its log.
  void Shown(Epoch epoch, const Configuration& configuration);

  // Of a log epoch that was installed somewhere; else as formatted.
  const Configuration& Of(Epoch epoch) const;
  // Of the highest epoch that was shown.
  const Configuration& in_force() const { return Of(shown_); }
  Epoch shown() const { return shown_; }
  // All that epochs before that one have.
  std::vector<Configuration> Before(Epoch epoch) const;

  // The machine is about to have another replica.
  void Leaves(int machine);

  // The replica that the machine has, or the one that it lost last.
  Member ReplicaOf(int machine) const;
  bool IsMember(const Configuration& configuration, int machine) const {
    return Names(configuration, ReplicaOf(machine));
  }
  // W, whatever a canary makes of it.
  int WriteQuorumOf(const Configuration& configuration) const;
  int OpeningQuorumOf(const Configuration& configuration) const;
  // How many of its members are among them.
  static int Count(const ReplicaSet& replicas,
                   const Configuration& configuration);

  static std::vector<int> MachinesOf(const Configuration& configuration);
  std::vector<int> Members() const { return MachinesOf(in_force()); }
  // The highest LSN before which no log begins on W media of its members.
  Lsn DurableHeadOf(const Configuration& configuration) const;
  // It is on the media of all members that have any, and nobody is about to
  // change it. Else a change is under way, or was cut off.
  bool IsSettled() const;

 private:
  void Violate(int machine, const std::string& what);
  void JudgeOne(Epoch epoch, const Configuration& configuration);

  World& world_;
  const Configuration formatted_;
  Epoch shown_;
  std::map<uint64_t, Configuration> configurations_;  // by epoch
  // Where the log began on replicas that are gone.
  std::map<ReplicaSet::value_type, Lsn> left_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CONFIGURATION_CHECKER_H_
