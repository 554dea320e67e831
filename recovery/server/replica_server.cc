// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/replica_server.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/members/peer_name.h"
#include "recovery/protocol/deletion.h"
#include "recovery/server/ring_fetch.h"

namespace alpheus::recovery {

using fabric::ConnectionEvent;

namespace {

// Returns true for the status of work whose peer is gone.
bool SaysThatPeerIsGone(fabric::CompletionStatus status) {
  return status == fabric::CompletionStatus::kFlushed ||
         status == fabric::CompletionStatus::kPeerGone;
}

}  // namespace

ReplicaServer::ReplicaServer(fabric::Fabric& fabric, const Clock& clock,
                             ReplicaServerOptions options)
    : fabric_(fabric),
      clock_(clock),
      options_(std::move(options)),
      regions_(options_.regions == nullptr ? no_regions_ : *options_.regions),
      scrubbing_(fabric, clock,
                 {options_.cluster_id, options_.node, options_.credentials,
                  options_.warn, options_.name_of},
                 options_.scrubbing),
      connections_(
          fabric, clock,
          {options_.node, options_.name_of, options_.note, options_.warn,
           [this](const PeerConnection& ended) {
             relay_.OnEnd(ended);
             desk_.NoteChange();
           }}),
      opening_(fabric, connections_, scrubbing_),
      relay_(connections_, opening_, regions_, clock,
             {options_.node, options_.step_down_timeout_ns, options_.show_ns,
              options_.silence_ns_max, options_.certificate_end_s}),
      desk_(connections_, relay_, clock, options_.desk),
      admission_(fabric, clock, connections_, relay_, AdmissionOptions()),
      slices_(connections_, options_.slice_bytes),
      inquiry_(fabric, clock,
               {options_.cluster_id, options_.node, options_.credentials},
               options_.inquiry) {}

ReplicaServer::~ReplicaServer() { connections_.EndAll(); }

ConnectionAdmissionOptions ReplicaServer::AdmissionOptions() const {
  return {options_.cluster_id,     options_.node,
          options_.credentials,    options_.waiting_connections_max,
          options_.followers_max,  options_.unproved_connections_max,
          options_.silence_ns_max, options_.proof_ns_max};
}

absl::Status ReplicaServer::AddLog(std::unique_ptr<ServedLog> log) {
  const Uuid id = log->log_id();
  const auto [entry, is_new] = logs_.try_emplace(id, std::move(log));
  if (is_new) {
    scrubbing_.Watch(*entry->second);
    inquiry_.Watch(id);
    relay_.ServeWaiting(*entry->second);
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("node ", options_.node.value, ": log ", id.ToString(),
                   " is served already; nothing was changed"));
}

absl::StatusOr<std::unique_ptr<ServedLog>> ReplicaServer::RemoveLog(
    Uuid log_id) {
  const auto found = logs_.find(log_id);
  if (found == logs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("node ", options_.node.value, ": log ", log_id.ToString(),
                     " is not served; nothing was changed"));
  }
  const bool is_released = released_.erase(log_id) != 0;
  const auto is_of_log = [&](const PeerConnection& connection) {
    return connection.log == found->second.get();
  };
  for (const fabric::ConnectionId id : connections_.Where(is_of_log)) {
    if (is_released) {
      connections_.SayOvertaken(*connections_.Find(id), Released{});
    }
    connections_.End(id, absl::OkStatus());
  }
  scrubbing_.Forget(log_id);
  inquiry_.Forget(log_id);
  starved_.erase(found->second.get());
  std::unique_ptr<ServedLog> log = std::move(found->second);
  logs_.erase(found);
  return log;
}

std::vector<ReplicaServer::ReplicaState> ReplicaServer::replicas() const {
  std::vector<ReplicaState> replicas;
  for (const auto& [id, log] : logs_) {
    replicas.push_back({id, log->followed(), scrubbing_.StateOf(id)});
  }
  return replicas;
}

std::vector<Uuid> ReplicaServer::LogsWithFailedMedium() const {
  std::vector<Uuid> failed;
  for (const auto& [id, log] : logs_) {
    if (log->medium_failed()) failed.push_back(id);
  }
  return failed;
}

