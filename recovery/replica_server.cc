// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica_server.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

// Of the server's own work; sessions number theirs from 0 on.
constexpr WorkId kRequestWork(uint64_t{1} << 63);
constexpr WorkId kReplyWork((uint64_t{1} << 63) + 1);

constexpr size_t kRequestSlot = 0;
constexpr size_t kReplySlot = 1;

absl::Status PeerGone() {
  return absl::UnavailableError("the peer has gone, or the way to it");
}

}  // namespace

ReplicaServer::ReplicaServer(Fabric& fabric, const Clock& clock,
                             ReplicaServerOptions options)
    : fabric_(fabric), clock_(clock), options_(std::move(options)) {}

ReplicaServer::~ReplicaServer() {
  while (!connections_.empty()) {
    End(connections_.begin()->first, absl::OkStatus());
  }
}

absl::Status ReplicaServer::AddLog(std::unique_ptr<ServedLog> log) {
  const Uuid id = log->log_id();
  if (logs_.try_emplace(id, std::move(log)).second) return absl::OkStatus();
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
  for (const ConnectionId id : of_log) End(id, absl::OkStatus());
  std::unique_ptr<ServedLog> log = std::move(found->second);
  logs_.erase(found);
  return log;
}

// --- Connections -------------------------------------------------------------

bool ReplicaServer::Take(const ConnectionEvent& event) {
  if (event.kind == ConnectionEvent::Kind::kRequested) {
    OnRequested(event);
    return true;
  }
  if (Find(event.connection) == nullptr) return false;
  if (event.kind != ConnectionEvent::Kind::kEstablished) {
    End(event.connection, PeerGone());
  }
  return true;
}

absl::StatusOr<ReplicaServer::Connection> ReplicaServer::Admit(
    const ConnectionEvent& event) {
  Connection connection;
  connection.id = event.connection;
  connection.peer = event.peer;
  connection.heard_at = clock_.NowNanos();
  // Rejections are cut to 44 bytes.
  ALPHEUS_ASSIGN_OR_RETURN(connection.hello, DecodeHello(event.private_data));
  if (connection.hello.cluster_id != options_.cluster_id) {
    return absl::FailedPreconditionError("this node is of another cluster");
  }
  const auto log = logs_.find(connection.hello.log_id);
  if (log != logs_.end()) {
    connection.log = log->second.get();
  } else {
    // A replica that is there is no reason to make another one.
    if (options_.unserved) {
      ALPHEUS_RETURN_IF_ERROR(options_.unserved(connection.hello.log_id));
    }
    if (options_.creator == nullptr) {
      return absl::NotFoundError("the log is not kept by this node");
    }
  }
  if (WaitingConnections() >= options_.waiting_connections_max) {
    return absl::ResourceExhaustedError("too many connections wait here");
  }
  ALPHEUS_ASSIGN_OR_RETURN(connection.slots,
                           MessageSlots::Make(fabric_, 2, kMessageBytesMax));
  return connection;
}

