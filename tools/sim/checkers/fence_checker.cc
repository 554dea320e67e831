// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/fence_checker.h"

#include <cstddef>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

void FenceChecker::Names(int host, const quorum::PrimaryId& process) {
  processes_[{host, world_.network().incarnation(host)}] = process;
}

void FenceChecker::OnLanding(const model::LandedBytes& landed) {
  const int nodes = world_.options().nodes;
  const int machine = landed.host < nodes ? landed.host : landed.host - nodes;
  World::Model* const pmem = world_.machine(machine).pmem.get();
  if (pmem == nullptr) return;
  const auto region = pmem->region();
  const std::less<> before;
  if (before(landed.bytes.data(), region.data()) ||
      !before(landed.bytes.data(), region.data() + region.size())) {
    return;
  }
  if (landed.bytes.data() < region.data() + world_.layout().ring_offset) {
    world_.oracle().Violate(
        "P-INV-S4", absl::StrCat("machine ", machine, ": host ",
                                 landed.from.host, " writes beside the ring"));
  }
  Judge(machine, landed);
}

void FenceChecker::Promised(int machine, const quorum::Promise& promise) {
  promised_[machine] = promise;
}

void FenceChecker::Judge(int machine, const model::LandedBytes& landed) {
  ++world_.counters().landings_checked;
  const RegionStore& store = world_.store();
  if (!store.IsOwn(machine) && !store.IsNewcomer(machine)) {
    return world_.oracle().Violate(
        "P-INV-16",
        absl::StrCat("bytes of host ", landed.from.host, " land on machine ",
                     machine, ", whose region is no replica of the log"));
  }
  const quorum::Promise& promise = promised_[machine];
  const auto writer =
      processes_.find({landed.from.host, landed.from.incarnation});
  if (writer == processes_.end() || writer->second != promise.primary) {
    world_.oracle().Violate(
        "P-INV-6",
        absl::StrCat("bytes of host ", landed.from.host, " land on machine ",
                     machine, ", whose promise of epoch ", promise.epoch.value,
                     " is another process's"));
    return;
  }
  const Link link{machine, landed.from.host, landed.from.incarnation,
                  landed.from.connection.value};
  const Epoch epoch = epochs_.emplace(link, promise.epoch).first->second;
  if (epoch == promise.epoch) return;
  world_.oracle().Violate(
      "P-INV-6",
      absl::StrCat("bytes of a session of epoch ", epoch.value,
                   " land on machine ", machine, ", which has promised epoch ",
                   promise.epoch.value));
}

}  // namespace alpheus::sim
