// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/epoch_opening.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "recovery/opening/opening_cleanup.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {
namespace {

using State = OpeningPeer::State;

// A caller that polls this many nanoseconds after NextPoll has paused (EO5).
constexpr int64_t kPauseNanos = 100'000'000;

// Returns the report that ranks first in a decision.
const StateReport& ReportOfHighestEpoch(
    const Decision& decision, const std::vector<StateReport>& reports) {
  size_t index = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (Contains(decision.members, i) &&
        reports[i].log_epoch == decision.epoch) {
      index = i;
    }
  }
  return reports[index];
}

}  // namespace

EpochOpening::EpochOpening(fabric::Fabric& fabric, const Clock& clock,
                           RandomSource& random, quorum::BallotSource& ballots,
                           const EpochOpeningOptions& options)
    : fabric_(fabric),
      clock_(clock),
      random_(random),
      ballots_(ballots),
      options_(options),
      waits_since_(clock.NowNanos()) {}

EpochOpening::~EpochOpening() = default;

absl::StatusOr<std::unique_ptr<EpochOpening>> EpochOpening::Start(
    fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
    quorum::BallotSource& ballots, const EpochOpeningOptions& options,
    std::unique_ptr<OpenersReplica> own) {
  std::unique_ptr<EpochOpening> opening(
      new EpochOpening(fabric, clock, random, ballots, options));
  opening->own_ = std::move(own);
  ALPHEUS_RETURN_IF_ERROR(opening->CheckOptions());
  ALPHEUS_RETURN_IF_ERROR(opening->CheckOwn());
  ALPHEUS_RETURN_IF_ERROR(opening->RegisterOwnRing());
  opening->MakeElectorates();
  opening->MakePeers();
  return opening;
}

absl::StatusOr<std::unique_ptr<EpochOpening>> EpochOpening::Start(
    fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
    quorum::BallotSource& ballots, const EpochOpeningOptions& options,
    WorkingCopyFactory make_working_copy) {
  std::unique_ptr<EpochOpening> opening(
      new EpochOpening(fabric, clock, random, ballots, options));
  opening->is_working_copy_ = true;
  opening->working_copy_factory_ = std::move(make_working_copy);
  ALPHEUS_RETURN_IF_ERROR(opening->CheckOptions());
  opening->MakeElectorates();
  opening->MakePeers();
  return opening;
}

absl::Status EpochOpening::CheckOptions() const {
  const uint32_t members =
      static_cast<uint32_t>(options_.peers.size()) + (is_working_copy_ ? 0 : 1);
  std::set<NodeId> nodes;
  for (const PeerAddress& peer : options_.peers) nodes.insert(peer.node);
  if (own_ != nullptr) nodes.insert(own_->superline().node);
  size_t expected = options_.sizes.replica_count;
  if (const auto& change = options_.change) {
    if (change->to != options_.sizes ||
        change->to_id != options_.configuration_id) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening log ", options_.log_id.ToString(), " to change its ",
          "configuration to ", change->to_id,
          " with another id or other sizes, expected those of the new list"));
    }
    ALPHEUS_RETURN_IF_ERROR(CheckChange(*change));
    if (own_ != nullptr) ALPHEUS_RETURN_IF_ERROR(CheckStays(*change));
    std::set<NodeId> all(change->from_nodes.begin(), change->from_nodes.end());
    all.insert(change->to_nodes.begin(), change->to_nodes.end());
    expected = all.size();
  }
  if (members != expected || nodes.size() != members) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening log ", options_.log_id.ToString(), " with ", members,
        " replicas of ", nodes.size(), " nodes, expected N = ", expected,
        " of as many. Correct the members"));
  }
  const uint32_t receives = fabric_.limits().receives_max;
  if (options_.credits >= 1 && options_.credits < receives) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "opening log ", options_.log_id.ToString(), " with ", options_.credits,
      " credits, expected 1 to ", receives - 1, " (receives of the fabric)"));
}

