// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/epoch_succession.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/membership/static_membership.h"

namespace alpheus::recovery {
namespace {

constexpr int64_t kNotDue = Deadline().at_nanos();
// How often a change looks whether all records are durable, and how long a
// waiter sleeps at least while it is another thread's turn to step.
constexpr int64_t kSuccessionLookNanos = 100'000;
constexpr int64_t kTurnNanos = 20'000;

std::vector<PeerAddress> WithoutNode(std::vector<PeerAddress> peers,
                                     NodeId node) {
  std::erase_if(peers,
                [node](const PeerAddress& at) { return at.node == node; });
  return peers;
}

}  // namespace

EpochSuccession::EpochSuccession(fabric::Fabric& fabric, const Clock& clock,
                                 RandomSource& random,
                                 SuccessionOptions options, EpochOpened& opened,
                                 replication::Replicator::Observer* others)
    : fabric_(fabric),
      clock_(clock),
      random_(random),
      others_(others),
      options_(std::move(options)),
      first_bounds_{opened.head, opened.start.superline.ceiling},
      due_ns_(kNotDue),
      upkeep_(MakeUpkeep(opened)) {
  const MutexLock lock(mutex_);
  members_ = MembersOf(opened.epoch, opened.configuration);
  change_.epoch = opened.epoch;
  head_lsn_ = opened.head.lsn;
  next_lsn_ = opened.end.lsn;
}

EpochSuccession::~EpochSuccession() = default;

std::unique_ptr<MemberUpkeep> EpochSuccession::MakeUpkeep(EpochOpened& opened) {
  replication::Replicator::Observer* const others = this;
  return std::make_unique<MemberUpkeep>(fabric_, clock_, random_,
                                        options_.replicator, options_.resync,
                                        opened, others);
}

void EpochSuccession::ClaimReplica(RegionClaimOptions claim,
                                   ScrubbingOptions scrubbing,
                                   PrimaryReplica& replica,
                                   SucceedingLog& log) {
  claim_ = std::move(claim);
  {
    const MutexLock lock(mutex_);
    members_ = MembersOf(members_.epoch, members_.configuration);
  }
  claim_->change = [this](const AskChange* asked) { return AnswerNode(asked); };
  scrubbing_ = std::move(scrubbing);
  replica_ = &replica;
  log_ = &log;
  upkeep().ClaimReplica(*claim_, scrubbing_, replica);
}

// A primary with its own replica is a member, and none of its own peers.
EpochSuccession::Members EpochSuccession::MembersOf(
    Epoch epoch, Configuration configuration) const {
  const EpochOpeningOptions& running_list = options_.resync.opening;
  Members members{epoch, std::move(configuration), running_list.sizes,
                  running_list.peers};
  if (claim_) members.nodes.push_back({claim_->node, claim_->address});
  std::ranges::sort(members.nodes, {}, &PeerAddress::node);
  return members;
}

// EPS3: a replica that leaves, or is replaced, installs nothing. EPS7: a log
// that has ended changes nothing.
absl::Status EpochSuccession::CheckAble(const MembersChange& change) const {
  if (state().has_failed) {
    return absl::FailedPreconditionError(
        "the log of this primary has ended. Open it again");
  }
  if (log_ == nullptr) {
    return absl::FailedPreconditionError(
        "this primary has no replica of its own, so it can't change the "
        "members while the log runs. Change them from another process");
  }
  const auto names = [this](const std::vector<NodeId>& nodes) {
    return std::ranges::find(nodes, claim_->node) != nodes.end();
  };
  if (names(change.from_nodes) && names(change.to_nodes) &&
      !names(change.replaced)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "node ", claim_->node.value,
      " is primary, and does not stay a member by this change. Have another "
      "node become primary first (`alpheus elect`), or change the members from "
      "another process"));
}

// EPS8. A list that is not the running one costs nobody a pause.
absl::Status EpochSuccession::CheckPossible(const MembersChange& change) const {
  ALPHEUS_RETURN_IF_ERROR(CheckChange(change));
  const MutexLock lock(mutex_);
  return CheckFound(change, members_.configuration);
}

absl::Status EpochSuccession::Ask(SuccessionRequest request) {
  ALPHEUS_RETURN_IF_ERROR(CheckAble(request.change));
  ALPHEUS_RETURN_IF_ERROR(CheckPossible(request.change));
  return Ask(std::move(request), /*id=*/0);
}

