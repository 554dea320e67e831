// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/primary_process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/format_region.h"
#include "log/core/record_cursor.h"
#include "log/core/region_state.h"
#include "quorum/static_membership.h"
#include "recovery/own_replica.h"
#include "replication/log_replication.h"
#include "tools/sim/ballot_checker.h"
#include "tools/sim/checkers.h"
#include "tools/sim/node_process.h"
#include "tools/sim/sim_membership.h"
#include "tools/sim/watched_replica.h"
#include "tools/sim/workload.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kLockRetryNanos = 50'000;
constexpr uint64_t kBackOffNanosMax = 500'000;
constexpr int64_t kOpenNanosMax = 50'000'000;
constexpr int64_t kIdleNanos = 100'000;
constexpr uint32_t kCredits = 4;

}  // namespace

// The log's sink, whose waiting threads let the others go on.
class PrimaryProcess::Sink final : public ReplicationSink {
 public:
  Sink(PrimaryProcess& primary, const Replicator::Options& options)
      : primary_(primary),
        world_(primary.world_),
        inner_(world_.network().fabric(primary.host_), world_.network().clock(),
               options,
               {primary.opened_->start.end.lsn - 1,
                primary.opened_->start.end.offset}),
        durable_lsn_(inner_.durable_lsn()) {
    for (OpenedBackup& backup : primary.opened_->backups) {
      inner_.Add(backup.name, backup.connection, std::move(backup.session));
    }
  }

  void Advance(const RingEnd& finished) override {
    inner_.Advance(finished);
    Look();
  }
  void LocalPersisted(Lsn lsn) override {
    inner_.LocalPersisted(lsn);
    Look();
  }
  void AdvanceHead(const LogPosition& head) override {
    inner_.AdvanceHead(head);
  }
  void Poll() override {
    world_.ClearActivity(primary_.host_);
    inner_.Poll();
    Look();
  }
  Lsn durable_lsn() const override { return inner_.durable_lsn(); }
  RingOffset reuse_head() const override { return inner_.reuse_head(); }
  Lsn durable_head_lsn() const override { return inner_.durable_head_lsn(); }
  bool is_idle() const override { return inner_.is_idle(); }
  uint32_t in_sync() const { return inner_.in_sync(); }
  absl::Status status() const override { return inner_.status(); }
  void WaitForActivity(Deadline deadline) override {
    world_.WaitForActivity(primary_.host_, deadline);
  }
  void Wake() override { world_.NoteActivity(primary_.host_); }

 private:
  void Look() {
    if (!inner_.status().ok()) primary_.judge_->LogFailed();
    const uint32_t in_sync = inner_.in_sync();
    if (IsCalm(world_.options()) && in_sync < in_sync_) {
      world_.referee().Violate(
          "A3.3", absl::StrCat("of ", in_sync_, " replicas in sync one was ",
                               "given up, and nothing had happened to it"));
    }
    in_sync_ = in_sync;
    if (inner_.durable_lsn() == durable_lsn_) return;
    durable_lsn_ = inner_.durable_lsn();
    primary_.CheckInvariants();
    primary_.images_->OnDurable(durable_lsn_);
  }

  PrimaryProcess& primary_;
  World& world_;
  LogReplication inner_;
  Lsn durable_lsn_;
  uint32_t in_sync_ = 0;
};

PrimaryProcess::PrimaryProcess(World& world, World::Machine& machine)
    : world_(world),
      machine_(machine),
      host_(world.PrimaryHost(machine)),
      process_(world.threads().NewProcess()),
      is_member_(machine.pmem != nullptr),
      random_(world.random().Next()),
      waiter_(world.threads()) {
  world_.threads().Start(process_, [this] { Run(); });
}

PrimaryProcess::~PrimaryProcess() = default;

void PrimaryProcess::Sleep(int64_t ns) {
  world_.threads().SleepUntil(world_.now() + ns);
}

