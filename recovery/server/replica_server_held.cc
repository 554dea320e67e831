// SPDX-License-Identifier: Apache-2.0
// Logs whose region a local primary has: the primary, and its waiting openers.
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "recovery/server/replica_server.h"

namespace alpheus {

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::ReplyOfHeld(
    Connection& connection, const Message& message) {
  if (const auto* hold = std::get_if<Hold>(&message)) {
    return OnHold(connection, *hold);
  }
  if (const auto* ask = std::get_if<AskPromise>(&message)) {
    return OnAskOfHeld(connection, *ask);
  }
  if (const auto* scrub = std::get_if<Scrub>(&message)) {
    return OnScrubOfHeld(connection, *scrub);
  }
  if (const auto* fetch = std::get_if<Fetch>(&message)) {
    return OnFetchOfHeld(connection, *fetch);
  }
  if (const auto* follow = std::get_if<Follow>(&message);
      follow != nullptr && options_.held_followed) {
    return OnFollowOfHeld(connection, *follow);
  }
  if (const auto* fetched = std::get_if<Fetched>(&message)) {
    return OnFetched(connection, *fetched);
  }
  // This includes readers, which disturb no primary. They ask often, so this is
  // not reported.
  Dismiss(connection, Failed{absl::UnavailableError(
                          "the node does not serve its replica: a "
                          "process of its machine has it")});
  return std::nullopt;
}

// Answers from superline and watermarks, which the primary writes; records are
// read elsewhere. A local primary that says Hold is open, and counts this
// replica as in sync.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnFollowOfHeld(
    const Connection& connection, const Follow& follow) const {
  const Uuid log_id = connection.hello.log_id;
  ALPHEUS_ASSIGN_OR_RETURN(Followed followed, options_.held_followed(log_id));
  const auto holder = holders_.find(log_id);
  followed.in_session = holder != holders_.end() &&
                        holder->second.promise.epoch == followed.log_epoch;
  if (follow.table_epoch == followed.log_epoch) followed.table = {};
  return followed;
}

// The newest Hold counts: the node may not have heard that an older process is
// gone.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnHold(
    Connection& connection, const Hold& hold) {
  ALPHEUS_RETURN_IF_ERROR(CheckAsker(connection, hold.promise));
  if (connection.hello.primary.node != options_.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     ": a process of another machine can't hold its replica"));
  }
  const Uuid log_id = connection.hello.log_id;
  bool is_to_scrub = false;
  bool is_new = true;
  if (const auto before = holders_.find(log_id); before != holders_.end()) {
    if (before->second.connection == connection.id) {
      is_to_scrub = before->second.is_to_scrub;
      is_new = false;
    } else {
      End(before->second.connection, absl::OkStatus());
    }
  }
  Holder& holder = holders_[log_id];
  holder = {};
  holder.connection = connection.id;
  holder.promise = hold.promise;
  holder.scrubbed = hold.scrubbed;
  holder.is_to_scrub = is_to_scrub;
  connection.phase = Phase::kHolding;
  if (is_new) {
    Note(connection, absl::StrCat("writes epoch ", hold.promise.epoch.value,
                                  ", and has this node's replica itself"));
  }
  TellNext(log_id);
  return std::nullopt;
}

// Openers come first. The local primary may be gone after each step.
void ReplicaServer::TellNext(Uuid log_id) {
  for (const ConnectionId id : WaitingFor(log_id)) {
    Connection& asker = *Find(id);
    absl::StatusOr<MaybeReply> reply = TellHolder(asker);
    if (!reply.ok()) {
      Fail(asker, reply.status());
    } else if (reply->has_value()) {
      asker.phase = Phase::kControl;
      SendReply(asker, **std::move(reply));
    }
  }
  auto holder = holders_.find(log_id);
  if (holder == holders_.end()) return;
  if (holder->second.is_to_scrub) RelayScrub(holder->second);
  holder = holders_.find(log_id);
  if (holder != holders_.end()) RelayFetch(log_id, holder->second);
}

