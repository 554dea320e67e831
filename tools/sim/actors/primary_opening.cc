// SPDX-License-Identifier: Apache-2.0
// How primary_process opens an epoch, and what it tells the checkers of it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "quorum/membership/static_membership.h"
#include "recovery/replica/own_replica.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/sim_membership.h"
#include "tools/sim/actors/watched_replica.h"
#include "tools/sim/checkers/ballot_checker.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kBackOffNanosMax = 500'000;
constexpr int64_t kOpenNanosMax = 50'000'000;
constexpr uint32_t kCredits = 4;

}  // namespace

void PrimaryProcess::OpenReplica() {
  pmem_ = machine_.pmem.get();
  ReplicaOptions options;
  options.name = absl::StrCat("own replica of node ", machine_.id().value);
  options.expected_cluster_id = kClusterId;
  options.expected_log_id = kLogId;
  options.expected_node = machine_.id();
  const auto content = world_.store().content(machine_.number);
  if (content == RegionStore::Content::kAbsent) world_.EndPrimary(machine_);
  absl::StatusOr<std::unique_ptr<Replica<Model>>> replica =
      Replica<Model>::Open(*pmem_, pmem_->region(), options);
  if (content == RegionStore::Content::kAlien) {
    world_.JudgeRefusal(machine_, replica.status());
    world_.EndPrimary(machine_);
  }
  if (has_failed_medium()) world_.EndPrimary(machine_);
  if (!replica.ok()) {
    world_.referee().Violate(
        "P-A3.5",
        absl::StrCat("a replica does not open: ", replica.status().ToString()));
    world_.EndPrimary(machine_);
  }
  replica_ = *std::move(replica);
}

// Of both lists, in a change.
std::vector<int> PrimaryProcess::Asked() const {
  std::vector<int> asked = list_.machines;
  if (!change_) return asked;
  const ListChange& change = world_.operator_at_work()->change(*change_);
  for (const int machine : world_.lists().list(change.from).machines) {
    if (!list_.Has(machine)) asked.push_back(machine);
  }
  return asked;
}

uint32_t PrimaryProcess::WriteQuorum() const {
  if (world_.options().canary == Canary::kOldQuorum) {
    return std::min(world_.lists().list(0).write_quorum,
                    static_cast<uint32_t>(list_.machines.size()));
  }
  return list_.write_quorum;
}

EpochOpeningOptions PrimaryProcess::OpeningOptions() const {
  EpochOpeningOptions options;
  options.cluster_id = kClusterId;
  options.key = SimulatedKey();
  options.log_id = kLogId;
  options.self = self_;
  options.sizes = list_.sizes();
  options.configuration_id = list_.id;
  if (change_) {
    const Operator& by = *world_.operator_at_work();
    options.change = by.Describe(by.change(*change_));
  }
  for (const int number : Asked()) {
    if (is_member_ && number == machine_.number) continue;
    const World::Machine& machine = world_.machine(number);
    options.peers.push_back({machine.id(), world_.NodeAddress(machine.number)});
  }
  options.gather_ns = 500'000;
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 300'000;
  options.deadline = Deadline::AtNanos(clock_.NowNanos() + kOpenNanosMax);
  options.credits = kCredits;
  // A backup that is behind catches up in several batches.
  options.batch_bytes_max = world_.options().ring_capacity / 16;
  options.copy_bytes_max = 1024;
  options.slice_bytes = world_.options().slice_bytes;
  return options;
}

RejoiningOptions PrimaryProcess::RejoinOptions() const {
  RejoiningOptions options;
  options.opening = OpeningOptions();
  options.retry_ns = 500'000;
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
  const size_t count = fabric_.Poll(completions_, &events_);
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
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  had_outdated_list_ = IsListOutdated();
  world_.history().Opens(
      number_, configurations.DurableHeadOf(configurations.in_force()));
  world_.checkers().wal_files.Opens(number_);
  absl::StatusOr<std::unique_ptr<EpochOpening>> opening =
      is_member_
          ? EpochOpening::Start(
                fabric_, clock_, random_, ballots, options,
                Watch(world_, machine_.number, AsOwnReplica(*replica_)))
          : EpochOpening::Start(
                fabric_, clock_, random_, ballots, options,
                [this](uint64_t capacity, const Configuration& /*members*/) {
                  return MakeCache(capacity);
                });
  if (!opening.ok()) {
    opening_status_ = opening.status();
    if (MayFail(opening_status_)) return false;
    world_.referee().Violate("P-C8", absl::StrCat("an opening does not start: ",
                                                  opening_status_.ToString()));
    return false;
  }
  while (!(*opening)->Poll()) {
    if (PumpInto(**opening)) {
      world_.threads().Yield();
    } else {
      world_.WaitForActivity(host_, clock_.InWorld(Deadline::AtNanos(std::min(
                                        (*opening)->NextPoll().at_nanos(),
                                        membership_->NextPoll().at_nanos()))));
    }
  }
  again = (*opening)->may_try_again();
  if ((*opening)->standing()) options.above = (*opening)->standing()->epoch;
  const absl::Status& status = opening_status_ = (*opening)->status();
  world_.Trace(absl::StrCat("machine ", machine_.number,
                            ": opening: ", status.ToString()));
  if (status.ok()) {
    opened_ = (*opening)->TakeOpened();
    if (is_member_ && !world_.store().IsOwn(machine_.number)) {
      world_.referee().Violate("P-INV-16",
                               "a log is opened on a blank replica");
    }
    return true;
  }
  // The medium of its own replica: another process must open it.
  if (has_failed_medium()) again = false;
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status) &&
      !MayFail(status)) {
    world_.referee().Violate(
        "P-C8", absl::StrCat("an opening fails: ", status.ToString()));
  }
  return false;
}

