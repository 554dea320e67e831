// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/clock_faults.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/world/process_clock.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kHourNanos = 3'600'000'000'000;
constexpr uint64_t kShortNanos = 10'000'000;
// Times faster or slower.
constexpr uint64_t kTimesMax = 20;

struct ClockOf {
  ProcessId process = 0;
  ProcessClock* clock = nullptr;
};

std::vector<ClockOf> AllClocks(World& world) {
  std::vector<ClockOf> clocks;
  for (const World::Machine& machine : world.machines()) {
    if (machine.node != nullptr) {
      clocks.push_back({machine.node->process(), &machine.node->clock()});
    }
    if (machine.primary != nullptr) {
      clocks.push_back({machine.primary->process(), &machine.primary->clock()});
    }
  }
  return clocks;
}

void SetRate(World& world, ProcessId process, int64_t rate) {
  for (const ClockOf& found : AllClocks(world)) {
    if (found.process != process) continue;
    found.clock->SetRate(rate);
    world.threads().WakeAll(process);
  }
}

// The machine's, or that of the first one behind it that has one.
ClockOf Find(World& world, const Fault& fault) {
  const bool is_primary = fault.other % 2 == 0;
  const World::Machine* const found =
      world.FindMachine(fault.machine, [&](const World::Machine& machine) {
        return is_primary ? machine.primary != nullptr
                          : machine.node != nullptr;
      });
  if (found == nullptr) return {};
  if (is_primary) return {found->primary->process(), &found->primary->clock()};
  return {found->node->process(), &found->node->clock()};
}

}  // namespace

bool InjectIntoClock(World& world, const Fault& fault) {
  const ClockOf found = Find(world, fault);
  if (found.clock == nullptr) return false;
  const uint64_t way = fault.other / 2 % 4;
  const uint64_t size = fault.other / 8;
  if (way < 2) {
    found.clock->Jump(
        static_cast<int64_t>(1 + size % (way == 0 ? kHourNanos : kShortNanos)));
    world.threads().WakeAll(found.process);
    return true;
  }
  const auto times = static_cast<int64_t>(2 + size % (kTimesMax - 1));
  SetRate(world, found.process,
          way == 2 ? ProcessClock::kNormalRate * times
                   : ProcessClock::kNormalRate / times);
  world.network().Schedule(fault.lasts_ns, [&world, process = found.process] {
    SetRate(world, process, ProcessClock::kNormalRate);
  });
  return true;
}

void HealClocks(World& world) {
  for (const ClockOf& found : AllClocks(world)) {
    SetRate(world, found.process, ProcessClock::kNormalRate);
  }
}

}  // namespace alpheus::sim
