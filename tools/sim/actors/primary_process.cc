// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/primary_process.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/ring/region_state.h"
#include "recovery/resync/epoch_succession.h"
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
// Times of a change while the log runs: for reserved records to become durable,
// for its openings, and between two of these.
constexpr int64_t kDrainNanos = 3'000'000;
constexpr int64_t kSuccessionNanos = 40'000'000;
constexpr int64_t kRestNanos = 500'000;
constexpr int64_t kConfirmNanos = 5'000'000;  // patience

}  // namespace

// The log's sink; its waiting threads let the others run.
class PrimaryProcess::Sink final : public ReplicationSink {
 public:
  // `changes_online`: the members may change while the log runs.
  Sink(PrimaryProcess& primary, const replication::Replicator::Options& options,
       bool changes_online)
      : primary_(primary),
        world_(primary.world_),
        upkeep_(changes_online ? nullptr : MakeUpkeep(primary, options)),
        succession_(changes_online ? MakeSuccession(primary, options)
                                   : nullptr),
        inner_(changes_online
                   ? static_cast<ReplicationSink&>(*succession_)
                   : static_cast<ReplicationSink&>(upkeep_->replicator())),
        durable_lsn_(durable_lsn()),
        calm_(world_.oracle(), world_.options()) {}

  void Advance(const RingEnd& finished) override {
    inner_.Advance(finished);
    Check();
  }
  void LocalPersisted(Lsn lsn) override {
    inner_.LocalPersisted(lsn);
    Check();
  }
  void AdvanceBounds(const RingBounds& bounds) override {
    head_ = bounds.head.lsn;
    inner_.AdvanceBounds(bounds);
  }
  void AnnounceDurable() override { inner_.AnnounceDurable(); }
  void BeginConfirmation() override { inner_.BeginConfirmation(); }
  void End(const absl::Status& why) override { inner_.End(why); }
  Polled Poll() override {
    world_.ClearActivity(primary_.host_);
    const Polled polled = inner_.Poll();
    CountJoins();
    Check();
    NoteChange();
    return polled;
  }
  ReplicationState replication_state() const override {
    return inner_.replication_state();
  }
  uint32_t in_sync() const {
    return upkeep_ != nullptr ? upkeep_->replicator().in_sync()
                              : succession_->state().in_sync;
  }
  void ClaimReplica(recovery::RegionClaimOptions claim,
                    const recovery::ScrubbingOptions& scrubbing,
                    OwnRegion& own) {
    if (upkeep_ != nullptr) {
      return upkeep_->ClaimReplica(std::move(claim), scrubbing, own);
    }
    succession_->ClaimReplica(std::move(claim), scrubbing, own, own);
  }
  // Errors: as EpochSuccession::Ask. Requires: the members may change.
  absl::Status Ask(recovery::SuccessionRequest request) {
    return succession_->Ask(std::move(request));
  }
  absl::Status status() const override { return inner_.status(); }
  void WaitForActivity(Deadline deadline) override {
    const Deadline until = upkeep_ != nullptr
                               ? upkeep_->replicator().PollDeadline(deadline)
                               : succession_->PollDeadline(deadline);
    world_.WaitForActivity(primary_.host_, primary_.clock_.InWorld(until));
  }
  void Wake() override { world_.NoteActivity(primary_.host_); }

 private:
  static std::unique_ptr<recovery::MemberUpkeep> MakeUpkeep(
      PrimaryProcess& primary,
      const replication::Replicator::Options& options) {
    return std::make_unique<recovery::MemberUpkeep>(
        primary.fabric_, primary.clock_, primary.random_, options,
        primary.opening_.MakeResyncOptions(), primary.opening_.opened());
  }
  static std::unique_ptr<recovery::EpochSuccession> MakeSuccession(
      PrimaryProcess& primary,
      const replication::Replicator::Options& replicator) {
    recovery::SuccessionOptions options;
    options.replicator = replicator;
    options.resync = primary.opening_.MakeResyncOptions();
    options.drain_ns = kDrainNanos;
    options.open_ns = kSuccessionNanos;
    options.rest_ns = kRestNanos;
    options.open_ballots = [&opening = primary.opening_] {
      return opening.OpenBallots();
    };
    return std::make_unique<recovery::EpochSuccession>(
        primary.fabric_, primary.clock_, primary.random_, std::move(options),
        primary.opening_.opened());
  }

