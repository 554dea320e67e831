// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/deletion_checker.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "absl/strings/str_cat.h"
#include "log/core/ring/region_state.h"
#include "log/format/superline.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// Reads what a power cut would leave there. Nothing: there is no replica.
std::optional<Superline> SuperlineOn(World& world, int machine) {
  if (world.store().medium(machine) == nullptr) return std::nullopt;
  const std::span<const std::byte> medium = world.Medium(machine);
  // Readers change nothing, and take what could be changed.
  const auto state = ReadRegionState(
      {const_cast<std::byte*>(medium.data()), medium.size()}, "medium");
  if (!state.ok()) return std::nullopt;
  return state->superline;
}

// Counts by hand: for each list that a marked replica has.
bool AreEnough(const std::vector<Superline>& marked) {
  for (const Superline& of : marked) {
    const Configuration& list = of.configuration;
    uint32_t count = 0;
    for (const Superline& other : marked) {
      const bool has_it = other.configuration == list;
      const bool is_named = Names(list, {other.node, other.incarnation});
      count += has_it && is_named ? 1 : 0;
    }
    const uint32_t reads = list.replica_count - list.write_quorum + 1;
    if (count >= std::max(reads, list.write_quorum)) return true;
  }
  return false;
}

}  // namespace

void DeletionChecker::Note(int machine, const Superline& marked) {
  const auto known = std::ranges::find_if(marks_, [&](const Mark& mark) {
    const Superline& before = mark.superline;
    return before.node == marked.node &&
           before.incarnation == marked.incarnation &&
           before.configuration == marked.configuration;
  });
  const Mark now{machine, marked, world_.store().faults(machine)};
  if (known == marks_.end()) {
    marks_.push_back(now);
  } else {
    *known = now;
  }
}

bool DeletionChecker::IsDecided() {
  std::vector<Superline> marked;
  for (const World::Machine& machine : world_.machines()) {
    const auto superline = SuperlineOn(world_, machine.number);
    if (!superline || superline->deletion == Deletion::kNone) continue;
    Note(machine.number, *superline);
    marked.push_back(*superline);
  }
  return AreEnough(marked);
}

bool DeletionChecker::WasDecided() {
  if (IsDecided()) return true;
  std::vector<Superline> marked;
  for (const Mark& mark : marks_) {
    const auto now = SuperlineOn(world_, mark.machine);
    const bool has_it = now && now->deletion != Deletion::kNone &&
                        now->incarnation == mark.superline.incarnation &&
                        now->configuration == mark.superline.configuration;
    const bool was_taken = world_.store().faults(mark.machine) > mark.faults;
    if (has_it || was_taken) marked.push_back(mark.superline);
  }
  return AreEnough(marked);
}

bool DeletionChecker::HasMarks() {
  static_cast<void>(IsDecided());
  return !marks_.empty();
}

void DeletionChecker::Marks(int machine) {
  const auto superline = SuperlineOn(world_, machine);
  if (superline) Note(machine, *superline);
}

void DeletionChecker::Opened(bool was_decided) {
  if (!was_decided || !IsDecided()) return;
  world_.oracle().Violate("P-D3",
                          "a log is opened whose deletion was decided before");
}

void DeletionChecker::Removes(int machine) {
  if (WasDecided()) return;
  world_.oracle().Violate(
      "P-D4", absl::StrCat("machine ", machine,
                           " removes records of a log whose deletion is not "
                           "decided"));
}

void DeletionChecker::Returned() {
  if (WasDecided()) return;
  world_.oracle().Violate(
      "P-D3", "a deletion returns OK, and is not decided by what is on media");
}

bool DeletionChecker::IsRemovedEverywhere() {
  return std::ranges::all_of(
      world_.machines(), [this](const World::Machine& machine) {
        if (!world_.store().IsOwn(machine.number)) return true;
        const auto superline = SuperlineOn(world_, machine.number);
        return !superline || superline->deletion == Deletion::kDecided;
      });
}

}  // namespace alpheus::sim