// EO6. A replica that leaves or is replaced installs nothing, so that its
// process would have no log to go on with.
absl::Status EpochOpening::CheckStays(const MembersChange& change) const {
  const NodeId own = own_->superline().node;
  const auto names = [own](const std::vector<NodeId>& nodes) {
    return std::ranges::find(nodes, own) != nodes.end();
  };
  if (names(change.from_nodes) && names(change.to_nodes) &&
      !names(change.replaced)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      own_->name(), ": node ", own.value, " does not stay a member from ",
      "configuration ", change.from_id, " to ", change.to_id,
      ". Have another node become primary first (`alpheus elect`), or change "
      "the members from a process without a replica"));
}

absl::Status EpochOpening::CheckOwn() const {
  const Superline& own = own_->superline();
  if (own.deletion != Deletion::kNone) {
    return DeletedError(own_->name(), own.deletion);
  }
  // An older configuration is fine: the replica was away when members changed.
  if (own.cluster_id == options_.cluster_id && own.log_id == options_.log_id &&
      own.configuration.id <= options_.configuration_id) {
    return absl::OkStatus();
  }
  if (own.cluster_id == options_.cluster_id && own.log_id == options_.log_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        own_->name(), ": has list of members ", own.configuration.id,
        ", newer than ", options_.configuration_id,
        " of this process: the members have changed. Open the log with the "
        "newest cluster file"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(own_->name(), ": a replica of cluster ",
                   own.cluster_id.ToString(), ", log ", own.log_id.ToString(),
                   ", expected ", options_.cluster_id.ToString(), ", ",
                   options_.log_id.ToString(), ". Name the right region"));
}

absl::Status EpochOpening::RegisterOwnRing() {
  const Ring ring = own_->ring();
  ALPHEUS_ASSIGN_OR_RETURN(own_ring_,
                           replication::RegisteredBytes::Make(
                               fabric_, {ring.data(), ring.capacity()},
                               fabric::RemoteAccess::kNone));
  return absl::OkStatus();
}

void EpochOpening::MakePeers() {
  const Hello hello{options_.cluster_id, options_.log_id, options_.self};
  for (const PeerAddress& at : options_.peers) {
    peers_.push_back(std::make_unique<OpeningPeer>(
        OpeningPeerOptions{.at = at,
                           .hello = hello,
                           .step_timeout_ns = options_.step_timeout_ns,
                           .deadline = options_.deadline,
                           .credentials = {options_.key, &random_},
                           .batch_bytes_max = options_.batch_bytes_max},
        fabric_, clock_));
    peers_.back()->Connect();
  }
}

// Driving.

bool EpochOpening::OnCompletion(const fabric::Completion& completion) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(completion.connection)) continue;
    peer->OnCompletion(completion);
    if (install_ != nullptr && peer->IsForeign(completion)) {
      install_->OnCompletion(completion);
    }
    return true;
  }
  return false;
}

bool EpochOpening::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(event.connection)) continue;
    peer->OnConnectionEvent(event);
    return true;
  }
  return false;
}

Polled EpochOpening::Poll() {
  if (is_over()) return Polled::kDone;
  const int64_t now = clock_.NowNanos();
  RenewTimeAfterAPause(now);
  for (const auto& peer : peers_) peer->CheckTime(now);
  if (const absl::Status status = Advance(); !status.ok()) End(status);
  expected_at_ = NextPoll().at_nanos();
  return is_over() ? Polled::kDone : Polled::kIdle;
}

// EO5. Events that came meanwhile wait in the adapter. They are taken before
// the clock is read the next time.
void EpochOpening::RenewTimeAfterAPause(int64_t now) {
  if (now < expected_at_ || now - expected_at_ < kPauseNanos) return;
  for (const auto& peer : peers_) peer->RenewTime(now);
  if (gathered_at_ && phase_ == Phase::kPromise) gathered_at_ = now;
  waits_since_ += now - expected_at_;
}