std::vector<Uuid> ReplicaServer::StarvedLogs() const {
  std::vector<Uuid> starved;
  for (const auto& [id, log] : logs_) {
    if (all_starved_ || starved_.contains(log.get())) starved.push_back(id);
  }
  return starved;
}

void ReplicaServer::Reconfigure(const ReplicaServerOptions& options) {
  options_.credentials = options.credentials;
  options_.waiting_connections_max = options.waiting_connections_max;
  options_.unproved_connections_max = options.unproved_connections_max;
  options_.followers_max = options.followers_max;
  options_.scrubbing = options.scrubbing;
  admission_.Reconfigure(AdmissionOptions());
  scrubbing_.Reconfigure(options.credentials, options.scrubbing);
  options_.inquiry = options.inquiry;
  inquiry_.Reconfigure(options.credentials, options.inquiry);
}

// --- Memory ------------------------------------------------------------------

template <class Work>
void ReplicaServer::Guard(fabric::ConnectionId id, const Work& work) {
  PeerConnection* const connection = connections_.Find(id);
  ServedLog* const log = connection == nullptr ? nullptr : connection->log;
  const absl::Status status = WithinMemory(work);
  if (!status.ok()) Starve(id, log, status);
}

void ReplicaServer::Starve(fabric::ConnectionId id, ServedLog* log,
                           const absl::Status& why) {
  const auto is_of_log = [log](const auto& entry) {
    return entry.second.log == log;
  };
  if (log == nullptr) {
    connections_.Find(id) == nullptr ? fabric_.Close(id).IgnoreError()
                                     : connections_.End(id, absl::OkStatus());
  } else {
    const auto& all = connections_.all();
    for (auto of = std::ranges::find_if(all, is_of_log); of != all.end();
         of = std::ranges::find_if(all, is_of_log)) {
      connections_.End(of->first, absl::OkStatus());
    }
    const absl::Status noted = WithinMemory([&] {
      starved_.insert(log);
      return absl::OkStatus();
    });
    all_starved_ |= !noted.ok();
  }
  ++connections_.counters().failed;
  const absl::Status told = WithinMemory([&] {
    if (options_.warn) {
      options_.warn(absl::StrCat(
          "node ", options_.node.value, ", ",
          log == nullptr ? "a connection"
                         : "log " + connections_.NameOf(log->log_id()),
          ": ", why.message()));
    }
    return absl::OkStatus();
  });
  told.IgnoreError();  // it is counted
}

bool ReplicaServer::OnConnectionEvent(const ConnectionEvent& event) {
  bool taken = true;
  Guard(event.connection, [&] {
    taken = Dispatch(event);
    return absl::OkStatus();
  });
  return taken;
}

bool ReplicaServer::OnCompletion(const fabric::Completion& completion) {
  bool taken = true;
  Guard(completion.connection, [&] {
    taken = Dispatch(completion);
    return absl::OkStatus();
  });
  return taken;
}

// --- Connections -------------------------------------------------------------

bool ReplicaServer::Dispatch(const ConnectionEvent& event) {
  if (event.kind == ConnectionEvent::Kind::kRequested) {
    OnRequested(event);
    return true;
  }
  const PeerConnection* const connection = connections_.Find(event.connection);
  if (connection == nullptr) {
    return scrubbing_.OnConnectionEvent(event) ||
           inquiry_.OnConnectionEvent(event);
  }
  if (event.kind != ConnectionEvent::Kind::kEstablished) EndGone(*connection);
  return true;
}

absl::StatusOr<PeerConnection> ReplicaServer::Admit(
    const ConnectionEvent& event) {
  ALPHEUS_ASSIGN_OR_RETURN(PeerConnection connection, admission_.Check(event));
  auto log = logs_.find(connection.hello.log_id);
  absl::Status unserved;
  if (log == logs_.end()) {
    // LPR7. This may add the log, if the process that had its file is gone. So
    // it is asked once.
    unserved = regions_.WhyUnserved(connection.hello.log_id);
    log = logs_.find(connection.hello.log_id);
  }
  if (log != logs_.end()) {
    connection.log = log->second.get();
  } else {
    ALPHEUS_ASSIGN_OR_RETURN(connection.claimed,
                             relay_.ServerHelloFor(connection.hello, unserved));
    if (!connection.claimed.has_value() && options_.creator == nullptr) {
      return Rejection(RejectReason::kUnknownLog,
                       absl::NotFoundError("the log is not kept by this node"));
    }
  }
  ALPHEUS_RETURN_IF_ERROR(connections_.MakeSlots(connection));
  return connection;
}