void ReplicaServer::OnRequested(const ConnectionEvent& event) {
  absl::StatusOr<Connection> admitted = Admit(event);
  // Receives are posted before the peer may send.
  absl::Status status = admitted.status();
  if (status.ok()) status = PostRequestReceive(*admitted);
  if (!status.ok()) {
    ++counters_.rejected;
    // The peer may have gone meanwhile; then there is nobody to tell.
    fabric_.Reject(event.connection, EncodeRejection(status)).IgnoreError();
    return;
  }
  Welcome welcome;
  welcome.node = options_.node;
  if (admitted->log != nullptr) welcome = admitted->log->welcome();
  ++counters_.accepted;
  connections_.emplace(event.connection, *std::move(admitted));
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

size_t ReplicaServer::WaitingConnections() const {
  return static_cast<size_t>(std::ranges::count_if(
      connections_,
      [](const auto& entry) { return !entry.second.is_holder(); }));
}

void ReplicaServer::VoidKeys(Connection& connection) {
  for (const RegionKey key : connection.keys) {
    if (IsMutant(Mutant::kKeysOutliveTheirSession)) break;
    // It was given out by this server and by nobody else.
    fabric_.Deregister(key).IgnoreError();
  }
  connection.keys.clear();
  connection.answer = {};
}

// A session that ends leaves the watermark behind.
absl::Status ReplicaServer::EndSession(Connection& connection) {
  if (connection.phase != Phase::kSession) return absl::OkStatus();
  connection.phase = Phase::kEnding;
  const absl::Status persisted = connection.log->PersistWatermark();
  connection.log->EndSession();
  return persisted;
}

void ReplicaServer::End(ConnectionId id, const absl::Status& why) {
  const auto found = connections_.find(id);
  Connection& connection = found->second;
  const bool is_news = !why.ok() && connection.phase != Phase::kEnding &&
                       (connection.is_holder() || !absl::IsUnavailable(why));
  // It is there, or the adapter has forgotten it: then nothing lands any more.
  fabric_.Close(id).IgnoreError();
  VoidKeys(connection);
  const absl::Status persisted = EndSession(connection);
  if (is_news) Report(connection, why);
  if (!persisted.ok()) Report(connection, persisted);
  connections_.erase(found);
}

void ReplicaServer::Fail(Connection& connection, const absl::Status& why) {
  VoidKeys(connection);
  Report(connection, why);
  const absl::Status persisted = EndSession(connection);
  if (!persisted.ok()) Report(connection, persisted);
  connection.phase = Phase::kEnding;
  connection.heard_at = clock_.NowNanos();
  const absl::Status sent = Send(connection, Failed{why});
  // It can't be told; it sees its connection end.
  if (!sent.ok()) End(connection.id, absl::OkStatus());
}

void ReplicaServer::Report(const Connection& connection,
                           const absl::Status& why) {
  ++counters_.failed;
  if (!options_.report) return;
  options_.report(absl::StrCat(
      "node ", options_.node.value, ", log ",
      connection.hello.log_id.ToString(), ": the connection of node ",
      connection.hello.primary.node.value, ", process ",
      absl::Hex(connection.hello.primary.incarnation), " at ", connection.peer,
      ", with the promise of epoch ", connection.promise.epoch.value,
      ", ends: ", why.ToString()));
}

// --- Requests ----------------------------------------------------------------

bool ReplicaServer::Take(const Completion& completion) {
  Connection* const connection = Find(completion.connection);
  if (connection == nullptr) return false;
  const bool is_control =
      completion.work == kRequestWork || completion.work == kReplyWork;
  if (is_control) {
    OnControl(*connection, completion);
    return true;
  }
  // Of a session that was ended by an error: its connection is about to go.
  if (connection->phase != Phase::kSession) return true;
  if (completion.operation == Operation::kReceiveImmediate) {
    connection->heard_at = clock_.NowNanos();
    connection->watermark_due = true;
  }
  const absl::Status taken = connection->log->Take(completion);
  if (!taken.ok()) End(completion.connection, taken);
  return true;
}

void ReplicaServer::OnControl(Connection& connection,
                              const Completion& completion) {
  if (completion.status != CompletionStatus::kOk) {
    return End(connection.id,
               completion.status == CompletionStatus::kReceiveTooSmall
                   ? absl::InvalidArgumentError("a message is too long")
                   : PeerGone());
  }
  connection.heard_at = clock_.NowNanos();
  if (completion.work == kReplyWork) {
    connection.replying = false;
    if (connection.phase == Phase::kEnding) {
      return End(connection.id, absl::OkStatus());
    }
    if (!connection.request.has_value()) return;
  } else if (completion.operation != Operation::kReceive) {
    return Fail(connection, absl::InvalidArgumentError(
                                "an immediate came before the session"));
  } else {
    connection.request = completion.bytes;
  }
  // The peer has the reply, but this adapter may hear of it later than of the
  // next request; the reply's bytes stay until then.
  if (connection.replying) return;
  Serve(connection, *std::exchange(connection.request, std::nullopt));
}

void ReplicaServer::Serve(Connection& connection, uint64_t bytes) {
  if (connection.phase == Phase::kEnding) return;
  const std::optional<Message> message =
      DecodeMessage(connection.hello.log_id,
                    connection.slots->At(kRequestSlot).bytes.first(bytes));
  if (!message.has_value()) {
    return Fail(connection, absl::InvalidArgumentError(absl::StrCat(
                                bytes, " bytes came that are no message")));
  }
  const absl::StatusOr<Message> reply = Reply(connection, *message);
  if (!reply.ok()) return Fail(connection, reply.status());
  absl::Status status;
  // V3: before the reply, which lets the peer send again.
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
  const std::vector<std::byte> bytes = EncodeMessage(reply);
  LocalBytes slot = connection.slots->At(kReplySlot);
  std::ranges::copy(bytes, slot.bytes.begin());
  slot.bytes = slot.bytes.first(bytes.size());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(connection.id, kReplyWork, slot));
  connection.replying = true;
  return absl::OkStatus();
}