  Lsn durable_lsn() const {
    return upkeep_ != nullptr ? upkeep_->replicator().durable_lsn()
                              : succession_->replication_state().durable_lsn;
  }
  bool has_failed() const {
    return upkeep_ != nullptr ? upkeep_->replicator().has_failed()
                              : succession_->replication_state().has_failed;
  }
  void NoteChange() {
    if (succession_ == nullptr || !primary_.is_changing()) return;
    const recovery::EpochSuccession::Change change = succession_->change();
    if (change.done == change.asked) primary_.Changed(change);
  }
  void CountJoins() {
    const recovery::ReplicaResync::Counters counted =
        upkeep_ != nullptr ? upkeep_->resync().counters()
                           : succession_->state().counters;
    // The next epoch counts anew.
    if (counted.tries < joins_.tries) joins_ = {};
    world_.counters().joins += counted.joins - joins_.joins;
    world_.counters().joins_failed += counted.failures - joins_.failures;
    if (counted.joins != joins_.joins) {
      world_.Trace(absl::StrCat("machine ", primary_.machine_.number,
                                ": a member joins, ", in_sync(), " in sync"));
    }
    joins_ = counted;
  }
  void Check() {
    if (has_failed()) primary_.judge_->LogFailed();
    // The order matters: a backup that gets no credit is soon given up.
    calm_.WithoutCredit(primary_.world_.network().receivers_not_ready());
    calm_.InSync(in_sync(), primary_.HasRival());
    const Lsn durable = durable_lsn();
    if (durable != durable_lsn_) {
      durable_lsn_ = durable;
      primary_.CheckInvariants();
      primary_.images_->OnDurable(durable_lsn_);
    }
    // Only clients of the service wait for it.
    if (world_.options().workload != Workload::kService) return;
    const Lsn in_sync_lsn = inner_.replication_state().in_sync_lsn;
    if (in_sync_lsn <= in_sync_lsn_) return;
    in_sync_lsn_ = in_sync_lsn;
    primary_.images_->OnInSync(head_, in_sync_lsn_,
                               static_cast<int>(in_sync()));
  }

  PrimaryProcess& primary_;
  World& world_;
  // One of the two.
  const std::unique_ptr<recovery::MemberUpkeep> upkeep_;
  const std::unique_ptr<recovery::EpochSuccession> succession_;
  ReplicationSink& inner_;                   // of that one
  recovery::ReplicaResync::Counters joins_;  // as counted
  Lsn durable_lsn_;
  Lsn in_sync_lsn_;
  Lsn head_;
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
  epoch_ = opening_.opened().epoch;
  configuration_ = opening_.opened().configuration;
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
  const Workload workload = world_.options().workload;
  if (shown && workload == Workload::kService) {
    world_.checkers().service.Opened(number_, epoch_, opening_.opened().end.lsn,
                                     *shown);
  }
  if (shown && !change_ && !opening_.can_read_all()) {
    world_.Trace(absl::StrCat("machine ", machine_.number,
                              ": not all of the log can be read"));
    // A database does not open by a part of its log, nor does the service. Its
    // node scrubs the replica meanwhile, or another machine's process has it.
    if (workload == Workload::kRocksDb || workload == Workload::kService) {
      world_.EndPrimary(machine_);
    }
  }
  if (shown && workload == Workload::kRocksDb) {
    rocksdb_files_ = std::make_unique<RocksDbFiles>(*this);
    rocksdb_files_->Recover(*shown);
  }
  if (shown && !change_ && workload == Workload::kService) {
    service_ = std::make_unique<ServiceServer>(*this);
    service_->Recover(*shown);
  }
}

void PrimaryProcess::Close() {
  is_closing_ = true;
  world_.threads().Wake(this);
}

