// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/replica_server.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"

namespace alpheus {
namespace {

// Work ids of the server itself; sessions number theirs from 0 on.
constexpr WorkId kRequestWork(uint64_t{1} << 63);
constexpr WorkId kReplyWork((uint64_t{1} << 63) + 1);

constexpr size_t kRequestSlot = 0;
constexpr size_t kReplySlot = 1;

// Returns true for the status of work whose peer is gone.
bool SaysThatPeerIsGone(CompletionStatus status) {
  return status == CompletionStatus::kFlushed ||
         status == CompletionStatus::kPeerGone;
}

}  // namespace

ReplicaServer::ReplicaServer(Fabric& fabric, const Clock& clock,
                             ReplicaServerOptions options)
    : fabric_(fabric),
      clock_(clock),
      options_(std::move(options)),
      scrubbing_(fabric, clock,
                 {options_.cluster_id, options_.node, options_.credentials,
                  options_.report, options_.name_of},
                 options_.scrubbing) {}

ReplicaServer::~ReplicaServer() {
  while (!connections_.empty()) {
    End(connections_.begin()->first, absl::OkStatus());
  }
}

absl::Status ReplicaServer::AddLog(std::unique_ptr<ServedLog> log) {
  const Uuid id = log->log_id();
  const auto [entry, is_new] = logs_.try_emplace(id, std::move(log));
  if (is_new) {
    scrubbing_.Watch(*entry->second);
    ServeWaiting(*entry->second);
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
  std::vector<ConnectionId> of_log;
  for (const auto& [id, connection] : connections_) {
    if (connection.log == found->second.get()) of_log.push_back(id);
  }
  const bool is_released = released_.erase(log_id) != 0;
  for (const ConnectionId id : of_log) {
    if (is_released) SayOvertaken(*Find(id), Released{});
    End(id, absl::OkStatus());
  }
  scrubbing_.Forget(log_id);
  starved_.erase(found->second.get());
  std::unique_ptr<ServedLog> log = std::move(found->second);
  logs_.erase(found);
  return log;
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
  scrubbing_.Reconfigure(options.credentials, options.scrubbing);
}

// --- Memory ------------------------------------------------------------------

template <class Work>
void ReplicaServer::Guard(ConnectionId id, const Work& work) {
  Connection* const connection = Find(id);
  ServedLog* const log = connection == nullptr ? nullptr : connection->log;
  const absl::Status status = WithinMemory(work);
  if (!status.ok()) Starve(id, log, status);
}

void ReplicaServer::Starve(ConnectionId id, ServedLog* log,
                           const absl::Status& why) {
  const auto is_of_log = [log](const auto& entry) {
    return entry.second.log == log;
  };
  if (log == nullptr) {
    Find(id) == nullptr ? fabric_.Close(id).IgnoreError()
                        : End(id, absl::OkStatus());
  } else {
    for (auto of = std::ranges::find_if(connections_, is_of_log);
         of != connections_.end();
         of = std::ranges::find_if(connections_, is_of_log)) {
      End(of->first, absl::OkStatus());
    }
    const absl::Status noted = WithinMemory([&] {
      starved_.insert(log);
      return absl::OkStatus();
    });
    all_starved_ |= !noted.ok();
  }
  ++counters_.failed;
  const absl::Status told = WithinMemory([&] {
    if (options_.report) {
      options_.report(absl::StrCat(
          "node ", options_.node.value, ", ",
          log == nullptr ? "a connection" : "log " + NameOf(log->log_id()),
          ": ", why.message()));
    }
    return absl::OkStatus();
  });
  told.IgnoreError();  // it is counted
}

bool ReplicaServer::Take(const ConnectionEvent& event) {
  bool taken = true;
  Guard(event.connection, [&] {
    taken = TakeOne(event);
    return absl::OkStatus();
  });
  return taken;
}

bool ReplicaServer::Take(const Completion& completion) {
  bool taken = true;
  Guard(completion.connection, [&] {
    taken = TakeOne(completion);
    return absl::OkStatus();
  });
  return taken;
}

// --- Connections -------------------------------------------------------------

bool ReplicaServer::TakeOne(const ConnectionEvent& event) {
  if (event.kind == ConnectionEvent::Kind::kRequested) {
    OnRequested(event);
    return true;
  }
  if (Find(event.connection) == nullptr) return scrubbing_.Take(event);
  if (event.kind != ConnectionEvent::Kind::kEstablished) {
    EndGone(*Find(event.connection));
  }
  return true;
}

absl::StatusOr<ReplicaServer::Connection> ReplicaServer::Admit(
    const ConnectionEvent& event) {
  Connection connection;
  connection.id = event.connection;
  connection.peer = event.peer;
  connection.heard_at = clock_.NowNanos();
  connection.accepted_at = connection.heard_at;
  // Rejections are cut to 44 bytes.
  const absl::StatusOr<Hello> hello = DecodeHello(event.private_data);
  if (!hello.ok()) {
    return Refuse(absl::IsUnimplemented(hello.status()) ? Refusal::kOtherVersion
                                                        : Refusal::kMalformed,
                  hello.status());
  }
  connection.hello = *hello;
  if (connection.hello.cluster_id != options_.cluster_id) {
    return Refuse(
        Refusal::kOtherCluster,
        absl::FailedPreconditionError("this node is of another cluster"));
  }
  auto log = logs_.find(connection.hello.log_id);
  if (log == logs_.end() && options_.unserved) {
    // This may add the log: the process that had its file is gone.
    options_.unserved(connection.hello.log_id).IgnoreError();
    log = logs_.find(connection.hello.log_id);
  }
  if (log != logs_.end()) {
    connection.log = log->second.get();
  } else {
    ALPHEUS_ASSIGN_OR_RETURN(connection.held, LookAtHeld(connection.hello));
    if (!connection.held.has_value() && options_.creator == nullptr) {
      return Refuse(Refusal::kUnknownLog,
                    absl::NotFoundError("the log is not kept by this node"));
    }
  }
  ALPHEUS_ASSIGN_OR_RETURN(connection.slots,
                           MessageSlots::Make(fabric_, 2, kMessageBytesMax));
  return connection;
}

// A replica that exists is not made again. The local primary may say Hold, and
// an opener may wait, if there is a local primary to tell.
absl::StatusOr<std::optional<Welcome>> ReplicaServer::LookAtHeld(
    const Hello& hello) const {
  if (!options_.unserved) return std::nullopt;
  const absl::Status unserved = options_.unserved(hello.log_id);
  if (unserved.ok()) return std::nullopt;
  const bool may_wait =
      hello.primary.node == options_.node || holders_.contains(hello.log_id);
  if (!may_wait || !options_.held) return unserved;
  const auto holder = holders_.find(hello.log_id);
  if (holder != holders_.end() && IsStuck(holder->second) &&
      hello.primary != holder->second.promise.primary) {
    return absl::UnavailableError("its primary is stopped, or does not listen");
  }
  return options_.held(hello.log_id);
}

void ReplicaServer::OnRequested(const ConnectionEvent& event) {
  absl::StatusOr<Connection> admitted = Admit(event);
  // Receives are posted before the peer may send.
  absl::Status status = admitted.status();
  if (status.ok()) status = PostRequestReceive(*admitted);
  if (!status.ok()) {
    ++counters_.rejected;
    // An error that is no refusal repeats until its cause is gone: not
    // reported.
    if (ReasonOf(status).has_value()) {
      Tell(event.peer, status,
           absl::StrCat("the connection of ", event.peer, " is refused"));
    }
    // Ends the request, whether or not the peer is still there to hear why.
    const auto sum = ReasonOf(status) == Refusal::kOtherVersion
                         ? RejectionSum::kNone
                         : RejectionSum::kSummed;
    fabric_.Reject(event.connection, EncodeRejection(status, sum))
        .IgnoreError();
    return;
  }
  Welcome welcome;
  welcome.node = options_.node;
  if (admitted->log != nullptr) welcome = admitted->log->welcome();
  if (admitted->held.has_value()) welcome = *admitted->held;
  welcome.platform = options_.platform;
  // The medium of a region that is held, or not yet made, is not known until it
  // is opened: it counts as a plain file.
  const bool is_pmem =
      admitted->log != nullptr && admitted->log->is_persistent_memory();
  if (!is_pmem) welcome.platform = WithoutPersistentMemory(options_.platform);
  admitted->handshake.emplace(options_.credentials, admitted->hello, welcome);
  if (Connection* const oldest = OldestTooMany(); oldest != nullptr) {
    End(oldest->id, Refuse(Refusal::kTooSlow,
                           absl::ResourceExhaustedError(
                               "others came, and it had proved no key yet")));
  }
  ++counters_.accepted;
  Connection& connection =
      connections_.emplace(event.connection, *std::move(admitted))
          .first->second;
  // New connections are never refused for want of room.
  if (connection.is_proved()) {
    TakePlace(connection, Place::kNew).IgnoreError();
  }
  status = fabric_.Accept(event.connection, EncodeWelcome(welcome));
  if (!status.ok()) End(event.connection, status);
}

absl::Status ReplicaServer::PostRequestReceive(const Connection& connection) {
  return fabric_.PostReceive(connection.id, kRequestWork,
                             connection.slots->At(kRequestSlot));
}

ReplicaServer::Connection* ReplicaServer::Find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

void ReplicaServer::VoidKeys(Connection& connection) {
  for (const RegionKey key : connection.keys) {
    // Only this server gave it out, so Deregister finds it.
    fabric_.Deregister(key).IgnoreError();
  }
  connection.keys.clear();
  connection.answer = {};
}

// Persists the watermark of a session that ends.
absl::Status ReplicaServer::EndHolding(Connection& connection) {
  if (connection.is_at_work()) connection.log->EndWork();
  EndHold(connection);
  if (connection.phase != Phase::kSession) return absl::OkStatus();
  connection.phase = Phase::kEnding;
  const absl::Status persisted = connection.log->PersistWatermark();
  connection.log->EndSession();
  return persisted;
}

void ReplicaServer::End(ConnectionId id, const absl::Status& why) {
  const auto found = connections_.find(id);
  Connection& connection = found->second;
  const bool is_news = !why.ok() && connection.phase != Phase::kEnding;
  // Fails only if the adapter has forgotten the connection: either way nothing
  // of it lands after this.
  fabric_.Close(id).IgnoreError();
  VoidKeys(connection);
  const absl::Status persisted = EndHolding(connection);
  if (is_news) Report(connection, why);
  if (!persisted.ok()) Report(connection, persisted);
  connections_.erase(found);
}

// Primaries come and go: that is noted, not reported as an error.
void ReplicaServer::EndGone(const Connection& connection) {
  const auto held = holders_.find(connection.hello.log_id);
  const bool has_replica =
      held != holders_.end() && held->second.connection == connection.id;
  if (connection.is_holder() || has_replica) {
    ++counters_.gone;
    const Epoch epoch =
        has_replica ? held->second.promise.epoch : connection.promise.epoch;
    Note(connection, absl::StrCat("is gone, with epoch ", epoch.value));
  }
  End(connection.id, absl::OkStatus());
}

void ReplicaServer::Fail(Connection& connection, const absl::Status& why) {
  Report(connection, why);
  Dismiss(connection, Failed{why});
}

void ReplicaServer::Dismiss(Connection& connection, const Message& last) {
  VoidKeys(connection);
  const absl::Status persisted = EndHolding(connection);
  if (!persisted.ok()) Report(connection, persisted);
  connection.phase = Phase::kEnding;
  connection.heard_at = clock_.NowNanos();
  const absl::Status sent = Send(connection, last);
  // The peer can't be told; it sees its connection end.
  if (!sent.ok()) End(connection.id, absl::OkStatus());
}

void ReplicaServer::Report(const Connection& connection,
                           const absl::Status& why) {
  ++counters_.failed;
  Tell(connection.peer, why, absl::StrCat(Describe(connection), ", ends"));
}

std::string ReplicaServer::NameOf(Uuid log_id) const {
  return options_.name_of ? options_.name_of(log_id) : log_id.ToString();
}

void ReplicaServer::Note(const Connection& connection,
                         const std::string& what) const {
  if (!options_.note) return;
  options_.note(absl::StrCat("log ", NameOf(connection.hello.log_id),
                             ": the primary of node ",
                             connection.hello.primary.node.value, ", process ",
                             absl::Hex(connection.hello.primary.incarnation),
                             " at ", connection.peer, ", ", what));
}

std::string ReplicaServer::Describe(const Connection& connection) const {
  const PrimaryId& peer = connection.hello.primary;
  std::string text =
      absl::StrCat("log ", NameOf(connection.hello.log_id), ": ");
  if (peer.node == NodeId(0)) {
    absl::StrAppend(&text, "the connection of a reader at ", connection.peer);
  } else {
    absl::StrAppend(&text, "the connection of node ", peer.node.value,
                    ", process ", absl::Hex(peer.incarnation), " at ",
                    connection.peer);
  }
  if (connection.ever_promised()) {
    absl::StrAppend(&text, ", with the promise of epoch ",
                    connection.promise.epoch.value);
  }
  return text;
}

void ReplicaServer::Tell(const std::string& peer, const absl::Status& why,
                         const std::string& what) {
  const std::optional<Refusal> reason = ReasonOf(why);
  if (reason.has_value() && !refusals_.Note(peer, *reason)) return;
  if (!options_.report) return;
  options_.report(absl::StrCat(
      "node ", options_.node.value, ", ", what, ": ",
      why.ToString(absl::StatusToStringMode::kWithNoExtraData),
      reason.has_value() ? ". More of this host's are counted, not told" : ""));
}

// --- Requests ----------------------------------------------------------------

bool ReplicaServer::TakeOne(const Completion& completion) {
  Connection* const connection = Find(completion.connection);
  if (connection == nullptr) return scrubbing_.Take(completion);
  const bool is_control =
      completion.work == kRequestWork || completion.work == kReplyWork;
  if (is_control) {
    OnControl(*connection, completion);
    return true;
  }
  // The session ended by an error: its connection is about to go.
  if (connection->phase != Phase::kSession) return true;
  if (SaysThatPeerIsGone(completion.status)) {
    EndGone(*connection);
    return true;
  }
  if (completion.operation == Operation::kReceiveImmediate) {
    connection->is_heard = true;
    connection->watermark_due = true;
  }
  const absl::Status taken = connection->log->Take(completion);
  if (!taken.ok()) End(completion.connection, taken);
  return true;
}

void ReplicaServer::OnControl(Connection& connection,
                              const Completion& completion) {
  if (SaysThatPeerIsGone(completion.status)) return EndGone(connection);
  if (completion.status != CompletionStatus::kOk) {
    return End(
        connection.id,
        Refuse(Refusal::kMalformed,
               absl::InvalidArgumentError(absl::StrCat(
                   OperationName(completion.operation), " of a message: ",
                   CompletionStatusName(completion.status)))));
  }
  connection.heard_at = clock_.NowNanos();
  if (completion.work == kReplyWork) {
    connection.replying = false;
    if (connection.phase == Phase::kEnding) {
      return End(connection.id, absl::OkStatus());
    }
    if (!connection.request.has_value()) return;
  } else if (completion.operation != Operation::kReceive) {
    return Fail(connection,
                Refuse(Refusal::kOutOfTurn,
                       absl::InvalidArgumentError(
                           "an immediate came before the session")));
  } else {
    connection.request = completion.bytes;
  }
  // The peer may have the reply, and send its next request, before this adapter
  // says so. The reply's bytes stay until then.
  if (connection.replying) return;
  Serve(connection, *std::exchange(connection.request, std::nullopt));
}

void ReplicaServer::Serve(Connection& connection, uint64_t bytes) {
  if (connection.phase == Phase::kEnding) return;
  const absl::StatusOr<Message> message =
      DecodeMessage(connection.hello.log_id,
                    connection.slots->At(kRequestSlot).bytes.first(bytes));
  if (!message.ok()) {
    const absl::Status why = Refuse(Refusal::kMalformed, message.status());
    if (!absl::IsUnavailable(why)) return Fail(connection, why);
    Report(connection, why);
    return Dismiss(connection, Changed{});
  }
  absl::StatusOr<MaybeReply> reply = Reply(connection, *message);
  if (!reply.ok()) return Fail(connection, reply.status());
  if (reply->has_value()) SendReply(connection, **std::move(reply));
}

void ReplicaServer::SendReply(Connection& connection,
                              const absl::StatusOr<Message>& reply) {
  if (!reply.ok()) return Fail(connection, reply.status());
  absl::Status status;
  // RS3: before the reply, which lets the peer send again.
  if (connection.phase != Phase::kSession) {
    status = PostRequestReceive(connection);
  }
  if (status.ok()) status = Send(connection, *reply);
  if (!status.ok()) End(connection.id, status);
}

absl::Status ReplicaServer::Send(Connection& connection, const Message& reply) {
  if (connection.replying) {
    return absl::UnavailableError("the last reply is still under way");
  }
  const std::vector<std::byte> bytes =
      EncodeMessage(connection.hello.log_id, reply);
  LocalBytes slot = connection.slots->At(kReplySlot);
  std::ranges::copy(bytes, slot.bytes.begin());
  slot.bytes = slot.bytes.first(bytes.size());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(connection.id, kReplyWork, slot));
  connection.replying = true;
  return absl::OkStatus();
}

// --- Work in slices ----------------------------------------------------------

// Returns the connection of the last slice until it is done, then the next one.
// If all took turns, each would end as late as the last one, which may be too
// late.
ReplicaServer::Connection* ReplicaServer::NextAtWork() {
  if (const auto last = connections_.find(worked_);
      last != connections_.end() && last->second.is_at_work()) {
    return &last->second;
  }
  Connection* first = nullptr;
  for (auto& [id, connection] : connections_) {
    if (!connection.is_at_work()) continue;
    if (id > worked_) return &connection;
    if (first == nullptr) first = &connection;
  }
  return first;
}

void ReplicaServer::WorkOn() {
  Connection* const connection = NextAtWork();
  if (connection == nullptr) return;
  worked_ = connection->id;
  Guard(connection->id, [&] {
    const absl::StatusOr<bool> done =
        connection->log->Continue(options_.slice_bytes);
    if (!done.ok()) {
      Fail(*connection, done.status());
    } else if (*done && connection->log->medium_failed()) {
      // Reads since the failure may have given zeros (bus_guard.h): an answer
      // would claim that the replica never had the records.
      Fail(*connection,
           absl::UnavailableError("the replica's medium failed meanwhile"));
    } else if (*done) {
      SendReply(*connection, AfterWork(*connection));
    }
    return absl::OkStatus();
  });
}

// --- Time --------------------------------------------------------------------

void ReplicaServer::Poll() {
  StepSessions();
  WorkOn();
  const int64_t now = clock_.NowNanos();
  for (auto next = connections_.begin(); next != connections_.end();) {
    // Ending this connection moves no other.
    Connection& connection = (next++)->second;
    if (connection.phase == Phase::kSession) {
      RestSession(connection, now);
      continue;
    }
    const std::optional<int64_t> due = DueAt(connection);
    if (due.has_value() && *due <= now) {
      const absl::Status why = WhyTooLate(connection);
      connection.phase == Phase::kFetching ? Fail(connection, why)
                                           : End(connection.id, why);
    }
  }
  const absl::Status scrubbed = WithinMemory([&] {
    scrubbing_.Poll([this](Uuid log_id) { return IsBeingOpened(log_id); });
    return absl::OkStatus();
  });
  if (!scrubbed.ok()) scrubbing_.GiveUpPass();
}

bool ReplicaServer::IsBeingOpened(Uuid log_id) const {
  return std::ranges::any_of(connections_, [log_id](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.hello.log_id == log_id && connection.is_holder() &&
           connection.phase != Phase::kSession;
  });
}

// Comes first: the primaries that wrote wait for acks.
void ReplicaServer::StepSessions() {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const Connection& connection = (next++)->second;
    if (connection.phase != Phase::kSession) continue;
    // A failure may end other connections of the log, the next ones included.
    const ConnectionId id = connection.id;
    Guard(id, [&] {
      const absl::Status status = connection.log->Step();
      const std::string news = connection.log->TakeNews();
      if (!news.empty() && options_.report) {
        options_.report(absl::StrCat(Describe(connection), ": ", news));
      }
      if (!status.ok()) End(id, status);
      return absl::OkStatus();
    });
    next = connections_.upper_bound(id);
  }
}

