// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/log_creation.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {
namespace {

using State = OpeningPeer::State;

absl::Status WasDeleted(const OpeningPeer& peer) {
  return absl::AlreadyExistsError(absl::StrCat(
      peer.Describe(),
      peer.deletion().deletion == Deletion::kDecided
          ? " says that the log of this name was deleted. A log of this name "
            "can't be made again in this cluster; give the new one another name"
          : " has a replica of the log that is marked as deleted; `alpheus "
            "delete-log` completes the deletion"));
}

absl::Status IsThere(const OpeningPeer& peer) {
  return absl::AlreadyExistsError(absl::StrCat(
      peer.Describe(), " holds a replica of the log already, with a ring of ",
      peer.server_hello().ring_capacity, " bytes",
      peer.server_hello().promised == Epoch(0)
          ? ", as all members do, and nobody has opened it: the log is there"
          : ""));
}

}  // namespace

LogCreation::LogCreation(fabric::Fabric& fabric, const Clock& clock,
                         RandomSource& random,
                         const LogCreationOptions& options)
    : clock_(clock), random_(random), options_(options) {
  const Hello hello{options.cluster_id, options.log_id, options.self};
  for (const PeerAddress& at : options.peers) {
    peers_.push_back(std::make_unique<OpeningPeer>(
        OpeningPeerOptions{at,
                           hello,
                           options.step_timeout_ns,
                           options.deadline,
                           {options.key, &random}},
        fabric, clock));
    peers_.back()->Connect();
  }
}

absl::StatusOr<std::unique_ptr<LogCreation>> LogCreation::Start(
    fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
    const LogCreationOptions& options) {
  std::set<NodeId> nodes;
  for (const PeerAddress& peer : options.peers) nodes.insert(peer.node);
  const size_t expected =
      options.joined ? options.peers.size() : options.sizes.replica_count;
  if (options.peers.size() != expected ||
      nodes.size() != options.peers.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "creating log ", options.log_id.ToString(), " on ",
        options.peers.size(), " members of ", nodes.size(),
        " nodes, expected N = ", expected, " of as many. Correct the members"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(options.region_bytes));
  if (const absl::Status ring = CheckReplicatedRing(layout.ring_capacity);
      !ring.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "creating log ", options.log_id.ToString(), " with ", ring.message(),
        ". Nothing was created; ask for a smaller size"));
  }
  return std::unique_ptr<LogCreation>(
      new LogCreation(fabric, clock, random, options));
}

bool LogCreation::OnCompletion(const fabric::Completion& completion) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(completion.connection)) continue;
    peer->OnCompletion(completion);
    return true;
  }
  return false;
}

bool LogCreation::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  for (const auto& peer : peers_) {
    if (!peer->Owns(event.connection)) continue;
    peer->OnConnectionEvent(event);
    return true;
  }
  return false;
}

Polled LogCreation::Poll() {
  if (phase_ == Phase::kOver) return Polled::kDone;
  const int64_t now = clock_.NowNanos();
  for (const auto& peer : peers_) {
    peer->CheckTime(now);
    const bool owes_nothing = peer->state() == State::kGreeted ||
                              peer->state() == State::kCreationKnown ||
                              peer->state() == State::kFormatted;
    if (options_.deadline.HasPassed(now) && !owes_nothing) {
      peer->Fail(absl::UnavailableError("had not replied at the deadline"));
    }
  }
  Reconnect(now);
  if (const absl::Status status = Advance(); !status.ok()) End(status);
  return phase_ == Phase::kOver ? Polled::kDone : Polled::kIdle;
}

// LC2.
bool LogCreation::MayConnectAgain(const OpeningPeer& peer) const {
  const bool is_put_off = phase_ == Phase::kFormat && peer.was_put_off();
  const bool may_pass = peer.broke() || is_put_off;
  if (!may_pass || !options_.deadline.is_set()) return false;
  const int64_t now = clock_.NowNanos();
  if (phase_ == Phase::kFormat) return !options_.deadline.HasPassed(now);
  return phase_ == Phase::kServerHello &&
         !options_.deadline.HasPassed(now + options_.step_timeout_ns);
}