// Its own replica is blank, its list is not the log's, or more is damaged than
// the log must survive.
bool PrimaryProcess::MayFail(const absl::Status& status) const {
  if (!FaultBudget(world_).MustSurvive() && absl::IsDataLoss(status)) {
    return true;
  }
  const bool is_blank = is_member_ && !world_.store().IsOwn(machine_.number);
  return absl::IsFailedPrecondition(status) &&
         (is_blank || change_ || had_outdated_list_ || IsListOutdated() ||
          !FaultBudget(world_).MustSurvive());
}

// Some replica has another configuration than the list says, or its own one is
// not the member any more. What its own one says need not be on the medium: who
// wrote it may have been killed before the fence.
bool PrimaryProcess::IsListOutdated() const {
  const Checkers& checkers = world_.checkers();
  if (replica_ != nullptr &&
      replica_->superline().configuration.id != list_.id) {
    return true;
  }
  for (const World::Machine& machine : world_.machines()) {
    const Configuration* const found =
        checkers.epochs.configuration(machine.number);
    if (found != nullptr && found->id != list_.id) return true;
  }
  return is_member_ && !checkers.configurations.IsMember(
                           checkers.configurations.in_force(), machine_.number);
}

// With a service a session of its own, which ends by silence.
std::unique_ptr<Membership> PrimaryProcess::MakeMembership(
    const PrimaryId& self) {
  if (world_.membership() == nullptr) {
    return std::make_unique<StaticMembership>(*StaticMembership::Make(self));
  }
  return std::make_unique<SimMembership>(
      *world_.membership(), clock_, machine_.number, self,
      [&world = world_, host = host_] { world.NoteActivity(host); },
      world_.options().canary == Canary::kSharedBallot);
}

bool PrimaryProcess::OpenEpoch() {
  self_ = {machine_.id(), random_.Next() | 1};
  world_.checkers().fence.Names(host_, self_);
  membership_ = MakeMembership(self_);
  CheckedBallots ballots(*membership_, world_.checkers().ballots, self_,
                         world_.membership() != nullptr);
  EpochOpeningOptions options = OpeningOptions();
  for (bool again = true; again;) {
    if (TryOnce(options, ballots, again)) return true;
    if (has_failed_medium()) return false;
    if (options.deadline.HasPassed(clock_.NowNanos())) return false;
    Sleep(static_cast<int64_t>(random_.Below(kBackOffNanosMax)));
  }
  return false;
}

void PrimaryProcess::TellHistory() {
  const Ring ring = RingOf(pmem_->region(), opened_->start.superline);
  RecordCursor cursor(ring, opened_->start.table, opened_->head,
                      opened_->end.offset);
  Checkers& checkers = world_.checkers();
  const Configuration found =
      checkers.configurations.Of(opened_->previous_epoch);
  checkers.epochs.OnOpened(opened_->epoch, found, opened_->configuration);
  checkers.owners.Settled(opened_->head);
  checkers.owners.Activated(opened_->epoch, opened_->end);
  checkers.choices.Opened(opened_->epoch, opened_->previous_epoch,
                          opened_->end.lsn, found,
                          checkers.configurations.WriteQuorumOf(found));
  std::vector<History::Shown> shown;
  while (cursor.position().lsn < opened_->end.lsn) {
    const RecordCursor::Step step = cursor.Next();
    if (step != RecordCursor::Step::kRecord) {
      world_.referee().Violate(
          "P-INV-11", absl::StrCat("LSN ", cursor.position().lsn.value,
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
  if (world_.options().workload == Workload::kRocksDb) {
    rocksdb_files_ = std::make_unique<RocksDbFiles>(*this);
    rocksdb_files_->Recover(shown);
  }
}

}  // namespace alpheus::sim
