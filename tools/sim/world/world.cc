// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/world.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/ring/format_region.h"
#include "tools/sim/actors/candidate_agent.h"
#include "tools/sim/actors/deleter.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service/service_clients.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/actors/tail_client.h"
#include "tools/sim/actors/unauthenticated_client.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/power_cut.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// Two pages for each copy: room for more epochs than a run opens between two
// cleanups.
constexpr uint64_t kTableEntries = 102;

// Daemon and application are on one machine; the last one has no replica.
std::vector<replication::Platform> PlatformsOfHosts(const RunOptions& options) {
  std::vector<replication::Platform> platforms = options.platforms;
  platforms.resize(static_cast<size_t>(options.nodes));
  platforms.insert(platforms.end(), options.platforms.begin(),
                   options.platforms.end());
  return platforms;
}

model::SimOptions NetworkOptions(const RunOptions& options) {
  model::SimOptions network;
  network.seed = options.seed;
  network.hosts = 2 * options.nodes + 1 +
                  (options.background_actors.tail ? 1 : 0) +
                  (options.background_actors.unauthenticated ? 1 : 0) +
                  (options.background_actors.elect ? options.nodes : 0) +
                  (options.background_actors.deletes ? 1 : 0);
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
  membership.other_session_odds = options.membership_stale_odds;
  return membership;
}

// The checkers go by the options, the log by this.
uint32_t WriteQuorumOf(const RunOptions& options) {
  if (options.canary == Canary::kEarlyDurable) return 1;
  return static_cast<uint32_t>(options.write_quorum);
}

// A crash destroys nothing (TH1 of threads.h).
template <class T>
void Abandon(std::unique_ptr<T>& process) {
  static_cast<void>(process.release());
}

// The process that knew of the failed medium is gone; what it has written
// stays.
void ForgetSuspicion(World& world, int machine) {
  EpochChecker& epochs = world.checkers().epochs;
  epochs.CheckNews();
  world.store().Forget(machine, epochs.repairing(machine));
}

}  // namespace

World::World(const RunOptions& options)
    : options_(options),
      sizes_(*quorum::MakeQuorumSizes(static_cast<uint32_t>(options.members()),
                                      WriteQuorumOf(options))),
      layout_(*Layout::ForRing(options.ring_capacity, kTableEntries)),
      random_(options.seed * 2 + 1),
      network_(std::make_unique<model::SimNetwork>(NetworkOptions(options))),
      threads_(
          std::make_unique<Threads>(*network_, random_, options.switch_ns_max)),
      oracle_(std::make_unique<Oracle>(network_->clock())),
      history_(std::make_unique<History>(*oracle_)),
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
  network_->SetOnLanding([this](const model::LandedBytes& landed) {
    // Reads of background actors land in their own memory.
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
    if (options.background_actors.elect) network_->Crash(StandingHost(machine));
    auto region = std::make_unique<Model>(layout_.region_bytes);
    const bool is_member = machine.number < options.members();
    if (is_member) Format(machine.number, *region);
    GiveMemory(machine, std::move(region));
    if (is_member) checkers_->epochs.Check(machine.number);
    StartNode(machine);
  }
  if (options.background_actors.tail) {
    tail_ = std::make_unique<TailClient>(*this, TailHost());
  }
  if (options.background_actors.unauthenticated) {
    unauthenticated_client_ =
        std::make_unique<UnauthenticatedClient>(*this, UnauthenticatedHost());
  }
  if (options.background_actors.changes)
    operator_ = std::make_unique<Operator>(*this);
  if (options.background_actors.deletes) {
    deleter_ = std::make_unique<Deleter>(*this, DeleterHost());
  }
  if (options.workload == Workload::kService) {
    service_clients_ = std::make_unique<ServiceClients>(*this);
  }
}

quorum::ClusterKey SimulatedKey() {
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{0x5e});
  return quorum::ClusterKey(bytes);
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
  oracle_->Violate("P-A8",
                   absl::StrCat("machine ", machine.number,
                                " opens a region that is not its replica"));
}

void World::KeepOldMemory(std::unique_ptr<Model> memory) {
  old_memories_.push_back(std::move(memory));
}

void World::OnPrimitive(Machine& machine, const Model::Event& event) {
  if (!threads_->InThread()) return;
  // First: nothing is noted yet.
  if (IsAlone(machine)) SwitchByLot();
  checkers_->epochs.OnPrimitive(machine.number, event);
  if (machine.breakpoint.OnCall(event, layout_.ring_offset))
    HitBreakpoint(machine);
  if (event.primitive == Model::Primitive::kYieldPoint &&
      options_.yield_odds != 0 && random_.Below(options_.yield_odds) == 0) {
    threads_->Yield();
  }
}

