// SPDX-License-Identifier: Apache-2.0
#include "api/remote/memory_server.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/crypto.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "quorum/members/log_id.h"
#include "quorum/members/peer_name.h"
#include "replication/persist/execute/update_message.h"
#include "replication/persist/plan/table_planner.h"

namespace alpheus::remote {
namespace {

using fabric::ConnectionEvent;
using recovery::ClientMessage;

// Work ids of control messages; those of updates are small.
constexpr fabric::WorkId kRequestWork(uint64_t{1} << 62);
constexpr fabric::WorkId kReplyWork((uint64_t{1} << 62) + 1);
constexpr size_t kRequestSlot = 0;
constexpr size_t kReplySlot = 1;

constexpr size_t kOpenedMax = 16;  // regions of one connection
// Receives for one client's updates: they come one after the other.
constexpr uint32_t kUpdateCredits = 4;

bool Touches(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto begin = [](std::span<const std::byte> bytes) {
    return reinterpret_cast<uintptr_t>(bytes.data());
  };
  return begin(a) < begin(b) + b.size() && begin(b) < begin(a) + a.size();
}

bool IsOfWords(std::span<const std::byte> bytes) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) == 0 &&
         bytes.size() % sizeof(uint64_t) == 0;
}

absl::Status IsOverlapping(const std::string& name, std::string_view other) {
  return absl::InvalidArgumentError(absl::StrCat(
      "region ", name, " touches ",
      absl::string_view(other.data(), other.size()),
      ", and only one of them may be updated by clients. Offer other memory"));
}

}  // namespace

MemoryServer::MemoryServer(fabric::Fabric& fabric, const Clock& clock,
                           const rpc::Access& access, RandomSource& random,
                           MemoryServerOptions options)
    : fabric_(fabric),
      clock_(clock),
      access_(access),
      random_(random),
      options_(std::move(options)),
      log_id_(quorum::LogIdOf(options_.cluster_id, options_.log)) {
  ALPHEUS_CHECK(access.asks_for_tokens(), "clients prove tokens of a list");
  ALPHEUS_CHECK(options_.incarnation != 0, "a process has an incarnation");
}

MemoryServer::~MemoryServer() { EndAll(); }

// --- Offers ------------------------------------------------------------------

absl::Status MemoryServer::CheckName(const std::string& name) const {
  if (name.empty() || name.size() > recovery::kMemoryNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name of ", name.size(),
                     " bytes: a region has one of 1 "
                     "to ",
                     recovery::kMemoryNameBytesMax, " bytes"));
  }
  if (!offers_.contains(name)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("region ", name, " is offered already. Withdraw it before"));
}

absl::Status MemoryServer::Offer(const ReadOffer& offer) {
  ALPHEUS_RETURN_IF_ERROR(CheckName(offer.name));
  if (offer.bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("region ", offer.name, " has no bytes"));
  }
  // RMS2.
  for (const auto& [name, other] : offers_) {
    if (other.memory != nullptr && Touches(other.bytes(), offer.bytes)) {
      return IsOverlapping(offer.name, name);
    }
  }
  Offered& offered = offers_[offer.name];
  offered.read = offer.bytes;
  offered.roles = offer.readers;
  return absl::OkStatus();
}

absl::Status MemoryServer::Offer(UpdateOffer offer) {
  ALPHEUS_RETURN_IF_ERROR(CheckName(offer.name));
  const std::span<const std::byte> bytes = offer.memory->bytes();
  if (bytes.empty() || !IsOfWords(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("region ", offer.name, " of ", bytes.size(),
                     " bytes: a region for updates begins and ends on a "
                     "multiple of 8, and is not empty"));
  }
  // RMS2.
  for (const auto& [name, other] : offers_) {
    if (Touches(other.bytes(), bytes)) return IsOverlapping(offer.name, name);
  }
  for (const std::span<const std::byte> kept : protected_) {
    if (Touches(kept, bytes)) {
      return IsOverlapping(offer.name, "protected memory");
    }
  }
  Offered& offered = offers_[offer.name];
  offered.memory = std::move(offer.memory);
  offered.roles = offer.updaters;
  offered.platform = offer.platform;
  return absl::OkStatus();
}

absl::Status MemoryServer::Protect(std::span<const std::byte> bytes) {
  for (const auto& [name, other] : offers_) {
    if (other.memory != nullptr && Touches(other.bytes(), bytes)) {
      return IsOverlapping(name, "memory that is to be protected");
    }
  }
  protected_.push_back(bytes);
  return absl::OkStatus();
}

