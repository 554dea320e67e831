// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/control_call.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/members/peer_name.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {

using fabric::ConnectionEvent;

namespace {

constexpr size_t kRequestSlot = 0;
constexpr size_t kReplySlot = 1;
// Bytes of the slot for each step; the request is the last and may be longer.
constexpr size_t kStepBytes = 1024;

// Adds a remedy: a node's text in a rejection is short.
absl::Status WithRemedy(const absl::Status& rejection, NodeId node) {
  if (!absl::IsFailedPrecondition(rejection)) return rejection;
  // The node's text for a file that was put into its directory.
  if (absl::StartsWith(rejection.message(), "its file is ")) {
    return absl::FailedPreconditionError(absl::StrCat(
        rejection.message(),
        "; a wrong file is in the node's directory, and the node's messages "
        "name it. Move it to where it belongs, and put this node's own one "
        "back, or have it made again by `alpheus replace --cluster FILE --log "
        "NAME --node ",
        node.value, "`"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      rejection.message(),
      "; compare cluster_id in the cluster file with the one that the node was "
      "started with"));
}

}  // namespace

ControlCall::ControlCall(fabric::Fabric& fabric, Options options,
                         Message request)
    : fabric_(fabric),
      options_(std::move(options)),
      request_(std::move(request)),
      handshake_(options_.credentials) {
  const absl::StatusOr<fabric::ConnectionId> connection = fabric_.Connect(
      options_.address, EncodeHello(options_.hello), options_.deadline);
  Expect(connection.status());
  if (connection.ok()) connection_ = *connection;
}

ControlCall::~ControlCall() {
  if (connection_ != fabric::ConnectionId())
    fabric_.Close(connection_).IgnoreError();
}

void ControlCall::Fail(const absl::Status& why) {
  if (!status_.ok()) return;
  status_ = absl::Status(why.code(),
                         absl::StrCat(options_.address, ": ", why.message()));
  why.ForEachPayload([this](absl::string_view url, const absl::Cord& payload) {
    status_.SetPayload(url, payload);
  });
}

void ControlCall::Expect(const absl::Status& step) {
  if (!step.ok()) Fail(step);
}

bool ControlCall::OnConnectionEvent(const ConnectionEvent& event) {
  if (event.connection != connection_) return false;
  was_answered_ |= event.kind == ConnectionEvent::Kind::kEstablished ||
                   event.kind == ConnectionEvent::Kind::kRejected;
  switch (event.kind) {
    case ConnectionEvent::Kind::kEstablished:
      Expect(Established(event));
      break;
    case ConnectionEvent::Kind::kRejected:
      Fail(WithRemedy(DecodeRejection(event.private_data), options_.node));
      break;
    case ConnectionEvent::Kind::kUnreachable:
      Fail(absl::UnavailableError(
          event.why.empty()
              ? "nobody answers; start the node if it does not run"
              : absl::StrCat("no connection: ", event.why)));
      break;
    case ConnectionEvent::Kind::kDisconnected:
      // A reply may have arrived, and says why. Else its receive fails (FB3).
      if (!is_asked_) Fail(absl::UnavailableError("the connection broke"));
      break;
    case ConnectionEvent::Kind::kRequested:
      break;
  }
  return true;
}

absl::Status ControlCall::Established(const ConnectionEvent& event) {
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckIsNode(
      event.peer_name, options_.hello.cluster_id, options_.node));
  ALPHEUS_ASSIGN_OR_RETURN(server_hello_,
                           DecodeServerHello(event.private_data));
  if (server_hello_->node != options_.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", server_hello_->node.value, " answers, not node ",
                     options_.node.value,
                     "; the cluster file gives this address to another node "
                     "than the one that was started there"));
  }
  if (server_hello_->ring_capacity == 0) {
    return HasNoReplica(options_.node);
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      slots_, replication::MessageSlots::Make(fabric_, 2, kMessageBytesMax));
  if (!handshake_.is_needed()) return Send(Step::kAsk, request_);
  return Send(Step::kChallenge,
              handshake_.Begin(options_.hello, *server_hello_));
}

