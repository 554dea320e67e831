// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/node_process.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/ring/region_state.h"
#include "recovery/replica/local_replica.h"
#include "recovery/server/served_log.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/replica_upkeep.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/actors/watched_replica.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// How often a region is tried that somebody else has.
constexpr int64_t kRecheckNanos = 200'000;
// How long a process waits for a replica that a primary has.
// From when a replica is served until its node asks whether it was deleted.
constexpr int64_t kInquiryNanos = 2'000'000;
constexpr int64_t kStepDownNanos = 2'000'000;

}  // namespace

NodeProcess::NodeProcess(World& world, World::Machine& machine)
    : world_(world),
      machine_(machine),
      host_(world.NodeHost(machine)),
      process_(world.threads().NewProcess()),
      random_(world.random().Next()),
      clock_(world.network().clock(), world.DrawClock()),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(process_, [this] { Run(); });
}

void NodeProcess::TryToServe() {
  recheck_at_ = clock_.NowNanos() + kRecheckNanos;
  const auto content = world_.store().content(machine_.number);
  if ((machine_.region_user != World::RegionUser::kNobody && !is_suspect_) ||
      content == RegionStore::Content::kAbsent) {
    return;
  }
  World::Model& pmem = *machine_.pmem;
  recovery::LocalReplicaOptions options;
  options.name = absl::StrCat("replica of node ", machine_.id().value);
  options.expected_cluster_id = kClusterId;
  options.expected_log_id = kLogId;
  options.expected_node = machine_.id();
  options.suspect = is_suspect_;
  options.read_whole_bytes_max = world_.options().read_whole_bytes_max;
  machine_.region_user = World::RegionUser::kNode;
  absl::StatusOr<std::unique_ptr<recovery::LocalReplica<World::Model>>>
      replica = recovery::LocalReplica<World::Model>::Open(pmem, pmem.region(),
                                                           options);
  if (content == RegionStore::Content::kAlien) {
    machine_.region_user = World::RegionUser::kNobody;
    return world_.JudgeRefusal(machine_, replica.status());
  }
  if (!pmem.Error().ok()) {
    BeSuspicious();
    return world_.RenewMemory(machine_);
  }
  if (!replica.ok()) {
    world_.oracle().Violate(
        "P-A3.5", absl::StrCat("a replica does not open after a crash: ",
                               replica.status().ToString()));
    machine_.region_user = World::RegionUser::kNobody;
    return;
  }
  std::unique_ptr<recovery::ServedLog> served =
      Watch(world_, machine_.number,
            std::make_unique<recovery::ServedReplica<World::Model>>(
                pmem, *std::move(replica)));
  served_ = served.get();
  ALPHEUS_CHECK(server_->AddLog(std::move(served)).ok(),
                "the log was not served");
  is_suspect_ = false;  // its superline says so
}

// Does what ND3 of api/node/hosted_logs.h says: the region is opened again, and
// kept until its superline says that it is suspect.
void NodeProcess::BeSuspicious() {
  world_.NoteFailedMedium(machine_);
  const absl::StatusOr<RegionState> shown =
      ReadRegionState(machine_.pmem->region(), "region");
  world_.store().Suspect(machine_.number,
                         shown.ok() ? shown->superline.log_epoch : Epoch());
  is_suspect_ = true;
  recheck_at_ = clock_.NowNanos() + kRecheckNanos;
}

void NodeProcess::CloseFailed() {
  if (server_->LogsWithFailedMedium().empty()) return;
  ALPHEUS_CHECK(server_->RemoveLog(kLogId).ok(), "the log is served");
  served_ = nullptr;
  BeSuspicious();
  world_.RenewMemory(machine_);
}

bool NodeProcess::HasPromisedAbove(std::optional<Epoch> epoch) const {
  return epoch && served_->current_promise().epoch > *epoch;
}

NodeProcess::Released NodeProcess::Release(std::optional<Epoch> promised_max) {
  if (world_.threads().IsPaused(process_)) return Released::kNotYet;
  if (served_ == nullptr) {
    return machine_.region_user == World::RegionUser::kNobody
               ? Released::kYes
               : Released::kNotYet;
  }
  if (HasPromisedAbove(promised_max)) return Released::kRefused;
  must_release_ = true;
  release_max_ = promised_max;
  world_.NoteActivity(host_);
  return Released::kNotYet;
}