absl::StatusOr<ReplicaServer::Holder*> ReplicaServer::HolderOf(Uuid log_id) {
  const auto found = holders_.find(log_id);
  if (found != holders_.end()) return &found->second;
  return absl::UnavailableError(absl::StrCat(
      "node ", options_.node.value,
      ": a process of its machine has the replica, and does not say which "
      "one; it is not scrubbed now, and nothing of it is shown"));
}

// The local primary replies by its next Hold; the asker hears it when it asks
// again.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnScrubOfHeld(
    const Connection& connection, const Scrub& scrub) {
  ALPHEUS_ASSIGN_OR_RETURN(Holder* const found,
                           HolderOf(connection.hello.log_id));
  Holder& holder = *found;
  holder.is_to_scrub |= scrub.start;
  Scrubbed said = holder.scrubbed;
  said.is_running |= holder.is_to_scrub || holder.was_told_to_scrub;
  RelayScrub(holder);
  return said;
}

// Only one request is under way: a primary that is being told something is told
// this later.
void ReplicaServer::RelayScrub(Holder& holder) {
  Connection& primary = *Find(holder.connection);
  if (primary.phase != Phase::kHolding) return;
  holder.was_told_to_scrub |= holder.is_to_scrub;
  primary.phase = Phase::kControl;
  SendReply(primary, Scrub{std::exchange(holder.is_to_scrub, false)});
}

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnFetchOfHeld(
    Connection& connection, const Fetch& fetch) {
  ALPHEUS_ASSIGN_OR_RETURN(Holder* const holder,
                           HolderOf(connection.hello.log_id));
  connection.fetch = fetch;
  connection.phase = Phase::kFetching;
  RelayFetch(connection.hello.log_id, *holder);
  return std::nullopt;
}

// Relays for the asker that waited longest. The others follow.
void ReplicaServer::RelayFetch(Uuid log_id, Holder& holder) {
  Connection& primary = *Find(holder.connection);
  if (primary.phase != Phase::kHolding) return;
  const Connection* first = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (connection.phase != Phase::kFetching ||
        connection.hello.log_id != log_id) {
      continue;
    }
    if (first == nullptr || connection.heard_at < first->heard_at) {
      first = &connection;
    }
  }
  if (first == nullptr) return;
  holder.fetch = first->fetch;
  holder.fetching = first->id;
  primary.phase = Phase::kControl;
  SendReply(primary, *holder.fetch);
}

// RS6. The asker may be gone.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnFetched(
    Connection& connection, const Fetched& fetched) {
  const Uuid log_id = connection.hello.log_id;
  const auto found = holders_.find(log_id);
  const bool is_told = found != holders_.end() &&
                       found->second.connection == connection.id &&
                       found->second.fetch.has_value();
  if (!is_told) {
    return Refuse(Refusal::kOutOfTurn,
                  absl::InvalidArgumentError(
                      "bytes of a ring came that nobody asked for"));
  }
  const Fetch fetch = *std::exchange(found->second.fetch, std::nullopt);
  const bool is_asked =
      fetched.from == fetch.from && fetched.bytes.size() <= fetch.bytes;
  if (!is_asked) {
    return Refuse(
        Refusal::kMalformed,
        absl::InvalidArgumentError(absl::StrCat(
            fetched.bytes.size(), " bytes of the ring came from offset ",
            fetched.from.value, "; asked for were ", fetch.bytes, " from ",
            fetch.from.value)));
  }
  found->second.told_at.reset();
  connection.phase = Phase::kHolding;
  Connection* const asker = Find(found->second.fetching);
  if (asker != nullptr && asker->phase == Phase::kFetching) {
    asker->phase = Phase::kControl;
    SendReply(*asker, Message(fetched));
  }
  TellNext(log_id);
  return std::nullopt;
}

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnAskOfHeld(
    Connection& connection, const AskPromise& ask) {
  ALPHEUS_RETURN_IF_ERROR(CheckAsker(connection, ask.promise));
  ALPHEUS_RETURN_IF_ERROR(
      CheckConfiguration(connection.held->configuration_id, ask));
  connection.asked = ask;
  ALPHEUS_ASSIGN_OR_RETURN(MaybeReply reply, TellHolder(connection));
  if (!reply.has_value()) connection.phase = Phase::kWaiting;
  return reply;
}

