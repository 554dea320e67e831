// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/world.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "tools/sim/actors/candidate_agent.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/stranger.h"
#include "tools/sim/actors/tail_client.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// Two pages for each copy: room for more epochs than a run opens between two
// cleanups.
constexpr uint64_t kTableEntries = 102;

// Daemon and application are on one machine; the last one has no replica.
std::vector<Platform> PlatformsOfHosts(const RunOptions& options) {
  std::vector<Platform> platforms = options.platforms;
  platforms.resize(static_cast<size_t>(options.nodes));
  platforms.insert(platforms.end(), options.platforms.begin(),
                   options.platforms.end());
  return platforms;
}

SimOptions NetworkOptions(const RunOptions& options) {
  SimOptions network;
  network.seed = options.seed;
  network.hosts = 2 * options.nodes + 1 + (options.guests.tail ? 1 : 0) +
                  (options.guests.stranger ? 1 : 0);
  network.delay_ns_max = options.delay_ns_max;
  network.break_probability = options.break_probability;
  network.limits.retry_ns = 2'000'000;
  network.stage_words = options.stage_words;
  network.platforms = PlatformsOfHosts(options);
  return network;
}

MembershipOptions MembershipOptionsOf(const RunOptions& options) {
  MembershipOptions membership;
  membership.seed = options.seed;
  membership.machines = options.nodes + 1;
  membership.delay_ns_max = options.delay_ns_max;
  membership.session_ns = options.session_ns;
  membership.watch_ns_max = options.watch_ns_max;
  membership.lost_odds = options.membership_lost_odds;
  membership.stale_odds = options.membership_stale_odds;
  return membership;
}

// The checkers go by the options, the log by this.
uint32_t WriteQuorumOf(const RunOptions& options) {
  if (options.canary == Canary::kEarlyDurable) return 1;
  return static_cast<uint32_t>(options.write_quorum);
}

}  // namespace

World::World(const RunOptions& options)
    : options_(options),
      sizes_(*MakeQuorumSizes(static_cast<uint32_t>(options.members()),
                              WriteQuorumOf(options))),
      layout_(*Layout::ForRing(options.ring_capacity, kTableEntries)),
      random_(options.seed * 2 + 1),
      network_(std::make_unique<SimNetwork>(NetworkOptions(options))),
      threads_(
          std::make_unique<Threads>(*network_, random_, options.switch_ns_max)),
      referee_(std::make_unique<Referee>(network_->clock())),
      history_(std::make_unique<History>(*referee_)),
      machines_(static_cast<size_t>(options.nodes) + 1),
      active_(static_cast<size_t>(network_->options().hosts)),
      link_cuts_(machines_.size(), std::vector<int>(machines_.size())) {
  MemberList first;
  for (int m = 0; m < options.members(); ++m) first.machines.push_back(m);
  first.write_quorum = sizes_.write_quorum;
  lists_ = std::make_unique<MemberLists>(std::move(first), machines_.size());
  store_ = std::make_unique<RegionStore>(*this);
  images_ = std::make_unique<RegionImages>(*this);
  checkers_ = std::make_unique<Checkers>(*this);
  if (options.has_membership_service) {
    membership_ = std::make_unique<MembershipService>(
        *network_, checkers_->ballots, MembershipOptionsOf(options));
  }
  network_->SetOnActivity([this](int host) { NoteActivity(host); });
  network_->SetOnLanding([this](const LandedBytes& landed) {
    // What a guest has read lands in memory of its own.
    if (landed.host < TailHost()) checkers_->fence.OnLanding(landed);
  });
  threads_->SetOnSwitch([this](uint32_t thread) {
    for (Machine& machine : machines_) {
      if (machine.pmem != nullptr) machine.pmem->SetThread(thread);
    }
  });
  for (size_t i = 0; i < machines_.size(); ++i) {
    Machine& machine = machines_[i];
    machine.number = static_cast<int>(i);
    network_->Crash(PrimaryHost(machine));
    if (machine.number == options.nodes) {
      StartCandidate(machine);
      continue;
    }
    network_->Crash(NodeHost(machine));
    auto region = std::make_unique<Model>(layout_.region_bytes);
    const bool is_member = machine.number < options.members();
    if (is_member) Format(machine.number, *region);
    GiveMemory(machine, std::move(region));
    if (is_member) checkers_->epochs.Look(machine.number);
    StartNode(machine);
  }
  if (options.guests.tail) {
    tail_ = std::make_unique<TailClient>(*this, TailHost());
  }
  if (options.guests.stranger) {
    stranger_ = std::make_unique<Stranger>(*this, StrangerHost());
  }
  if (options.guests.changes) operator_ = std::make_unique<Operator>(*this);
}

ClusterKey SimulatedKey() {
  std::array<std::byte, kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{0x5e});
  return ClusterKey(bytes);
}