void PrimaryProcess::Run() {
  number_ = world_.history().NewPrimary();
  if (is_member_) {
    TakeRegion();
    OpenReplica();
  }
  if (!OpenEpoch()) {
    ++world_.counters().openings_failed;
    world_.EndPrimary(machine_);
  }
  ++world_.counters().openings;
  world_.counters().repairs += opened_->repairs.size();
  TellHistory();
  StartLog();
  while (!is_closing_) world_.threads().WaitFor(this, Deadline());
  // Half of them as they are: exit(3) ends no log.
  if (must_end_in_order_ || random_.Below(2) == 0) EndInOrder();
  world_.EndPrimary(machine_);
}

void PrimaryProcess::Close() {
  is_closing_ = true;
  world_.threads().Wake(this);
}

void PrimaryProcess::CloseInOrder() {
  must_end_in_order_ = true;
  Close();
}

void PrimaryProcess::Rest() { is_resting_ = true; }

bool PrimaryProcess::is_at_rest() const {
  return is_open() && !is_closing_ && clients_ == 0 && sink_->is_idle() &&
         sink_->status().ok() && log_->durable_lsn() + 1 == log_->next_lsn();
}

uint32_t PrimaryProcess::in_sync() const { return sink_->in_sync(); }

bool PrimaryProcess::has_failed() const { return !sink_->status().ok(); }

void PrimaryProcess::TakeRegion() {
  for (;;) {
    if (machine_.holder == World::Holder::kNobody ||
        (machine_.holder == World::Holder::kNode && machine_.node->Release())) {
      machine_.holder = World::Holder::kPrimary;
      return;
    }
    Sleep(kLockRetryNanos);
  }
}

void PrimaryProcess::OpenReplica() {
  pmem_ = machine_.pmem.get();
  ReplicaOptions options;
  options.name = absl::StrCat("own replica of node ", machine_.id().value);
  options.expected_cluster_id = kClusterId;
  options.expected_log_id = kLogId;
  absl::StatusOr<std::unique_ptr<Replica<Model>>> replica =
      Replica<Model>::Open(*pmem_, pmem_->region(), options);
  if (!replica.ok()) {
    world_.referee().Violate("A3.5", absl::StrCat("a replica does not open: ",
                                                  replica.status().ToString()));
    world_.EndPrimary(machine_);
  }
  replica_ = *std::move(replica);
}

EpochOpeningOptions PrimaryProcess::OpeningOptions(
    const PrimaryId& self) const {
  EpochOpeningOptions options;
  options.cluster_id = kClusterId;
  options.log_id = kLogId;
  options.self = self;
  options.sizes = world_.sizes();
  for (const World::Machine& machine : world_.machines()) {
    if (machine.pmem == nullptr || machine.number == machine_.number) continue;
    options.peers.push_back({machine.id(), world_.NodeAddress(machine.number)});
  }
  options.gather_ns = 500'000;
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 300'000;
  options.deadline = Deadline::AtNanos(world_.now() + kOpenNanosMax);
  options.credits = kCredits;
  options.copy_bytes_max = 1024;
  options.slice_bytes = world_.options().slice_bytes;
  return options;
}

absl::StatusOr<std::unique_ptr<OwnReplica>> PrimaryProcess::MakeCache(
    uint64_t capacity) {
  const Layout& layout = world_.layout();
  ALPHEUS_CHECK(capacity == world_.options().ring_capacity,
                "replicas have the capacity that they were formatted with");
  cache_pmem_ = std::make_unique<Model>(layout.region_bytes);
  pmem_ = cache_pmem_.get();
  FormatIdentity identity;
  identity.cluster_id = kClusterId;
  identity.log_id = kLogId;
  identity.node = machine_.id();
  identity.configuration.members = {{identity.node, 1}};
  ALPHEUS_CHECK(FormatRegion(*pmem_, pmem_->region(), layout, identity).ok(),
                "modelled memory does not fail unasked");
  replica_ = *Replica<Model>::Open(*pmem_, pmem_->region(), {.name = "cache"});
  return AsOwnReplica(*replica_);
}

