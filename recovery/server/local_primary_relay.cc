// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/local_primary_relay.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/reject_counters.h"

namespace alpheus::recovery {

// A replica that exists is not made again.
absl::StatusOr<std::optional<ServerHello>> LocalPrimaryRelay::ServerHelloFor(
    const Hello& hello, const absl::Status& unserved) const {
  if (unserved.ok()) return std::nullopt;
  const LocalPrimary* const primary = FindPrimary(hello.log_id);
  const bool may_wait =
      hello.primary.node == options_.node || primary != nullptr;
  if (!may_wait) return unserved;
  if (primary != nullptr && IsStuck(*primary) &&
      hello.primary != primary->promise.primary) {
    return absl::UnavailableError("its primary is stopped, or does not listen");
  }
  return regions_.ReadServerHello(hello.log_id);
}

absl::StatusOr<MaybeReply> LocalPrimaryRelay::Reply(PeerConnection& connection,
                                                    const Message& message) {
  if (const auto* claim = std::get_if<Claim>(&message)) {
    return OnClaim(connection, *claim);
  }
  if (const auto* ask = std::get_if<Prepare>(&message)) {
    return OnPrepare(connection, *ask);
  }
  if (const auto* scrub = std::get_if<Scrub>(&message)) {
    return OnScrub(connection, *scrub);
  }
  if (const auto* asked_change = std::get_if<AskChange>(&message)) {
    return OnAskChange(connection, *asked_change);
  }
  if (const auto* fetch = std::get_if<Fetch>(&message)) {
    return OnFetch(connection, *fetch);
  }
  if (const auto* follow = std::get_if<Follow>(&message)) {
    return OnFollow(connection, *follow);
  }
  if (const auto* fetched = std::get_if<Fetched>(&message)) {
    return OnFetched(connection, *fetched);
  }
  return DismissUnserved(connection);
}

// This includes readers, which disturb no primary. They ask often, so this is
// not reported.
MaybeReply LocalPrimaryRelay::DismissUnserved(PeerConnection& connection) {
  connections_.Dismiss(connection,
                       Failed{absl::UnavailableError(
                           "the node does not serve its replica: a process of "
                           "its machine has it")});
  return std::nullopt;
}

// Answers from superline and watermarks, which the primary writes; records are
// read elsewhere. A local primary that says Claim is open, and counts this
// replica as in sync.
absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnFollow(
    PeerConnection& connection, const Follow& follow) {
  const Uuid log_id = connection.hello.log_id;
  absl::StatusOr<Followed> followed = regions_.ReadFollowed(log_id);
  if (absl::IsUnimplemented(followed.status()))
    return DismissUnserved(connection);
  ALPHEUS_RETURN_IF_ERROR(followed.status());
  const LocalPrimary* const primary = FindPrimary(log_id);
  followed->in_session =
      primary != nullptr && primary->promise.epoch == followed->log_epoch;
  if (follow.table_epoch == followed->log_epoch) followed->table = {};
  if (options_.certificate_end_s) {
    followed->certificate_end_s = options_.certificate_end_s();
  }
  return *std::move(followed);
}

// LPR3.
absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnClaim(
    PeerConnection& connection, const Claim& claim) {
  ALPHEUS_RETURN_IF_ERROR(
      OpeningService::CheckAsker(connection, claim.promise));
  if (connection.hello.primary.node != options_.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     ": a process of another machine can't hold its replica"));
  }
  const Uuid log_id = connection.hello.log_id;
  bool is_to_scrub = false;
  std::optional<AskChange> asked_change;
  std::vector<ChangeState> outcomes;
  bool is_new = true;
  if (const LocalPrimary* const before = FindPrimary(log_id);
      before != nullptr) {
    if (before->connection == connection.id) {
      is_to_scrub = before->is_to_scrub;
      asked_change = before->asked_change;
      outcomes = before->outcomes;
      is_new = false;
    } else {
      connections_.End(before->connection, absl::OkStatus());
    }
  }
  LocalPrimary& primary = primaries_[log_id];
  primary = {};
  primary.connection = connection.id;
  primary.promise = claim.promise;
  primary.scrubbed = claim.scrubbed;
  primary.is_to_scrub = is_to_scrub;
  primary.asked_change = std::move(asked_change);
  primary.outcomes = std::move(outcomes);
  Note(primary, claim.change_state);
  connection.phase = Phase::kClaiming;
  if (is_new) {
    connections_.Note(connection,
                      absl::StrCat("writes epoch ", claim.promise.epoch.value,
                                   ", and has this node's replica itself"));
  }
  RelayNext(log_id);
  return std::nullopt;
}