int64_t EpochOpening::ReportsDueNanos() const {
  if (options_.report_ns == 0 || phase_ > Phase::kPromise) return kNever;
  uint64_t capacity = 0;
  if (own_ != nullptr) {
    capacity = own_->ring().capacity();
  } else {
    for (const auto& peer : peers_) {
      capacity = std::max(capacity, peer->server_hello().ring_capacity);
    }
  }
  return waits_since_ + options_.report_ns + ReadingNanos(capacity);
}

absl::Status EpochOpening::Advance() {
  if (phase_ <= Phase::kPromise) {
    Reconnect();
    ALPHEUS_RETURN_IF_ERROR(CheckServerHellos());
    ALPHEUS_RETURN_IF_ERROR(CheckPossible());
  }
  // TakeBallot's requests leave before the own replica scans, so that the peers
  // scan at the same time.
  if (phase_ == Phase::kServerHello) ALPHEUS_RETURN_IF_ERROR(AskBallot());
  if (phase_ == Phase::kBallot) return TakeBallot();
  if (phase_ == Phase::kPromise) ALPHEUS_RETURN_IF_ERROR(Gather());
  if (phase_ == Phase::kInstall) {
    const absl::Status advanced = install_->Advance();
    // The own replica serves promises too.
    if (absl::IsFailedPrecondition(advanced) && OwnPromisedAnother()) {
      return TooFew("the own replica promised another primary");
    }
    ALPHEUS_RETURN_IF_ERROR(advanced);
    if (install_->is_over()) Finish();
  }
  return absl::OkStatus();
}

Deadline EpochOpening::NextPoll() const {
  if (phase_ == Phase::kOver) return Deadline();
  const bool own_scans =
      phase_ == Phase::kPromise && !is_working_copy_ && !own_report_;
  const bool own_installs = install_ != nullptr && install_->is_at_work();
  if (own_scans || own_installs) return Deadline::AtNanos(clock_.NowNanos());
  // A stopping opening no longer acts on the deadline.
  int64_t next = install_ == nullptr ? wake_at_ : install_->wake_at();
  if (install_ == nullptr || !install_->is_stopping()) {
    next = std::min({next, options_.deadline.at_nanos(), ReportsDueNanos()});
  }
  if (ballot_ != nullptr) {
    next = std::min(next, ballot_->NextPoll().at_nanos());
  }
  for (const auto& peer : peers_) {
    next = std::min(next, peer->due_nanos());
    if (peer->may_try_again() && MayComeYet(*peer)) {
      next = std::min(next, peer->failed_at_nanos() + options_.reconnect_ns);
    }
  }
  return next == Deadline().at_nanos() ? Deadline() : Deadline::AtNanos(next);
}

void EpochOpening::Reconnect() {
  const int64_t now = clock_.NowNanos();
  for (const auto& peer : peers_) {
    if (peer->failed() && MayComeYet(*peer) &&
        now >= peer->failed_at_nanos() + options_.reconnect_ns) {
      peer->Connect();
    }
  }
}

// Returns true if the peer's report may still come.
bool EpochOpening::MayComeYet(const OpeningPeer& peer) const {
  if (phase_ > Phase::kPromise) return false;
  if (peer.state() == State::kRefused) return false;
  if (!peer.failed()) return true;
  return peer.may_try_again() && options_.deadline.is_set() &&
         !DeadlineHasPassed();
}

// Returns true if a change waits for this peer although it failed. A member
// that misses a change has the old list, and until it joins the log more
// members are needed to open it. Any other opening goes on at once, and the
// member resyncs.
bool EpochOpening::IsAwaited(const OpeningPeer& peer) const {
  return options_.change && !IsLeaving(peer.node()) && MayComeYet(peer);
}

// Makes the lists of electors: the peers, and this process if it has a replica.
void EpochOpening::MakeElectorates() {
  std::vector<NodeId> nodes;
  for (const PeerAddress& peer : options_.peers) nodes.push_back(peer.node);
  if (!is_working_copy_) nodes.push_back(own_->superline().node);
  if (!options_.change) {
    electorates_ = {{std::move(nodes), options_.sizes}};
    return;
  }
  electorates_ = {{options_.change->from_nodes, options_.change->from},
                  {options_.change->to_nodes, options_.change->to}};
}

