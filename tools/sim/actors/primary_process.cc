// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/primary_process.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/ring/region_state.h"
#include "recovery/resync/member_upkeep.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/actors/workload.h"
#include "tools/sim/checkers/calm_checker.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kLockRetryNanos = 50'000;
constexpr int64_t kIdleNanos = 100'000;
constexpr int64_t kClaimRetryNanos = 300'000;
constexpr int64_t kClaimNeverNanos = 1'000'000'000'000;
constexpr int64_t kClaimConnectNanos = 2'000'000;

}  // namespace

// The log's sink; its waiting threads let the others run.
class PrimaryProcess::Sink final : public ReplicationSink {
 public:
  Sink(PrimaryProcess& primary, const replication::Replicator::Options& options)
      : primary_(primary),
        world_(primary.world_),
        inner_(primary.fabric_, primary.clock_, primary.random_, options,
               primary.opening_.MakeResyncOptions(), primary.opening_.opened()),
        replicator_(inner_.replicator()),
        durable_lsn_(replicator_.durable_lsn()),
        calm_(world_.oracle(), world_.options()) {}

  void Advance(const RingEnd& finished) override {
    replicator_.Advance(finished);
    Check();
  }
  void LocalPersisted(Lsn lsn) override {
    replicator_.LocalPersisted(lsn);
    Check();
  }
  void AdvanceHead(const LogPosition& head) override {
    replicator_.AdvanceHead(head);
  }
  void AnnounceDurable() override { replicator_.AnnounceDurable(); }
  Polled Poll() override {
    world_.ClearActivity(primary_.host_);
    const Polled polled = replicator_.Poll();
    CountJoins();
    Check();
    return polled;
  }
  ReplicationState replication_state() const override {
    return replicator_.replication_state();
  }
  uint32_t in_sync() const { return replicator_.in_sync(); }
  void ClaimReplica(recovery::RegionClaimOptions claim,
                    const recovery::ScrubbingOptions& scrubbing,
                    recovery::PrimaryReplica& replica) {
    inner_.ClaimReplica(std::move(claim), scrubbing, replica);
  }
  absl::Status status() const override { return replicator_.status(); }
  void WaitForActivity(Deadline deadline) override {
    world_.WaitForActivity(
        primary_.host_,
        primary_.clock_.InWorld(replicator_.PollDeadline(deadline)));
  }
  void Wake() override { world_.NoteActivity(primary_.host_); }

 private:
  void CountJoins() {
    const recovery::ReplicaResync::Counters& counted =
        inner_.resync().counters();
    world_.counters().joins += counted.joins - joins_.joins;
    world_.counters().joins_failed += counted.failures - joins_.failures;
    if (counted.joins != joins_.joins) {
      world_.Trace(absl::StrCat("machine ", primary_.machine_.number,
                                ": a member joins, ", replicator_.in_sync(),
                                " in sync"));
    }
    joins_ = counted;
  }
  void Check() {
    if (replicator_.has_failed()) primary_.judge_->LogFailed();
    // The order matters: a backup that gets no credit is soon given up.
    calm_.WithoutCredit(primary_.world_.network().receivers_not_ready());
    calm_.InSync(replicator_.in_sync(), primary_.HasRival());
    if (replicator_.durable_lsn() == durable_lsn_) return;
    durable_lsn_ = replicator_.durable_lsn();
    primary_.CheckInvariants();
    primary_.images_->OnDurable(durable_lsn_);
  }

  PrimaryProcess& primary_;
  World& world_;
  recovery::MemberUpkeep inner_;
  replication::Replicator& replicator_;
  recovery::ReplicaResync::Counters joins_;  // as counted
  Lsn durable_lsn_;
  CalmChecker calm_;
};

PrimaryProcess::PrimaryProcess(World& world, World::Machine& machine,
                               std::optional<size_t> change)
    : world_(world),
      machine_(machine),
      host_(world.PrimaryHost(machine)),
      process_(world.threads().NewProcess()),
      random_(world.random().Next()),
      change_(change),
      list_(change ? world.lists().list(
                         world.operator_at_work()->change(*change).to)
                   : world.lists().of(machine.number)),
      is_member_(
          !change && list_.Has(machine.number) &&
          (world.store().IsOwn(machine.number) || random_.Below(2) == 0)),
      started_alone_(world.primaries() == 0),
      started_(world.primaries_started() + 1),
      clock_(world.network().clock(), world.DrawClock()),
      fabric_(world.network().fabric(host_), clock_,
              [this] {
                if (is_opening()) world_.SwitchByLot();
              }),
      opening_({world, machine, host_, fabric_, clock_, random_, list_, change_,
                is_member_}),
      waiter_(world.threads(), clock_) {
  world_.threads().Start(process_, [this] { Run(); });
}

PrimaryProcess::~PrimaryProcess() = default;

bool PrimaryProcess::HasRival() const {
  return !started_alone_ || world_.primaries_started() != started_;
}

