// SPDX-License-Identifier: Apache-2.0
#include "recovery/deletion/log_deletion.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {
namespace {

using State = OpeningPeer::State;

Member ReplicaOf(const OpeningPeer& peer) {
  return {peer.node(), peer.server_hello().incarnation};
}

bool IsMarked(const OpeningPeer& peer) {
  return peer.deletion().deletion != Deletion::kNone;
}

}  // namespace

LogDeletion::LogDeletion(fabric::Fabric& fabric, const Clock& clock,
                         RandomSource& random, quorum::BallotSource& ballots,
                         const LogDeletionOptions& options)
    : clock_(clock), ballots_(ballots), options_(options) {
  const Hello hello{options.cluster_id, options.log_id, options.self};
  for (const PeerAddress& at : options.peers) {
    peers_.push_back(std::make_unique<OpeningPeer>(
        OpeningPeerOptions{.at = at,
                           .hello = hello,
                           .step_timeout_ns = options.step_timeout_ns,
                           .deadline = options.deadline,
                           .credentials = {options.key, &random},
                           .deletes = true},
        fabric, clock));
    peers_.back()->Connect();
  }
}

absl::StatusOr<std::unique_ptr<LogDeletion>> LogDeletion::Start(
    fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
    quorum::BallotSource& ballots, const LogDeletionOptions& options) {
  std::set<NodeId> nodes;
  for (const PeerAddress& peer : options.peers) nodes.insert(peer.node);
  if (options.peers.size() != options.sizes.replica_count ||
      nodes.size() != options.peers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("deleting log ", options.log_id.ToString(), " on ",
                     options.peers.size(), " members of ", nodes.size(),
                     " nodes, expected N = ", options.sizes.replica_count,
                     " of as many. Correct the members"));
  }
  if (!options.deadline.is_set()) {
    return absl::InvalidArgumentError(
        absl::StrCat("deleting log ", options.log_id.ToString(),
                     " needs a deadline; none was given"));
  }
  return std::unique_ptr<LogDeletion>(
      new LogDeletion(fabric, clock, random, ballots, options));
}

bool LogDeletion::OnCompletion(const fabric::Completion& completion) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(completion.connection)) continue;
    peer->OnCompletion(completion);
    return true;
  }
  return false;
}

bool LogDeletion::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(event.connection)) continue;
    peer->OnConnectionEvent(event);
    return true;
  }
  return false;
}

Polled LogDeletion::Poll() {
  if (phase_ == Phase::kOver) return Polled::kDone;
  const int64_t now = clock_.NowNanos();
  for (const auto& peer : peers_) peer->CheckTime(now);
  Reconnect(now);
  if (const absl::Status status = Advance(); !status.ok()) End(status);
  return phase_ == Phase::kOver ? Polled::kDone : Polled::kIdle;
}

Deadline LogDeletion::NextPoll() const {
  int64_t next = options_.deadline.at_nanos();
  // Later it waits for those that were asked, which have times of their own.
  const int64_t now = clock_.NowNanos();
  if (gathered_at_ && now < *gathered_at_ + options_.gather_ns) {
    next = std::min(next, *gathered_at_ + options_.gather_ns);
  }
  if (ballot_ != nullptr) {
    next = std::min(next, ballot_->NextPoll().at_nanos());
  }
  for (const auto& peer : peers_) {
    next = std::min(next, peer->due_nanos());
    if (peer->may_try_again()) {
      next = std::min(next, peer->failed_at_nanos() + options_.reconnect_ns);
    }
  }
  return Deadline::AtNanos(next);
}

// LDL3.
void LogDeletion::Reconnect(int64_t now) {
  for (const auto& peer : peers_) {
    if (peer->may_try_again() && !options_.deadline.HasPassed(now) &&
        now >= peer->failed_at_nanos() + options_.reconnect_ns) {
      peer->Connect();
    }
  }
}

// Returns true if more may be heard of the peer in this phase.
bool LogDeletion::MayComeYet(const OpeningPeer& peer) const {
  if (options_.deadline.HasPassed(clock_.NowNanos())) return false;
  if (removed_.contains(peer.node())) return false;
  if (peer.failed()) return peer.may_try_again();
  switch (peer.state()) {
    case State::kGreeted:
      return phase_ != Phase::kServerHello;
    case State::kReported:
      return phase_ > Phase::kPromise;
    case State::kDeletionKnown:
      return phase_ == Phase::kRemove;
    case State::kRefused:
      return false;
    default:
      return true;
  }
}