uint32_t EpochOpening::Count(
    const Electorate& electorate,
    const std::function<bool(const OpeningPeer&)>& is_so) const {
  uint32_t count = is_working_copy_ ? 0 : 1;
  for (const NodeId node : electorate.nodes) {
    for (const auto& peer : peers_) {
      if (peer->node() == node && is_so(*peer)) ++count;
    }
  }
  return count;
}

// Checks that enough members may still promise. A refusal matters only if it
// leaves too few: with the others' promises this process is the primary.
absl::Status EpochOpening::CheckPossible() {
  ALPHEUS_RETURN_IF_ERROR(CheckNotDeleted());
  for (const auto& peer : peers_) {
    if (peer->state() == State::kRefused) NoteRefusedBy(peer->refused_by());
  }
  uint32_t needed = 0;
  for (const Electorate& electorate : electorates_) {
    needed = quorum::OpeningQuorumSize(electorate.sizes);
    const uint32_t possible = Count(
        electorate, [this](const OpeningPeer& p) { return MayComeYet(p); });
    if (possible < needed) {
      return TooFew(absl::StrCat(electorate.nodes.size() - possible, " of ",
                                 electorate.nodes.size(),
                                 " members can't promise an epoch, and ",
                                 needed, " must", DescribeMarked()));
    }
  }
  const bool is_late =
      DeadlineHasPassed() || clock_.NowNanos() >= ReportsDueNanos();
  if (!is_late) return absl::OkStatus();
  if (phase_ == Phase::kBallot) {
    return TooFew(
        "the deadline passed before a ballot came. Check that the membership "
        "service can be reached");
  }
  return TooFew(absl::StrCat(
      "the deadline passed before ", needed, " replicas had reported",
      wait_reason_.empty() ? ""
                           : absl::StrCat(" and decided: ", wait_reason_)));
}

// EO7.
absl::Status EpochOpening::CheckNotDeleted() const {
  std::vector<DeletionWitness> witnesses;
  for (const auto& peer : peers_) {
    if (peer->deletion().deletion == Deletion::kNone) continue;
    witnesses.push_back(
        {{peer->node(), peer->server_hello().incarnation}, peer->deletion()});
  }
  if (!IsDecided(witnesses)) return absl::OkStatus();
  return DeletedError(absl::StrCat("log ", options_.log_id.ToString()),
                      Deletion::kDecided);
}

std::string EpochOpening::DescribeMarked() const {
  const auto marked = std::ranges::count_if(peers_, [](const auto& peer) {
    return peer->deletion().deletion != Deletion::kNone;
  });
  if (marked == 0) return "";
  return absl::StrCat("; ", marked,
                      " of them are marked as deleted: a deletion of the log "
                      "was begun, and `alpheus delete-log` completes it");
}

void EpochOpening::NoteRefusedBy(const quorum::Promise& current) {
  if (!refused_by_ || refused_by_->epoch < current.epoch) refused_by_ = current;
}

absl::Status EpochOpening::TooFew(const std::string& what) {
  if (!refused_by_) return absl::UnavailableError(what);
  lost_race_ = true;
  return absl::UnavailableError(
      absl::StrCat(what, "; epoch ", refused_by_->epoch.value,
                   " is promised to node ", refused_by_->primary.node.value,
                   ", process ", absl::Hex(refused_by_->primary.incarnation),
                   ". Wait for a random time, then try again above it"));
}

// ServerHello and ballot.

absl::Status EpochOpening::CheckServerHellos() {
  for (const auto& peer : peers_) {
    if (peer->state() != State::kGreeted) continue;
    const uint64_t newest = peer->server_hello().configuration_id;
    if (newest > options_.configuration_id) {
      return absl::FailedPreconditionError(
          absl::StrCat(peer->Describe(), " has configuration ", newest,
                       ", newer than ", options_.configuration_id,
                       " of this process. Give it the newest list of members"));
    }
    const absl::Status status = CheckServerHello(peer->server_hello());
    if (!status.ok()) peer->Fail(status);
  }
  return absl::OkStatus();
}