absl::StatusOr<Message> ReplicaServer::Reply(Connection& connection,
                                             const Message& message) {
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
  if (std::holds_alternative<View>(message)) return OnView(connection);
  if (std::holds_alternative<Release>(message)) return OnRelease(connection);
  return absl::InvalidArgumentError("a message came that only replicas send");
}

// Reading disturbs nobody: the key goes with the connection.
absl::StatusOr<Message> ReplicaServer::OnView(Connection& connection) {
  if (connection.phase != Phase::kControl) {
    return absl::FailedPreconditionError(
        "whoever holds the promise has no need to look; View refused");
  }
  const std::span<std::byte> region = connection.log->region();
  ALPHEUS_ASSIGN_OR_RETURN(const RegionKey key,
                           GiveOut(connection, region, RemoteAccess::kRead));
  return Viewed{key, region.size()};
}

absl::StatusOr<Message> ReplicaServer::OnRelease(const Connection& connection) {
  // Another machine's process could not take the lock.
  if (!options_.release || connection.hello.primary.node != options_.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", options_.node.value,
                     ": this replica is released to nobody, or only to a "
                     "primary of this node"));
  }
  options_.release(connection.log->log_id());
  return Released{};
}

absl::StatusOr<Message> ReplicaServer::OnFormat(Connection& connection,
                                                const Format& format) {
  const Uuid log_id = connection.hello.log_id;
  if (logs_.contains(log_id)) {
    return absl::AlreadyExistsError(
        absl::StrCat("node ", options_.node.value, ": log ", log_id.ToString(),
                     " is there already; nothing was changed"));
  }
  // Without a creator nobody is connected to a log that is not there, unless
  // it was removed; that ended its connections.
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ServedLog> log,
                           options_.creator->Create(log_id, format));
  connection.log = log.get();
  logs_.emplace(log_id, std::move(log));
  ++counters_.formatted;
  return Formatted{};
}

absl::StatusOr<PromiseVerdict> ReplicaServer::Accept(
    const Connection& connection, const Promise& request) {
  if (IsMutant(Mutant::kPromisedUnpersisted)) {
    return AnswerPromise(connection.log->standing(), request);
  }
  return connection.log->AcceptPromise(request);
}

// A4.2, in this order.
absl::StatusOr<Message> ReplicaServer::OnAskPromise(Connection& connection,
                                                    const AskPromise& ask) {
  ServedLog& log = *connection.log;
  if (ask.promise.primary != connection.hello.primary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a promise is asked for node ", ask.promise.primary.node.value,
        ", which is not the process that connected"));
  }
  const absl::StatusOr<PromiseVerdict> verdict =
      Accept(connection, ask.promise);
  if (!verdict.ok()) {
    const std::optional<Promise> standing = StandingPromise(verdict.status());
    if (!standing.has_value()) return verdict.status();
    ++counters_.refused;
    return Refused{*standing};
  }
  std::optional<absl::StatusOr<Answer>> early;
  if (IsMutant(Mutant::kFenceAfterScan)) early = log.MakeAnswer();
  Fence(connection);
  const absl::StatusOr<Answer> answer =
      early.has_value() ? *std::move(early) : log.MakeAnswer();
  if (!answer.ok()) return answer.status();

  connection.promise = ask.promise;
  connection.phase = Phase::kPromised;
  connection.answer = EncodeAnswer(*answer);
  Promised promised;
  promised.answer_bytes = connection.answer.size();
  ALPHEUS_ASSIGN_OR_RETURN(
      promised.answer_key,
      GiveOut(connection, connection.answer, RemoteAccess::kRead));
  const auto access = IsMutant(Mutant::kRingWritableAtPromise)
                          ? RemoteAccess::kReadWrite
                          : RemoteAccess::kRead;
  ALPHEUS_ASSIGN_OR_RETURN(promised.ring_key,
                           GiveOut(connection, log.ring(), access));
  ++counters_.promised;
  return promised;
}