void ReplicaServer::OnRequested(const ConnectionEvent& event) {
  absl::StatusOr<PeerConnection> admitted = Admit(event);
  // Receives are posted before the peer may send.
  absl::Status status = admitted.status();
  if (status.ok()) status = connections_.PostRequestReceive(*admitted);
  if (!status.ok()) return admission_.Reject(event, status);
  const ServerHello server_hello = ServerHelloFor(*admitted);
  admission_.Accept(*std::move(admitted), server_hello);
}

ServerHello ReplicaServer::ServerHelloFor(
    const PeerConnection& connection) const {
  ServerHello server_hello;
  server_hello.node = options_.node;
  if (connection.log != nullptr) server_hello = connection.log->server_hello();
  if (connection.claimed.has_value()) server_hello = *connection.claimed;
  server_hello.platform = options_.platform;
  // The medium of a region that is claimed, or not yet made, is not known until
  // it is opened: it counts as a plain file.
  const bool is_pmem =
      connection.log != nullptr && connection.log->is_persistent_memory();
  if (!is_pmem)
    server_hello.platform =
        replication::WithoutPersistentMemory(options_.platform);
  return server_hello;
}

void ReplicaServer::NoteRejected(const std::string& peer,
                                 const absl::Status& why) {
  connections_.Warn(peer, why,
                    absl::StrCat("the connection of ", peer, " is refused"));
}

// Primaries come and go: that is noted, not reported as an error.
void ReplicaServer::EndGone(const PeerConnection& connection) {
  const std::optional<quorum::Promise> own =
      relay_.PromiseOfPrimary(connection);
  if (connection.is_promise_owner() || own.has_value()) {
    ++connections_.counters().gone;
    const Epoch epoch = own.value_or(connection.promise).epoch;
    connections_.Note(connection,
                      absl::StrCat("is gone, with epoch ", epoch.value));
  }
  connections_.End(connection.id, absl::OkStatus());
}

// --- Requests ----------------------------------------------------------------

bool ReplicaServer::Dispatch(const fabric::Completion& completion) {
  PeerConnection* const found = connections_.Find(completion.connection);
  if (found == nullptr) {
    return scrubbing_.OnCompletion(completion) ||
           inquiry_.OnCompletion(completion);
  }
  PeerConnection& connection = *found;
  const bool is_control = PeerConnections::IsControl(completion.work);
  // The session ended by an error: its connection is about to go.
  if (!is_control && connection.phase != Phase::kSession) return true;
  if (SaysThatPeerIsGone(completion.status)) {
    EndGone(connection);
    return true;
  }
  if (is_control) {
    const auto request = connections_.TakeControl(connection, completion);
    if (request.has_value()) Serve(connection, *request);
    return true;
  }
  const bool is_batch =
      completion.operation == fabric::Operation::kReceiveImmediate;
  const bool is_word =
      is_batch || completion.operation == fabric::Operation::kReceive;
  connection.is_heard |= is_word;
  connection.has_spoken |= is_word;
  connection.watermark_due |= is_batch;
  const absl::Status taken = connection.log->OnCompletion(completion);
  if (!taken.ok()) connections_.End(completion.connection, taken);
  return true;
}

void ReplicaServer::Serve(PeerConnection& connection,
                          std::span<const std::byte> request) {
  if (connection.phase == Phase::kEnding) return;
  const absl::StatusOr<Message> message =
      DecodeMessage(connection.hello.log_id, request);
  if (!message.ok()) {
    const absl::Status why =
        Rejection(RejectReason::kMalformed, message.status());
    if (!absl::IsUnavailable(why)) return connections_.Fail(connection, why);
    connections_.WarnOfEnd(connection, why);
    return connections_.Dismiss(connection, Changed{});
  }
  absl::StatusOr<MaybeReply> reply = Reply(connection, *message);
  if (!reply.ok()) return connections_.Fail(connection, reply.status());
  if (reply->has_value()) {
    connections_.SendReply(connection, **std::move(reply));
  }
}