absl::Status EpochOpening::AskBallot() {
  const auto is_greeted = [](const OpeningPeer& peer) {
    return peer.state() == State::kGreeted;
  };
  for (const Electorate& electorate : electorates_) {
    if (Count(electorate, is_greeted) <
        quorum::OpeningQuorumSize(electorate.sizes)) {
      return absl::OkStatus();
    }
  }
  std::vector<Epoch> promised;
  uint64_t newest = 0;
  if (!is_working_copy_) {
    promised.push_back(own_->superline().promised_epoch);
    newest = own_->superline().configuration.id;
  }
  for (const auto& peer : peers_) {
    if (!is_greeted(*peer)) continue;
    promised.push_back(peer->server_hello().promised);
    newest = std::max(newest, peer->server_hello().configuration_id);
  }
  // Checked before any replica promises, so that a primary of the old list is
  // not disturbed.
  const uint64_t expected =
      options_.change ? options_.change->from_id : options_.configuration_id;
  if (newest < expected) {
    return MembersAreNotYet(options_.change.has_value(), newest, expected);
  }
  const Epoch latest = std::ranges::max(promised);
  if (options_.promised_max && latest > *options_.promised_max) {
    lost_race_ = true;
    return absl::UnavailableError(absl::StrCat(
        "epoch ", latest.value, " is promised, above ",
        options_.promised_max->value,
        " of when this process decided to open. Another one was faster"));
  }
  promised.push_back(options_.above);
  ballot_ = ballots_.Ask({std::move(promised), options_.sizes});
  phase_ = Phase::kBallot;
  return absl::OkStatus();
}

absl::Status EpochOpening::TakeBallot() {
  if (ballot_->Poll() != Polled::kDone) return absl::OkStatus();
  const absl::StatusOr<Epoch> ballot = ballot_->ballot();
  ballot_.reset();
  ALPHEUS_RETURN_IF_ERROR(ballot.status());
  promise_ = {*ballot, options_.self};
  ALPHEUS_RETURN_IF_ERROR(PromiseItself());
  phase_ = Phase::kPromise;
  SendPrepares();
  return is_working_copy_ ? absl::OkStatus()
                          : own_->StartStateReport(AsksForAll());
}

// Promise.

absl::Status EpochOpening::PromiseItself() {
  if (is_working_copy_) return absl::OkStatus();
  const auto verdict = own_->AcceptPromise(promise_);
  if (verdict.ok()) return absl::OkStatus();
  const auto current = quorum::RefusingPromise(verdict.status());
  if (!current) return verdict.status();
  NoteRefusedBy(*current);
  return TooFew("the own replica refused its promise");
}

void EpochOpening::SendPrepares() {
  for (const auto& peer : peers_) {
    if (peer->state() != State::kGreeted) continue;
    peer->Ask(Prepare{promise_, options_.configuration_id,
                      options_.promised_max, AsksForAll()});
  }
  // Sends the requests now: the scan of the own replica comes next.
  if (!is_working_copy_ && !own_report_) fabric_.RunTurn();
}

absl::Status EpochOpening::ContinueScan() {
  if (is_working_copy_ || own_report_) return absl::OkStatus();
  const absl::StatusOr<bool> done = own_->Continue(options_.slice_bytes);
  if (!done.ok()) {
    return OwnPromisedAnother()
               ? TooFew("the own replica promised another primary")
               : done.status();
  }
  if (*done) own_report_ = own_->TakeStateReport();
  return absl::OkStatus();
}

// Returns true if the own replica, which serves promises meanwhile, has
// promised another primary.
bool EpochOpening::OwnPromisedAnother() {
  const quorum::Promise current = quorum::PromiseOf(own_->superline());
  if (current == promise_) return false;
  NoteRefusedBy(current);
  return true;
}