void LogCreation::Reconnect(int64_t now) {
  for (const auto& peer : peers_) {
    if (MayConnectAgain(*peer) &&
        now >= peer->failed_at_nanos() + options_.reconnect_ns) {
      last_breaks_[peer->node()] = std::string(peer->failure().message());
      peer->Connect();
    }
  }
}

Deadline LogCreation::NextPoll() const {
  int64_t next = options_.deadline.at_nanos();
  for (const auto& peer : peers_) {
    next = std::min(next, peer->due_nanos());
    if (MayConnectAgain(*peer)) {
      next = std::min(next, peer->failed_at_nanos() + options_.reconnect_ns);
    }
  }
  return next == Deadline().at_nanos() ? Deadline() : Deadline::AtNanos(next);
}

absl::Status LogCreation::Advance() {
  if (phase_ == Phase::kServerHello) return CheckServerHellos();
  if (phase_ == Phase::kCreation) return CheckCreations();
  return CheckFormatted();
}

absl::Status LogCreation::CheckServerHellos() {
  bool all = true;
  for (const auto& peer : peers_) {
    if (peer->failed() && !MayConnectAgain(*peer)) {
      return NothingDone(*peer);
    }
    all &= peer->state() == State::kGreeted;
    if (peer->state() == State::kCreationKnown) {
      return NothingDone(IsThere(*peer));
    }
    const bool is_used = HasReplica(*peer) && !options_.joined &&
                         peer->server_hello().promised != Epoch(0);
    // The remains of a deleted log look like a log that is there.
    if (is_used) peer->Ask(AskCreation{});
  }
  if (!all) return absl::OkStatus();
  if (options_.deadline.HasPassed(clock_.NowNanos())) {  // LC3
    return NothingDone(
        absl::UnavailableError("the last member answered after the deadline"));
  }
  if (options_.joined) {
    phase_ = Phase::kFormat;
    AskForBlanks();
    return absl::OkStatus();
  }
  phase_ = Phase::kCreation;
  for (const auto& peer : peers_) {
    if (HasReplica(*peer)) peer->Ask(AskCreation{});
  }
  return CheckCreations();
}

// LC1.
absl::Status LogCreation::CheckCreations() {
  bool all = true;
  for (const auto& peer : peers_) {
    if (peer->failed()) return NothingDone(*peer);
    all &= peer->state() != State::kAskingCreation;
    const bool is_used =
        peer->state() == State::kCreationKnown && peer->created().is_used;
    if (is_used) return NothingDone(IsThere(*peer));
  }
  if (!all) return absl::OkStatus();
  if (IsComplete()) return NothingDone(IsThere(*peers_.front()));
  if (options_.deadline.HasPassed(clock_.NowNanos())) {  // LC3
    return NothingDone(
        absl::UnavailableError("the last member answered after the deadline"));
  }
  FormatAll();
  return absl::OkStatus();
}

// Returns true if all members have a replica of one creation, with the wanted
// list: it was complete, and may be opened.
bool LogCreation::IsComplete() const {
  const Configuration& first = peers_.front()->created().configuration;
  return first.id == options_.configuration_id &&
         first.replica_count == options_.sizes.replica_count &&
         first.write_quorum == options_.sizes.write_quorum &&
         std::ranges::all_of(peers_, [&](const auto& peer) {
           return peer->state() == State::kCreationKnown &&
                  peer->created().configuration == first &&
                  Names(first,
                        {peer->node(), peer->server_hello().incarnation});
         });
}

void LogCreation::FormatAll() {
  phase_ = Phase::kFormat;
  DrawIncarnations();
  for (const auto& peer : peers_) {
    Format format{options_.region_bytes, configuration_, options_.log_name};
    if (peer->state() == State::kCreationKnown) {
      format.replaces = peer->server_hello().incarnation;
    }
    peer->Ask(format);
  }
}