namespace {

// Returns whether only the node itself makes such a request, the one whose
// number is in the hello. Commands have the number of the node that they ask.
bool ActsAsItsNode(const Message& message) {
  if (const auto* hear = std::get_if<Hear>(&message)) {
    return hear->standing != Standing::kNo;
  }
  return std::holds_alternative<Prepare>(message) ||
         std::holds_alternative<Release>(message) ||
         std::holds_alternative<Claim>(message);
}

}  // namespace

// RS3 and RS4.
absl::Status ReplicaServer::CheckName(const PeerConnection& connection,
                                      const Message& message) const {
  if (std::holds_alternative<Mark>(message) ||
      std::holds_alternative<Remove>(message)) {
    const absl::Status named =
        quorum::CheckIsOperator(connection.peer_name, options_.cluster_id);
    return named.ok() ? named : Rejection(RejectReason::kWrongKey, named);
  }
  if (!ActsAsItsNode(message)) return absl::OkStatus();
  absl::Status named = quorum::CheckActsAs(
      connection.peer_name, options_.cluster_id, connection.hello.primary.node);
  if (const auto* ask = std::get_if<Prepare>(&message); named.ok() && ask) {
    named = quorum::CheckActsAs(connection.peer_name, options_.cluster_id,
                                quorum::BallotNode(ask->promise.epoch));
  }
  if (!named.ok()) return Rejection(RejectReason::kWrongKey, named);
  return absl::OkStatus();
}

absl::StatusOr<MaybeReply> ReplicaServer::Reply(PeerConnection& connection,
                                                const Message& message) {
  // HSK1 (handshake.h).
  const bool is_proof = std::holds_alternative<Challenge>(message) ||
                        std::holds_alternative<Prove>(message);
  if (is_proof || !connection.is_proved()) {
    return OnHandshake(connection, message);
  }
  ALPHEUS_RETURN_IF_ERROR(CheckName(connection, message));
  const auto place = ConnectionAdmission::PlaceFor(message);
  if (place != connection.place) {
    ALPHEUS_RETURN_IF_ERROR(admission_.TakePlace(connection, place));
  }
  if (const auto* hear = std::get_if<Hear>(&message)) {
    ALPHEUS_RETURN_IF_ERROR(CheckKept(connection));
    return desk_.OnHear(connection, *hear);
  }
  if (const auto* instruct = std::get_if<Instruct>(&message)) {
    ALPHEUS_RETURN_IF_ERROR(CheckKept(connection));
    return desk_.OnInstruct(connection, *instruct);
  }
  desk_.NoteChange();
  if (connection.claimed.has_value()) return relay_.Reply(connection, message);
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
  if (const auto* ask = std::get_if<Prepare>(&message)) {
    return opening_.OnPrepare(connection, *ask);
  }
  if (const auto* open = std::get_if<OpenForRepair>(&message)) {
    return opening_.OnOpenForRepair(connection, *open);
  }
  if (const auto* install = std::get_if<Install>(&message)) {
    return opening_.OnInstall(connection, *install);
  }
  if (const auto* mark = std::get_if<Mark>(&message)) {
    return opening_.OnMark(connection, *mark);
  }
  if (std::holds_alternative<Remove>(message)) return OnRemove(connection);
  if (std::holds_alternative<AskDeletion>(message)) {
    return OnAskDeletion(connection);
  }
  const DeletionState deletion = connection.log->deletion();
  if (deletion.deletion != Deletion::kNone) return deletion;  // RS5
  if (std::holds_alternative<AskCreation>(message)) {
    return OnAskCreation(connection);
  }
  if (std::holds_alternative<View>(message)) return OnView(connection);
  if (const auto* follow = std::get_if<Follow>(&message)) {
    return OnFollow(connection, *follow);
  }
  if (const auto* release = std::get_if<Release>(&message)) {
    return OnRelease(connection, *release);
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
  if (std::holds_alternative<Claim>(message)) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     " has the lock of this replica, and serves it itself"));
  }
  return Rejection(
      RejectReason::kOutOfTurn,
      absl::InvalidArgumentError("a message came that only replicas send"));
}

absl::StatusOr<MaybeReply> ReplicaServer::OnHandshake(
    PeerConnection& connection, const Message& message) {
  const bool was_proved = connection.is_proved();
  ALPHEUS_ASSIGN_OR_RETURN(Message reply, connection.handshake->Reply(message));
  // A connection that has proved the key gets a place among the proved ones.
  if (!was_proved && connection.is_proved()) {
    ALPHEUS_RETURN_IF_ERROR(
        admission_.TakePlace(connection, PeerConnection::Place::kNew));
  }
  return reply;
}