absl::Status EpochSuccession::Ask(SuccessionRequest request, uint64_t id) {
  const MutexLock lock(mutex_);
  if (change_.asked != change_.done) {
    return absl::UnavailableError(
        "this primary is changing the members. Try again when it has done so");
  }
  ++change_.asked;
  asked_ = std::move(request);
  asked_id_ = id;
  asked_at_ns_ = clock_.NowNanos();
  if (id != 0) {
    if (outcomes_.size() == kOutcomesMax) outcomes_.erase(outcomes_.begin());
    ChangeState running;
    running.id = id;
    running.word = ChangeWord::kRunning;
    outcomes_.push_back(running);
  }
  is_asked_.store(true, std::memory_order_release);
  due_ns_.store(0, std::memory_order_release);
  fabric_.Wake();
  return absl::OkStatus();
}

const ChangeState* EpochSuccession::FindOutcome(uint64_t id) const {
  const auto found = std::ranges::find(outcomes_, id, &ChangeState::id);
  return found == outcomes_.end() ? nullptr : &*found;
}

// EPS6. Two operators at once: the second one waits, and asks again.
ChangeState EpochSuccession::Begin(const AskChange& asked) {
  {
    const MutexLock lock(mutex_);
    if (const ChangeState* const known = FindOutcome(asked.id)) return *known;
  }
  ChangeState said;
  said.id = asked.id;
  said.why = CheckAble(asked.change);
  if (!said.why.ok()) return said;
  said.word = ChangeWord::kRefused;
  said.why = CheckPossible(asked.change);
  if (!said.why.ok()) return said;
  said.why = Ask({asked.change, asked.peers}, asked.id);
  said.word = said.why.ok() ? ChangeWord::kRunning : ChangeWord::kWaiting;
  return said;
}

// Called from inside the Poll of upkeep_, which nobody replaces meanwhile.
ChangeState EpochSuccession::AnswerNode(const AskChange* asked) {
  ChangeState said;
  if (asked != nullptr) said = Begin(*asked);
  const MemberUpkeep::State now = state();
  const MutexLock lock(mutex_);
  if (asked == nullptr && !outcomes_.empty()) said = outcomes_.back();
  said.epoch = change_.epoch;
  said.head_lsn = head_lsn_;
  said.next_lsn = next_lsn_;
  for (const OtherMember& member : now.out_of_sync) {
    if (said.missing.size() < kMembersMax) said.missing.push_back(member.node);
  }
  return said;
}

Polled EpochSuccession::Poll() {
  has_resumed_ = false;
  const Polled polled = running().Poll();
  const bool is_changing = phase_ != Phase::kRunning && phase_ != Phase::kEnded;
  if (!is_changing && !is_asked_.load(std::memory_order_acquire)) [[likely]] {
    return polled;
  }
  AdvanceChange();
  // Not before: a request for a ballot uses it until its opening is gone.
  if (opening_ == nullptr && phase_ != Phase::kResting) ballots_.reset();
  NoteDue();
  return Polled::kMoved;
}

// EPS2.
void EpochSuccession::BeginConfirmation() {
  if (has_promised_) {
    before_.is_confirming = true;
  } else {
    running().BeginConfirmation();
  }
}

// The log also takes acks while no call waits: a change lets the log's own
// thread poll without a rest.
ReplicationState EpochSuccession::replication_state() const {
  ReplicationState state =
      has_promised_ ? before_ : running().replication_state();
  // All replicas in sync have what the epoch was opened with.
  state.reuse_limit = std::max(state.reuse_limit, first_bounds_.ceiling);
  state.durable_head_lsn =
      std::max(state.durable_head_lsn, first_bounds_.head.lsn);
  if (phase_ != Phase::kRunning && phase_ != Phase::kEnded) {
    state.is_idle = false;
    state.is_catching_up = true;
  }
  state.has_failed =
      phase_ == Phase::kEnded || (!has_promised_ && running().has_failed());
  state.has_resumed = has_resumed_;
  return state;
}

absl::Status EpochSuccession::status() const {
  if (phase_ == Phase::kEnded) return status_;
  return has_promised_ ? absl::OkStatus() : running().status();
}

void EpochSuccession::WaitForActivity(Deadline deadline) {
  fabric_.WaitForActivity(PollDeadline(deadline));
}

