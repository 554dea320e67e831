// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/primary_opening.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "quorum/membership/static_membership.h"
#include "tools/sim/actors/deleter.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/sim_znodes.h"
#include "tools/sim/actors/standing_agent.h"
#include "tools/sim/actors/watched_replica.h"
#include "tools/sim/checkers/ballot_checker.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kBackOffNanosMax = 500'000;
constexpr int64_t kOpenNanosMax = 50'000'000;
// Limit of those that an election starts.
constexpr int64_t kReportNanos = 8'000'000;
constexpr uint32_t kCredits = 4;

// Ballots of a membership, which the checker sees.
class OwnBallots final : public quorum::BallotSource {
 public:
  OwnBallots(std::unique_ptr<quorum::Membership> membership,
             BallotChecker& checker, const quorum::PrimaryId& self)
      : membership_(std::move(membership)),
        checked_(*membership_, checker, self) {
    membership_->Poll();  // connects
  }

  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& question) override {
    return checked_.Ask(question);
  }

 private:
  const std::unique_ptr<quorum::Membership> membership_;
  CheckedBallots checked_;
};

}  // namespace

void PrimaryOpening::OpenReplica() {
  pmem_ = opener_.machine.pmem.get();
  recovery::LocalReplicaOptions options;
  options.name =
      absl::StrCat("own replica of node ", opener_.machine.id().value);
  options.expected_cluster_id = kClusterId;
  options.expected_log_id = kLogId;
  options.expected_node = opener_.machine.id();
  options.read_whole_bytes_max = opener_.world.options().read_whole_bytes_max;
  const auto content = opener_.world.store().content(opener_.machine.number);
  if (content == RegionStore::Content::kAbsent) {
    opener_.world.EndPrimary(opener_.machine);
  }
  absl::StatusOr<std::unique_ptr<recovery::LocalReplica<Model>>> replica =
      recovery::LocalReplica<Model>::Open(*pmem_, pmem_->region(), options);
  if (content == RegionStore::Content::kAlien) {
    opener_.world.JudgeRefusal(opener_.machine, replica.status());
    opener_.world.EndPrimary(opener_.machine);
  }
  if (has_failed_medium()) opener_.world.EndPrimary(opener_.machine);
  if (!replica.ok()) {
    opener_.world.oracle().Violate(
        "P-A3.5",
        absl::StrCat("a replica does not open: ", replica.status().ToString()));
    opener_.world.EndPrimary(opener_.machine);
  }
  replica_ = *std::move(replica);
}

// Returns the members of both lists, in a change.
std::vector<int> PrimaryOpening::Asked() const {
  std::vector<int> asked = opener_.list.machines;
  if (!opener_.change) return asked;
  const ListChange& change =
      opener_.world.operator_at_work()->change(*opener_.change);
  for (const int machine : opener_.world.lists().list(change.from).machines) {
    if (!opener_.list.Has(machine)) asked.push_back(machine);
  }
  return asked;
}

uint32_t PrimaryOpening::WriteQuorum() const {
  if (opener_.world.options().canary == Canary::kOldQuorum) {
    return std::min(opener_.world.lists().list(0).write_quorum,
                    static_cast<uint32_t>(opener_.list.machines.size()));
  }
  return opener_.list.write_quorum;
}

uint32_t PrimaryOpening::ReplicaCount() const {
  return static_cast<uint32_t>(opener_.list.machines.size());
}

std::optional<Epoch> PrimaryOpening::PromisedMax() const {
  // The supervisor's applications are elected by nobody.
  const StandingAgent* const agent = opener_.machine.standing.get();
  return agent == nullptr ? std::nullopt : agent->PromisedMax();
}