bool PrimaryProcess::PumpInto(EpochOpening& opening) {
  world_.ClearActivity(host_);
  membership_->Poll();
  const size_t count =
      world_.network().fabric(host_).Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const ConnectionEvent& event : std::exchange(events_, {})) {
    opening.Take(event);
  }
  for (size_t i = 0; i < count; ++i) opening.Take(completions_[i]);
  return any;
}

bool PrimaryProcess::TryOnce(EpochOpeningOptions& options,
                             BallotSource& ballots, bool& again) {
  again = false;
  world_.history().Opens(number_, world_.checkers().marks.DurableHead(
                                      world_.options().write_quorum));
  Fabric& fabric = world_.network().fabric(host_);
  const Clock& clock = world_.network().clock();
  absl::StatusOr<std::unique_ptr<EpochOpening>> opening =
      is_member_
          ? EpochOpening::Start(
                fabric, clock, random_, ballots, options,
                Watch(world_, machine_.number, AsOwnReplica(*replica_)))
          : EpochOpening::Start(
                fabric, clock, random_, ballots, options,
                [this](uint64_t capacity, const Configuration& /*members*/) {
                  return MakeCache(capacity);
                });
  if (!opening.ok()) {
    world_.referee().Violate("C8", absl::StrCat("an opening does not start: ",
                                                opening.status().ToString()));
    return false;
  }
  while (!(*opening)->Poll()) {
    if (PumpInto(**opening)) {
      world_.threads().Yield();
    } else {
      world_.WaitForActivity(host_, Deadline::AtNanos(std::min(
                                        (*opening)->NextPoll().at_nanos(),
                                        membership_->NextPoll().at_nanos())));
    }
  }
  again = (*opening)->may_try_again();
  if ((*opening)->standing()) options.above = (*opening)->standing()->epoch;
  const absl::Status& status = (*opening)->status();
  world_.Trace(absl::StrCat("machine ", machine_.number,
                            ": opening: ", status.ToString()));
  if (status.ok()) {
    opened_ = (*opening)->TakeOpened();
    return true;
  }
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status)) {
    world_.referee().Violate(
        "C8", absl::StrCat("an opening fails: ", status.ToString()));
  }
  return false;
}

// With a service a session of its own, which ends by silence.
std::unique_ptr<Membership> PrimaryProcess::MakeMembership(
    const PrimaryId& self) {
  if (world_.membership() == nullptr) {
    return std::make_unique<StaticMembership>(*StaticMembership::Make(self));
  }
  return std::make_unique<SimMembership>(
      *world_.membership(), machine_.number, self,
      [&world = world_, host = host_] { world.NoteActivity(host); },
      world_.options().canary == Canary::kSharedBallot);
}

bool PrimaryProcess::OpenEpoch() {
  const PrimaryId self{machine_.id(), random_.Next() | 1};
  world_.checkers().fence.Names(host_, self);
  membership_ = MakeMembership(self);
  CheckedBallots ballots(*membership_, world_.checkers().ballots, self,
                         world_.membership() != nullptr);
  EpochOpeningOptions options = OpeningOptions(self);
  for (bool again = true; again;) {
    if (TryOnce(options, ballots, again)) return true;
    if (options.deadline.HasPassed(world_.now())) return false;
    Sleep(static_cast<int64_t>(random_.Below(kBackOffNanosMax)));
  }
  return false;
}