Deadline EpochSuccession::PollDeadline(Deadline deadline) const {
  Deadline until;
  {
    const MutexLock lock(mutex_);
    until = upkeep_->replicator().PollDeadline(deadline);
  }
  const int64_t due = due_ns_.load(std::memory_order_acquire);
  if (due != kNotDue) {
    until = Deadline::AtNanos(std::min(
        until.at_nanos(), std::max(due, clock_.NowNanos() + kTurnNanos)));
  }
  return until;
}

void EpochSuccession::OnCompletion(const fabric::Completion& completion) {
  if (opening_ != nullptr && opening_->OnCompletion(completion)) return;
  if (others_ != nullptr) others_->OnCompletion(completion);
}

void EpochSuccession::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (opening_ != nullptr && opening_->OnConnectionEvent(event)) return;
  if (others_ != nullptr) others_->OnConnectionEvent(event);
}

// --- The change --------------------------------------------------------------

void EpochSuccession::NoteDue() {
  int64_t due = kNotDue;
  switch (phase_) {
    case Phase::kRunning:
    case Phase::kEnded:
      break;
    case Phase::kDraining:
      due = clock_.NowNanos() + kSuccessionLookNanos;
      break;
    case Phase::kOpening:
      due = opening_->NextPoll().at_nanos();
      break;
    case Phase::kResting:
      due = until_ns_;
      break;
  }
  due_ns_.store(due, std::memory_order_release);
  // One that was asked for since has set it already.
  if (phase_ == Phase::kRunning && is_asked_.load(std::memory_order_acquire)) {
    due_ns_.store(clock_.NowNanos() + kSuccessionLookNanos,
                  std::memory_order_release);
  }
}

void EpochSuccession::AdvanceChange() {
  // The log has failed, or its region was released. An opening that has not
  // promised yet may not touch it any more.
  if (phase_ != Phase::kEnded && !has_promised_ && running().has_failed()) {
    return EndUnpromised();
  }
  switch (phase_) {
    case Phase::kRunning:
      return BeginChange();
    case Phase::kDraining:
      return Drain();
    case Phase::kOpening:
      return ContinueOpening();
    case Phase::kResting:
      if (clock_.NowNanos() >= until_ns_) OpenOrFail();
      return;
    case Phase::kEnded:
      return NotBegun(ChangeWord::kNobody, status_);
  }
}

// EPS5, EPS7. It may write an idle watermark, or be closing, or its medium has
// failed: then it is never held.
void EpochSuccession::BeginChange() {
  if (!log_->TryHold()) {
    int64_t asked_at = 0;
    {
      const MutexLock lock(mutex_);
      asked_at = asked_at_ns_;
    }
    if (!replica_->IsUsable()) {
      NotBegun(ChangeWord::kNobody,
               absl::FailedPreconditionError(
                   "the log of this primary is closed, or its medium has "
                   "failed. Open it again"));
    } else if (clock_.NowNanos() - asked_at >= options_.drain_ns) {
      NotBegun(ChangeWord::kRefused,
               absl::UnavailableError("the program is closing the log. Try "
                                      "again when it has done so"));
    }
    return;
  }
  is_asked_.store(false, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    request_ = *std::move(asked_);
    asked_.reset();
  }
  phase_ = Phase::kDraining;
  until_ns_ = clock_.NowNanos() + options_.drain_ns;
  Drain();
}

// EPS1.
void EpochSuccession::Drain() {
  if (!log_->IsAtRest()) {
    if (clock_.NowNanos() < until_ns_) return;
    return Refuse(absl::UnavailableError(
        "records that are reserved did not become durable in time: the program "
        "holds reservations open, or too few replicas answer. The log goes on "
        "with the members of before; try again"));
  }
  // No later try could open an epoch either, nor one without the change.
  if (!log_->HasRoomForEpoch()) {
    return Refuse(absl::ResourceExhaustedError(
        "the epoch table is full: each of its epochs has records that are not "
        "cleaned. The log goes on with the members of before. Clean the oldest "
        "records, then try again"));
  }
  log_->HandRegion();
  has_promised_ = false;
  with_change_ = true;
  is_half_made_ = false;
  not_changed_ = absl::OkStatus();
  whole_reports_ = false;
  const int64_t now = clock_.NowNanos();
  change_until_ = Deadline::AtNanos(now + options_.open_ns / 2);
  open_until_ = Deadline::AtNanos(now + options_.open_ns);
  OpenOrFail();
}

void EpochSuccession::OpenOrFail() {
  const absl::Status begun = BeginOpening();
  if (!begun.ok()) OpeningFailed(begun, /*again=*/false);
}