absl::Status MemoryServer::Withdraw(const std::string& name) {
  const auto found = offers_.find(name);
  if (found == offers_.end()) {
    return absl::NotFoundError(
        absl::StrCat("region ", name, " is not offered"));
  }
  std::vector<fabric::ConnectionId> holders;
  for (const auto& [id, client] : clients_) {
    const bool has_key =
        std::ranges::count(client.opened, name, &Opened::name) > 0;
    if (has_key) holders.push_back(id);
  }
  // RMS3.
  for (const fabric::ConnectionId id : holders) End(id, absl::OkStatus());
  offers_.erase(found);
  return absl::OkStatus();
}

void MemoryServer::EndAll() {
  while (!clients_.empty()) End(clients_.begin()->first, absl::OkStatus());
}

// --- Connections -------------------------------------------------------------

bool MemoryServer::OnConnectionEvent(const ConnectionEvent& event) {
  if (event.kind == ConnectionEvent::Kind::kRequested) {
    if (!recovery::IsClientHello(event.private_data)) return false;
    const absl::StatusOr<recovery::ClientHello> hello =
        recovery::DecodeClientHello(event.private_data);
    if (hello.ok() && hello->log_id != log_id_) return false;
    const absl::Status accepted =
        hello.ok() ? Accept(event, *hello) : hello.status();
    if (accepted.ok()) return true;
    ++counters_.rejected;
    Warn(event.peer, accepted, "is refused");
    // The request ends, whether or not the peer is still there.
    fabric_.Reject(event.connection, recovery::EncodeClientRejection(accepted))
        .IgnoreError();
    return true;
  }
  if (!clients_.contains(event.connection)) return false;
  if (event.kind == ConnectionEvent::Kind::kDisconnected) {
    End(event.connection, absl::OkStatus());
  }
  return true;
}

// Returns false if there is no room for another client.
bool MemoryServer::MakeRoom() {
  if (clients_.size() >= options_.connections_max) return false;
  const Client* oldest = nullptr;
  size_t unproved = 0;
  for (const auto& [id, client] : clients_) {
    if (client.phase != Phase::kProving) continue;
    ++unproved;
    if (oldest == nullptr || client.accepted_at < oldest->accepted_at) {
      oldest = &client;
    }
  }
  if (unproved >= options_.unproved_max) {
    End(oldest->id, absl::ResourceExhaustedError(
                        "it made room for others: it had proved no token"));
  }
  return true;
}

absl::Status MemoryServer::Accept(const ConnectionEvent& event,
                                  const recovery::ClientHello& hello) {
  // Rejections are cut to 40 bytes.
  if (hello.cluster_id != options_.cluster_id) {
    return absl::FailedPreconditionError("this node is of another cluster");
  }
  ALPHEUS_RETURN_IF_ERROR(
      quorum::CheckIsOfCluster(event.peer_name, options_.cluster_id));
  if (!MakeRoom()) {
    return absl::ResourceExhaustedError("this node has no place for a client");
  }
  Client client;
  client.id = event.connection;
  client.peer = event.peer;
  client.accepted_at = clock_.NowNanos();
  client.said.hello = hello;
  client.said.welcome = {.node = options_.node,
                         .incarnation = options_.incarnation};
  recovery::Nonce& nonce = client.said.welcome.nonce;
  while (nonce == recovery::Nonce()) nonce = {random_.Next(), random_.Next()};
  ALPHEUS_ASSIGN_OR_RETURN(client.slots,
                           replication::MessageSlots::Make(
                               fabric_, 2, recovery::kClientMessageBytesMax));
  ALPHEUS_RETURN_IF_ERROR(PostRequest(client));
  ALPHEUS_RETURN_IF_ERROR(fabric_.Accept(
      event.connection, recovery::EncodeClientWelcome(client.said.welcome)));
  ++counters_.accepted;
  clients_.emplace(event.connection, std::move(client));
  return absl::OkStatus();
}

void MemoryServer::End(fabric::ConnectionId id, const absl::Status& why) {
  const auto found = clients_.find(id);
  Client& client = found->second;
  if (!why.ok() && client.phase != Phase::kEnding) {
    ++counters_.refused;
    Warn(client.peer, why, "ends");
  }
  // Fails only if the adapter has forgotten the connection: either way nothing
  // of it lands after this.
  fabric_.Close(id).IgnoreError();
  for (const Opened& opened : client.opened) {
    fabric_.Deregister(opened.key).IgnoreError();
  }
  clients_.erase(found);
}

void MemoryServer::Warn(const std::string& peer, const absl::Status& why,
                        std::string_view what) const {
  if (!options_.warn) return;
  options_.warn(absl::StrCat("log ", options_.log, ": the client at ", peer,
                             " ", absl::string_view(what.data(), what.size()),
                             ": ", why.ToString()));
}

