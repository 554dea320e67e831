// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/stream.h"

#include <utility>

namespace alpheus::fabric::tcp {

Stream::Stream(Descriptor socket, std::shared_ptr<const TlsSettings> tls,
               TlsSession::Side side)
    : socket_(std::move(socket)),
      settings_(std::move(tls)),
      session_(settings_ == nullptr
                   ? nullptr
                   : std::make_unique<TlsSession>(*settings_, socket_, side)),
      is_ready_(session_ == nullptr) {}

void Stream::Close() { socket_ = Descriptor(); }

TlsSession::Progress Stream::MakeReady() {
  if (is_ready_) return TlsSession::Progress::kDone;
  const TlsSession::Progress progress = session_->Shake();
  is_ready_ = progress == TlsSession::Progress::kDone;
  return progress;
}

std::string Stream::peer_name() const {
  return session_ == nullptr ? "" : session_->peer_name();
}

std::string Stream::failure() const {
  return session_ == nullptr ? "" : session_->failure();
}

bool Stream::has_ended() const {
  return session_ != nullptr && session_->has_ended();
}

bool Stream::FailIfRevoked(const TlsSettings& now) {
  return settings_.get() != &now && session_->FailIfRevoked(now);
}

bool Stream::is_offloaded() const {
  return session_ != nullptr && session_->is_offloaded();
}

IoResult Stream::Send(std::span<iovec> from) {
  if (session_ != nullptr) return session_->Send(from);
  const IoResult result = SendSome(socket_, from);
  sent_bytes_ += result.bytes;
  return result;
}

bool Stream::has_unsent() const {
  return session_ != nullptr && session_->has_unsent();
}

void Stream::Flush() {
  if (session_ != nullptr) session_->Flush();
}

uint64_t Stream::sent_bytes() const {
  return session_ == nullptr ? sent_bytes_ : session_->sent_bytes();
}

void Stream::EndSending() { tcp::EndSending(socket_); }

IoResult Stream::Receive(std::span<std::byte> into) {
  return session_ == nullptr ? ReceiveSome(socket_, into)
                             : session_->Receive(into);
}

bool Stream::has_unread() const {
  return session_ != nullptr && session_->has_unread();
}

bool Stream::HasDrained(size_t received, size_t room) const {
  return session_ == nullptr ? received < room : session_->has_drained();
}

}  // namespace alpheus::fabric::tcp