// In the node's turn, and in an opening, no other thread waits for their locks.
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

void World::HitBreakpoint(Machine& machine) {
  const FaultKind kind = machine.breakpoint.kind();
  const bool is_kill =
      kind == FaultKind::kKillNode || kind == FaultKind::kKillPrimary;
  const ProcessId running = threads_->running_process();
  const bool is_node =
      machine.node != nullptr && machine.node->process() == running;
  if (is_kill && is_node != (machine.region_user == RegionUser::kNode)) {
    // The application has the node let go of the region: the next time.
    machine.breakpoint.StrikeAgain();
    return;
  }
  Count(kind);
  ++counters_.breakpoints;
  if (machine.breakpoint.aim() != BreakpointAim::kAnyCall)
    ++counters_.metadata_breakpoints;
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
  if (options_.background_actors.tail && machine == options_.tail_machine) {
    hosts.push_back(TailHost());
  }
  if (options_.background_actors.elect && machine < options_.nodes) {
    hosts.push_back(StandingHost(machines_[static_cast<size_t>(machine)]));
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

void World::RestoreLink(int from, int to) {
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

// --- Memory -----------------------------------------------------------------

replication::Platform World::PlatformOf(int machine) const {
  const auto index = static_cast<size_t>(machine);
  return index < options_.platforms.size() ? options_.platforms[index]
                                           : replication::Platform();
}

void World::Format(int number, Model& pmem) const {
  FormatIdentity identity;
  identity.cluster_id = kClusterId;
  identity.log_id = kLogId;
  identity.node = NodeId(static_cast<uint64_t>(number) + 1);
  identity.configuration = configuration();
  ALPHEUS_CHECK(FormatRegion(pmem, pmem.region(), layout_, identity).ok(),
                "modelled memory does not fail unasked");
}

// Both adapters of the machine have it, whichever program uses it.
void World::GiveMemory(Machine& machine, std::unique_ptr<Model> pmem) {
  machine.pmem = std::move(pmem);
  machine.pmem->SetHook(
      [this, number = machine.number](const Model::Event& event) {
        OnPrimitive(machines_[static_cast<size_t>(number)], event);
      });
  for (const int host : HostsOf(machine.number)) {
    network_->AttachMemory(host, *machine.pmem);
  }
}

std::unique_ptr<World::Model> World::TakeMemory(Machine& machine) {
  if (machine.pmem == nullptr) return nullptr;
  for (const int host : HostsOf(machine.number)) {
    network_->DetachMemory(host, *machine.pmem);
  }
  machine.pmem->SetHook({});
  return std::move(machine.pmem);
}

std::unique_ptr<World::Model> World::GiveRegion(int machine,
                                                std::unique_ptr<Model> region) {
  ALPHEUS_CHECK(!machines_[machine].has_power ||
                    machines_[machine].region_user == RegionUser::kNobody,
                "nobody has it open");
  std::unique_ptr<Model> old = TakeMemory(machines_[machine]);
  GiveMemory(machines_[machine], std::move(region));
  return old;
}

void World::ExchangeRegions(int a, int b) {
  std::unique_ptr<Model> of_b = TakeMemory(machines_[b]);
  GiveMemory(machines_[b], GiveRegion(a, std::move(of_b)));
}

bool World::LeaveRegion(Machine& machine) {
  ALPHEUS_CHECK(machine.region_user == RegionUser::kPrimary,
                "it has the region");
  for (const int host : HostsOf(machine.number)) {
    if (network_->stages(host).HasInbound()) return false;
  }
  auto left = std::make_unique<Model>(layout_.region_bytes);
  left->CopyAfterKill(*machine.pmem);
  left->SetThread(machine.pmem->thread());
  machine.pmem->FailFence(0);
  for (const int host : HostsOf(machine.number)) {
    network_->DetachMemory(host, *machine.pmem);
  }
  // With its hook: threads of the primary are in the middle of it.
  KeepOldMemory(std::move(machine.pmem));
  GiveMemory(machine, std::move(left));
  machine.region_user = RegionUser::kNobody;
  ++counters_.regions_released;
  Trace(absl::StrCat("machine ", machine.number, ": replica is released"));
  return true;
}

std::span<const std::byte> World::Medium(int number) {
  Model& pmem = *store_->medium(number);
  if (!store_->IsOwn(number)) return pmem.persistent();  // SRS1
  Machine& machine = machines_[static_cast<size_t>(number)];
  const replication::PersistenceDomain domain = PlatformOf(number).domain;
  if (domain == replication::PersistenceDomain::kMemory)
    return pmem.persistent();
  const auto visible = pmem.region();
  if (domain == replication::PersistenceDomain::kHierarchy) return visible;
  bool is_all = true;
  for (const int host : HostsOf(number)) {
    is_all = is_all && !network_->stages(host).HasInbound();
  }
  if (is_all) return visible;
  machine.medium.assign(visible.begin(), visible.end());
  for (const int host : HostsOf(number)) {
    network_->stages(host).LandInto(machine.medium, pmem);
  }
  return machine.medium;
}

void World::LosePower(Machine& machine) {
  Trace(absl::StrCat("machine ", machine.number, ": power is cut"));
  machine.has_power = false;
  machine.breakpoint.Clear();
  ForgetNode(machine, /*with_power=*/false);
  ForgetPrimary(machine, /*with_power=*/false);
  if (machine.standing != nullptr) {
    Abandon(machine.standing);
    network_->LosePowerOfAdapter(StandingHost(machine));
  }
  machine.region_user = RegionUser::kNobody;
  for (const int host : HostsOf(machine.number)) {
    network_->LosePowerOfAdapter(host);
  }
  if (machine.pmem == nullptr) return;
  if (options_.canary == Canary::kLostFences) {
    Model formatted(layout_.region_bytes);
    Format(machine.number, formatted);
    return machine.pmem->Reset(formatted.persistent());
  }
  machine.pmem->Reset(DrawPowerCut(*machine.pmem, random_));
  checkers_->epochs.Check(machine.number);
  checkers_->durability.Check();
}

// --- Processes and their power ----------------------------------------------

// Processes that are still there end as in a crash.
World::~World() {
  for (Machine& machine : machines_) {
    Abandon(machine.node);
    Abandon(machine.primary);
    Abandon(machine.candidate);
    Abandon(machine.standing);
    static_cast<void>(TakeMemory(machine));
  }
  Abandon(tail_);
  Abandon(deleter_);
  Abandon(unauthenticated_client_);
  Abandon(service_clients_);
}

void World::StartNode(Machine& machine) {
  if (machine.node != nullptr || !machine.has_power) return;
  if (machine.stays_broken) return;
  network_->Restart(NodeHost(machine));
  active_[NodeHost(machine)] = false;
  machine.node = std::make_unique<NodeProcess>(*this, machine);
  Trace(absl::StrCat("machine ", machine.number, ": node starts"));
  StartCandidate(machine);
  StartStanding(machine);
}

// A process of its own, which a node's end leaves alone.
void World::StartStanding(Machine& machine) {
  if (!options_.background_actors.elect || is_quiet_) return;
  if (machine.standing != nullptr) return;
  network_->Restart(StandingHost(machine));
  active_[StandingHost(machine)] = false;
  machine.standing = std::make_unique<StandingAgent>(*this, machine);
}

// In the product an application and what stands for it are one process. A
// supervisor starts it again: another candidate, which knows nothing.
void World::RestartStanding(Machine& machine) {
  if (machine.standing == nullptr ||
      !machine.standing->HasStarted(machine.primary->process())) {
    return;
  }
  const ProcessId process = machine.standing->process();
  Abandon(machine.standing);
  network_->EndProgram(StandingHost(machine));
  threads_->Kill(process);
  StartStanding(machine);
}

// A thread of the node's daemon, if there is one. With the actor `elect` the
// product's election takes its place.
void World::StartCandidate(Machine& machine) {
  if (membership_ == nullptr || is_quiet_) return;
  if (options_.background_actors.elect) return;
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
  if (machine.region_user != RegionUser::kNode) return;
  machine.region_user = RegionUser::kNobody;
  ForgetSuspicion(*this, machine.number);
  if (with_power) machine.pmem->KeepAfterKill();
}

void World::ForgetPrimary(Machine& machine, bool with_power) {
  if (machine.primary == nullptr) return;
  if (machine.primary->has_failed_medium()) NoteFailedMedium(machine);
  Abandon(machine.primary);
  if (with_power) network_->EndProgram(PrimaryHost(machine));
  if (machine.region_user != RegionUser::kPrimary) return;
  machine.region_user = RegionUser::kNobody;
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
  checkers_->elections.Leaves(machine.number);
  RestartStanding(machine);
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
  if (machine.standing != nullptr) {
    processes.push_back(machine.standing->process());
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
          machine.primary->process() == running) ||
         (machine.standing != nullptr &&
          machine.standing->process() == running))) {
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