// A member that was asked already has its time; others have `gather_ns`.
bool LogDeletion::HasGathered() {
  const int64_t now = clock_.NowNanos();
  if (!gathered_at_) gathered_at_ = now;
  const bool is_late = now >= *gathered_at_ + options_.gather_ns;
  return std::ranges::none_of(peers_, [&](const auto& peer) {
    return MayComeYet(*peer) &&
           (!is_late || peer->state() == State::kAskingDeletion);
  });
}

void LogDeletion::Enter(Phase phase) {
  phase_ = phase;
  gathered_at_.reset();
}

absl::Status LogDeletion::Advance() {
  if (phase_ == Phase::kServerHello) ALPHEUS_RETURN_IF_ERROR(AskBallot());
  if (phase_ == Phase::kBallot) ALPHEUS_RETURN_IF_ERROR(TakeBallot());
  if (phase_ == Phase::kPromise) ALPHEUS_RETURN_IF_ERROR(Promise());
  if (phase_ == Phase::kMark) ALPHEUS_RETURN_IF_ERROR(Mark());
  if (phase_ == Phase::kRemove) Remove();
  return absl::OkStatus();
}

absl::Status LogDeletion::CheckServerHellos() {
  for (const auto& peer : peers_) {
    if (peer->state() != State::kGreeted) continue;
    const ServerHello& hello = peer->server_hello();
    if (hello.configuration_id > options_.configuration_id) {
      return absl::FailedPreconditionError(absl::StrCat(
          peer->Describe(), " has configuration ", hello.configuration_id,
          ", newer than ", options_.configuration_id,
          " of this process. Nothing was marked; give it the newest list of "
          "members"));
    }
    if (const absl::Status status = CheckServerHello(hello); !status.ok()) {
      peer->Fail(status);
    }
  }
  return absl::OkStatus();
}

absl::Status LogDeletion::AskBallot() {
  ALPHEUS_RETURN_IF_ERROR(CheckServerHellos());
  std::vector<Epoch> promised;
  bool nobody_has_it = true;
  for (const auto& peer : peers_) {
    nobody_has_it &= peer->failed() && absl::IsNotFound(peer->failure());
    if (peer->state() == State::kGreeted) {
      promised.push_back(peer->server_hello().promised);
    }
  }
  if (nobody_has_it) {
    return absl::NotFoundError(
        absl::StrCat("log ", options_.log_id.ToString(),
                     ": no member has a replica of it; nothing was done"));
  }
  const uint32_t needed = quorum::OpeningQuorumSize(options_.sizes);
  if (promised.size() < needed) {
    return TooFew(absl::StrCat(promised.size(), " of ", peers_.size(),
                               " members answer, and ", needed, " must"));
  }
  if (!HasGathered()) return absl::OkStatus();
  promised.push_back(options_.above);
  ballot_ = ballots_.Ask({std::move(promised), options_.sizes});
  Enter(Phase::kBallot);
  return absl::OkStatus();
}

absl::Status LogDeletion::TakeBallot() {
  if (ballot_->Poll() != Polled::kDone) {
    return options_.deadline.HasPassed(clock_.NowNanos())
               ? TooFew("the deadline passed before a ballot came")
               : absl::OkStatus();
  }
  const absl::StatusOr<Epoch> ballot = ballot_->ballot();
  ballot_.reset();
  ALPHEUS_RETURN_IF_ERROR(ballot.status());
  promise_ = {*ballot, options_.self};
  Enter(Phase::kPromise);
  return absl::OkStatus();
}

// Also of those that came back: their marks count again, and a promise that is
// repeated does the same.
void LogDeletion::AskPrepares() {
  for (const auto& peer : peers_) {
    if (peer->state() == State::kRefused) {
      refused_by_ = std::max(refused_by_, peer->refused_by().epoch);
    }
    if (peer->state() != State::kGreeted) continue;
    peer->Ask(Prepare{promise_, options_.configuration_id});
  }
}