// A node without the replica has nobody to hear, and nobody stands at it.
absl::Status ReplicaServer::CheckKept(const PeerConnection& connection) const {
  if (connection.log != nullptr || connection.claimed.has_value()) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("node ", options_.node.value, ": log ",
                   connection.hello.log_id.ToString(),
                   " is not kept by this node, so it hears no primary"));
}

// Reading disturbs nobody: the key ends with the connection. All views of a
// connection share one key, so that repeated looks cost no more.
absl::StatusOr<Message> ReplicaServer::OnView(PeerConnection& connection) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "View refused: this connection holds the promise, and does not view "
        "the replica");
  }
  const std::span<std::byte> region = connection.log->region();
  if (connection.keys.empty()) {
    ALPHEUS_RETURN_IF_ERROR(
        connections_.IssueKey(connection, region, fabric::RemoteAccess::kRead)
            .status());
  }
  return Viewed{connection.keys.back(), region.size(), rejects().counts(),
                scrubbing_.StateOf(connection.log->log_id()).total};
}

absl::StatusOr<Message> ReplicaServer::OnFollow(
    const PeerConnection& connection, const Follow& follow) const {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "Follow refused: this connection holds the promise, and others follow "
        "it");
  }
  Followed followed = connection.log->followed();
  if (follow.table_epoch == followed.log_epoch) followed.table = {};
  if (options_.certificate_end_s) {
    followed.certificate_end_s = options_.certificate_end_s();
  }
  return followed;
}

absl::StatusOr<Message> ReplicaServer::OnRelease(
    const PeerConnection& connection, const Release& release) {
  const Uuid log_id = connection.log->log_id();
  // Another machine's process could not take the lock.
  const bool is_own = connection.hello.primary.node == options_.node;
  // Nothing is promised yet: the process that was faster keeps the replica,
  // however far it has come.
  const quorum::Promise current = connection.log->current_promise();
  if (is_own && release.promised_max.has_value() &&
      current.epoch > *release.promised_max) {
    return Refused{current};
  }
  if (!is_own || !regions_.ReleaseRegion(log_id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     ": this replica can't be released, or only to a primary "
                     "of this node"));
  }
  released_.insert(log_id);
  return Released{};
}

absl::StatusOr<Message> ReplicaServer::OnScrub(const PeerConnection& connection,
                                               const Scrub& scrub) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "Scrub refused: this connection holds the promise, so the replica is "
        "not scrubbed");
  }
  const Uuid log_id = connection.log->log_id();
  if (scrub.start) scrubbing_.Ask(log_id);
  return scrubbing_.StateOf(log_id);
}

// A primary of another machine has its own node's replica, or none.
absl::StatusOr<Message> ReplicaServer::OnAskChange(
    const PeerConnection& connection, const AskChange& asked_change) const {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "AskChange refused: this connection holds the promise, and changes "
        "the members itself");
  }
  ChangeState nobody;
  nobody.id = asked_change.id;
  nobody.why = absl::UnavailableError(absl::StrCat(
      "node ", options_.node.value,
      ": no process of its machine has the replica, so no primary is here"));
  return nobody;
}

// Gives as much as a View does. The asker checks what it gets.
absl::StatusOr<Message> ReplicaServer::OnFetch(const PeerConnection& connection,
                                               const Fetch& fetch) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "Fetch refused: this connection holds the promise, and reads the ring "
        "by its key");
  }
  const std::span<std::byte> ring = connection.log->ring();
  const RingOffset head = connection.log->followed().head.offset;
  return FetchedFrom(Ring(ring.data(), ring.size()), head, head + ring.size(),
                     fetch);
}

absl::StatusOr<Message> ReplicaServer::OnAskCreation(
    const PeerConnection& connection) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "AskCreation refused: this connection holds the promise, so the log "
        "exists");
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
  if (format.replaces != log.server_hello().incarnation) {
    return exists(", and was made again meanwhile");
  }
  if (log.created().is_used) return exists(", and was opened meanwhile");
  return absl::OkStatus();
}

