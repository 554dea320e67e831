// SPDX-License-Identifier: Apache-2.0
// Requests to a replica: each is checked, carried out, replied to.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/answer_wire.h"
#include "recovery/server/replica_server.h"
#include "recovery/server/ring_fetch.h"

namespace alpheus {

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::Reply(
    Connection& connection, const Message& message) {
  // HSK1 (handshake.h).
  const bool is_proof = std::holds_alternative<Challenge>(message) ||
                        std::holds_alternative<Prove>(message);
  if (is_proof || !connection.is_proved()) {
    return OnHandshake(connection, message);
  }
  if (const Place place = PlaceFor(message); place != connection.place) {
    ALPHEUS_RETURN_IF_ERROR(TakePlace(connection, place));
  }
  if (connection.held.has_value()) return ReplyOfHeld(connection, message);
  if (const auto* format = std::get_if<Format>(&message)) {
    return OnFormat(connection, *format);
  }
  if (connection.log == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value, ": log ",
                     connection.hello.log_id.ToString(),
                     " was not there when this connection began. Format it, "
                     "or connect again"));
  }
  if (const auto* ask = std::get_if<AskPromise>(&message)) {
    return OnAskPromise(connection, *ask);
  }
  if (const auto* prepare = std::get_if<Prepare>(&message)) {
    return OnPrepare(connection, *prepare);
  }
  if (const auto* install = std::get_if<Install>(&message)) {
    return OnInstall(connection, *install);
  }
  if (std::holds_alternative<AskCreation>(message)) {
    return OnAskCreation(connection);
  }
  if (std::holds_alternative<View>(message)) return OnView(connection);
  if (const auto* follow = std::get_if<Follow>(&message)) {
    return OnFollow(connection, *follow);
  }
  if (std::holds_alternative<Release>(message)) return OnRelease(connection);
  if (const auto* scrub = std::get_if<Scrub>(&message)) {
    return OnScrub(connection, *scrub);
  }
  if (const auto* fetch = std::get_if<Fetch>(&message)) {
    return OnFetch(connection, *fetch);
  }
  if (std::holds_alternative<Hold>(message)) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     " has the lock of this replica, and serves it itself"));
  }
  return Refuse(
      Refusal::kOutOfTurn,
      absl::InvalidArgumentError("a message came that only replicas send"));
}

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnHandshake(
    Connection& connection, const Message& message) {
  const bool was_proved = connection.is_proved();
  ALPHEUS_ASSIGN_OR_RETURN(Message reply, connection.handshake->Take(message));
  // A connection that has proved the key gets a place among the proved ones.
  if (!was_proved && connection.is_proved()) {
    ALPHEUS_RETURN_IF_ERROR(TakePlace(connection, Place::kNew));
  }
  return reply;
}

// A follower has looked at the region before.
ReplicaServer::Place ReplicaServer::PlaceFor(const Message& request) {
  if (std::holds_alternative<View>(request)) return Place::kLooking;
  if (std::holds_alternative<Follow>(request)) return Place::kFollowing;
  return Place::kAsking;
}

// Reading disturbs nobody: the key ends with the connection. All views of a
// connection share one key, so that repeated looks cost no more.
absl::StatusOr<Message> ReplicaServer::OnView(Connection& connection) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise has no need to look; View refused");
  }
  const std::span<std::byte> region = connection.log->region();
  if (connection.keys.empty()) {
    ALPHEUS_RETURN_IF_ERROR(
        GiveOut(connection, region, RemoteAccess::kRead).status());
  }
  return Viewed{connection.keys.back(), region.size(), refusals_.counts(),
                scrubbing_.StateOf(connection.log->log_id()).total};
}

absl::StatusOr<Message> ReplicaServer::OnFollow(const Connection& connection,
                                                const Follow& follow) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise is who others follow; Follow refused");
  }
  Followed followed = connection.log->followed();
  if (follow.table_epoch == followed.log_epoch) followed.table = {};
  return followed;
}

absl::StatusOr<Message> ReplicaServer::OnRelease(const Connection& connection) {
  // Another machine's process could not take the lock.
  if (!options_.release || connection.hello.primary.node != options_.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     ": this replica is released to nobody, or only to a "
                     "primary of this node"));
  }
  released_.insert(connection.log->log_id());
  options_.release(connection.log->log_id());
  return Released{};
}

absl::StatusOr<Message> ReplicaServer::OnScrub(const Connection& connection,
                                               const Scrub& scrub) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise keeps scrubbing out; Scrub refused");
  }
  const Uuid log_id = connection.log->log_id();
  if (scrub.start) scrubbing_.Ask(log_id);
  return scrubbing_.StateOf(log_id);
}

// Gives as much as a View does. The asker checks what it gets.
absl::StatusOr<Message> ReplicaServer::OnFetch(const Connection& connection,
                                               const Fetch& fetch) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise reads the ring by its key; Fetch refused");
  }
  const std::span<std::byte> ring = connection.log->ring();
  const RingOffset head = connection.log->followed().head.offset;
  return FetchedFrom(Ring(ring.data(), ring.size()), head, head + ring.size(),
                     fetch);
}