// RS5. Returns nothing if the asker is to wait.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::TellHolder(
    Connection& asker) {
  const auto found = holders_.find(asker.hello.log_id);
  if (found == holders_.end()) return std::nullopt;
  Holder& holder = found->second;
  const Promise& wanted = asker.asked.promise;
  const absl::StatusOr<PromiseVerdict> verdict =
      AnswerPromise(holder.promise, wanted);
  if (!verdict.ok()) return Refusing(asker, wanted, verdict.status());
  if (verdict.ok() && *verdict == PromiseVerdict::kAgain) {
    return absl::FailedPreconditionError(
        "the process that asks for the promise has the replica itself");
  }
  if (!holder.told_at.has_value()) holder.told_at = clock_.NowNanos();
  // Else it was told already, or is told as soon as it may be told something.
  Connection& primary = *Find(holder.connection);
  if (primary.phase == Phase::kHolding) {
    ++counters_.wanted;
    primary.phase = Phase::kControl;
    Note(primary, absl::StrCat("is asked for this node's replica: ",
                               DescribeOpening(wanted)));
    SendReply(primary, Wanted{wanted});
  }
  return std::nullopt;
}

bool ReplicaServer::IsStuck(const Holder& holder) const {
  return holder.told_at.has_value() &&
         clock_.NowNanos() >= *holder.told_at + options_.give_way_ns;
}

// An opener should not wait long for a process that may be stopped, where other
// replicas are enough. It may ask again.
int64_t ReplicaServer::WaitsUntil(const Connection& asker) const {
  const auto holder = holders_.find(asker.hello.log_id);
  if (holder != holders_.end() && holder->second.told_at.has_value()) {
    return *holder->second.told_at + options_.give_way_ns;
  }
  return asker.heard_at + options_.silence_ns_max;
}

std::vector<ConnectionId> ReplicaServer::WaitingFor(Uuid log_id) const {
  std::vector<ConnectionId> waiting;
  for (const auto& [id, connection] : connections_) {
    if (connection.phase == Phase::kWaiting &&
        connection.hello.log_id == log_id) {
      waiting.push_back(id);
    }
  }
  return waiting;
}

void ReplicaServer::EndHold(const Connection& connection) {
  const auto found = holders_.find(connection.hello.log_id);
  if (found == holders_.end() || found->second.connection != connection.id) {
    return;
  }
  holders_.erase(found);
  if (options_.let_go) options_.let_go(connection.hello.log_id);
}

// This node has the lock now. Connections that said Hold, or that were told of
// another replica, end and begin again.
void ReplicaServer::ServeWaiting(ServedLog& log) {
  const Welcome now = log.welcome();
  std::vector<ConnectionId> of_log;
  for (const auto& [id, connection] : connections_) {
    if (connection.held.has_value() &&
        connection.hello.log_id == log.log_id()) {
      of_log.push_back(id);
    }
  }
  for (const ConnectionId id : of_log) {
    Connection& connection = *Find(id);
    if (connection.phase != Phase::kWaiting ||
        connection.held->incarnation != now.incarnation ||
        connection.held->ring_capacity != now.ring_capacity) {
      End(id, absl::OkStatus());
      continue;
    }
    connection.log = &log;
    connection.held.reset();
    connection.phase = Phase::kControl;
    absl::StatusOr<MaybeReply> reply =
        OnAskPromise(connection, connection.asked);
    if (!reply.ok()) {
      Fail(connection, reply.status());
    } else if (reply->has_value()) {
      SendReply(connection, **std::move(reply));
    }
  }
}

}  // namespace alpheus