recovery::EpochOpeningOptions PrimaryOpening::OpeningOptions() const {
  recovery::EpochOpeningOptions options;
  options.cluster_id = kClusterId;
  options.key = SimulatedKey();
  options.log_id = kLogId;
  options.self = self_;
  options.sizes = opener_.list.sizes();
  options.configuration_id = opener_.list.id;
  if (opener_.change) {
    const Operator& by = *opener_.world.operator_at_work();
    options.change = by.Describe(by.change(*opener_.change));
  }
  for (const int number : Asked()) {
    if (opener_.is_member && number == opener_.machine.number) continue;
    const World::Machine& machine = opener_.world.machine(number);
    options.peers.push_back(
        {machine.id(), opener_.world.NodeAddress(machine.number)});
  }
  options.gather_ns = 500'000;
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 300'000;
  options.deadline =
      Deadline::AtNanos(opener_.clock.NowNanos() + kOpenNanosMax);
  options.credits = kCredits;
  if (opener_.world.options().background_actors.elect) {
    // Only that it is more than none has a meaning.
    options.heartbeat_ms = 1;
    options.report_ns = kReportNanos;
    options.gather_factor = 3;
    options.promised_max = PromisedMax();
  }
  // A lagging backup catches up in several batches.
  options.batch_bytes_max = opener_.world.options().ring_capacity / 16;
  options.ceiling_step_bytes = opener_.world.options().ceiling_step_bytes;
  options.copy_bytes_max = 1024;
  options.slice_bytes = opener_.world.options().slice_bytes;
  return options;
}

recovery::ResyncOptions PrimaryOpening::MakeResyncOptions() const {
  recovery::ResyncOptions options;
  options.opening = OpeningOptions();
  options.retry_ns = 500'000;
  options.slice_bytes = opener_.world.options().slice_bytes;
  return options;
}

absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>>
PrimaryOpening::MakeCache(uint64_t capacity) {
  const Layout& layout = opener_.world.layout();
  ALPHEUS_CHECK(capacity == opener_.world.options().ring_capacity,
                "replicas have the capacity that they were formatted with");
  cache_pmem_ = std::make_unique<Model>(layout.region_bytes);
  pmem_ = cache_pmem_.get();
  FormatIdentity identity;
  identity.cluster_id = kClusterId;
  identity.log_id = kLogId;
  identity.node = opener_.machine.id();
  identity.configuration.members = {{identity.node, 1}};
  ALPHEUS_CHECK(FormatRegion(*pmem_, pmem_->region(), layout, identity).ok(),
                "modelled memory does not fail unasked");
  replica_ = *recovery::LocalReplica<Model>::Open(*pmem_, pmem_->region(),
                                                  {.name = "working copy"});
  return recovery::AsOpenersReplica(*replica_);
}

bool PrimaryOpening::PumpInto(recovery::EpochOpening& opening) {
  opener_.world.ClearActivity(opener_.host);
  membership_->Poll();
  const size_t count = opener_.fabric.Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
    opening.OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) opening.OnCompletion(completions_[i]);
  return any;
}

