// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/peer_connections.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {
namespace {

// Work ids of control messages; sessions number theirs from 0 on.
constexpr fabric::WorkId kRequestWork(uint64_t{1} << 63);
constexpr fabric::WorkId kReplyWork((uint64_t{1} << 63) + 1);
constexpr fabric::WorkId kReasonWork((uint64_t{1} << 63) + 2);

}  // namespace

PeerConnections::PeerConnections(fabric::Fabric& fabric, const Clock& clock,
                                 PeerConnectionsOptions options)
    : fabric_(fabric), clock_(clock), options_(std::move(options)) {}

void PeerConnections::EndAll() {
  while (!all_.empty()) End(all_.begin()->first, absl::OkStatus());
}

PeerConnection* PeerConnections::Find(fabric::ConnectionId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : &found->second;
}

std::vector<fabric::ConnectionId> PeerConnections::Where(
    absl::FunctionRef<bool(const PeerConnection&)> is_so) const {
  std::vector<fabric::ConnectionId> ids;
  for (const auto& [id, connection] : all_) {
    if (is_so(connection)) ids.push_back(id);
  }
  return ids;
}

// --- Messages ----------------------------------------------------------------

absl::Status PeerConnections::MakeSlots(PeerConnection& connection) {
  ALPHEUS_ASSIGN_OR_RETURN(connection.slots, replication::MessageSlots::Make(
                                                 fabric_, 2, kMessageBytesMax));
  return absl::OkStatus();
}

absl::Status PeerConnections::PostRequestReceive(
    const PeerConnection& connection) {
  return fabric_.PostReceive(connection.id, kRequestWork,
                             connection.slots->At(kRequestSlot));
}

bool PeerConnections::IsControl(fabric::WorkId work) {
  return work == kRequestWork || work == kReplyWork;
}

std::optional<std::span<const std::byte>> PeerConnections::TakeControl(
    PeerConnection& connection, const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    End(connection.id,
        Rejection(
            RejectReason::kMalformed,
            absl::InvalidArgumentError(absl::StrCat(
                fabric::OperationName(completion.operation), " of a message: ",
                fabric::CompletionStatusName(completion.status)))));
    return std::nullopt;
  }
  connection.heard_at = clock_.NowNanos();
  if (completion.work == kReplyWork) {
    connection.replying = false;
    if (connection.phase == PeerConnection::Phase::kEnding) {
      End(connection.id, absl::OkStatus());
      return std::nullopt;
    }
    if (!connection.request.has_value()) return std::nullopt;
  } else if (completion.operation != fabric::Operation::kReceive) {
    Fail(connection, Rejection(RejectReason::kOutOfTurn,
                               absl::InvalidArgumentError(
                                   "an immediate came before the session")));
    return std::nullopt;
  } else {
    connection.request = completion.bytes;
  }
  // The peer may have the reply, and send its next request, before this adapter
  // says so. The reply's bytes stay until then.
  if (connection.replying) return std::nullopt;
  return connection.slots->At(kRequestSlot)
      .bytes.first(*std::exchange(connection.request, std::nullopt));
}

absl::Status PeerConnections::Send(PeerConnection& connection,
                                   const Message& reply) {
  if (connection.replying) {
    return absl::UnavailableError("the last reply is still in flight");
  }
  ALPHEUS_RETURN_IF_ERROR(
      PostMessage(connection, kReplySlot, kReplyWork, reply));
  connection.replying = true;
  return absl::OkStatus();
}

absl::Status PeerConnections::PostMessage(const PeerConnection& connection,
                                          size_t slot, fabric::WorkId work,
                                          const Message& message) {
  const std::vector<std::byte> bytes =
      EncodeMessage(connection.hello.log_id, message);
  fabric::LocalBytes into = connection.slots->At(slot);
  std::ranges::copy(bytes, into.bytes.begin());
  into.bytes = into.bytes.first(bytes.size());
  return fabric_.PostSend(connection.id, work, into);
}

void PeerConnections::SendReply(PeerConnection& connection,
                                const absl::StatusOr<Message>& reply) {
  if (!reply.ok()) return Fail(connection, reply.status());
  absl::Status status;
  // PCN1: before the reply, which lets the peer send again.
  if (connection.phase != PeerConnection::Phase::kSession) {
    status = PostRequestReceive(connection);
  }
  if (status.ok()) status = Send(connection, *reply);
  if (!status.ok()) End(connection.id, status);
}

