// SPDX-License-Identifier: Apache-2.0
// How a connection begins: hello, and accept or reject.
#include <algorithm>
#include <utility>

#include "log/base/bytes.h"
#include "replication/fabric/tcp/connection.h"

namespace alpheus::tcp {

bool Connection::FinishConnecting(int64_t now) {
  if (!socket_.is_open() || !HasConnected(socket_)) {
    Break(CompletionStatus::kFlushed, now);
    return true;
  }
  Greet(now);
  return true;
}

void Connection::Greet(int64_t now) {
  state_ = State::kGreeting;
  AppendHandshake(WireOpcode::kHello, *private_data_);
  Flush(now);
}

void Connection::AppendHandshake(WireOpcode opcode,
                                 std::string_view private_data) {
  const Fabric::Limits& limits = shared_.options.limits;
  const size_t hello_bytes =
      opcode == WireOpcode::kReject ? 0 : kWireHelloBytes;
  outbox_.Append(EncodeHeader({.opcode = opcode,
                               .immediate = kWireVersion,
                               .length = hello_bytes + private_data.size(),
                               .key = 0,
                               .offset = 0,
                               .sequence = 0}));
  if (hello_bytes > 0) {
    outbox_.Append(EncodeHello({.sends_max = limits.sends_max,
                                .receives_max = limits.receives_max,
                                .message_bytes_max = limits.message_bytes_max,
                                .window_bytes = shared_.options.window_bytes}));
  }
  if (!private_data.empty()) outbox_.Append(AsBytes(private_data));
}

bool Connection::OnHandshakeHeader(const WireHeader& header) {
  switch (state_) {
    case State::kAnonymous:
      return header.opcode == WireOpcode::kHello;
    case State::kGreeting:
      return header.opcode == WireOpcode::kAccept ||
             header.opcode == WireOpcode::kReject;
    default:
      return false;
  }
}

void Connection::OnHandshake(int64_t now) {
  std::string_view private_data = AsText(handshake_);
  if (header_.opcode == WireOpcode::kReject) {
    AddEvent(ConnectionEvent::Kind::kRejected, std::string(private_data));
    Close(now);
    state_ = State::kBroken;
    return;
  }
  const std::optional<WireHello> hello = DecodeHello(handshake_);
  if (!hello) return Break(CompletionStatus::kFlushed, now);
  TakeLimits(*hello);
  private_data.remove_prefix(kWireHelloBytes);
  deadline_ = kNever;
  const bool is_own = state_ == State::kGreeting;
  state_ = is_own ? State::kEstablished : State::kRequested;
  AddEvent(is_own ? ConnectionEvent::Kind::kEstablished
                  : ConnectionEvent::Kind::kRequested,
           std::string(private_data));
  handshake_ = {};
}

void Connection::TakeLimits(const WireHello& hello) {
  message_bytes_max_ = std::min(message_bytes_max_, hello.message_bytes_max);
  requester_.set_window_bytes(hello.window_bytes);
}

void Connection::Accept(std::string_view private_data, int64_t now) {
  AppendHandshake(WireOpcode::kAccept, private_data);
  state_ = State::kEstablished;
  heard_at_ = now;
  AddEvent(ConnectionEvent::Kind::kEstablished, "");
  Flush(now);
}

void Connection::Reject(std::string_view private_data, int64_t now) {
  AppendHandshake(WireOpcode::kReject, private_data);
  responder_.Fail();
  StartLinger(now);
  state_ = lingers_ ? State::kLingering : State::kDead;
}

}  // namespace alpheus::tcp
