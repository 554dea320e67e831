// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/stream.h"

#include <algorithm>
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

Stream::Stream(std::shared_ptr<Carrier> carrier, uint32_t lane)
    : is_ready_(true),
      carrier_(std::move(carrier)),
      lane_(lane),
      is_lane_open_(carrier_ != nullptr) {}

void Stream::Close() {
  socket_ = Descriptor();
  if (!std::exchange(is_lane_open_, false)) return;
  if (carrier_->socket.is_open()) carrier_->Append(lane_, {}, 0);
  carrier_->lanes.erase(lane_);
}

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

bool Stream::is_offloaded() const {
  return session_ != nullptr && session_->is_offloaded();
}

IoResult Stream::Send(std::span<iovec> from) {
  if (session_ != nullptr) return session_->Send(from);
  if (carrier_ != nullptr) {
    size_t bytes = 0;
    for (const iovec& piece : from) bytes += piece.iov_len;
    carrier_->Append(lane_, from, bytes);
    sent_bytes_ += bytes;
    return {IoOutcome::kSome, bytes};
  }
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

void Stream::EndSending() {
  if (carrier_ != nullptr) return carrier_->Append(lane_, {}, 0);
  tcp::EndSending(socket_);
}

IoResult Stream::Receive(std::span<std::byte> into) {
  if (carrier_ != nullptr) {
    const auto found = carrier_->lanes.find(lane_);
    if (found == carrier_->lanes.end()) return {IoOutcome::kClosed, 0};
    Lane& lane = found->second;
    const size_t bytes = std::min(into.size(), lane.in.size() - lane.read);
    if (bytes == 0) {
      return {lane.ended ? IoOutcome::kClosed : IoOutcome::kNothing, 0};
    }
    std::memcpy(into.data(), lane.in.data() + lane.read, bytes);
    lane.read += bytes;
    if (lane.read == lane.in.size()) {
      lane.in.clear();
      lane.read = 0;
    }
    return {IoOutcome::kSome, bytes};
  }
  return session_ == nullptr ? ReceiveSome(socket_, into)
                             : session_->Receive(into);
}

bool Stream::has_unread() const {
  return session_ != nullptr && session_->has_unread();
}

bool Stream::HasDrained(size_t received, size_t room) const {
  if (carrier_ != nullptr) {
    const auto found = carrier_->lanes.find(lane_);
    return found != carrier_->lanes.end() && found->second.in.empty() &&
           !found->second.ended;
  }
  return session_ == nullptr ? received < room : session_->has_drained();
}

}  // namespace alpheus::fabric::tcp