absl::StatusOr<Message> ReplicaServer::OnAskCreation(
    const Connection& connection) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise makes no log anew; AskCreation refused");
  }
  return connection.log->created();
}

// A log that was never opened is missed by nobody. A primary that opens it now
// has promises, and creation does not replace it any more.
absl::Status ReplicaServer::CheckReplaceable(const ServedLog& log,
                                             const Format& format) const {
  const auto exists = [&](const char* why) {
    return absl::AlreadyExistsError(absl::StrCat(
        "node ", options_.node.value, ": log ", log.log_id().ToString(),
        " is there already", why, "; nothing was changed"));
  };
  if (format.replaces == 0 || options_.creator == nullptr) return exists("");
  if (format.replaces != log.welcome().incarnation) {
    return exists(", and was made anew meanwhile");
  }
  if (log.created().is_used) return exists(", and was opened meanwhile");
  return absl::OkStatus();
}

absl::StatusOr<Message> ReplicaServer::OnFormat(Connection& connection,
                                                const Format& format) {
  const Uuid log_id = connection.hello.log_id;
  Format made = format;
  if (const auto found = logs_.find(log_id); found != logs_.end()) {
    ALPHEUS_RETURN_IF_ERROR(CheckReplaceable(*found->second, format));
    // The asker's own connection stays, but loses all keys of the old replica.
    VoidKeys(connection);
    connection.log = nullptr;
    RemoveLog(log_id)->reset();
  } else {
    made.replaces = 0;  // nothing is known of a replica that came since
  }
  // Without a creator, a connection of a missing log exists only if the log was
  // removed, and removal ended its connections.
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ServedLog> log,
                           options_.creator->Create(log_id, made));
  connection.log = log.get();
  scrubbing_.Watch(*log);
  logs_.emplace(log_id, std::move(log));
  ++counters_.formatted;
  return Formatted{};
}

// P-A5. Checked before anything of the log changes.
absl::Status ReplicaServer::CheckConfiguration(uint64_t own,
                                               const AskPromise& ask) {
  if (ask.configuration_id >= own) return absl::OkStatus();
  return Refuse(Refusal::kOlderConfiguration,
                absl::FailedPreconditionError(absl::StrCat(
                    "the primary has configuration ", ask.configuration_id,
                    ", older than ", own,
                    " of this replica. Give it the newest list of members")));
}

absl::Status ReplicaServer::CheckAsker(const Connection& connection,
                                       const Promise& promise) {
  if (promise.primary == connection.hello.primary) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a promise is asked for node ", promise.primary.node.value,
                   ", which is not the process that connected"));
}

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::Refusing(
    const Connection& connection, const Promise& request,
    const absl::Status& why) {
  const std::optional<Promise> standing = StandingPromise(why);
  if (!standing.has_value()) return why;
  ++counters_.refused;
  Tell(connection.peer, Refuse(Refusal::kStaleEpoch, why),
       absl::StrCat(Describe(connection), ", is refused epoch ",
                    request.epoch.value));
  return Refused{*standing};
}

// P-A4.2, in this order.
absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnAskPromise(
    Connection& connection, const AskPromise& ask) {
  ServedLog& log = *connection.log;
  ALPHEUS_RETURN_IF_ERROR(CheckAsker(connection, ask.promise));
  ALPHEUS_RETURN_IF_ERROR(
      CheckConfiguration(log.welcome().configuration_id, ask));
  const absl::StatusOr<PromiseVerdict> verdict = log.AcceptPromise(ask.promise);
  if (!verdict.ok()) return Refusing(connection, ask.promise, verdict.status());
  connection.promise = ask.promise;
  Fence(connection);  // RS1: before the scan
  ALPHEUS_RETURN_IF_ERROR(log.StartAnswer());
  connection.phase = Phase::kAnswering;
  return std::nullopt;
}

namespace {

std::vector<LsnRun> DamageIn(const Answer& answer) {
  std::vector<LsnRun> damage;
  for (const VerdictRun& run : answer.runs) {
    if (run.verdict == Verdict::kCorrupt)
      damage.push_back({run.first, run.end});
  }
  return damage;
}

}  // namespace

absl::StatusOr<Message> ReplicaServer::Answered(Connection& connection) {
  ServedLog& log = *connection.log;
  const Answer answer = log.TakeAnswer();
  scrubbing_.NoteDamage(log.log_id(), answer.log_epoch, DamageIn(answer));
  connection.answer = EncodeAnswer(log.log_id(), answer);
  connection.phase = Phase::kPromised;
  Promised promised;
  promised.answer_bytes = connection.answer.size();
  ALPHEUS_ASSIGN_OR_RETURN(
      promised.answer_key,
      GiveOut(connection, connection.answer, RemoteAccess::kRead));
  ALPHEUS_ASSIGN_OR_RETURN(
      promised.ring_key, GiveOut(connection, log.ring(), RemoteAccess::kRead));
  ++counters_.promised;
  Note(connection,
       absl::StrCat("is promised epoch ", connection.promise.epoch.value));
  return promised;
}

