// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/lane.h"

namespace alpheus::fabric::tcp {

bool Lane::is_open() const { return !is_closed_ && trunk_->is_open(); }

void Lane::Close() {
  if (!is_closed_) trunk_->CloseLane(connection_);
  is_closed_ = true;
}

TlsSession::Progress Lane::MakeReady() {
  if (!trunk_->is_open()) return TlsSession::Progress::kFailed;
  return is_ready() ? TlsSession::Progress::kDone
                    : TlsSession::Progress::kWaiting;
}

std::string Lane::peer_name() const { return trunk_->stream_->peer_name(); }

std::string Lane::failure() const { return trunk_->stream_->failure(); }

bool Lane::has_ended() const { return trunk_->stream_->has_ended(); }

bool Lane::IsTrustedBy(const TlsSettings& now) const {
  return trunk_->stream_->IsTrustedBy(now);
}

IoResult Lane::Send(std::span<iovec> from) {
  Trunk::LaneState* const state = trunk_->Find(connection_);
  if (state == nullptr || state->has_ended || !trunk_->is_open()) {
    return {.outcome = IoOutcome::kClosed};
  }
  return trunk_->Send(connection_, *state, from);
}

bool Lane::has_unsent() const {
  const Trunk::LaneState* const state = trunk_->Find(connection_);
  return state != nullptr && trunk_->IsUnsent(*state);
}

uint64_t Lane::sent_bytes() const { return trunk_->stream_->sent_bytes(); }

void Lane::EndSending() {
  Trunk::LaneState* const state = trunk_->Find(connection_);
  if (state != nullptr) trunk_->EndSending(*state);
}

IoResult Lane::Receive(std::span<std::byte> /*into*/) { return {}; }

bool Lane::HasDrained(size_t /*received*/, size_t /*room*/) const {
  return true;
}

void Lane::Watch(bool in, bool out) {
  Trunk::LaneState* const state = trunk_->Find(connection_);
  if (state == nullptr) return;
  trunk_->SetReadable(*state, in);
  if (out && is_ready()) trunk_->AwaitRoom(connection_);
}

}  // namespace alpheus::fabric::tcp
