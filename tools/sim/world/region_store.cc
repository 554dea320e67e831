// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/region_store.h"

#include <utility>

#include "log/base/check.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_images.h"

namespace alpheus::sim {

RegionStore::RegionStore(World& world)
    : world_(world), places_(world.machines().size()) {
  for (size_t i = 0; i < places_.size(); ++i) {
    const int machine = static_cast<int>(i);
    places_[i].lies_in = machine;
    if (machine < world.options().members()) {
      places_[i].incarnation = world.configuration().members[i].incarnation;
    } else if (machine < world.options().nodes) {
      places_[i].content = Content::kAbsent;
      places_[i].is_gone = true;
    }
  }
}

RegionStore::Model* RegionStore::medium(int machine) const {
  const Place& place = places_[machine];
  if (place.is_gone) return nullptr;
  if (place.aside != nullptr) return place.aside.get();
  return world_.machine(place.lies_in).pmem.get();
}

bool RegionStore::SharesFate(int machine, int other) const {
  return other == machine || places_[machine].lies_in == other;
}

RegionStore::Before RegionStore::Now(int machine) const {
  // Bytes that an earlier fault took, unread since, were there, too.
  return {world_.checkers().epochs.log_epoch(machine),
          places_[machine].incarnation,
          world_.checkers().damage.Restored(machine,
                                            medium(machine)->persistent())};
}

void RegionStore::KeepBefore(int machine) {
  places_[machine].before.push_back(Now(machine));
}

void RegionStore::Swap(int a, int b) {
  ALPHEUS_CHECK(IsOwn(a) && IsOwn(b), "both are in their places");
  places_[a].lies_in = b;
  places_[b].lies_in = a;
  places_[a].content = places_[b].content = Content::kAlien;
  world_.ExchangeRegions(a, b);
}

void RegionStore::SetAside(int machine, Content content, const Image& image) {
  ALPHEUS_CHECK(IsOwn(machine), "it is in its place");
  places_[machine].content = content;
  places_[machine].aside =
      world_.GiveRegion(machine, std::make_unique<Model>(image));
}

void RegionStore::PutBack(int machine) {
  Place& place = places_[machine];
  if (!IsMisplaced(machine)) return;
  place.content = Content::kOwn;
  if (place.aside != nullptr) {
    world_.KeepOldMemory(world_.GiveRegion(machine, std::move(place.aside)));
    return;
  }
  const int other = std::exchange(place.lies_in, machine);
  places_[other].lies_in = other;
  places_[other].content = Content::kOwn;
  world_.ExchangeRegions(machine, other);
}

void RegionStore::Lose(int machine, Content content, const Image& image) {
  ALPHEUS_CHECK(IsOwn(machine), "it is in its place");
  KeepBefore(machine);
  Place& place = places_[machine];
  ++place.faults;
  place.content = content;
  place.is_gone = true;
  place.is_suspect = false;
  place.lacks.clear();
  world_.KeepOldMemory(
      world_.GiveRegion(machine, std::make_unique<Model>(image)));
  world_.checkers().epochs.Adopt(machine);
}

void RegionStore::Renew(int machine, uint64_t incarnation, const Image& image) {
  Place& place = places_[machine];
  ALPHEUS_CHECK(!IsMisplaced(machine),
                "what lies there is its own, or nothing");
  if (IsOwn(machine)) KeepBefore(machine);
  world_.checkers().configurations.Leaves(machine);
  world_.images().Forget(machine);
  ++place.faults;
  place.content = Content::kNewcomer;
  place.is_gone = place.is_suspect = place.was_suspect = false;
  place.is_forgotten = false;
  place.incarnation = incarnation;
  place.lacks.clear();
  world_.KeepOldMemory(
      world_.GiveRegion(machine, std::make_unique<Model>(image)));
  world_.checkers().epochs.Adopt(machine);
}

void RegionStore::RollBack(int machine, const Image& image) {
  ALPHEUS_CHECK(IsOwn(machine), "it is in its place");
  places_[machine].rolled_back.push_back(Now(machine));
  ++places_[machine].faults;
  world_.KeepOldMemory(
      world_.GiveRegion(machine, std::make_unique<Model>(image)));
  Checkers& checkers = world_.checkers();
  checkers.epochs.Adopt(machine);
  const Configuration* const found = checkers.epochs.configuration(machine);
  const Member replica = checkers.configurations.ReplicaOf(machine);
  if (found != nullptr && !Names(*found, replica)) {
    places_[machine].content = Content::kNewcomer;
  }
}

void RegionStore::Damage(int machine, const Image& image, const Lacks& lacks) {
  ALPHEUS_CHECK(IsOwn(machine), "it is in its place");
  if (!lacks.empty()) KeepBefore(machine);
  places_[machine].lacks.insert(lacks.begin(), lacks.end());
  ++places_[machine].faults;
  world_.KeepOldMemory(
      world_.GiveRegion(machine, std::make_unique<Model>(image)));
  // One line of the watermark may prove less than both.
  world_.checkers().marks.Forget(machine);
  world_.checkers().epochs.Check(machine);
}

}  // namespace alpheus::sim