// RS1. The holder's own connection stays; its keys are void all the same.
void ReplicaServer::Fence(Connection& holder) {
  std::vector<ConnectionId> others;
  for (const auto& [id, connection] : connections_) {
    if (connection.log == holder.log && connection.ever_promised() &&
        id != holder.id) {
      others.push_back(id);
    }
  }
  for (const ConnectionId id : others) {
    ++counters_.fenced;
    Note(*Find(id),
         absl::StrCat("gives way to node ", holder.hello.primary.node.value,
                      ", with epoch ", Find(id)->promise.epoch.value));
    if (Find(id)->hello.primary != holder.promise.primary) {
      SayOvertaken(*Find(id), Refused{holder.promise});
    }
    End(id, absl::OkStatus());
  }
  VoidKeys(holder);
  holder.phase = Phase::kControl;
}

// RS8. The slot is free, unless the reply to Install is still under way.
void ReplicaServer::SayOvertaken(Connection& session, const Message& why) {
  if (session.phase == Phase::kSession) Send(session, why).IgnoreError();
}

absl::StatusOr<RegionKey> ReplicaServer::GiveOut(Connection& connection,
                                                 std::span<std::byte> bytes,
                                                 RemoteAccess access) {
  ALPHEUS_ASSIGN_OR_RETURN(const RegionKey key,
                           fabric_.Register(bytes, access));
  connection.keys.push_back(key);
  return key;
}

absl::Status ReplicaServer::CheckHolder(const Connection& connection,
                                        Phase phase, Epoch epoch,
                                        const char* what) const {
  const Promise standing = connection.log->standing();
  if (connection.phase == phase && connection.promise.epoch == epoch &&
      MayWrite(standing, connection.promise)) {
    return absl::OkStatus();
  }
  const bool is_due = connection.phase == phase;
  return Refuse(
      is_due ? Refusal::kStaleEpoch : Refusal::kOutOfTurn,
      absl::FailedPreconditionError(absl::StrCat(
          what, " of epoch ", epoch.value, " refused: ",
          is_due ? "" : "it is not this connection's turn to ask for it; ",
          "this connection holds the promise of epoch ",
          connection.is_holder() ? connection.promise.epoch.value : 0,
          ", promised is epoch ", standing.epoch.value,
          ". Nothing was changed; connect again, and ask for a promise")));
}

absl::StatusOr<Message> ReplicaServer::OnPrepare(Connection& connection,
                                                 const Prepare& prepare) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckHolder(connection, Phase::kPromised, prepare.epoch, "prepare"));
  if (prepare.set_repairing) {
    ALPHEUS_RETURN_IF_ERROR(connection.log->BeginRepair(prepare.epoch));
  }
  // The answer is dropped. The ring's old key stays valid, since reads by it
  // may be under way.
  fabric_.Deregister(connection.keys.front()).IgnoreError();
  connection.keys.erase(connection.keys.begin());
  connection.answer = {};
  Prepared prepared;
  ALPHEUS_ASSIGN_OR_RETURN(
      prepared.ring_key,
      GiveOut(connection, connection.log->ring(), RemoteAccess::kReadWrite));
  connection.phase = Phase::kPrepared;
  return prepared;
}

absl::StatusOr<ReplicaServer::MaybeReply> ReplicaServer::OnInstall(
    Connection& connection, const Install& install) {
  const Installation& installation = install.installation;
  ALPHEUS_RETURN_IF_ERROR(
      CheckHolder(connection, Phase::kPrepared, installation.epoch, "install"));
  const uint32_t credits_max = fabric_.limits().receives_max;
  if (install.credits > credits_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "install with ", install.credits, " credits refused: this adapter ",
        "takes ", credits_max, ". Nothing was changed; ask for fewer"));
  }
  ALPHEUS_RETURN_IF_ERROR(connection.log->StartInstall(installation));
  connection.install = install;
  connection.phase = Phase::kInstalling;
  return std::nullopt;
}

absl::StatusOr<Message> ReplicaServer::AfterInstall(Connection& connection) {
  const Install install = std::exchange(connection.install, {});
  const Installation& installation = install.installation;
  // RS3: no control receive is posted. The session posts its own before the
  // primary hears that it may begin.
  ALPHEUS_RETURN_IF_ERROR(connection.log->StartSession(
      {installation.epoch, install.session, installation.end, install.credits},
      fabric_, connection.id));
  connection.phase = Phase::kSession;
  ++counters_.installed;
  const Followed said = connection.log->followed();
  Note(connection,
       absl::StrCat("writes epoch ", installation.epoch.value, ", of ",
                    said.replica_count, " members, ", said.write_quorum,
                    " of which persist each record"));
  return Installed{};
}

// Called when the whole ring has been read.
absl::StatusOr<Message> ReplicaServer::AfterWork(Connection& connection) {
  return connection.phase == Phase::kAnswering ? Answered(connection)
                                               : AfterInstall(connection);
}

}  // namespace alpheus