void ControlCall::Ask(const Message& request) {
  reply_.reset();
  Expect(Send(Step::kAsk, request));
}

// A fabric refuses work on a broken connection: the node is gone.
absl::Status ControlCall::OfConnection(const absl::Status& posted) {
  if (posted.ok()) return posted;
  return absl::UnavailableError(
      absl::StrCat("the connection broke: ", posted.message()));
}

absl::Status ControlCall::Send(Step step, const Message& message) {
  step_ = step;
  asks_deletion_ = std::holds_alternative<AskDeletion>(message);
  ALPHEUS_RETURN_IF_ERROR(OfConnection(fabric_.PostReceive(
      connection_, fabric::WorkId(kReplySlot), slots_->At(kReplySlot))));
  const std::vector<std::byte> bytes =
      EncodeMessage(options_.hello.log_id, message);
  // Each step has its own place: the one before may still be in flight.
  fabric::LocalBytes slot = slots_->At(kRequestSlot);
  slot.bytes =
      slot.bytes.subspan(kStepBytes * static_cast<size_t>(step), bytes.size());
  is_asked_ = true;
  ++sends_in_flight_;
  std::copy(bytes.begin(), bytes.end(), slot.bytes.begin());
  return OfConnection(
      fabric_.PostSend(connection_, fabric::WorkId(kRequestSlot), slot));
}

bool ControlCall::OnCompletion(const fabric::Completion& completion) {
  if (completion.connection != connection_) return false;
  // The request's reply may have arrived: its receive decides.
  const bool is_left_to_the_reply =
      completion.operation == fabric::Operation::kSend && is_asked_ &&
      completion.status == fabric::CompletionStatus::kFlushed;
  if (completion.status != fabric::CompletionStatus::kOk &&
      !is_left_to_the_reply) {
    Fail(absl::UnavailableError(absl::StrCat(
        "the connection broke: ", fabric::OperationName(completion.operation),
        ": ", fabric::CompletionStatusName(completion.status))));
    return true;
  }
  if (completion.operation == fabric::Operation::kSend) --sends_in_flight_;
  if (completion.operation == fabric::Operation::kReceive && !done()) {
    is_asked_ = false;
    Expect(OnReply(slots_->At(kReplySlot).bytes.first(completion.bytes)));
  }
  return true;
}

absl::Status ControlCall::OnReply(std::span<const std::byte> bytes) {
  absl::StatusOr<Message> reply = DecodeMessage(options_.hello.log_id, bytes);
  if (absl::IsInvalidArgument(reply.status())) {
    return absl::DataLossError(absl::StrCat("the node sent ", bytes.size(),
                                            " bytes that are not a reply"));
  }
  ALPHEUS_RETURN_IF_ERROR(reply.status());
  if (std::holds_alternative<Changed>(*reply)) return RequestChanged();
  if (const auto* failed = std::get_if<Failed>(&*reply)) return failed->status;
  return OnReply(*std::move(reply));
}

absl::Status ControlCall::OnReply(Message reply) {
  if (step_ == Step::kAsk) {
    const auto* const state = std::get_if<DeletionState>(&reply);
    if (state != nullptr && state->deletion != Deletion::kNone &&
        !asks_deletion_) {
      return DeletedError("refused", state->deletion);
    }
    reply_ = std::move(reply);
    return absl::OkStatus();
  }
  if (step_ == Step::kProve && std::holds_alternative<Proved>(reply)) {
    return Send(Step::kAsk, request_);
  }
  const auto* challenged = std::get_if<Challenged>(&reply);
  if (step_ == Step::kProve || challenged == nullptr) {
    return absl::DataLossError(
        "the node replied to a proof with a message of another kind. The node "
        "is faulty: see its messages");
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Prove prove, handshake_.Reply(*challenged));
  return Send(Step::kProve, prove);
}

}  // namespace alpheus::recovery