Configuration World::configuration() const {
  Configuration configuration;
  configuration.replica_count = sizes_.replica_count;
  configuration.write_quorum = sizes_.write_quorum;
  for (uint64_t member = 1; member <= sizes_.replica_count; ++member) {
    configuration.members.push_back({NodeId(member), 100 + member});
  }
  return configuration;
}

void World::NoteFailedMedium(const Machine& machine) {
  Count(FaultKind::kFailFence);
  Trace(absl::StrCat("machine ", machine.number, ": the medium fails"));
}

void World::JudgeRefusal(const Machine& machine, const absl::Status& status) {
  if (!status.ok()) {
    ++counters_.regions_refused;
    return;
  }
  referee_->Violate("P-A8",
                    absl::StrCat("machine ", machine.number,
                                 " opens a region that is not its replica"));
}

void World::KeepOldMemory(std::unique_ptr<Model> memory) {
  old_memories_.push_back(std::move(memory));
}

void World::OnPrimitive(Machine& machine, const Model::Event& event) {
  if (!threads_->InThread()) return;
  // Before anybody notes what is about to be done.
  if (IsAlone(machine)) SwitchByLot();
  checkers_->epochs.OnPrimitive(machine.number, event);
  if (machine.trap.OnCall(event, layout_.ring_offset)) SpringTrap(machine);
  if (event.primitive == Model::Primitive::kYieldPoint &&
      options_.yield_odds != 0 && random_.Below(options_.yield_odds) == 0) {
    threads_->Yield();
  }
}

// The node's turn, and an opening: no other thread waits for what it locks.
bool World::IsAlone(const Machine& machine) const {
  const ProcessId running = threads_->running_process();
  if (machine.node != nullptr && machine.node->process() == running)
    return true;
  return machine.primary != nullptr && machine.primary->is_opening() &&
         machine.primary->process() == running;
}

void World::SwitchByLot() {
  if (options_.switch_odds == 0 || is_quiet_ || !threads_->InThread()) return;
  if (random_.Below(options_.switch_odds) != 0) return;
  ++counters_.switches;
  threads_->Yield();
}

void World::SpringTrap(Machine& machine) {
  const FaultKind kind = machine.trap.kind();
  const bool is_kill =
      kind == FaultKind::kKillNode || kind == FaultKind::kKillPrimary;
  const ProcessId running = threads_->running_process();
  const bool is_node =
      machine.node != nullptr && machine.node->process() == running;
  if (is_kill && is_node != (machine.holder == Holder::kNode)) {
    // The application has the node let go of the region: the next time.
    machine.trap.StrikeAgain();
    return;
  }
  Count(kind);
  ++counters_.traps;
  if (machine.trap.aim() != TrapAim::kAnyCall) ++counters_.metadata_traps;
  if (is_kill) return is_node ? KillNode(machine) : KillPrimary(machine);
  if (kind == FaultKind::kPowerCut) return CutPower(machine);
  CutPowerOfAll();
}

void World::NoteActivity(int host) {
  active_[host] = true;
  threads_->Wake(&active_[host]);
}

void World::WaitForActivity(int host, Deadline deadline) {
  if (active_[host]) return threads_->Yield();
  threads_->WaitFor(&active_[host], deadline);
}

std::vector<int> World::HostsOf(int machine) const {
  std::vector<int> hosts = {options_.nodes + machine};
  if (machine < options_.nodes) hosts.push_back(machine);
  return hosts;
}

std::vector<int> World::LinkedHostsOf(int machine) const {
  std::vector<int> hosts = HostsOf(machine);
  if (options_.guests.tail && machine == options_.tail_machine) {
    hosts.push_back(TailHost());
  }
  return hosts;
}

void World::CutLink(int from, int to) {
  if (from == to || ++link_cuts_[from][to] != 1) return;
  Trace(absl::StrCat("machine ", from, " to ", to, ": cut"));
  for (const int a : LinkedHostsOf(from)) {
    for (const int b : LinkedHostsOf(to)) network_->CutOneWay(a, b);
  }
}

void World::MendLink(int from, int to) {
  if (link_cuts_[from][to] == 0) return;
  link_cuts_[from][to] = 1;
  HealLink(from, to);
}

void World::HealLink(int from, int to) {
  if (from == to || link_cuts_[from][to] == 0) return;
  if (--link_cuts_[from][to] != 0) return;
  Trace(absl::StrCat("machine ", from, " to ", to, ": healed"));
  for (const int a : LinkedHostsOf(from)) {
    for (const int b : LinkedHostsOf(to)) network_->HealOneWay(a, b);
  }
}

void World::SetTrace(std::function<void(std::string_view)> trace) {
  trace_ = std::move(trace);
  network_->SetTrace(trace_);
}

void World::Trace(std::string_view what) {
  if (!trace_) return;
  trace_(absl::StrCat(now(), " ", absl::string_view(what.data(), what.size())));
}

}  // namespace alpheus::sim