void PrimaryProcess::CloseInOrder() {
  must_end_in_order_ = true;
  must_end_well_ =
      IsCalmButForDrains(world_.options()) && is_open() && !has_failed();
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
  replicator.replica_count = opening_.ReplicaCount();
  replicator.has_local_replica = is_member_;
  replicator.lag_bytes_max = world_.options().ring_capacity;
  replicator.ack_timeout_ns = 3'000'000;
  if (world_.options().background_actors.elect) {
    replicator.heartbeat_ns = kHeartbeatNanos;
  }
  judge_.emplace(world_.oracle(), clock_, number_);
  const BackgroundActors& background_actors =
      world_.options().background_actors;
  const bool changes_online = is_member_ && background_actors.online;
  sink_ = std::make_unique<Sink>(*this, replicator, changes_online);
  if (is_member_ && (background_actors.scrub || background_actors.claim ||
                     background_actors.online)) {
    ClaimRegion();
  }
  RingLogOptions options;
  options.name = "log";
  options.exposure_records_max = world_.options().exposure_records_max;
  options.ceiling_step_bytes = world_.options().ceiling_step_bytes;
  options.sink = sink_.get();
  log_ = std::make_unique<RingLog<Model>>(pmem, pmem.region(), start, options,
                                          clock_, waiter_);
  world_.checkers().damage.ReadTail(opening_.replica_machine(), *log_,
                                    opening_.read_from());
  is_serving_ = true;
  world_.threads().Start(process_, [this] { Serve(); });
  if (!world_.is_quiet()) StartClients();
}

// Where replicas are not given up its node refuses, and it hardly asks again.
void PrimaryProcess::ClaimRegion() {
  // A process that opens may not know what becomes durable from here on.
  const auto begins = [this] {
    const ConfigurationChecker& configurations =
        world_.checkers().configurations;
    world_.history().Opens(
        number_, configurations.DurableHeadOf(configurations.in_force()));
    if (log_->Exposed() == 0) return;
    world_.oracle().Violate(
        "P-A5.4", absl::StrCat("a running log opens the next epoch, and ",
                               log_->Exposed(), " records are exposed"));
  };
  own_ = std::make_unique<OwnRegion>(
      world_, machine_, *opening_.pmem(), log_,
      OwnRegion::Listener{begins, [this](const recovery::EpochOpened& opened) {
                            GoOn(opened);
                          }});
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

// --- Changes of the members while the log runs -------------------------------

// The histories of other workloads know one opening of each process.
bool PrimaryProcess::AskChange(size_t number) {
  const Workload workload = world_.options().workload;
  if (!is_open() || is_closing() || is_changing() || !is_member_ ||
      !world_.options().background_actors.online ||
      (workload != Workload::kMixed && workload != Workload::kService)) {
    return false;
  }
  const Operator& by = *world_.operator_at_work();
  const ListChange& change = by.change(number);
  recovery::SuccessionRequest request;
  request.change = by.Describe(change);
  const MemberLists& lists = world_.lists();
  std::vector<int> machines = lists.list(change.to).machines;
  for (const int machine : lists.list(change.from).machines) {
    if (!lists.list(change.to).Has(machine)) machines.push_back(machine);
  }
  for (const int machine : machines) {
    request.peers.push_back(
        {world_.machine(machine).id(), world_.NodeAddress(machine)});
  }
  if (!sink_->Ask(std::move(request)).ok()) return false;
  asked_ = number;
  world_.NoteActivity(host_);
  return true;
}

// Called while nobody can reserve: P-C1 to P-C5 are judged as for any opening,
// of the same application.
void PrimaryProcess::GoOn(const recovery::EpochOpened& opened) {
  world_.Trace(absl::StrCat("machine ", machine_.number,
                            ": the log goes on in epoch ", opened.epoch.value,
                            ", after ", epoch_.value));
  if (opened.end.lsn != log_->next_lsn()) {
    world_.oracle().Violate(
        "P-A5.4",
        absl::StrCat("a log goes on with LSN ", opened.end.lsn.value,
                     ", and its next one is LSN ", log_->next_lsn().value));
  }
  ++world_.counters().successions;
  epoch_ = opened.epoch;
  configuration_ = opened.configuration;
  opening_.NotifyHistory(number_, opened);
  const RingLogStart& start = opened.start;
  images_ = std::make_unique<ImageChecker>(
      world_, RingOf(opening_.pmem()->region(), start.superline), start);
}

void PrimaryProcess::Changed(const recovery::EpochSuccession::Change& change) {
  const size_t number = *std::exchange(asked_, std::nullopt);
  world_.Trace(absl::StrCat("machine ", machine_.number, ": change ", number,
                            " while the log runs: ", change.status.ToString()));
  if (change.status.ok()) {
    world_.operator_at_work()->Made(number, change.epoch);
  } else {
    world_.operator_at_work()->Failed(change.status);
  }
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
  // In the service's workload its clients ask for it (service_reader.h).
  if (is_member_ && world_.options().background_actors.online) {
    StartClient([this] { RunConfirmingClient(); });
  }
}

void PrimaryProcess::RunConfirmingClient() {
  Random random(world_.options().seed ^ (0xc0f1 + number_));
  while (!is_closing()) {
    const auto think = static_cast<int64_t>(
        random.Below(static_cast<uint64_t>(world_.options().think_ns_max) + 1));
    world_.threads().SleepUntil(world_.now() + think);
    if (is_closing()) return;
    const Lsn known = world_.history().chosen_end() - 1;
    const BegunCall call =
        Begin(ClientCall::kConfirmEpoch,
              Deadline::AtNanos(clock_.NowNanos() + kConfirmNanos));
    if (!Returned(call, known, log_->ConfirmEpoch(call.deadline))) continue;
    ++world_.counters().confirmations;
    if (log_->durable_lsn() >= known) continue;
    world_.oracle().Violate(
        "P-INV-23",
        absl::StrCat("primary ", number_, " is confirmed, and durable is LSN ",
                     log_->durable_lsn().value, "; LSN ", known.value,
                     " was known to be durable when it was asked"));
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
    case Workload::kService:
      return service_->RunThread();
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
    // Owners see the status; a medium that failed must end that, too (RF4).
    if (!sink_->status().ok()) {
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
  } else if (must_end_well_) {
    world_.oracle().Violate(
        "CAN2", absl::StrCat("machine ", machine_.number,
                             " was drained, nothing failed, and its log ends "
                             "with an unknown outcome: ",
                             closed.ToString()));
  }
  log_.reset();
  sink_.reset();
  judge_->LogEnded("gone");
}

// --- Calls of clients -------------------------------------------------------

// DMG4.
bool PrimaryProcess::MayMeetDamage(const absl::Status& status) const {
  if (!is_member_ || !absl::IsDataLoss(status)) return false;
  const bool may = world_.checkers().damage.MayRefuse(
      machine_.number, opening_.read_from(), status);
  world_.counters().damage_met += may ? 1 : 0;
  return may;
}

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
                   clock_.SteadySince(world_.threads().SteadySince(process_)),
                   MayMeetDamage(status));
  if (!status.ok() && has_failed()) Close();
  return status.ok();
}

