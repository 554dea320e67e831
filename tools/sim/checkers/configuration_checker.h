// SPDX-License-Identifier: Apache-2.0
// configuration_checker: records the configuration of each epoch and the one in
// force, and checks that replicas install only configurations that name them.
//
// Idea: the media show it: a configuration is written with the epoch that
// brings it (P-A5). All checkers that count replicas ask here for members and
// W. So a durable record must be on W media of its primary's own configuration,
// and not on any W media.
//
// Checked:
//   P-INV-18  all media of one epoch have one configuration: its opening's.
//             A configuration comes only with an installation, names the
//             replica that installs it, and its number is not below the one
//             before
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

  // Notes an installation on the machine's medium, which had `before`.
  void Installed(int machine, Epoch epoch, const Configuration& configuration,
                 const Configuration& before);
  // Notes that a primary, or a change of members, is about to show its log.
  void Shown(Epoch epoch, const Configuration& configuration);

  // Returns the configuration of a log epoch that was installed somewhere; else
  // the formatted one.
  const Configuration& Of(Epoch epoch) const;
  // Returns the configuration of the highest epoch shown.
  const Configuration& in_force() const { return Of(shown_); }
  Epoch shown() const { return shown_; }
  // Returns all configurations of earlier epochs.
  std::vector<Configuration> Before(Epoch epoch) const;

  // Notes that the machine is about to get another replica.
  void Leaves(int machine);

  // Returns the machine's replica, or the one that it lost last.
  Member ReplicaOf(int machine) const;
  bool IsMember(const Configuration& configuration, int machine) const {
    return Names(configuration, ReplicaOf(machine));
  }
  // Returns W, unaffected by canaries.
  int WriteQuorumOf(const Configuration& configuration) const;
  int OpeningQuorumOf(const Configuration& configuration) const;
  // Returns how many of its members are among the replicas.
  static int Count(const ReplicaSet& replicas,
                   const Configuration& configuration);

  static std::vector<int> MachinesOf(const Configuration& configuration);
  std::vector<int> Members() const { return MachinesOf(in_force()); }
  // Returns the highest LSN before which no log begins on W media of its
  // members.
  Lsn DurableHeadOf(const Configuration& configuration) const;
  // Returns true if the configuration in force is on the media of all members
  // that have any, and nobody is about to change it. Else a change is in
  // progress, or was interrupted.
  bool IsInForceEverywhere() const;

 private:
  void Violate(int machine, const std::string& what);
  void JudgeOne(Epoch epoch, const Configuration& configuration);

  World& world_;
  const Configuration formatted_;
  Epoch shown_;
  std::map<uint64_t, Configuration> configurations_;  // by epoch
  // Heads of replicas that are gone.
  std::map<ReplicaSet::value_type, Lsn> left_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CONFIGURATION_CHECKER_H_