// The local primary may be gone after each step.
void LocalPrimaryRelay::RelayNext(Uuid log_id) {
  const auto is_waiting = [&](const PeerConnection& connection) {
    return connection.phase == Phase::kWaiting &&
           connection.hello.log_id == log_id;
  };
  for (const fabric::ConnectionId id : connections_.Where(is_waiting)) {
    PeerConnection& asker = *connections_.Find(id);
    absl::StatusOr<MaybeReply> reply = RelayPromise(asker);
    if (!reply.ok()) {
      connections_.Fail(asker, reply.status());
    } else if (reply->has_value()) {
      asker.phase = Phase::kControl;
      connections_.SendReply(asker, **std::move(reply));
    }
  }
  auto primary = primaries_.find(log_id);
  if (primary == primaries_.end()) return;
  RelayChange(primary->second);
  primary = primaries_.find(log_id);
  if (primary == primaries_.end()) return;
  if (primary->second.is_to_scrub) RelayScrub(primary->second);
  primary = primaries_.find(log_id);
  if (primary != primaries_.end()) RelayFetch(log_id, primary->second);
}

const LocalPrimaryRelay::LocalPrimary* LocalPrimaryRelay::FindPrimary(
    Uuid log_id) const {
  const auto found = primaries_.find(log_id);
  return found == primaries_.end() ? nullptr : &found->second;
}

absl::StatusOr<LocalPrimaryRelay::LocalPrimary*> LocalPrimaryRelay::PrimaryOf(
    Uuid log_id) {
  const auto found = primaries_.find(log_id);
  if (found != primaries_.end()) return &found->second;
  return absl::UnavailableError(absl::StrCat(
      "node ", options_.node.value,
      ": a process of its machine has the replica, and has not said which one; "
      "the replica can't be scrubbed or read now"));
}

// The local primary replies by its next Claim; the asker hears it when it asks
// again.
absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnScrub(
    const PeerConnection& connection, const Scrub& scrub) {
  ALPHEUS_ASSIGN_OR_RETURN(LocalPrimary* const found,
                           PrimaryOf(connection.hello.log_id));
  LocalPrimary& primary = *found;
  primary.is_to_scrub |= scrub.start;
  Scrubbed said = primary.scrubbed;
  said.is_running |= primary.is_to_scrub || primary.was_asked_to_scrub;
  RelayScrub(primary);
  return said;
}

// A primary with another request in flight is sent this one later (LPR4).
void LocalPrimaryRelay::RelayScrub(LocalPrimary& primary) {
  PeerConnection& connection = *connections_.Find(primary.connection);
  if (connection.phase != Phase::kClaiming) return;
  primary.was_asked_to_scrub |= primary.is_to_scrub;
  connection.phase = Phase::kControl;
  connections_.SendReply(connection,
                         Scrub{std::exchange(primary.is_to_scrub, false)});
}

// LPR6. As with a scrub, the next Claim has the news.
Message LocalPrimaryRelay::OnAskChange(const PeerConnection& connection,
                                       const AskChange& asked_change) {
  const auto found = primaries_.find(connection.hello.log_id);
  ChangeState said;
  said.id = asked_change.id;
  said.word = ChangeWord::kWaiting;
  if (found == primaries_.end()) return said;
  LocalPrimary& primary = found->second;
  const auto known =
      std::ranges::find(primary.outcomes, asked_change.id, &ChangeState::id);
  if (known != primary.outcomes.end()) said = *known;
  said.epoch = std::max(said.epoch, primary.promise.epoch);
  if (!primary.asked_change.has_value()) {
    primary.asked_change = asked_change;
    RelayChange(primary);
  }
  return said;
}

void LocalPrimaryRelay::Note(LocalPrimary& primary, const ChangeState& said) {
  constexpr size_t kKeptMax = 4;  // operators that ask in turn
  if (said.id == 0) return;
  std::erase_if(primary.outcomes, [&said](const ChangeState& kept) {
    return kept.id == said.id;
  });
  if (primary.outcomes.size() == kKeptMax) {
    primary.outcomes.erase(primary.outcomes.begin());
  }
  primary.outcomes.push_back(said);
}