absl::Status PrimaryProcess::OnPersisted(
    Lsn lsn, PersistedBy by, std::function<void(const absl::Status&)> then) {
  const BegunCall call = Begin(ClientCall::kOnDurable);
  judge_->RequestedNotice();
  const absl::Status asked = log_->OnPersisted(
      lsn, by,
      [this, lsn, by, then = std::move(then)](const absl::Status& outcome) {
        judge_->Notified();
        if (outcome.ok() && by != PersistedBy::kOwnReplica) {
          world_.history().Acknowledged(number_, lsn);
        }
        if (then) then(outcome);
      });
  // Then it is not called.
  if (!asked.ok()) judge_->Notified();
  Returned(call, lsn, asked);
  return asked;
}

absl::Status PrimaryProcess::OnEpochConfirmed(
    std::function<void(const absl::Status&)> then) {
  const BegunCall call = Begin(ClientCall::kOnEpochConfirmed);
  judge_->RequestedNotice();
  const absl::Status asked = log_->OnEpochConfirmed(
      [this, then = std::move(then)](const absl::Status& outcome) {
        judge_->Notified();
        then(outcome);
      });
  // Then it is not called.
  if (!asked.ok()) judge_->Notified();
  Returned(call, Lsn(0), asked);
  return asked;
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
    history.Emptied(
        before, open,
        world_.checkers().configurations.DurableHeadOf(configuration_));
  } else if (absl::IsFailedPrecondition(status)) {
    // It was refused, and has cleaned nothing.
    history.NotEmptied(number_, before, open);
  }
  return status.ok();
}

}  // namespace alpheus::sim