void PrimaryProcess::Sleep(int64_t ns) {
  world_.threads().SleepUntil(world_.now() + ns);
}

void PrimaryProcess::Run() {
  number_ = world_.history().NewPrimary();
  if (is_member_) {
    TakeRegion();
    opening_.OpenReplica();
  }
  if (!opening_.OpenEpoch(number_)) {
    ++world_.counters().openings_failed;
    if (change_) world_.operator_at_work()->Failed(opening_.status());
    world_.EndPrimary(machine_);
  }
  ++world_.counters().openings;
  world_.counters().repairs += opening_.opened().repairs.size();
  NotifyHistory();
  if (change_) {
    world_.operator_at_work()->Made(*change_, epoch());
    world_.EndPrimary(machine_);
  }
  StartLog();
  while (!is_closing_) world_.threads().WaitFor(this, Deadline());
  // Half of them as they are: exit(3) ends no log.
  if (must_end_in_order_ || random_.Below(2) == 0) EndInOrder();
  world_.EndPrimary(machine_);
}

void PrimaryProcess::NotifyHistory() {
  const auto shown = opening_.NotifyHistory(number_);
  if (shown && world_.options().workload == Workload::kRocksDb) {
    rocksdb_files_ = std::make_unique<RocksDbFiles>(*this);
    rocksdb_files_->Recover(*shown);
  }
}

void PrimaryProcess::Close() {
  is_closing_ = true;
  world_.threads().Wake(this);
}

void PrimaryProcess::CloseInOrder() {
  must_end_in_order_ = true;
  Close();
}

void PrimaryProcess::Idle() { becomes_idle_ = true; }

bool PrimaryProcess::is_idle() const {
  return is_open() && !is_closing_ && clients_ == 0 &&
         sink_->replication_state().is_idle && sink_->status().ok() &&
         log_->durable_lsn() + 1 == log_->next_lsn();
}

uint32_t PrimaryProcess::in_sync() const { return sink_->in_sync(); }

bool PrimaryProcess::has_failed() const {
  return !sink_->status().ok() || has_failed_medium();
}

void PrimaryProcess::TakeRegion() {
  using Released = NodeProcess::Released;
  const std::optional<Epoch> promised_max = opening_.PromisedMax();
  for (;;) {
    const auto released = machine_.region_user == World::RegionUser::kNobody
                              ? Released::kYes
                          : machine_.region_user == World::RegionUser::kNode
                              ? machine_.node->Release(promised_max)
                              : Released::kNotYet;
    if (released == Released::kRefused) world_.EndPrimary(machine_);
    if (released == Released::kYes) {
      machine_.region_user = World::RegionUser::kPrimary;
      return;
    }
    Sleep(kLockRetryNanos);
  }
}

void PrimaryProcess::StartLog() {
  opening_.DropReplica();
  Model& pmem = *opening_.pmem();
  const RingLogStart& start = opening_.opened().start;
  images_ = std::make_unique<ImageChecker>(
      world_, RingOf(pmem.region(), start.superline), start);
  replication::Replicator::Options replicator;
  replicator.write_quorum = opening_.WriteQuorum();
  replicator.has_local_replica = is_member_;
  replicator.lag_bytes_max = world_.options().ring_capacity;
  replicator.ack_timeout_ns = 3'000'000;
  if (world_.options().background_actors.elect) {
    replicator.heartbeat_ns = kHeartbeatNanos;
  }
  judge_.emplace(world_.oracle(), clock_, number_);
  sink_ = std::make_unique<Sink>(*this, replicator);
  const BackgroundActors& background_actors =
      world_.options().background_actors;
  if (is_member_ && (background_actors.scrub || background_actors.claim))
    ClaimRegion();
  RingLogOptions options;
  options.name = "log";
  options.exposure_records_max = world_.options().exposure_records_max;
  options.sink = sink_.get();
  log_ = std::make_unique<RingLog<Model>>(pmem, pmem.region(), start, options,
                                          clock_, waiter_);
  is_serving_ = true;
  world_.threads().Start(process_, [this] { Serve(); });
  if (!world_.is_quiet()) StartClients();
}

// Where replicas are not given up its node refuses, and it hardly asks again.
void PrimaryProcess::ClaimRegion() {
  own_ = std::make_unique<OwnRegion>(world_, machine_, *opening_.pmem(), log_);
  recovery::RegionClaimOptions claim;
  claim.address = world_.NodeAddress(machine_.number);
  claim.node = machine_.id();
  claim.hello = {kClusterId, kLogId, opening_.self()};
  claim.credentials = {SimulatedKey(), &random_};
  claim.promise = {epoch(), opening_.self()};
  claim.retry_ns = world_.options().background_actors.claim ? kClaimRetryNanos
                                                            : kClaimNeverNanos;
  claim.connect_ns = kClaimConnectNanos;
  sink_->ClaimReplica(std::move(claim), ScrubbingOf(world_, list_), *own_);
}