EpochOpeningOptions EpochSuccession::OptionsToOpen() const {
  EpochOpeningOptions opening = options_.resync.opening;
  opening.deadline =
      with_change_ && !is_half_made_ ? change_until_ : open_until_;
  opening.report_ns = 0;
  opening.cleanup_through = Lsn(0);
  opening.promised_max = std::nullopt;
  opening.keeps_ceiling = true;
  opening.above = above_;
  opening.whole_reports = whole_reports_;
  // Users wait. Members that are left out join while the log runs.
  opening.install_gather_ns = 0;
  if (!with_change_) return opening;
  opening.change = request_.change;
  opening.peers = WithoutNode(request_.peers, claim_->node);
  opening.sizes = request_.change.to;
  opening.configuration_id = request_.change.to_id;
  return opening;
}

// EPS9. A service that can't be reached must not keep a log from its users.
absl::Status EpochSuccession::OpenBallots() {
  if (ballots_ == nullptr && options_.open_ballots) {
    absl::StatusOr<std::unique_ptr<quorum::BallotSource>> opened =
        options_.open_ballots();
    if (opened.ok()) ballots_ = *std::move(opened);
  }
  if (ballots_ != nullptr) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(
      quorum::StaticMembership counted,
      quorum::StaticMembership::Make(options_.resync.opening.self));
  ballots_ = std::make_unique<quorum::StaticMembership>(std::move(counted));
  return absl::OkStatus();
}

absl::Status EpochSuccession::BeginOpening() {
  ALPHEUS_RETURN_IF_ERROR(OpenBallots());
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<OpenersReplica> own,
                           log_->OpenReplica([this] { Retire(); }));
  ALPHEUS_ASSIGN_OR_RETURN(
      opening_, EpochOpening::Start(fabric_, clock_, random_, *ballots_,
                                    OptionsToOpen(), std::move(own)));
  phase_ = Phase::kOpening;
  return absl::OkStatus();
}

void EpochSuccession::ContinueOpening() {
  const Polled polled = opening_->Poll();
  fabric_.FlushSends();  // the log's next Poll may come late
  if (polled != Polled::kDone) return;
  const std::unique_ptr<EpochOpening> opening = std::move(opening_);
  whole_reports_ |= opening->wants_whole_reports();
  if (opening->status().ok()) return GoOn(opening->TakeOpened());
  if (opening->refused_by()) {
    above_ = std::max(above_, opening->refused_by()->epoch);
  }
  is_half_made_ |= with_change_ && opening->may_be_installed();
  OpeningFailed(opening->status(), opening->may_try_again());
}

// EPS2. Acks that came since the last Poll may be lost with the old sessions;
// all records are durable without them.
void EpochSuccession::Retire() {
  if (has_promised_) return;
  before_ = running().replication_state();
  {
    const MutexLock lock(mutex_);
    shown_ = upkeep_->state();
  }
  has_promised_ = true;
  upkeep().Retire();
}

// EPS4. Once a member may have the new list, it refuses openings by the old
// one: the change is completed, if time allows it.
void EpochSuccession::OpeningFailed(const absl::Status& why, bool again) {
  if (!has_promised_) {
    // The promise may be on the medium or not, and the log can't go on there.
    const absl::Status medium = log_->MediumError();
    if (medium.ok()) return Refuse(why);
    running().End(medium);
    return EndUnpromised();
  }
  const int64_t now = clock_.NowNanos();
  if (open_until_.HasPassed(now) || (!again && !with_change_)) {
    return EndPromised(why);
  }
  const bool is_too_late = change_until_.HasPassed(now) && !is_half_made_;
  if (!again || is_too_late) {
    if (with_change_) not_changed_ = why;
    with_change_ = false;
  }
  phase_ = Phase::kResting;
  until_ns_ = now + static_cast<int64_t>(
                        random_.Below(static_cast<uint64_t>(options_.rest_ns)));
}

// A list in which a replica was replaced has the number of before. So an
// opening without the change may find it, where a try before had installed it
// on some member, and it completes the change.
bool EpochSuccession::HasReplaced(const Configuration& opened) const {
  const MembersChange& change = request_.change;
  if (change.to_id != change.from_id) return false;
  const Configuration before = members().configuration;
  return std::ranges::none_of(before.members, [&](const Member& member) {
    return std::ranges::find(change.replaced, member.node) !=
               change.replaced.end() &&
           Names(opened, member);
  });
}