absl::Status EpochOpening::Gather() {
  wake_at_ = kNever;
  SendPrepares();
  ALPHEUS_RETURN_IF_ERROR(ContinueScan());
  if (!is_working_copy_ && !own_report_) return absl::OkStatus();
  bool all = true;
  std::vector<const OpeningPeer*> from;
  for (const auto& peer : peers_) {
    const bool has = peer->state() == State::kReported;
    if (has) from.push_back(peer.get());
    all &= has || peer->state() == State::kRefused ||
           (peer->failed() && !IsAwaited(*peer));
  }
  const auto has_reported = [](const OpeningPeer& peer) {
    return peer.state() == State::kReported;
  };
  for (const Electorate& electorate : electorates_) {
    if (Count(electorate, has_reported) <
        quorum::OpeningQuorumSize(electorate.sizes)) {
      return absl::OkStatus();
    }
  }
  const int64_t now = clock_.NowNanos();
  if (!gathered_at_) gathered_at_ = promised_ns_ = now;
  wake_at_ = *gathered_at_ + PatienceForReports();
  if (!all && now < wake_at_) return absl::OkStatus();
  wake_at_ = kNever;
  if (from != tried_with_) {
    tried_with_ = std::move(from);
    ALPHEUS_RETURN_IF_ERROR(ChooseFromReports());
  }
  return phase_ == Phase::kPromise ? CheckAnyoneIsLeft() : absl::OkStatus();
}

// For more than are needed. Requires: those that are needed are there.
int64_t EpochOpening::PatienceForReports() const {
  const int64_t left = options_.deadline.at_nanos() - *gathered_at_;
  const int64_t patience = std::min(options_.gather_ns, left / 2);
  if (options_.gather_factor == 0) return patience;
  return std::min(patience, (*gathered_at_ - waits_since_) *
                                int64_t{options_.gather_factor});
}

absl::Status EpochOpening::ChooseFromReports() {
  std::vector<StateReport> reports;
  std::vector<OpeningPeer*> peers;
  if (own_report_) {
    reports.push_back(*own_report_);
    peers.push_back(nullptr);
  }
  for (const auto& peer : peers_) {
    if (peer->state() != State::kReported) continue;
    reports.push_back(peer->report());
    peers.push_back(peer.get());
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      OpeningChoice choice,
      ChooseForOpening({electorates_.front().nodes, options_.sizes,
                        options_.configuration_id,
                        options_.change ? &*options_.change : nullptr},
                       reports));
  wait_reason_ = choice.wait_reason;
  return choice.is_chosen
             ? Begin(std::move(choice), std::move(reports), std::move(peers))
             : absl::OkStatus();
}

absl::Status EpochOpening::CheckAnyoneIsLeft() {
  for (const auto& peer : peers_) {
    if (peer->state() != State::kReported && MayComeYet(*peer)) {
      return absl::OkStatus();
    }
  }
  return TooFew(absl::StrCat("no further replica can report: ", wait_reason_));
}

// Install.