absl::StatusOr<Message> ReplicaServer::OnFormat(PeerConnection& connection,
                                                const Format& format) {
  const Uuid log_id = connection.hello.log_id;
  Format made = format;
  if (const auto found = logs_.find(log_id); found != logs_.end()) {
    ALPHEUS_RETURN_IF_ERROR(CheckReplaceable(*found->second, format));
    // The asker's own connection stays, but loses all keys of the old replica.
    connections_.VoidKeys(connection);
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
  inquiry_.Watch(log_id);
  logs_.emplace(log_id, std::move(log));
  ++connections_.counters().formatted;
  return Formatted{};
}

absl::StatusOr<Message> ReplicaServer::OnAskDeletion(
    const PeerConnection& connection) {
  if (connection.phase == Phase::kControl) return connection.log->deletion();
  return absl::FailedPreconditionError(
      "AskDeletion refused: this connection holds the promise, so the replica "
      "is not marked as deleted");
}

absl::StatusOr<Message> ReplicaServer::OnRemove(PeerConnection& connection) {
  if (connection.phase != Phase::kControl &&
      connection.phase != Phase::kPromised) {
    return absl::FailedPreconditionError(
        "Remove refused: this connection opens the log");
  }
  return RemoveRecords(connection.log->log_id(), &connection);
}

// P-D4. Every byte that a peer may still reach goes with its connection, before
// the records do.
absl::StatusOr<DeletionState> ReplicaServer::RemoveRecords(
    Uuid log_id, PeerConnection* asker) {
  ServedLog& log = *logs_.at(log_id);
  ALPHEUS_RETURN_IF_ERROR(log.MarkDeleted(Deletion::kDecided));
  if (asker != nullptr) {
    connections_.VoidKeys(*asker);
    asker->report = {};
    asker->phase = Phase::kControl;
    asker->log = nullptr;
  }
  std::unique_ptr<ServedLog> kept = *RemoveLog(log_id);
  if (options_.creator != nullptr) {
    kept.reset();
    ALPHEUS_ASSIGN_OR_RETURN(kept, options_.creator->RemoveRecords(log_id));
  }
  const DeletionState state = kept->deletion();
  if (asker != nullptr) asker->log = kept.get();
  logs_.emplace(log_id, std::move(kept));
  if (options_.note) {
    options_.note(absl::StrCat("log ", connections_.NameOf(log_id),
                               ": deleted; its records are removed here"));
  }
  return state;
}

void ReplicaServer::InquireOfDeletions() {
  const auto find_own =
      [this](Uuid log_id) -> std::optional<DeletionInquiry::OwnReplica> {
    const auto found = logs_.find(log_id);
    if (found == logs_.end()) return std::nullopt;
    const DeletionState state = found->second->deletion();
    if (state.deletion == Deletion::kDecided) return std::nullopt;
    const ServerHello hello = found->second->server_hello();
    return DeletionInquiry::OwnReplica{{{hello.node, hello.incarnation}, state},
                                       HasOwner(log_id)};
  };
  const std::optional<Uuid> decided = inquiry_.Poll(find_own);
  if (!decided.has_value()) return;
  const absl::Status removed = RemoveRecords(*decided, nullptr).status();
  if (!removed.ok() && options_.warn) {
    options_.warn(absl::StrCat("log ", connections_.NameOf(*decided),
                               ": it was deleted, and its records can't be "
                               "removed here: ",
                               removed.message()));
  }
}

bool ReplicaServer::HasOwner(Uuid log_id) const {
  return std::ranges::any_of(connections_.all(), [log_id](const auto& entry) {
    return entry.second.hello.log_id == log_id &&
           entry.second.is_promise_owner();
  });
}

// --- Time --------------------------------------------------------------------

void ReplicaServer::Poll() {
  StepSessions();
  RunSlice();
  const int64_t now = clock_.NowNanos();
  auto& all = connections_.all();
  for (auto next = all.begin(); next != all.end();) {
    // Ending this connection moves no other.
    PeerConnection& connection = (next++)->second;
    if (connection.phase == Phase::kSession) {
      PersistIdleSession(connection, now);
      continue;
    }
    const std::optional<int64_t> due = DueAt(connection);
    if (due.has_value() && *due <= now) EndLate(connection);
  }
  desk_.Poll();
  const absl::Status inquired = WithinMemory([&] {
    InquireOfDeletions();
    return absl::OkStatus();
  });
  inquired.IgnoreError();  // it asks again
  const absl::Status scrubbed = WithinMemory([&] {
    scrubbing_.Poll([this](Uuid log_id) { return IsBeingOpened(log_id); });
    return absl::OkStatus();
  });
  if (!scrubbed.ok()) scrubbing_.AbandonPass();
}

bool ReplicaServer::IsBeingOpened(Uuid log_id) const {
  return std::ranges::any_of(connections_.all(), [log_id](const auto& entry) {
    const PeerConnection& connection = entry.second;
    return connection.hello.log_id == log_id && connection.is_promise_owner() &&
           connection.phase != Phase::kSession;
  });
}

// Comes first: the primaries that wrote wait for acks.
void ReplicaServer::StepSessions() {
  auto& all = connections_.all();
  for (auto next = all.begin(); next != all.end();) {
    const PeerConnection& connection = (next++)->second;
    if (connection.phase != Phase::kSession) continue;
    // A failure may end other connections of the log, the next ones included.
    const fabric::ConnectionId id = connection.id;
    Guard(id, [&] {
      const absl::Status status = connection.log->Step();
      const std::string news = connection.log->TakeNews();
      if (!news.empty() && options_.warn) {
        options_.warn(
            absl::StrCat(connections_.Describe(connection), ": ", news));
      }
      if (!status.ok()) connections_.End(id, status);
      return absl::OkStatus();
    });
    next = all.upper_bound(id);
  }
}

void ReplicaServer::RunSlice() {
  PeerConnection* const connection = slices_.Next();
  if (connection == nullptr) return;
  Guard(connection->id, [&] {
    const absl::StatusOr<bool> is_over = slices_.Run(*connection);
    if (!is_over.ok()) {
      connections_.Fail(*connection, is_over.status());
    } else if (*is_over) {
      connection->heard_at = clock_.NowNanos();
      desk_.NoteChange();
      connections_.SendReply(*connection, opening_.AfterWork(*connection));
    }
    return absl::OkStatus();
  });
}

void ReplicaServer::PersistIdleSession(PeerConnection& connection,
                                       int64_t now) {
  if (std::exchange(connection.is_heard, false)) connection.heard_at = now;
  const std::optional<int64_t> due = DueAt(connection);
  if (!due.has_value() || *due > now) return;
  connection.watermark_due = false;
  const absl::Status status = connection.log->PersistWatermark();
  if (!status.ok()) connections_.End(connection.id, status);
}

bool ReplicaServer::IsWaiting(const PeerConnection& connection) {
  return connection.phase == Phase::kWaiting ||
         connection.phase == Phase::kFetching;
}

void ReplicaServer::EndLate(PeerConnection& connection) {
  const absl::Status why = IsWaiting(connection)
                               ? relay_.WhyTooLate(connection)
                               : admission_.WhyTooLate(connection);
  connection.phase == Phase::kFetching ? connections_.Fail(connection, why)
                                       : connections_.End(connection.id, why);
}

std::optional<int64_t> ReplicaServer::DueAt(
    const PeerConnection& connection) const {
  if (connection.phase == Phase::kSession) {
    if (!connection.watermark_due) return std::nullopt;
    return connection.heard_at + options_.idle_ns;
  }
  if (connection.is_promise_owner() || connection.phase == Phase::kHearing) {
    return std::nullopt;
  }
  return IsWaiting(connection) ? relay_.DueAt(connection)
                               : admission_.DueAt(connection);
}

Deadline ReplicaServer::NextPoll() const {
  Deadline next = scrubbing_.NextPoll();
  if (desk_.NextPoll().at_nanos() < next.at_nanos()) next = desk_.NextPoll();
  if (inquiry_.NextPoll().at_nanos() < next.at_nanos()) {
    next = inquiry_.NextPoll();
  }
  for (const auto& [id, connection] : connections_.all()) {
    const bool has_more =
        connection.phase == Phase::kSession && connection.log->has_more();
    if (connection.is_at_work() || has_more) {
      return Deadline::AtNanos(clock_.NowNanos());
    }
    const std::optional<int64_t> due = DueAt(connection);
    if (due.has_value() && *due < next.at_nanos()) {
      next = Deadline::AtNanos(*due);
    }
  }
  return next;
}

}  // namespace alpheus::recovery