void LocalPrimaryRelay::RelayChange(LocalPrimary& primary) {
  if (!primary.asked_change.has_value()) return;
  PeerConnection& connection = *connections_.Find(primary.connection);
  if (connection.phase != Phase::kClaiming) return;
  connection.phase = Phase::kControl;
  connections_.SendReply(connection, *std::exchange(primary.asked_change, {}));
}

absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnFetch(
    PeerConnection& connection, const Fetch& fetch) {
  ALPHEUS_ASSIGN_OR_RETURN(LocalPrimary* const primary,
                           PrimaryOf(connection.hello.log_id));
  connection.fetch = fetch;
  connection.phase = Phase::kFetching;
  RelayFetch(connection.hello.log_id, *primary);
  return std::nullopt;
}

// Relays for the asker that waited longest. The others follow.
void LocalPrimaryRelay::RelayFetch(Uuid log_id, LocalPrimary& primary) {
  PeerConnection& connection = *connections_.Find(primary.connection);
  if (connection.phase != Phase::kClaiming) return;
  const PeerConnection* first = nullptr;
  for (const auto& [id, asker] : connections_.all()) {
    if (asker.phase != Phase::kFetching || asker.hello.log_id != log_id) {
      continue;
    }
    if (first == nullptr || asker.heard_at < first->heard_at) first = &asker;
  }
  if (first == nullptr) return;
  primary.fetch = first->fetch;
  primary.fetching = first->id;
  connection.phase = Phase::kControl;
  connections_.SendReply(connection, *primary.fetch);
}

// LPR2. The asker may be gone.
absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnFetched(
    PeerConnection& connection, const Fetched& fetched) {
  const Uuid log_id = connection.hello.log_id;
  const auto found = primaries_.find(log_id);
  const bool was_asked = found != primaries_.end() &&
                         found->second.connection == connection.id &&
                         found->second.fetch.has_value();
  if (!was_asked) {
    return Rejection(RejectReason::kOutOfTurn,
                     absl::InvalidArgumentError(
                         "bytes of a ring came that were not asked for"));
  }
  const Fetch fetch = *std::exchange(found->second.fetch, std::nullopt);
  const bool is_asked =
      fetched.from == fetch.from && fetched.bytes.size() <= fetch.bytes;
  if (!is_asked) {
    return Rejection(
        RejectReason::kMalformed,
        absl::InvalidArgumentError(absl::StrCat(
            fetched.bytes.size(), " bytes of the ring came from offset ",
            fetched.from.value, "; asked for were ", fetch.bytes, " from ",
            fetch.from.value)));
  }
  found->second.wanted_at.reset();
  connection.phase = Phase::kClaiming;
  PeerConnection* const asker = connections_.Find(found->second.fetching);
  if (asker != nullptr && asker->phase == Phase::kFetching) {
    asker->phase = Phase::kControl;
    connections_.SendReply(*asker, Message(fetched));
  }
  RelayNext(log_id);
  return std::nullopt;
}

absl::StatusOr<MaybeReply> LocalPrimaryRelay::OnPrepare(
    PeerConnection& connection, const Prepare& ask) {
  ALPHEUS_RETURN_IF_ERROR(OpeningService::CheckAsker(connection, ask.promise));
  ALPHEUS_RETURN_IF_ERROR(OpeningService::CheckConfiguration(
      connection.claimed->configuration_id, ask));
  connection.asked = ask;
  ALPHEUS_ASSIGN_OR_RETURN(MaybeReply reply, RelayPromise(connection));
  if (!reply.has_value()) connection.phase = Phase::kWaiting;
  return reply;
}