absl::Status EpochOpening::Begin(OpeningChoice choice,
                                 std::vector<StateReport> reports,
                                 std::vector<OpeningPeer*> peers) {
  Decision& decision = choice.decision;
  chosen_ns_ = clock_.NowNanos();
  keeps_unnamed_ = decision.chosen_from != decision.head;
  configuration_ = std::move(choice.target);
  for (const auto& peer : peers_) {
    if (peer->state() == State::kReported) continue;
    peer->Fail(absl::UnavailableError(
        peer->state() == State::kRefused
            ? absl::StrCat("promised epoch ", peer->refused_by().epoch.value,
                           " to another primary")
            : "came too late: the log was chosen without it; let it resync"));
  }
  ALPHEUS_RETURN_IF_ERROR(
      CleanThrough(options_.cleanup_through, reports, decision));
  if (is_working_copy_) {
    ALPHEUS_RETURN_IF_ERROR(MakeCache(decision, reports));
  } else if (!Contains(decision.members, 0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        own_->name(), ": incarnation ", own_->superline().incarnation,
        " of node ", own_->superline().node.value,
        " is not a member of the log's configuration: its medium was replaced. "
        "Open the log on another node; the replica resyncs there"));
  }
  PlanInput input;
  input.plan = PlanRepair(
      SizesOf(decision.configuration), decision, reports,
      {options_.log_id, promise_.epoch, random_.Next(), configuration_});
  ALPHEUS_RETURN_IF_ERROR(CheckTable(input.plan.table));
  // A working copy is read before anything is copied from it (PLR5).
  if (!is_working_copy_ && CopiesUnread(input.plan, decision, reports)) {
    wants_whole_reports_ = true;
    return absl::UnavailableError(
        "a replica does not know what it has, and gets all records again. They "
        "are read first where they come from: open the log again");
  }
  InstallQuorums quorums =
      QuorumsToInstall(choice.promises, decision, reports, configuration_,
                       options_.change.has_value());
  input.reports = std::move(reports);
  input.peers = std::move(peers);
  input.decision = std::move(decision);
  input.own = own_.get();
  input.is_working_copy = is_working_copy_;
  input.own_key = own_ring_->key();
  install_ = std::make_unique<EpochInstall>(
      PlanTerms{std::move(quorums), configuration_, promise_, options_.credits,
                options_.copy_bytes_max, options_.slice_bytes,
                options_.heartbeat_ms, options_.ceiling_step_bytes,
                options_.keeps_ceiling},
      std::move(input), fabric_, clock_, random_,
      EpochInstallOptions{
          options_.install_gather_ns.value_or(options_.gather_ns),
          options_.deadline, options_.sizes.write_quorum,
          options_.change.has_value()});
  phase_ = Phase::kInstall;
  return absl::OkStatus();
}

absl::Status EpochOpening::CheckTable(const EpochTable& table) const {
  const size_t entries = table.entries().size();
  if (entries <= own_->superline().table_capacity &&
      entries <= kEpochTableCapacity) {
    return absl::OkStatus();
  }
  const EpochEntry& first = table.entries()[1];
  return absl::ResourceExhaustedError(absl::StrCat(
      "epoch ", promise_.epoch.value, ": the epoch table is full: records of ",
      entries - 1,
      " openings are live. Nothing was changed but promises. "
      "Clean the oldest ones with `alpheus cleanup --cluster "
      "FILE --log NAME --through LSN`, or LogOptions::cleanup_through; epoch ",
      first.epoch.value, " starts at LSN ", first.start_lsn.value));
}

absl::Status EpochOpening::MakeCache(const Decision& decision,
                                     const std::vector<StateReport>& reports) {
  const StateReport& highest = ReportOfHighestEpoch(decision, reports);
  ALPHEUS_ASSIGN_OR_RETURN(own_, working_copy_factory_(highest.ring_capacity,
                                                       highest.configuration));
  if (own_->ring().capacity() != highest.ring_capacity) {
    return absl::InvalidArgumentError(
        absl::StrCat(own_->name(), ": a working copy with a ring of ",
                     own_->ring().capacity(), " bytes, expected ",
                     highest.ring_capacity, " as the replicas"));
  }
  ALPHEUS_RETURN_IF_ERROR(own_->AcceptPromise(promise_).status());
  return RegisterOwnRing();
}

bool EpochOpening::IsLeaving(NodeId node) const {
  if (!options_.change) return false;
  const std::vector<NodeId>& stay = options_.change->to_nodes;
  return std::find(stay.begin(), stay.end(), node) == stay.end();
}