void ReplicaServer::RestSession(Connection& connection, int64_t now) {
  if (std::exchange(connection.is_heard, false)) connection.heard_at = now;
  const std::optional<int64_t> due = DueAt(connection);
  if (!due.has_value() || *due > now) return;
  connection.watermark_due = false;
  const absl::Status status = connection.log->PersistWatermark();
  if (!status.ok()) End(connection.id, status);
}

absl::Status ReplicaServer::WhyTooLate(const Connection& connection) const {
  if (connection.phase == Phase::kWaiting) {
    return absl::UnavailableError(absl::StrCat(
        "another process of this machine",
        options_.describe_holder
            ? options_.describe_holder(connection.hello.log_id)
            : "",
        " has the node's replica and does not give way; it may be stopped. End "
        "that process, if it does not go on"));
  }
  if (connection.phase == Phase::kFetching) {
    return absl::UnavailableError(
        absl::StrCat("node ", options_.node.value,
                     ": the process that has its replica is stopped, or gone; "
                     "nothing of its ring is shown now"));
  }
  if (connection.is_proved()) {
    return absl::DeadlineExceededError(
        absl::StrCat("it asked for nothing for ",
                     options_.silence_ns_max / 1'000'000, " ms"));
  }
  return Refuse(
      Refusal::kTooSlow,
      absl::DeadlineExceededError(absl::StrCat(
          "it proved no key for ", options_.proof_ns_max / 1'000'000, " ms")));
}

std::optional<int64_t> ReplicaServer::DueAt(
    const Connection& connection) const {
  if (connection.phase == Phase::kSession) {
    if (!connection.watermark_due) return std::nullopt;
    return connection.heard_at + options_.idle_ns;
  }
  if (connection.is_holder()) return std::nullopt;
  if (connection.phase == Phase::kWaiting) return WaitsUntil(connection);
  if (connection.phase == Phase::kFetching) {
    const bool is_held = holders_.contains(connection.hello.log_id);
    return connection.heard_at + (is_held ? options_.show_ns : 0);
  }
  if (!connection.is_proved()) {
    return connection.accepted_at + options_.proof_ns_max;
  }
  return connection.heard_at + options_.silence_ns_max;
}

Deadline ReplicaServer::NextDeadline() const {
  Deadline next = scrubbing_.NextDeadline();
  for (const auto& [id, connection] : connections_) {
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

}  // namespace alpheus