bool PrimaryOpening::TryOnce(PrimaryNumber number,
                             recovery::EpochOpeningOptions& options,
                             quorum::BallotSource& ballots, bool& again) {
  again = false;
  const ConfigurationChecker& configurations =
      opener_.world.checkers().configurations;
  const bool was_deleted = opener_.world.deleter() != nullptr &&
                           opener_.world.checkers().deletion.IsDecided();
  had_outdated_list_ = IsListOutdated();
  opener_.world.history().Opens(
      number, configurations.DurableHeadOf(configurations.in_force()));
  opener_.world.checkers().wal_files.Opens(number);
  opener_.world.checkers().service.Opens(number);
  absl::StatusOr<std::unique_ptr<recovery::EpochOpening>> opening =
      opener_.is_member
          ? recovery::EpochOpening::Start(
                opener_.fabric, opener_.clock, opener_.random, ballots, options,
                Watch(opener_.world, opener_.machine.number,
                      recovery::AsOpenersReplica(*replica_)))
          : recovery::EpochOpening::Start(
                opener_.fabric, opener_.clock, opener_.random, ballots, options,
                [this](uint64_t capacity, const Configuration& /*members*/) {
                  return MakeCache(capacity);
                });
  if (!opening.ok()) {
    status_ = opening.status();
    if (MayFail(status_)) return false;
    opener_.world.oracle().Violate(
        "P-C8",
        absl::StrCat("an opening does not start: ", status_.ToString()));
    return false;
  }
  while ((*opening)->Poll() != Polled::kDone) {
    if (PumpInto(**opening)) {
      opener_.world.threads().Yield();
    } else {
      opener_.world.WaitForActivity(
          opener_.host, opener_.clock.InWorld(Deadline::AtNanos(
                            std::min((*opening)->NextPoll().at_nanos(),
                                     membership_->NextPoll().at_nanos()))));
    }
  }
  again = (*opening)->may_try_again();
  options.whole_reports |= (*opening)->wants_whole_reports();
  if ((*opening)->refused_by()) options.above = (*opening)->refused_by()->epoch;
  const absl::Status& status = status_ = (*opening)->status();
  opener_.world.Trace(absl::StrCat("machine ", opener_.machine.number,
                                   ": opening: ", status.ToString()));
  if (status.ok()) {
    opened_ = (*opening)->TakeOpened();
    opener_.world.checkers().deletion.Opened(was_deleted);
    if (opener_.is_member &&
        !opener_.world.store().IsOwn(opener_.machine.number)) {
      opener_.world.oracle().Violate("P-INV-16",
                                     "a log is opened on a blank replica");
    }
    return true;
  }
  // The medium of its own replica: another process must open it.
  if (has_failed_medium()) again = false;
  // The next opening looks for damage that no report named.
  if ((*opening)->wants_whole_reports()) return false;
  if (!absl::IsUnavailable(status) && !MayFail(status)) {
    opener_.world.oracle().Violate(
        "P-C8", absl::StrCat("an opening fails: ", status.ToString()));
  }
  return false;
}

// Its log is being deleted, its own replica is blank, its list is not the
// log's, or more is damaged than the log must survive.
bool PrimaryOpening::MayFail(const absl::Status& status) const {
  if (!FaultBudget(opener_.world).MustSurvive() && absl::IsDataLoss(status)) {
    return true;
  }
  if (absl::IsNotFound(status)) {
    return opener_.world.deleter() != nullptr &&
           opener_.world.checkers().deletion.HasMarks();
  }
  const bool is_blank =
      opener_.is_member && !opener_.world.store().IsOwn(opener_.machine.number);
  return absl::IsFailedPrecondition(status) &&
         (is_blank || opener_.change || had_outdated_list_ ||
          IsListOutdated() || !FaultBudget(opener_.world).MustSurvive());
}

// Returns whether some replica has another configuration than the list, or the
// own one is no longer a member. The own configuration need not be on the
// medium: its writer may have been killed before the fence.
bool PrimaryOpening::IsListOutdated() const {
  const Checkers& checkers = opener_.world.checkers();
  if (replica_ != nullptr &&
      replica_->superline().configuration.id != opener_.list.id) {
    return true;
  }
  for (const World::Machine& machine : opener_.world.machines()) {
    const Configuration* const found =
        checkers.epochs.configuration(machine.number);
    if (found != nullptr && found->id != opener_.list.id) return true;
  }
  return opener_.is_member &&
         !checkers.configurations.IsMember(checkers.configurations.in_force(),
                                           opener_.machine.number);
}

// With a membership service the opening has a session of its own, which ends
// by silence.
std::unique_ptr<quorum::Membership> PrimaryOpening::MakeMembership(
    const quorum::PrimaryId& self) {
  if (opener_.world.membership() == nullptr) {
    return std::make_unique<quorum::StaticMembership>(
        *quorum::StaticMembership::Make(self));
  }
  // As api/log/candidate.cc: no longer than until the next one's turn.
  std::optional<int64_t> patience_ns;
  if (opener_.world.options().background_actors.elect) {
    patience_ns = SimulatedElection().rank_ns * 4 / 5;
  }
  return MakeSimMembership(
      *opener_.world.membership(), opener_.clock, opener_.random,
      opener_.machine.number, self,
      [&world = opener_.world, host = opener_.host] {
        world.NoteActivity(host);
      },
      patience_ns);
}

std::unique_ptr<quorum::BallotSource> PrimaryOpening::OpenBallots() {
  return std::make_unique<OwnBallots>(MakeMembership(self_),
                                      opener_.world.checkers().ballots, self_);
}