std::vector<DeletionWitness> LogDeletion::Witnesses(bool promised) const {
  std::vector<DeletionWitness> witnesses;
  for (const auto& peer : peers_) {
    if (IsMarked(*peer)) {
      witnesses.push_back({ReplicaOf(*peer), peer->deletion()});
    } else if (promised && peer->state() == State::kReported) {
      witnesses.push_back(
          {ReplicaOf(*peer), {Deletion::kNone, peer->report().configuration}});
    }
  }
  return witnesses;
}

// LDL1.
absl::Status LogDeletion::Promise() {
  AskPrepares();
  list_ = ListOfQuorum(Witnesses(/*promised=*/true));
  if (!list_.has_value()) {
    return TooFew(
        "no opening quorum of one list of members has promised. If all members "
        "run, a change of the members was not completed, or the log's making "
        "was not: complete it first");
  }
  // Candidates may be electing already: a higher ballot would win.
  Enter(Phase::kMark);
  return absl::OkStatus();
}

absl::Status LogDeletion::Mark() {
  AskPrepares();
  for (const auto& peer : peers_) {
    const bool counts = peer->state() == State::kReported &&
                        peer->report().configuration == *list_ &&
                        Names(*list_, ReplicaOf(*peer));
    if (counts) peer->Ask(recovery::Mark{promise_.epoch});
  }
  is_decided_ = IsDecided(Witnesses(/*promised=*/false));
  if (is_decided_) {
    Enter(Phase::kRemove);
    return absl::OkStatus();
  }
  const auto may_count = [this](const auto& peer) {
    return !IsMarked(*peer) && peer->state() != State::kReported &&
           MayComeYet(*peer);
  };
  if (std::ranges::any_of(peers_, may_count) && refused_by_ == Epoch()) {
    return absl::OkStatus();
  }
  return TooFew("too few members are marked as deleted");
}

// LDL2, LDL5. An answer from before a member was told may be of an earlier
// attempt.
void LogDeletion::Remove() {
  for (const auto& peer : peers_) {
    const NodeId node = peer->node();
    if (removed_.contains(node)) continue;
    const bool is_known = peer->state() == State::kDeletionKnown;
    if (is_known && told_.contains(node)) {
      removed_.insert(node);
    } else if (is_known || peer->state() == State::kGreeted ||
               peer->state() == State::kReported) {
      told_.insert(node);
      peer->Ask(recovery::Remove{});
    }
  }
  if (HasGathered()) End(absl::OkStatus());
}

std::vector<NodeId> LogDeletion::removed() const {
  return {removed_.begin(), removed_.end()};
}

std::vector<NodeId> LogDeletion::left() const {
  std::vector<NodeId> nodes;
  for (const auto& peer : peers_) {
    if (!removed_.contains(peer->node())) nodes.push_back(peer->node());
  }
  return nodes;
}

std::string LogDeletion::DescribeMarked() const {
  std::vector<uint64_t> marked;
  for (const auto& peer : peers_) {
    if (IsMarked(*peer)) marked.push_back(peer->node().value);
  }
  if (marked.empty()) return "No member is known to be marked as deleted";
  return absl::StrCat("Marked as deleted, with all records: node ",
                      absl::StrJoin(marked, ", node "));
}

std::string LogDeletion::DescribeFailures() const {
  std::string text;
  for (const auto& peer : peers_) {
    if (peer->failed()) absl::StrAppend(&text, "; ", peer->failure().message());
    if (peer->state() == State::kRefused) {
      absl::StrAppend(&text, "; ", peer->Describe(), " has promised epoch ",
                      peer->refused_by().epoch.value, " to another process");
    }
  }
  return text;
}

absl::Status LogDeletion::TooFew(const std::string& what) const {
  // One that is outbid begins again above, whoever is not there.
  const auto may_come = [this](const auto& peer) {
    const bool is_away = peer->failed() && refused_by_ != Epoch();
    return MayComeYet(*peer) && !is_away;
  };
  if (std::ranges::any_of(peers_, may_come)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "log ", options_.log_id.ToString(), ": ", what, DescribeFailures(),
      ". The deletion is not known to be decided, and no record was removed. ",
      DescribeMarked(), ". Give the same command again to go on"));
}

void LogDeletion::End(const absl::Status& status) {
  status_ = status;
  phase_ = Phase::kOver;
  for (const auto& peer : peers_) {
    peer->Fail(absl::CancelledError("the deletion is over"));
  }
}

}  // namespace alpheus::recovery