// --- Messages ----------------------------------------------------------------

absl::Status MemoryServer::PostRequest(const Client& client) {
  return fabric_.PostReceive(client.id, kRequestWork,
                             client.slots->At(kRequestSlot));
}

absl::Status MemoryServer::Send(Client& client, const ClientMessage& message) {
  const std::vector<std::byte> bytes =
      recovery::EncodeClientMessage(log_id_, message);
  fabric::LocalBytes slot = client.slots->At(kReplySlot);
  std::ranges::copy(bytes, slot.bytes.begin());
  slot.bytes = slot.bytes.first(bytes.size());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(client.id, kReplyWork, slot));
  client.replying = true;
  return absl::OkStatus();
}

void MemoryServer::Refuse(Client& client, const absl::Status& why) {
  ++counters_.refused;
  Warn(client.peer, why, "ends");
  client.phase = Phase::kEnding;
  client.accepted_at = clock_.NowNanos();
  const absl::Status sent = Send(client, recovery::ClientRefused{why});
  // It sees its connection end.
  if (!sent.ok()) End(client.id, absl::OkStatus());
}

bool MemoryServer::OnCompletion(const fabric::Completion& completion) {
  const auto found = clients_.find(completion.connection);
  if (found == clients_.end()) return false;
  ++counters_.completions;
  Client& client = found->second;
  if (completion.work == kRequestWork || completion.work == kReplyWork) {
    TakeControl(client, completion);
    return true;
  }
  const absl::Status taken = client.updates == nullptr
                                 ? absl::InternalError("work of no update")
                                 : client.updates->OnCompletion(completion);
  if (!taken.ok()) End(client.id, taken);
  return true;
}

void MemoryServer::TakeControl(Client& client,
                               const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return End(
        client.id,
        absl::UnavailableError(absl::StrCat(
            fabric::OperationName(completion.operation), " of a message: ",
            fabric::CompletionStatusName(completion.status))));
  }
  if (completion.work == kReplyWork) {
    client.replying = false;
    if (client.phase == Phase::kEnding) {
      return End(client.id, absl::OkStatus());
    }
    if (!client.request.has_value()) return;
  } else if (completion.operation != fabric::Operation::kReceive) {
    return End(client.id, absl::InvalidArgumentError(
                              "an immediate came in place of a message"));
  } else {
    client.request = completion.bytes;
  }
  // The client may have the reply, and send again, before this adapter says so.
  if (client.replying) return;
  const std::span<const std::byte> bytes =
      client.slots->At(kRequestSlot)
          .bytes.first(*std::exchange(client.request, std::nullopt));
  const absl::StatusOr<ClientMessage> message =
      recovery::DecodeClientMessage(log_id_, bytes);
  // A refusal may be over: it ends the client.
  if (!message.ok()) return Refuse(client, message.status());
  const absl::StatusOr<ClientMessage> reply = Reply(client, *message);
  if (!reply.ok()) return Refuse(client, reply.status());
  absl::Status status;
  // Before the reply, which lets the client send again.
  if (client.phase == Phase::kOpening) status = PostRequest(client);
  if (status.ok()) status = Send(client, *reply);
  if (!status.ok()) End(client.id, status);
}

absl::StatusOr<ClientMessage> MemoryServer::Reply(
    Client& client, const ClientMessage& message) {
  if (const auto* proof = std::get_if<recovery::ClientProof>(&message);
      proof != nullptr && client.phase == Phase::kProving) {
    return OnProof(client, *proof);
  }
  // RMS1.
  const bool has_proved = client.phase == Phase::kOpening;
  const auto* const open = std::get_if<recovery::OpenMemory>(&message);
  if (has_proved && open != nullptr) {
    return OnOpen(client, *open);
  }
  return absl::InvalidArgumentError(
      "the message is not due: a client proves its token first, then opens "
      "regions, and the one for updates last");
}

absl::StatusOr<ClientMessage> MemoryServer::OnProof(
    Client& client, const recovery::ClientProof& proof) {
  client.said.nonce = proof.nonce;
  for (const quorum::Digest& digest : access_.Digests()) {
    if (TokenNameOf(digest) != client.said.hello.token_name) continue;
    const quorum::Digest shown =
        rpc::Sha256(MaskToken(proof.masked_token, digest, client.said));
    // TPF2.
    if (!quorum::AreSame(shown, digest)) break;
    ALPHEUS_RETURN_IF_ERROR(access_.CheckKnown(shown));
    client.shown = shown;
    client.phase = Phase::kOpening;
    ++counters_.proved;
    return recovery::ClientProved{ProofOfNode(digest, client.said)};
  }
  return absl::UnauthenticatedError(
      "the token is not known here. It may have been revoked: ask for a new "
      "one");
}

