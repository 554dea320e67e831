// SPDX-License-Identifier: Apache-2.0
// Processes of the world's machines, and their power: how they begin and end.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "tools/sim/actors/candidate_agent.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/stranger.h"
#include "tools/sim/actors/tail_client.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {
namespace {

// A crash destroys nothing (TH1 of threads.h).
template <class T>
void Abandon(std::unique_ptr<T>& process) {
  static_cast<void>(process.release());
}

// Who knew that the medium had failed is gone; what is written of it stays.
void ForgetSuspicion(World& world, int machine) {
  EpochChecker& epochs = world.checkers().epochs;
  epochs.LookAtNews();
  world.store().Forget(machine, epochs.repairing(machine));
}

}  // namespace

// Processes that are still there end as in a crash.
World::~World() {
  for (Machine& machine : machines_) {
    Abandon(machine.node);
    Abandon(machine.primary);
    Abandon(machine.candidate);
    static_cast<void>(TakeMemory(machine));
  }
  Abandon(tail_);
  Abandon(stranger_);
}

void World::StartNode(Machine& machine) {
  if (machine.node != nullptr || !machine.has_power) return;
  if (machine.stays_broken) return;
  network_->Restart(NodeHost(machine));
  active_[NodeHost(machine)] = false;
  machine.node = std::make_unique<NodeProcess>(*this, machine);
  Trace(absl::StrCat("machine ", machine.number, ": node starts"));
  StartCandidate(machine);
}

// A thread of the node's daemon, if there is one.
void World::StartCandidate(Machine& machine) {
  if (membership_ == nullptr || is_quiet_) return;
  machine.candidate = std::make_unique<CandidateAgent>(
      *this, machine,
      machine.node != nullptr ? machine.node->process()
                              : threads_->NewProcess());
}

size_t World::primaries() const {
  return static_cast<size_t>(std::count_if(
      machines_.begin(), machines_.end(),
      [](const Machine& each) { return each.primary != nullptr; }));
}

void World::StartPrimary(Machine& machine) {
  if (machine.primary != nullptr || !machine.has_power) return;
  network_->Restart(PrimaryHost(machine));
  active_[PrimaryHost(machine)] = false;
  machine.primary = std::make_unique<PrimaryProcess>(*this, machine);
  ++primaries_started_;
  Trace(absl::StrCat("machine ", machine.number, ": application starts"));
}

void World::StartChange(Machine& machine, size_t number) {
  ALPHEUS_CHECK(machine.primary == nullptr, "one application at a time");
  network_->Restart(PrimaryHost(machine));
  active_[PrimaryHost(machine)] = false;
  machine.primary = std::make_unique<PrimaryProcess>(*this, machine, number);
  ++primaries_started_;
  Trace(absl::StrCat("machine ", machine.number, ": change ", number,
                     " of members starts"));
}

void World::ForgetNode(Machine& machine, bool with_power) {
  Abandon(machine.candidate);
  if (machine.node == nullptr) return;
  Abandon(machine.node);
  if (with_power) network_->EndProgram(NodeHost(machine));
  if (machine.holder != Holder::kNode) return;
  machine.holder = Holder::kNobody;
  ForgetSuspicion(*this, machine.number);
  if (with_power) machine.pmem->KeepAfterKill();
}

void World::ForgetPrimary(Machine& machine, bool with_power) {
  if (machine.primary == nullptr) return;
  if (machine.primary->has_failed_medium()) NoteFailedMedium(machine);
  Abandon(machine.primary);
  if (with_power) network_->EndProgram(PrimaryHost(machine));
  if (machine.holder != Holder::kPrimary) return;
  machine.holder = Holder::kNobody;
  ForgetSuspicion(*this, machine.number);
  if (with_power) machine.pmem->KeepAfterKill();
}

void World::KillNode(Machine& machine) {
  if (machine.node == nullptr) return;
  Trace(absl::StrCat("machine ", machine.number, ": node is killed"));
  const ProcessId process = machine.node->process();
  ForgetNode(machine, /*with_power=*/true);
  threads_->Kill(process);
}

void World::KillPrimary(Machine& machine) {
  if (machine.primary == nullptr) return;
  Trace(absl::StrCat("machine ", machine.number, ": application is killed"));
  const ProcessId process = machine.primary->process();
  ForgetPrimary(machine, /*with_power=*/true);
  threads_->Kill(process);
}

void World::EndPrimary(Machine& machine) {
  Trace(absl::StrCat("machine ", machine.number, ": application ends"));
  const ProcessId process = machine.primary->process();
  ForgetPrimary(machine, /*with_power=*/true);
  threads_->Kill(process);
  ALPHEUS_CHECK(false, "a process that ended does not go on (TH1)");
  std::abort();
}

void World::CutPower(Machine& machine) {
  std::vector<ProcessId> processes;
  if (machine.node != nullptr) processes.push_back(machine.node->process());
  if (machine.primary != nullptr) {
    processes.push_back(machine.primary->process());
  }
  if (machine.node == nullptr && machine.candidate != nullptr) {
    processes.push_back(machine.candidate->process());
  }
  LosePower(machine);
  // The one that runs last: it does not come back.
  const ProcessId running = threads_->running_process();
  bool is_own = false;
  for (const ProcessId process : processes) {
    if (process == running) {
      is_own = true;
    } else {
      threads_->Kill(process);
    }
  }
  if (is_own) threads_->Kill(running);
}

// The machine of the thread that runs last: it does not come back.
void World::CutPowerOfAll() {
  const ProcessId running = threads_->running_process();
  Machine* own = nullptr;
  for (Machine& machine : machines_) {
    if (!machine.has_power) continue;
    if (running != 0 &&
        ((machine.node != nullptr && machine.node->process() == running) ||
         (machine.primary != nullptr &&
          machine.primary->process() == running))) {
      own = &machine;
    } else {
      CutPower(machine);
    }
  }
  if (own != nullptr) CutPower(*own);
}

void World::RestorePower(Machine& machine) {
  if (machine.has_power || machine.stays_broken) return;
  machine.has_power = true;
  Trace(absl::StrCat("machine ", machine.number, ": power is back"));
  if (machine.pmem != nullptr) {
    StartNode(machine);
  } else {
    StartCandidate(machine);
  }
}

}  // namespace alpheus::sim