void EpochOpening::Finish() {
  const PlanRunner& runner = install_->runner();
  if (!runner.is_enough()) {
    return End(absl::UnavailableError(
        absl::StrCat("fewer than W = ", options_.sizes.write_quorum,
                     " of the replicas that had installed are left")));
  }
  if (OwnPromisedAnother()) {
    return End(TooFew("the own replica promised another primary"));
  }
  const Decision& decision = runner.decision();
  EpochOpened& opened = opened_.emplace();
  opened.start = own_->StartOfLog();
  opened.epoch = promise_.epoch;
  opened.previous_epoch = decision.epoch;
  opened.promised_ns = promised_ns_;
  opened.chosen_ns = chosen_ns_;
  opened.installed_ns = clock_.NowNanos();
  opened.head = decision.head;
  opened.end = decision.end;
  opened.repairs = runner.Sentences();
  opened.configuration = std::move(configuration_);
  for (const auto& peer : peers_) {
    if (IsLeaving(peer->node())) {
      peer->Fail(absl::CancelledError("leaves the log"));
    } else if (peer->state() == State::kInstalled) {
      opened.backups.push_back({peer->node(), peer->address(),
                                peer->ReleaseConnection(),
                                peer->ReleaseSession()});
    } else {
      peer->Fail(
          absl::UnavailableError("is not a member any more; replace it"));
      opened.not_installed.push_back(
          {peer->node(), std::string(peer->failure().message())});
    }
  }
  opened.ring = std::move(own_ring_);
  phase_ = Phase::kOver;
}

// A replica that installs reads all that was copied to it (P-A4.5).
bool EpochOpening::HasMetUnnamedDamage(const absl::Status& status) const {
  if (phase_ != Phase::kInstall || !keeps_unnamed_) return false;
  return absl::IsDataLoss(status) ||
         std::ranges::any_of(peers_, [](const auto& peer) {
           return peer->failed() && absl::IsDataLoss(peer->failure());
         });
}

// Closes connections first, so that no operation uses the memory any more.
void EpochOpening::End(const absl::Status& status) {
  may_be_installed_ = phase_ == Phase::kInstall;
  wants_whole_reports_ |= HasMetUnnamedDamage(status);
  may_try_again_ = lost_race_ || wants_whole_reports_ ||
                   (absl::IsUnavailable(status) && phase_ == Phase::kInstall);
  // A log that was deleted may not be opened again.
  const bool is_deleted = DeletionBy(status) != Deletion::kNone;
  status_ =
      is_deleted
          ? status
          : absl::Status(
                status.code(),
                absl::StrCat("opening ",
                             promise_.epoch == Epoch()
                                 ? std::string("a new epoch")
                                 : absl::StrCat("epoch ", promise_.epoch.value),
                             " of log ", options_.log_id.ToString(), ": ",
                             status.message(), ". ", DescribePeers(),
                             WhatWasPromised(),
                             "Nothing was shown; the log may be opened again"));
  for (const auto& peer : peers_) {
    peer->Fail(absl::CancelledError("the opening was given up"));
  }
  ballot_.reset();
  install_.reset();
  own_ring_.reset();
  phase_ = Phase::kOver;
}

// Describes promises that remain. A primary that had the log open does not get
// them back by itself.
std::string EpochOpening::WhatWasPromised() const {
  if (phase_ < Phase::kPromise) return "";
  const bool any =
      (!is_working_copy_ && quorum::PromiseOf(own_->superline()) == promise_) ||
      std::ranges::any_of(
          peers_, [](const auto& peer) { return peer->has_promised(); });
  if (!any) return "";
  return "Replicas promised this epoch: a primary that has the log open has "
         "lost them, and gets them back when it opens the log again. ";
}

std::string EpochOpening::DescribePeers() const {
  std::string text;
  for (const auto& peer : peers_) {
    if (peer->failed()) {
      absl::StrAppend(&text, peer->failure().message(), ". ");
    } else if (peer->state() == State::kRefused) {
      absl::StrAppend(&text, peer->Describe(), ": promised epoch ",
                      peer->refused_by().epoch.value, ". ");
    }
  }
  return text;
}

EpochOpened EpochOpening::TakeOpened() {
  ALPHEUS_CHECK(opened_.has_value(), "only what was opened can be taken");
  EpochOpened opened = *std::move(opened_);
  opened_.reset();
  return opened;
}

}  // namespace alpheus::recovery