absl::StatusOr<ClientMessage> MemoryServer::OnOpen(
    Client& client, const recovery::OpenMemory& open) {
  const auto found = offers_.find(open.name);
  if (found == offers_.end()) {
    return absl::NotFoundError(
        absl::StrCat("region ", open.name,
                     " is not offered by this node, for log ", options_.log));
  }
  Offered& offered = found->second;
  auto permit =
      std::make_unique<rpc::Permit>(access_, client.shown, offered.roles);
  ALPHEUS_RETURN_IF_ERROR(permit->Enter(options_.log));
  if (open.for_updates != (offered.memory != nullptr)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "region ", open.name, " is offered for ",
        open.for_updates ? "reads only" : "updates: open it for these"));
  }
  if (client.opened.size() == kOpenedMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a connection opens ", kOpenedMax, " regions at most"));
  }
  const std::span<const std::byte> bytes = offered.bytes();
  // RMS2: const memory is never registered for writes.
  ALPHEUS_ASSIGN_OR_RETURN(
      const fabric::RegionKey key,
      fabric_.Register({const_cast<std::byte*>(bytes.data()), bytes.size()},
                       open.for_updates ? fabric::RemoteAccess::kAll
                                        : fabric::RemoteAccess::kRead));
  client.opened.push_back({open.name, key, std::move(permit)});
  recovery::MemoryOpened reply = {.key = key, .bytes = bytes.size()};
  if (open.for_updates) return BeginUpdates(client, offered, reply);
  ++counters_.opened;
  return reply;
}

absl::StatusOr<ClientMessage> MemoryServer::BeginUpdates(
    Client& client, Offered& offered, recovery::MemoryOpened reply) {
  reply.platform = offered.platform;
  while (reply.session == 0) reply.session = random_.Next();
  reply.credits = kUpdateCredits;
  reply.message_bytes_max = replication::kUpdateMessageHeaderBytes;
  const replication::TablePlan plan = replication::PlanOfTable(
      offered.platform, replication::UpdateKind::kSingleton,
      replication::UpdateOperation::kWrite);
  ALPHEUS_ASSIGN_OR_RETURN(
      client.updates,
      offered.memory->Start(plan.steps,
                            {.session = replication::SessionId(reply.session),
                             .credits = reply.credits,
                             .message_bytes_max = reply.message_bytes_max},
                            fabric_, client.id));
  client.phase = Phase::kUpdating;
  ++counters_.opened;
  return reply;
}

// --- Time --------------------------------------------------------------------

bool MemoryServer::IsAwaited(const Client& client) {
  return client.opened.empty() || client.phase == Phase::kEnding;
}

absl::Status MemoryServer::Recheck(const Client& client) {
  for (const Opened& opened : client.opened) {
    ALPHEUS_RETURN_IF_ERROR(opened.permit->Recheck());
  }
  return absl::OkStatus();
}

void MemoryServer::Poll() {
  const int64_t now = clock_.NowNanos();
  const bool rechecks = now >= recheck_at_;
  if (rechecks) recheck_at_ = now + kRecheckNanos;
  std::map<fabric::ConnectionId, absl::Status> ended;
  for (const auto& [id, client] : clients_) {
    absl::Status why;
    if (IsAwaited(client) &&
        now - client.accepted_at >= options_.proof_ns_max) {
      why = absl::DeadlineExceededError(
          absl::StrCat("it opened no region within ",
                       options_.proof_ns_max / kNanosPerMs, " ms"));
    } else if (rechecks) {
      why = Recheck(client);
    }
    if (!why.ok()) ended.emplace(id, why);
  }
  for (const auto& [id, why] : ended) End(id, why);
}

Deadline MemoryServer::NextPoll() const {
  if (clients_.empty()) return Deadline();
  int64_t next = recheck_at_;
  for (const auto& [id, client] : clients_) {
    if (IsAwaited(client)) {
      next = std::min(next, client.accepted_at + options_.proof_ns_max);
    }
  }
  return Deadline::AtNanos(next);
}

void RejectUnserved(fabric::Fabric& fabric, const ConnectionEvent& event) {
  if (event.kind != ConnectionEvent::Kind::kRequested) return;
  // Cut to 40 bytes.
  const absl::Status why =
      absl::NotFoundError("no such log, or cluster, is served here");
  fabric
      .Reject(event.connection, recovery::IsClientHello(event.private_data)
                                    ? recovery::EncodeClientRejection(why)
                                    : recovery::EncodeRejection(why))
      .IgnoreError();
}

}  // namespace alpheus::remote
