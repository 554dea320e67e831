// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/socket_stream.h"

#include <utility>

namespace alpheus::fabric::tcp {

SocketStream::SocketStream(Descriptor socket,
                           std::shared_ptr<const TlsSettings> tls, Side side,
                           Poller& poller, uint64_t tag,
                           TcpFabricCounters& counters)
    : socket_(std::move(socket)),
      poller_(&poller),
      counters_(&counters),
      tag_(tag),
      settings_(std::move(tls)),
      session_(settings_ == nullptr
                   ? nullptr
                   : std::make_unique<TlsSession>(*settings_, socket_, side)),
      has_connected_(side == Side::kAccepts),
      is_ready_(has_connected_ && session_ == nullptr),
      watches_out_(!has_connected_) {
  if (!socket_.is_open()) return;
  if (!poller_->Add(socket_, tag_, watches_in_, watches_out_).ok()) {
    Close();  // no peer would be heard
  }
}

void SocketStream::Close() { socket_ = Descriptor(); }

TlsSession::Progress SocketStream::MakeReady() {
  if (is_ready_) return TlsSession::Progress::kDone;
  if (!has_connected_ && !HasConnected(socket_)) {
    return TlsSession::Progress::kFailed;
  }
  has_connected_ = true;
  const TlsSession::Progress progress =
      session_ == nullptr ? TlsSession::Progress::kDone : session_->Shake();
  is_ready_ = progress == TlsSession::Progress::kDone;
  return progress;
}

std::string SocketStream::peer_name() const {
  return session_ == nullptr ? "" : session_->peer_name();
}

std::string SocketStream::failure() const {
  return session_ == nullptr ? "" : session_->failure();
}

bool SocketStream::has_ended() const {
  return session_ != nullptr && session_->has_ended();
}

bool SocketStream::FailIfRevoked(const TlsSettings& now) {
  return settings_.get() != &now && session_->FailIfRevoked(now);
}

bool SocketStream::IsTrustedBy(const TlsSettings& now) const {
  return settings_.get() == &now || session_->IsTrustedBy(now);
}

bool SocketStream::is_offloaded() const {
  return session_ != nullptr && session_->is_offloaded();
}

IoResult SocketStream::Send(std::span<iovec> from) {
  ++counters_->send_calls;
  if (session_ != nullptr) return session_->Send(from);
  const IoResult result = SendSome(socket_, from);
  sent_bytes_ += result.bytes;
  return result;
}

bool SocketStream::has_unsent() const {
  return session_ != nullptr && session_->has_unsent();
}

void SocketStream::Flush() {
  if (session_ != nullptr) session_->Flush();
}

uint64_t SocketStream::sent_bytes() const {
  return session_ == nullptr ? sent_bytes_ : session_->sent_bytes();
}

void SocketStream::EndSending() { tcp::EndSending(socket_); }

IoResult SocketStream::Receive(std::span<std::byte> into) {
  ++counters_->receive_calls;
  return session_ == nullptr ? ReceiveSome(socket_, into)
                             : session_->Receive(into);
}

bool SocketStream::has_unread() const {
  return session_ != nullptr && session_->has_unread();
}

bool SocketStream::HasDrained(size_t received, size_t room) const {
  return session_ == nullptr ? received < room : session_->has_drained();
}

void SocketStream::Watch(bool in, bool out) {
  // Bytes that were read ahead make no socket ready. So the socket is watched
  // for room, which it has: the next turn reads on.
  out |= !has_connected_ || has_unsent() || (in && has_unread());
  if (!is_open() || (in == watches_in_ && out == watches_out_)) return;
  watches_in_ = in;
  watches_out_ = out;
  poller_->Change(socket_, tag_, in, out);
}

void SocketStream::LeaveAdapter() {
  if (is_open()) poller_->Remove(socket_);
  poller_ = nullptr;
  counters_ = nullptr;
}

void SocketStream::JoinAdapter(Poller& poller, uint64_t tag,
                               TcpFabricCounters& counters) {
  poller_ = &poller;
  counters_ = &counters;
  tag_ = tag;
  watches_in_ = true;
  watches_out_ = has_unsent() || has_unread();
  if (!is_open()) return;
  if (!poller_->Add(socket_, tag_, watches_in_, watches_out_).ok()) Close();
}

}  // namespace alpheus::fabric::tcp