// The node's own thread does this: a fence of another thread does not drain its
// stores (P-F3).
void NodeProcess::LetGo() {
  must_release_ = false;
  if (served_ == nullptr || HasPromisedAbove(release_max_)) return;
  ALPHEUS_CHECK(server_->RemoveLog(kLogId).ok(), "the log is served");
  served_ = nullptr;
  machine_.region_user = World::RegionUser::kNobody;
  recheck_at_ = clock_.NowNanos() + 10 * kRecheckNanos;
}

bool NodeProcess::Turn() {
  world_.ClearActivity(host_);
  const size_t count = fabric_.Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
    server_->OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) server_->OnCompletion(completions_[i]);
  server_->Poll();
  return any;
}

absl::Status NodeProcess::WhyUnserved(Uuid /*log_id*/) {
  return served_ != nullptr || world_.store().content(machine_.number) ==
                                   RegionStore::Content::kAbsent
             ? absl::OkStatus()
             : absl::UnavailableError("somebody else has it");
}

absl::StatusOr<recovery::ServerHello> NodeProcess::ReadServerHello(
    Uuid log_id) {
  if (!world_.options().background_actors.claim) return WhyUnserved(log_id);
  const std::optional<recovery::ServerHello> server_hello =
      alpheus::recovery::ServerHelloOfClaimed(
          machine_.pmem->region(), kClusterId, kLogId, machine_.id());
  if (!server_hello) return absl::UnavailableError("somebody else has it");
  return *server_hello;
}

recovery::ReplicaServerOptions NodeProcess::ServerOptions() {
  recovery::ReplicaServerOptions options;
  options.cluster_id = kClusterId;
  options.credentials = {SimulatedKey(), &random_};
  options.node = machine_.id();
  options.platform = world_.PlatformOf(machine_.number);
  if (world_.options().canary == Canary::kWrongPlatform) {
    options.platform.domain = replication::PersistenceDomain::kHierarchy;
  }
  // In the middle of a scan, too, something else may come.
  options.slice_bytes = world_.options().slice_bytes;
  options.idle_ns = 100'000;
  options.scrubbing = ScrubbingOf(world_, world_.lists().of(machine_.number));
  options.regions = this;
  if (world_.options().background_actors.deletes) {
    options.inquiry.first_ns = kInquiryNanos;
    options.inquiry.again_ns_max = 8 * kInquiryNanos;
    options.inquiry.reply_timeout_ns = 3'000'000;
    for (const World::Machine& machine : world_.machines()) {
      if (machine.number == world_.options().nodes) continue;
      options.inquiry.peers.push_back(
          {machine.id(), world_.NodeAddress(machine.number)});
    }
  }
  options.desk = SimulatedDesk();
  if (world_.IsTraced()) {
    options.warn = [this](const std::string& what) {
      world_.Trace(absl::StrCat("machine ", machine_.number, ": ", what));
    };
  }
  if (world_.options().background_actors.claim)
    options.step_down_timeout_ns = kStepDownNanos;
  return options;
}

void NodeProcess::OnLockHolderGone(Uuid /*log_id*/) {
  recheck_at_ = clock_.NowNanos();
}

void NodeProcess::Run() {
  server_ = std::make_unique<recovery::ReplicaServer>(fabric_, clock_,
                                                      ServerOptions());
  TryToServe();
  ALPHEUS_CHECK(fabric_.Listen(world_.NodeAddress(machine_.number)).ok(),
                "a new adapter listens");
  for (;;) {
    if (must_release_) LetGo();
    if (served_ == nullptr && clock_.NowNanos() >= recheck_at_) TryToServe();
    const bool any = Turn();
    CloseFailed();
    if (any) {
      world_.threads().Yield();
      continue;
    }
    Deadline deadline = server_->NextPoll();
    if (served_ == nullptr && recheck_at_ < deadline.at_nanos()) {
      deadline = Deadline::AtNanos(recheck_at_);
    }
    world_.WaitForActivity(host_, clock_.InWorld(deadline));
  }
}

}  // namespace alpheus::sim