// V1. The holder's own connection stays; its keys are void all the same.
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
    End(id, absl::OkStatus());
  }
  VoidKeys(holder);
  holder.phase = Phase::kControl;
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
  return absl::FailedPreconditionError(absl::StrCat(
      what, " of epoch ", epoch.value, " refused: ",
      connection.phase == phase
          ? ""
          : "it is not this connection's turn to ask for it; ",
      "this connection holds the promise of epoch ",
      connection.is_holder() ? connection.promise.epoch.value : 0,
      ", promised is epoch ", standing.epoch.value,
      ". Nothing was changed; connect again, and ask for a promise"));
}

absl::StatusOr<Message> ReplicaServer::OnPrepare(Connection& connection,
                                                 const Prepare& prepare) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckHolder(connection, Phase::kPromised, prepare.epoch, "prepare"));
  if (prepare.set_repairing) {
    ALPHEUS_RETURN_IF_ERROR(connection.log->BeginRepair(prepare.epoch));
  }
  // The answer is forgotten; the ring may go on being read with the old key,
  // since reads may be under way.
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

absl::StatusOr<Message> ReplicaServer::OnInstall(Connection& connection,
                                                 const Install& install) {
  const Installation& installation = install.installation;
  if (!IsMutant(Mutant::kSessionWithoutPromise)) {
    ALPHEUS_RETURN_IF_ERROR(CheckHolder(connection, Phase::kPrepared,
                                        installation.epoch, "install"));
  }
  const uint32_t credits_max = fabric_.limits().receives_max;
  if (install.credits > credits_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "install with ", install.credits, " credits refused: this adapter ",
        "takes ", credits_max, ". Nothing was changed; ask for fewer"));
  }
  ALPHEUS_RETURN_IF_ERROR(connection.log->Install(installation));
  // V3: no control receive is posted; the session posts its own, and only then
  // the primary hears that it may begin.
  ALPHEUS_RETURN_IF_ERROR(connection.log->StartSession(
      {installation.epoch, install.session, installation.end, install.credits},
      fabric_, connection.id));
  connection.phase = Phase::kSession;
  ++counters_.installed;
  return Installed{};
}

// --- Time --------------------------------------------------------------------

void ReplicaServer::Poll() {
  const int64_t now = clock_.NowNanos();
  for (auto next = connections_.begin(); next != connections_.end();) {
    // Whatever ends this connection leaves the others where they are.
    Connection& connection = (next++)->second;
    const std::optional<int64_t> due = DueAt(connection);
    if (connection.phase == Phase::kSession) {
      PollSession(connection, now);
    } else if (due.has_value() && *due <= now) {
      End(connection.id,
          absl::DeadlineExceededError(absl::StrCat(
              "it asked for nothing for ", options_.silence_ns_max, " ns")));
    }
  }
}

void ReplicaServer::PollSession(Connection& connection, int64_t now) {
  absl::Status status = connection.log->Step();
  const std::optional<int64_t> due = DueAt(connection);
  if (status.ok() && due.has_value() && *due <= now) {
    connection.watermark_due = false;
    status = connection.log->PersistWatermark();
  }
  if (!status.ok()) End(connection.id, status);
}

std::optional<int64_t> ReplicaServer::DueAt(
    const Connection& connection) const {
  if (connection.phase == Phase::kSession) {
    if (!connection.watermark_due) return std::nullopt;
    return connection.heard_at + options_.idle_ns;
  }
  if (connection.is_holder()) return std::nullopt;
  return connection.heard_at + options_.silence_ns_max;
}

Deadline ReplicaServer::NextDeadline() const {
  Deadline next;
  for (const auto& [id, connection] : connections_) {
    const std::optional<int64_t> due = DueAt(connection);
    if (due.has_value() && *due < next.at_nanos()) {
      next = Deadline::AtNanos(*due);
    }
  }
  return next;
}

}  // namespace alpheus
