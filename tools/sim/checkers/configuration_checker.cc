// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/configuration_checker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

ConfigurationChecker::ConfigurationChecker(World& world)
    : world_(world), formatted_(world.configuration()) {}

void ConfigurationChecker::Violate(int machine, const std::string& what) {
  world_.oracle().Violate("P-INV-18",
                          absl::StrCat("machine ", machine, ": ", what));
}

void ConfigurationChecker::JudgeOne(Epoch epoch,
                                    const Configuration& configuration) {
  const auto [known, is_new] =
      configurations_.emplace(epoch.value, configuration);
  if (is_new || known->second == configuration) return;
  world_.oracle().Violate(
      "P-INV-18", absl::StrCat("epoch ", epoch.value, " has configuration ",
                               known->second.id, " and configuration ",
                               configuration.id, ", or their members differ"));
}

void ConfigurationChecker::Installed(int machine, Epoch epoch,
                                     const Configuration& configuration,
                                     const Configuration& before) {
  JudgeOne(epoch, configuration);
  if (!IsMember(configuration, machine)) {
    Violate(machine, absl::StrCat("epoch ", epoch.value,
                                  " is installed on a replica that its "
                                  "configuration ",
                                  configuration.id, " does not name"));
  }
  if (configuration.id < before.id) {
    Violate(machine, absl::StrCat("configuration ", configuration.id,
                                  " is installed after ", before.id));
  }
}

void ConfigurationChecker::Shown(Epoch epoch,
                                 const Configuration& configuration) {
  JudgeOne(epoch, configuration);
  shown_ = std::max(shown_, epoch);
}

const Configuration& ConfigurationChecker::Of(Epoch epoch) const {
  const auto known = configurations_.find(epoch.value);
  return known == configurations_.end() ? formatted_ : known->second;
}

std::vector<Configuration> ConfigurationChecker::Before(Epoch epoch) const {
  std::vector<Configuration> found = {formatted_};
  for (const auto& [of, configuration] : configurations_) {
    if (of < epoch.value) found.push_back(configuration);
  }
  return found;
}

Member ConfigurationChecker::ReplicaOf(int machine) const {
  return {world_.machine(machine).id(), world_.store().incarnation(machine)};
}

int ConfigurationChecker::WriteQuorumOf(
    const Configuration& configuration) const {
  if (world_.options().canary == Canary::kEarlyDurable) {
    return world_.options().write_quorum;
  }
  return static_cast<int>(configuration.write_quorum);
}

int ConfigurationChecker::OpeningQuorumOf(
    const Configuration& configuration) const {
  const int write_quorum = WriteQuorumOf(configuration);
  const auto count = static_cast<int>(configuration.replica_count);
  return std::max(write_quorum, count - write_quorum + 1);
}

int ConfigurationChecker::Count(const ReplicaSet& replicas,
                                const Configuration& configuration) {
  return static_cast<int>(
      std::ranges::count_if(configuration.members, [&](const Member& member) {
        return replicas.contains({member.node.value, member.incarnation});
      }));
}

std::vector<int> ConfigurationChecker::MachinesOf(
    const Configuration& configuration) {
  std::vector<int> machines;
  for (const Member& member : configuration.members) {
    machines.push_back(static_cast<int>(member.node.value) - 1);
  }
  return machines;
}

Lsn ConfigurationChecker::DurableHeadOf(
    const Configuration& configuration) const {
  std::vector<Lsn> heads;
  for (const Member& member : configuration.members) {
    const int machine = static_cast<int>(member.node.value) - 1;
    const auto left = left_.find({member.node.value, member.incarnation});
    if (IsMember(configuration, machine)) {
      heads.push_back(world_.checkers().marks.head(machine));
    } else if (left != left_.end()) {
      heads.push_back(left->second);
    }
  }
  return MarkChecker::DurableHead(std::move(heads),
                                  WriteQuorumOf(configuration));
}

void ConfigurationChecker::Leaves(int machine) {
  const Member replica = ReplicaOf(machine);
  left_[{replica.node.value, replica.incarnation}] =
      world_.checkers().marks.head(machine);
}

bool ConfigurationChecker::IsInForceEverywhere() const {
  for (const World::Machine& machine : world_.machines()) {
    if (machine.primary != nullptr &&
        (machine.primary->is_change() || machine.primary->is_changing())) {
      return false;
    }
  }
  return std::ranges::all_of(Members(), [&](int machine) {
    if (world_.store().IsGone(machine) || world_.store().IsNewcomer(machine)) {
      return true;
    }
    const Configuration* const own =
        world_.checkers().epochs.configuration(machine);
    return own != nullptr && *own == in_force();
  });
}

}  // namespace alpheus::sim