void PrimaryProcess::StartClients() {
  // Made in any case: it draws, and no run is to change by what others do.
  wal_ = std::make_unique<WalApplication>(*this);
  if (rocksdb_files_ != nullptr) {
    rocksdb_ = std::make_unique<RocksDbApplication>(*this, *rocksdb_files_);
  }
  for (int i = 0; i < world_.options().clients; ++i) {
    StartClient([this, i] { RunClient(i); });
  }
}

void PrimaryProcess::RunClient(int number) {
  switch (world_.options().workload) {
    case Workload::kMixed:
      return RunMixedClient(*this);
    case Workload::kWal:
      return wal_->RunThread(number);
    case Workload::kRocksDb:
      return rocksdb_->RunThread(number);
  }
}

void PrimaryProcess::StartClient(std::function<void()> run) {
  ++clients_;
  world_.threads().Start(process_, [this, run = std::move(run)] {
    run();
    --clients_;
    world_.threads().Wake(this);
  });
}

// Runs like the thread of api/wiring/service_thread.h.
void PrimaryProcess::Serve() {
  Progress& progress = log_->progress();
  while (!is_closing_ || clients_ != 0) {
    if (has_failed()) {
      judge_->LogFailed();
      Close();
    }
    if (log_->Poll() == Polled::kMoved) {
      const Deadline until = Deadline::AtNanos(clock_.NowNanos() + kIdleNanos);
      while (log_->WaitForAcks(until, service_stop_)) {
      }
      world_.threads().WaitFor(&is_serving_, clock_.InWorld(until));
      continue;
    }
    const uint32_t seen = progress.Announce();
    if (log_->Poll() != Polled::kMoved) {
      log_->WaitForWork(seen,
                        Deadline::AtNanos(clock_.NowNanos() + 50 * kIdleNanos));
    }
    progress.Withdraw();
  }
  is_serving_ = false;
  world_.threads().Wake(this);
}

void PrimaryProcess::EndInOrder() {
  while (clients_ != 0 || is_serving_) {
    world_.threads().WaitFor(this,
                             Deadline::AtNanos(world_.now() + kIdleNanos));
  }
  if (has_failed()) judge_->LogEnded("failed");
  const absl::Status closed = log_->Close();
  world_.Trace(absl::StrCat("machine ", machine_.number,
                            ": close: ", closed.ToString()));
  if (closed.ok()) {
    world_.history().Acknowledged(number_, log_->next_lsn() - 1);
    world_.NoteClosed(log_->next_lsn());
  } else if (!absl::IsAborted(closed) &&
             !(absl::IsUnavailable(closed) && has_failed_medium())) {
    world_.oracle().Violate("API", absl::StrCat("close: ", closed.ToString()));
  }
  log_.reset();
  sink_.reset();
  judge_->LogEnded("gone");
}

// --- Calls of clients -------------------------------------------------------

bool PrimaryProcess::Returned(const BegunCall& call, Lsn lsn,
                              const absl::Status& status) {
  ++world_.counters().calls;
  CheckInvariants();
  if (world_.IsTraced()) {
    world_.Trace(absl::StrCat("client of primary ", number_, ": ",
                              CallName(call.call), " LSN ", lsn.value, ": ",
                              status.ToString()));
  }
  judge_->Returned(call, lsn, status, has_failed(),
                   clock_.SteadySince(world_.threads().SteadySince(process_)));
  if (!status.ok() && has_failed()) Close();
  return status.ok();
}

void PrimaryProcess::RequestNotice(
    Lsn lsn, std::function<void(const absl::Status&)> then) {
  const BegunCall call = Begin(ClientCall::kOnDurable);
  judge_->RequestedNotice();
  const absl::Status asked = log_->OnDurable(
      lsn, [this, lsn, then = std::move(then)](const absl::Status& outcome) {
        judge_->Notified();
        if (outcome.ok()) world_.history().Acknowledged(number_, lsn);
        if (then) then(outcome);
      });
  // Then it is not called.
  if (!asked.ok()) judge_->Notified();
  Returned(call, lsn, asked);
}

bool PrimaryProcess::CleanupAll() {
  // Records that others append in between are cleaned too.
  const Lsn before = log_->next_lsn();
  History& history = world_.history();
  history.MayBeCleanedThrough(number_, before - 1);
  const Lsn open = log_->first_open_lsn();
  const BegunCall call = Begin(ClientCall::kCleanupAll);
  const absl::Status status = log_->CleanupAll();
  if (Returned(call, before - 1, status)) {
    world_.checkers().epochs.CheckNews();
    history.Emptied(before, open,
                    world_.checkers().configurations.DurableHeadOf(
                        opening_.opened().configuration));
  } else if (absl::IsFailedPrecondition(status)) {
    // It was refused, and has cleaned nothing.
    history.NotEmptied(number_, before, open);
  }
  return status.ok();
}

}  // namespace alpheus::sim