bool LogCreation::HasReplica(const OpeningPeer& peer) {
  return peer.state() == State::kGreeted &&
         peer.server_hello().ring_capacity != 0;
}

void LogCreation::AskForBlanks() {
  configuration_ = *options_.joined;
  for (const auto& peer : peers_) {
    if (HasReplica(*peer)) continue;
    peer->Ask(Format{options_.region_bytes, configuration_, options_.log_name,
                     random_.Next() | 1});
  }
}

void LogCreation::DrawIncarnations() {
  configuration_.id = options_.configuration_id;
  configuration_.replica_count = options_.sizes.replica_count;
  configuration_.write_quorum = options_.sizes.write_quorum;
  std::set<uint64_t> drawn = {0};  // 0 names no replica
  for (const PeerAddress& peer : options_.peers) {
    uint64_t incarnation = 0;
    while (!drawn.insert(incarnation).second) incarnation = random_.Next();
    configuration_.members.push_back({peer.node, incarnation});
  }
  std::sort(configuration_.members.begin(), configuration_.members.end(),
            [](const Member& a, const Member& b) { return a.node < b.node; });
}

// Returns true if the member has the replica that was asked for.
bool LogCreation::IsFormatted(const OpeningPeer& peer) const {
  if (peer.state() == State::kFormatted) return true;
  return HasReplica(peer) &&
         (options_.joined ||
          Names(configuration_,
                {peer.node(), peer.server_hello().incarnation}));
}

// Waits for all members, so that the error names each.
absl::Status LogCreation::CheckFormatted() {
  bool all = true;
  for (const auto& peer : peers_) {
    // LC2.
    if (peer->state() == State::kGreeted && !IsFormatted(*peer)) {
      peer->Fail(absl::UnavailableError(absl::StrCat(
          "it has no replica of this creation, and the connection by which it "
          "was asked broke: ",
          last_breaks_[peer->node()])));
    }
    const bool is_over =
        (peer->failed() && !MayConnectAgain(*peer)) || IsFormatted(*peer);
    if (!is_over) return absl::OkStatus();
    all &= !peer->failed();
  }
  if (!all) return PartlyDone();
  End(absl::OkStatus());
  return absl::OkStatus();
}

absl::Status LogCreation::NothingDone(const absl::Status& why) const {
  return {why.code(),
          absl::StrCat("creating log ", options_.log_id.ToString(), ": ",
                       why.message(), ". Nothing was formatted")};
}

absl::Status LogCreation::NothingDone(const OpeningPeer& failed) const {
  if (failed.deletion().deletion != Deletion::kNone) {
    return NothingDone(WasDeleted(failed));
  }
  const absl::Status& why = failed.failure();
  const auto before = last_breaks_.find(failed.node());
  if (before == last_breaks_.end() || failed.broke()) return NothingDone(why);
  return NothingDone(absl::Status(
      why.code(),
      absl::StrCat(why.message(), "; before that: ", before->second)));
}

absl::Status LogCreation::PartlyDone() const {
  std::string made;
  std::string failed;
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  for (const auto& peer : peers_) {
    if (peer->failed()) {
      code = peer->failure().code();
      absl::StrAppend(&failed, peer->failure().message(), "; ");
    } else {
      absl::StrAppend(&made, made.empty() ? "" : ", ", peer->Describe());
    }
  }
  return {
      code,
      absl::StrCat("creating log ", options_.log_id.ToString(), ": ", failed,
                   "whether these have a replica now is unknown. It exists on ",
                   made.empty() ? "no other member" : made,
                   ". Correct what failed, then create the log again: replicas "
                   "of a log that nobody has opened are made again")};
}

void LogCreation::End(const absl::Status& status) {
  status_ = status;
  phase_ = Phase::kOver;
  for (const auto& peer : peers_) {
    peer->Fail(absl::CancelledError("the creation is over"));
  }
}

}  // namespace alpheus::recovery
