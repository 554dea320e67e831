// SPDX-License-Identifier: Apache-2.0
// How a connection ends, and how silence is told from idleness.
#include <algorithm>
#include <utility>

#include "replication/fabric/tcp/connection.h"

namespace alpheus::tcp {
namespace {

// The most time that is charged between two looks, where `wait_ns` is waited
// for (TCN3): four or five looks for a peer that is gone, and few wake-ups.
constexpr int64_t LookNanos(int64_t wait_ns) { return wait_ns / 4; }

}  // namespace

// --- Time -------------------------------------------------------------------

bool Connection::HearsSilence() const {
  switch (state_) {
    case State::kConnecting:
    case State::kGreeting:
      return deadline_ == kNever;  // else the deadline decides
    case State::kRequested:
    case State::kEstablished:
      return true;
    default:
      return false;
  }
}

int64_t Connection::NextDue() const {
  if (!HearsSilence()) return deadline_;
  const int64_t retry = shared_.options.limits.retry_ns;
  int64_t next =
      asked_at_ == kNever ? heard_at_ + retry / 4 : asked_at_ + retry;
  if (stalled_at_ != kNever) next = std::min(next, stalled_at_ + retry);
  if (parked_at_ != kNever) {
    next = std::min(next, parked_at_ + shared_.options.receiver_wait_ns);
  }
  return next;
}

int64_t Connection::next_timer() const {
  int64_t next = NextDue();
  if (!HearsSilence()) return next;
  if (asked_at_ != kNever || stalled_at_ != kNever) {
    next = std::min(
        next, shared_.looked_at + LookNanos(shared_.options.limits.retry_ns));
  }
  if (parked_at_ != kNever) {
    next = std::min(
        next, shared_.looked_at + LookNanos(shared_.options.receiver_wait_ns));
  }
  return next;
}

void Connection::ExcuseOwnPause(int64_t now) {
  const auto excuse = [&](int64_t wait_ns, int64_t* since) {
    if (*since == kNever) return;
    // A wait that began after the last look has lasted only since then.
    const int64_t passed = now - std::max(*since, shared_.looked_at);
    *since += std::max<int64_t>(0, passed - LookNanos(wait_ns));
  };
  excuse(shared_.options.limits.retry_ns, &asked_at_);
  excuse(shared_.options.limits.retry_ns, &stalled_at_);
  excuse(shared_.options.receiver_wait_ns, &parked_at_);
}

bool Connection::OnTimers(int64_t now) {
  ExcuseOwnPause(now);
  if (now < NextDue()) return false;
  if (lingers_) {
    DropSocket();
    return true;
  }
  if (!HearsSilence()) {
    if (state_ == State::kAnonymous) NoteRefused(StrangerEnd::kSaidNothing);
    Break(CompletionStatus::kFlushed, now);
    return true;
  }
  if (parked_at_ != kNever &&
      now >= parked_at_ + shared_.options.receiver_wait_ns) {
    responder_.GiveUpParked();
    CheckResponder(now);
    return true;
  }
  if (stalled_at_ != kNever &&
      now >= stalled_at_ + shared_.options.limits.retry_ns) {
    Break(CompletionStatus::kPeerGone, now);  // TCN4
    return true;
  }
  if (asked_at_ != kNever) {
    if (now < asked_at_ + shared_.options.limits.retry_ns) return false;
    Break(CompletionStatus::kPeerGone, now);
    return true;
  }
  // TCP's handshake asks by itself.
  if (responder_.is_in_reply()) {
    is_ping_due_ = true;
  } else if (state_ != State::kConnecting) {
    AppendKeepAlive(WireOpcode::kPing);
  }
  Asked(now);
  Flush(now);
  return false;
}

// --- Ends -------------------------------------------------------------------

void Connection::AddEvent(ConnectionEvent::Kind kind,
                          std::string private_data) {
  shared_.events.push_back({.kind = kind,
                            .connection = id_,
                            .private_data = std::move(private_data),
                            .peer = peer_});
}

void Connection::Break(CompletionStatus first, int64_t) {
  DropSocket();
  switch (std::exchange(state_, State::kBroken)) {
    case State::kAnonymous:
    case State::kLingering:
    case State::kDead:
      state_ = State::kDead;
      return;
    case State::kBroken:
      return;
    case State::kConnecting:
    case State::kGreeting:
      AddEvent(ConnectionEvent::Kind::kUnreachable, "");
      break;
    case State::kRequested:
    case State::kEstablished:
      AddEvent(ConnectionEvent::Kind::kDisconnected, "");
      break;
  }
  requester_.Fail(first);
  responder_.Fail();
}

void Connection::BreakWithNak(WireFailure failure, int64_t now) {
  AppendControl(WireOpcode::kNak, responder_.executed() + 1,
                static_cast<uint32_t>(failure));
  state_ = State::kBroken;
  AddEvent(ConnectionEvent::Kind::kDisconnected, "");
  StartLinger(now);
  requester_.Fail(CompletionStatus::kFlushed);
  responder_.Fail();
}

void Connection::Close(int64_t now) {
  if (lingers_) {
    state_ = State::kLingering;
    return;
  }
  if (state_ == State::kRequested) return Reject("", now);
  if (is_established()) {
    Send(now);  // last answers
  }
  DropSocket();
  state_ = State::kDead;
  requester_.Fail(CompletionStatus::kFlushed);
  responder_.Fail();
}

void Connection::NoteRefused(StrangerEnd why) {
  ++shared_.counters.refused;
  if (shared_.options.on_refused) shared_.options.on_refused(peer_, why);
}

void Connection::MakeRoom() {
  if (state_ == State::kAnonymous) NoteRefused(StrangerEnd::kSaidNothing);
  DropSocket();
  state_ = State::kDead;
}

void Connection::StartLinger(int64_t now) {
  lingers_ = true;
  deadline_ = now + shared_.options.limits.retry_ns;
  if (!outbox_.CopyReferences(shared_.regions)) return DropSocket();
  Flush(now);
}

void Connection::DropSocket() {
  lingers_ = false;
  deadline_ = kNever;
  socket_ = Descriptor();
  if (state_ == State::kLingering) state_ = State::kDead;
}

}  // namespace alpheus::tcp