// PCN4.
void PeerConnections::SayOvertaken(const PeerConnection& session,
                                   const Message& why) {
  if (session.phase == PeerConnection::Phase::kSession) {
    PostMessage(session, kRequestSlot, kReasonWork, why).IgnoreError();
  }
}

// --- Keys --------------------------------------------------------------------

absl::StatusOr<fabric::RegionKey> PeerConnections::IssueKey(
    PeerConnection& connection, std::span<std::byte> bytes,
    fabric::RemoteAccess access) {
  ALPHEUS_ASSIGN_OR_RETURN(const fabric::RegionKey key,
                           fabric_.Register(bytes, access));
  connection.keys.push_back(key);
  return key;
}

void PeerConnections::VoidKeys(PeerConnection& connection) {
  for (const fabric::RegionKey key : connection.keys) {
    // Only this server gave it out, so Deregister finds it.
    fabric_.Deregister(key).IgnoreError();
  }
  connection.keys.clear();
  connection.report = {};
}

// --- Ends --------------------------------------------------------------------

absl::Status PeerConnections::EndServing(PeerConnection& connection) {
  if (connection.is_at_work()) connection.log->EndWork();
  options_.on_end(connection);
  if (connection.phase != PeerConnection::Phase::kSession) {
    return absl::OkStatus();
  }
  connection.phase = PeerConnection::Phase::kEnding;
  const absl::Status persisted = connection.log->PersistWatermark();
  connection.log->EndSession();
  return persisted;
}

void PeerConnections::End(fabric::ConnectionId id, const absl::Status& why) {
  const auto found = all_.find(id);
  PeerConnection& connection = found->second;
  const bool is_news =
      !why.ok() && connection.phase != PeerConnection::Phase::kEnding;
  // Fails only if the adapter has forgotten the connection: either way nothing
  // of it lands after this.
  fabric_.Close(id).IgnoreError();
  VoidKeys(connection);
  const absl::Status persisted = EndServing(connection);
  if (is_news) WarnOfEnd(connection, why);
  if (!persisted.ok()) WarnOfEnd(connection, persisted);
  all_.erase(found);
}

void PeerConnections::Dismiss(PeerConnection& connection, const Message& last) {
  VoidKeys(connection);
  const absl::Status persisted = EndServing(connection);
  if (!persisted.ok()) WarnOfEnd(connection, persisted);
  connection.phase = PeerConnection::Phase::kEnding;
  connection.heard_at = clock_.NowNanos();
  const absl::Status sent = Send(connection, last);
  // The peer can't be notified; it sees its connection end.
  if (!sent.ok()) End(connection.id, absl::OkStatus());
}

void PeerConnections::Fail(PeerConnection& connection,
                           const absl::Status& why) {
  WarnOfEnd(connection, why);
  Dismiss(connection, Failed{why});
}

// --- Sentences ---------------------------------------------------------------

std::string PeerConnections::NameOf(Uuid log_id) const {
  return options_.name_of ? options_.name_of(log_id) : log_id.ToString();
}

void PeerConnections::Note(const PeerConnection& connection,
                           const std::string& what) const {
  if (!options_.note) return;
  options_.note(absl::StrCat("log ", NameOf(connection.hello.log_id),
                             ": the primary of node ",
                             connection.hello.primary.node.value, ", process ",
                             absl::Hex(connection.hello.primary.incarnation),
                             " at ", connection.peer, ", ", what));
}

void PeerConnections::NoteOfOther(const PeerConnection& connection,
                                  const std::string& what) const {
  if (!options_.note) return;
  options_.note(absl::StrCat("log ", NameOf(connection.hello.log_id), ": ",
                             connection.peer, " ", what));
}

std::string PeerConnections::Describe(const PeerConnection& connection) const {
  const quorum::PrimaryId& peer = connection.hello.primary;
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

void PeerConnections::WarnOfEnd(const PeerConnection& connection,
                                const absl::Status& why) {
  ++counters_.failed;
  Warn(connection.peer, why, absl::StrCat(Describe(connection), ", ends"));
}

void PeerConnections::Warn(const std::string& peer, const absl::Status& why,
                           const std::string& what) {
  const std::optional<RejectReason> reason = ReasonOf(why);
  if (reason.has_value() && !rejects_.Note(peer, *reason)) return;
  if (!options_.warn) return;
  options_.warn(
      absl::StrCat("node ", options_.node.value, ", ", what, ": ",
                   why.ToString(absl::StatusToStringMode::kWithNoExtraData),
                   reason.has_value()
                       ? ". Further ones of this host are counted, not reported"
                       : ""));
}

}  // namespace alpheus::recovery