void EpochSuccession::TakeNewList() {
  const MembersChange& change = request_.change;
  EpochOpeningOptions& running_list = options_.resync.opening;
  running_list.sizes = change.to;
  running_list.configuration_id = change.to_id;
  running_list.peers = WithoutNode(request_.peers, claim_->node);
  std::erase_if(running_list.peers, [&change](const PeerAddress& at) {
    return std::ranges::find(change.to_nodes, at.node) == change.to_nodes.end();
  });
  options_.replicator.write_quorum = change.to.write_quorum;
  options_.replicator.replica_count = change.to.replica_count;
  scrubbing_.peers = running_list.peers;
}

// EPS3.
void EpochSuccession::GoOn(EpochOpened opened) {
  const absl::Status continued = log_->Continue(opened);
  if (!continued.ok()) {
    for (const OpenedBackup& backup : opened.backups) {
      fabric_.Close(backup.connection).IgnoreError();
    }
    return EndPromised(continued);
  }
  const bool is_made = with_change_ || HasReplaced(opened.configuration);
  if (is_made) TakeNewList();
  ReplaceUpkeep(opened);
  phase_ = Phase::kRunning;
  has_promised_ = false;
  has_resumed_ = true;
  log_->Resume();
  if (is_made) return Done(ChangeWord::kInstalled, absl::OkStatus());
  Done(is_half_made_ ? ChangeWord::kCutOff : ChangeWord::kRefused,
       absl::UnavailableError(absl::StrCat(
           "the members could not be changed: ", not_changed_.message(),
           "; the log goes on with those of before. Try again")));
}

// Closes the old connections first: nothing uses the memory of their sessions
// any more. The node has one claim at a time.
void EpochSuccession::ReplaceUpkeep(EpochOpened& opened) {
  running().End(absl::CancelledError("the primary opened the next epoch"));
  first_bounds_ = {opened.head, opened.start.superline.ceiling};
  const Epoch epoch = opened.epoch;
  const Lsn end = opened.end.lsn;
  Members members = MembersOf(epoch, opened.configuration);
  std::unique_ptr<MemberUpkeep> next = MakeUpkeep(opened);
  {
    const MutexLock lock(mutex_);
    upkeep_.swap(next);
    shown_.reset();
    members_ = std::move(members);
    change_.epoch = epoch;
    head_lsn_ = first_bounds_.head.lsn;
    next_lsn_ = end;
  }
  next.reset();
  if (before_.is_confirming) running().BeginConfirmation();
  claim_->promise = {epoch, options_.resync.opening.self};
  upkeep().ClaimReplica(*claim_, scrubbing_, *replica_);
}

void EpochSuccession::Done(ChangeWord word, const absl::Status& status) {
  const MutexLock lock(mutex_);
  change_.done = change_.asked;
  change_.status = status;
  change_.word = word;
  const auto outcome =
      std::ranges::find(outcomes_, asked_id_, &ChangeState::id);
  if (outcome == outcomes_.end()) return;
  outcome->word = word;
  outcome->why = status;
}

// The log was not held, or has ended.
void EpochSuccession::NotBegun(ChangeWord word, const absl::Status& why) {
  is_asked_.store(false, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    asked_.reset();
  }
  Done(word, why);
}

// Nothing was promised.
void EpochSuccession::Refuse(const absl::Status& why) {
  opening_.reset();
  phase_ = Phase::kRunning;
  has_resumed_ = true;
  log_->Resume();
  Done(ChangeWord::kRefused, why);
}

void EpochSuccession::End(const absl::Status& why) {
  if (phase_ == Phase::kEnded) return;
  if (has_promised_) return EndPromised(why);
  running().End(why);  // a change notices it
}

void EpochSuccession::EndUnpromised() {
  opening_.reset();
  phase_ = Phase::kEnded;
  status_ = running().status();
  NotBegun(ChangeWord::kNobody, status_);
}

// MUK1 (member_upkeep.h).
void EpochSuccession::EndPromised(const absl::Status& why) {
  opening_.reset();
  status_ = absl::AbortedError(absl::StrCat(
      why.message(),
      "; the log ended while its members were changed. All records that were "
      "reserved are durable; open the log again"));
  phase_ = Phase::kEnded;
  running().End(status_);
  {
    const MutexLock lock(mutex_);
    shown_->has_failed = true;
  }
  replica_->ReleaseRegion().IgnoreError();
  Done(ChangeWord::kCutOff, status_);
}

}  // namespace alpheus::recovery