bool PrimaryOpening::OpenEpoch(PrimaryNumber number) {
  self_ = {opener_.machine.id(), opener_.random.Next() | 1};
  opener_.world.checkers().fence.Names(opener_.host, self_);
  membership_ = MakeMembership(self_);
  quorum::BallotSource* source = membership_.get();
  std::optional<SharedBallots> shared;
  if (opener_.world.options().canary == Canary::kSharedBallot &&
      opener_.world.membership() != nullptr) {
    source = &shared.emplace(*membership_, *opener_.world.membership(), self_);
  }
  CheckedBallots ballots(*source, opener_.world.checkers().ballots, self_);
  recovery::EpochOpeningOptions options = OpeningOptions();
  for (bool again = true; again;) {
    if (membership_->session().state == quorum::SessionState::kExpired) {
      membership_->Renew();
    }
    const bool saw_all = options.whole_reports;
    if (TryOnce(number, options, ballots, again)) return true;
    if (has_failed_medium()) return false;
    if (options.deadline.HasPassed(opener_.clock.NowNanos())) return false;
    // An elected one leaves it to the election who is next. Nobody has won
    // where damage is to be looked for (as api/log/replicated_engine.cc).
    if (opener_.world.options().background_actors.elect &&
        options.whole_reports == saw_all && !opener_.world.is_quiet()) {
      return false;
    }
    const auto back_off =
        static_cast<int64_t>(opener_.random.Below(kBackOffNanosMax));
    opener_.world.threads().SleepUntil(opener_.world.now() + back_off);
  }
  return false;
}

std::optional<int> PrimaryOpening::replica_machine() const {
  if (!opener_.is_member) return std::nullopt;
  return opener_.machine.number;
}

std::optional<std::vector<History::Shown>> PrimaryOpening::NotifyHistory(
    PrimaryNumber number, const recovery::EpochOpened& opened) {
  const Superline& superline = opened.start.superline;
  Checkers& checkers = opener_.world.checkers();
  // A record that a fault took, and that the opening need not have read, is a
  // part of the log (DMG3).
  const std::span<std::byte> region = pmem_->region();
  restored_ =
      opener_.is_member
          ? checkers.damage.Restored(opener_.machine.number, region,
                                     opened.start.table, opened.head.lsn)
          : DamageChecker::Bytes(region.begin(), region.end());
  const Ring ring = RingOf(restored_, superline);
  RecordCursor cursor(ring, opened.start.table, opened.head, opened.end.offset);
  const Configuration found = checkers.configurations.Of(opened.previous_epoch);
  checkers.epochs.OnOpened(opened.epoch, found, opened.configuration);
  checkers.owners.ChainKnown(opened.head);
  checkers.owners.Activated(opened.epoch, opened.end);
  checkers.choices.Opened(opened.epoch, opened.previous_epoch, opened.end.lsn,
                          found, checkers.configurations.WriteQuorumOf(found));
  std::vector<History::Shown> shown;
  while (cursor.position().lsn < opened.end.lsn) {
    const RecordCursor::Step step = cursor.Next();
    if (step != RecordCursor::Step::kRecord) {
      opener_.world.oracle().Violate(
          "P-INV-11", absl::StrCat("LSN ", cursor.position().lsn.value,
                                   " can't be read after an opening"));
      return std::nullopt;
    }
    const RecordView& record = cursor.record();
    shown.push_back({record.lsn(), record.epoch(), record.aborted(),
                     record.cleaned, record.payload});
    checkers.owners.Shown(opened.epoch, record.lsn(), record.epoch());
    checkers.owners.ChainKnown(cursor.position());
    checkers.durability.Learn(record, ring.At(record.offset), opened.epoch);
  }
  opener_.world.history().Opened(number, opened.epoch, opened.head.lsn,
                                 opened.end.lsn, shown);
  checkers.durability.Check();
  read_from_ = std::max(read_from_, opened.start.read_from.lsn);
  can_read_all_ = checkers.damage.ReadRecovered(
      replica_machine(), RingOf(region, superline), opened, shown);
  return shown;
}

}  // namespace alpheus::sim