void PrimaryProcess::TellHistory() {
  const Ring ring = RingOf(pmem_->region(), opened_->start.superline);
  RecordCursor cursor(ring, opened_->start.table, opened_->head,
                      opened_->end.offset);
  Checkers& checkers = world_.checkers();
  checkers.epochs.OnOpened(opened_->epoch);
  checkers.owners.Settled(opened_->head);
  checkers.owners.Activated(opened_->epoch, opened_->end);
  std::vector<History::Shown> shown;
  while (cursor.position().lsn < opened_->end.lsn) {
    const RecordCursor::Step step = cursor.Next();
    if (step != RecordCursor::Step::kRecord) {
      world_.referee().Violate(
          "INV-11", absl::StrCat("LSN ", cursor.position().lsn.value,
                                 " can't be read behind an opening"));
      return;
    }
    const RecordView& record = cursor.record();
    shown.push_back({record.lsn(), record.epoch(), record.aborted(),
                     record.cleaned, record.payload});
    checkers.owners.Shown(opened_->epoch, record.lsn(), record.epoch());
    checkers.owners.Settled(cursor.position());
    checkers.holders.Learn(record, ring.At(record.offset), opened_->epoch);
  }
  world_.history().Opened(number_, opened_->epoch, opened_->head.lsn,
                          opened_->end.lsn, shown);
  checkers.holders.Look();
}

void PrimaryProcess::StartLog() {
  replica_.reset();
  images_ = std::make_unique<ImageChecker>(
      world_, RingOf(pmem_->region(), opened_->start.superline),
      opened_->start);
  Replicator::Options replicator;
  replicator.write_quorum = world_.sizes().write_quorum;
  replicator.has_local_replica = is_member_;
  replicator.lag_bytes_max = world_.options().ring_capacity;
  replicator.silence_ns = 3'000'000;
  judge_.emplace(world_.referee(), world_.network().clock(), number_);
  sink_ = std::make_unique<Sink>(*this, replicator);
  RingLogOptions options;
  options.name = "log";
  options.exposure_records_max = world_.options().exposure_records_max;
  options.sink = sink_.get();
  log_ = std::make_unique<RingLog<Model>>(*pmem_, pmem_->region(),
                                          opened_->start, options,
                                          world_.network().clock(), waiter_);
  is_serving_ = true;
  world_.threads().Start(process_, [this] { Serve(); });
  if (!world_.is_quiet()) StartClients();
}

void PrimaryProcess::StartClients() {
  wal_ = std::make_unique<WalApplication>(*this);
  clients_ = world_.options().clients;
  for (int i = 0; i < world_.options().clients; ++i) {
    world_.threads().Start(process_, [this, i] {
      if (world_.options().workload == Workload::kWal) {
        wal_->RunThread(i);
      } else {
        RunMixedClient(*this);
      }
      --clients_;
      world_.threads().Wake(this);
    });
  }
}

// As the thread of api/node/service_thread.h.
void PrimaryProcess::Serve() {
  using Next = IdleKeeper<Model>::Next;
  Progress& progress = log_->progress();
  while (!is_closing_ || clients_ != 0) {
    if (!sink_->status().ok()) Close();
    if (log_->Poll() == Next::kPollAgain) {
      const Deadline until = Deadline::AtNanos(world_.now() + kIdleNanos);
      while (log_->WaitForAcks(until, service_stop_)) {
      }
      world_.threads().WaitFor(&is_serving_, until);
      continue;
    }
    const uint32_t seen = progress.Announce();
    if (log_->Poll() != Next::kPollAgain) {
      log_->WaitForWork(seen,
                        Deadline::AtNanos(world_.now() + 50 * kIdleNanos));
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
  JudgeCallbacks("failed");
  const absl::Status closed = log_->Close();
  world_.Trace(absl::StrCat("machine ", machine_.number,
                            ": close: ", closed.ToString()));
  if (closed.ok()) {
    world_.history().Acknowledged(number_, log_->next_lsn() - 1);
    world_.NoteClosed(log_->next_lsn());
  } else if (!absl::IsAborted(closed)) {
    world_.referee().Violate("API", absl::StrCat("close: ", closed.ToString()));
  }
  log_.reset();
  sink_.reset();
  JudgeCallbacks("gone");
}

}  // namespace alpheus::sim