// LPR1.
absl::StatusOr<MaybeReply> LocalPrimaryRelay::RelayPromise(
    PeerConnection& asker) {
  const auto found = primaries_.find(asker.hello.log_id);
  if (found == primaries_.end()) return std::nullopt;
  LocalPrimary& primary = found->second;
  const quorum::Promise& wanted = asker.asked.promise;
  const absl::StatusOr<quorum::PromiseVerdict> verdict =
      quorum::AnswerPromise(primary.promise, wanted);
  if (!verdict.ok()) return opening_.Refusing(asker, wanted, verdict.status());
  if (verdict.ok() && *verdict == quorum::PromiseVerdict::kAgain) {
    return absl::FailedPreconditionError(
        "the process that asks for the promise has the replica itself");
  }
  // OSV3 of opening_service.h: a local primary has opened the log.
  if (OpeningService::IsUnknown(asker.asked, primary.promise)) {
    return opening_.RefuseLate(asker, asker.asked, primary.promise);
  }
  if (!primary.wanted_at.has_value()) primary.wanted_at = clock_.NowNanos();
  // Else it was sent Wanted already, or is sent it as soon as LPR4 allows.
  PeerConnection& connection = *connections_.Find(primary.connection);
  if (connection.phase == Phase::kClaiming) {
    ++connections_.counters().wanted;
    connection.phase = Phase::kControl;
    connections_.Note(connection,
                      absl::StrCat("is asked for this node's "
                                   "replica: ",
                                   quorum::DescribeOpening(wanted)));
    connections_.SendReply(connection, Wanted{wanted});
  }
  return std::nullopt;
}

bool LocalPrimaryRelay::IsStuck(const LocalPrimary& primary) const {
  return primary.wanted_at.has_value() &&
         clock_.NowNanos() >=
             *primary.wanted_at + options_.step_down_timeout_ns;
}

// An opener should not wait long for a process that may be stopped, where other
// replicas are enough. It may ask again.
int64_t LocalPrimaryRelay::DueAt(const PeerConnection& asker) const {
  const LocalPrimary* const primary = FindPrimary(asker.hello.log_id);
  if (asker.phase == Phase::kFetching) {
    return asker.heard_at + (primary != nullptr ? options_.show_ns : 0);
  }
  if (primary != nullptr && primary->wanted_at.has_value()) {
    return *primary->wanted_at + options_.step_down_timeout_ns;
  }
  return asker.heard_at + options_.silence_ns_max;
}

absl::Status LocalPrimaryRelay::WhyTooLate(const PeerConnection& asker) const {
  if (asker.phase == Phase::kFetching) {
    return absl::UnavailableError(
        absl::StrCat("node ", options_.node.value,
                     ": the process that has its replica has stopped or ended; "
                     "the replica's ring can't be read now"));
  }
  return absl::UnavailableError(absl::StrCat(
      "another process of this machine",
      regions_.DescribeLockHolder(asker.hello.log_id),
      " has the node's replica and does not step down; it may be stopped. End "
      "that process, if it does not go on"));
}

std::optional<quorum::Promise> LocalPrimaryRelay::PromiseOfPrimary(
    const PeerConnection& connection) const {
  const LocalPrimary* const primary = FindPrimary(connection.hello.log_id);
  if (primary == nullptr || primary->connection != connection.id) {
    return std::nullopt;
  }
  return primary->promise;
}

void LocalPrimaryRelay::OnEnd(const PeerConnection& connection) {
  if (!PromiseOfPrimary(connection).has_value()) return;
  primaries_.erase(connection.hello.log_id);
  regions_.OnLockHolderGone(connection.hello.log_id);
}

void LocalPrimaryRelay::ServeWaiting(ServedLog& log) {
  const ServerHello now = log.server_hello();
  const auto is_of_log = [&](const PeerConnection& connection) {
    return connection.claimed.has_value() &&
           connection.hello.log_id == log.log_id();
  };
  for (const fabric::ConnectionId id : connections_.Where(is_of_log)) {
    PeerConnection& connection = *connections_.Find(id);
    if (connection.phase != Phase::kWaiting ||
        connection.claimed->incarnation != now.incarnation ||
        connection.claimed->ring_capacity != now.ring_capacity) {
      connections_.End(id, absl::OkStatus());
      continue;
    }
    connection.log = &log;
    connection.claimed.reset();
    connection.phase = Phase::kControl;
    absl::StatusOr<MaybeReply> reply =
        opening_.OnPrepare(connection, connection.asked);
    if (!reply.ok()) {
      connections_.Fail(connection, reply.status());
    } else if (reply->has_value()) {
      connections_.SendReply(connection, **std::move(reply));
    }
  }
}

}  // namespace alpheus::recovery
