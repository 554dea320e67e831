// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/trunks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/fabric/tcp/socket_stream.h"

namespace alpheus::fabric::tcp {
namespace {

using Side = TlsSession::Side;

constexpr int64_t kNoDeadline = Deadline().at_nanos();

// Bytes that one turn takes from one trunk, or gives to it.
constexpr size_t kTurnBytesOfTrunk = size_t{1} << 20;

}  // namespace

// --- Connections ------------------------------------------------------------

absl::StatusOr<Trunks::States::iterator> Trunks::BeginTo(
    std::string_view address, uint32_t group, int64_t now) {
  absl::StatusOr<Descriptor> socket =
      StartConnect(address, shared_.options.source_host);
  if (absl::IsInvalidArgument(socket.status())) return socket.status();
  // A failure at once is reported as kUnreachable, like a later one.
  const ConnectionId id = connections_.NewId();
  auto stream = std::make_unique<SocketStream>(
      socket.ok() ? *std::move(socket) : Descriptor(), shared_.tls,
      Side::kConnects, shared_.poller, id.value, shared_.counters);
  auto trunk = std::make_shared<Trunk>(std::move(stream), Side::kConnects,
                                       std::string(address), group);
  return trunks_
      .emplace(id, State{.trunk = std::move(trunk),
                         .tls = shared_.tls,
                         .deadline = now + shared_.options.limits.retry_ns,
                         .is_authenticated = true})
      .first;
}

absl::StatusOr<Trunks::States::iterator> Trunks::TrunkFor(
    std::string_view address, uint32_t group, int64_t now) {
  const auto leads_there = [address](const Trunk& trunk) {
    return trunk.connects() && trunk.peer() == address;
  };
  uint32_t adapters = 0;  // as the youngest trunk knows it
  for (const auto& [id, state] : trunks_) {
    const Trunk& trunk = *state.trunk;
    if (leads_there(trunk) && trunk.adapters() > 0) adapters = trunk.adapters();
  }
  // Without an answer it may carry any group, or, if other trunks have heard
  // one, those that it should.
  const auto may_carry = [&](const Trunk& trunk) {
    return trunk.adapters() == 0 &&
           (adapters == 0 ||
            AdapterOf(group, adapters) == AdapterOf(trunk.group(), adapters));
  };
  auto found = trunks_.end();
  for (auto one = trunks_.begin(); one != trunks_.end(); ++one) {
    const Trunk& trunk = *one->second.trunk;
    const bool is_current = one->second.tls == shared_.tls;  // TRK7
    if (!leads_there(trunk) || !is_current || !trunk.HasRoomForLane()) continue;
    if (trunk.Carries(group)) return one;
    if (may_carry(trunk)) found = one;
  }
  if (found != trunks_.end()) return found;
  return BeginTo(address, group, now);
}

absl::StatusOr<ConnectionId> Trunks::Connect(std::string_view address,
                                             std::string_view private_data,
                                             Deadline deadline, int64_t now) {
  const uint32_t group = shared_.GroupOf(private_data).value_or(0);
  ALPHEUS_ASSIGN_OR_RETURN(const auto own, TrunkFor(address, group, now));
  State& state = own->second;
  const ConnectionId id = connections_.NewId();
  trunk_of_[id] = own->first;
  connections_.AddLane(id, state.trunk->OpenLane(id, group),
                       state.trunk->peer(), std::string(private_data),
                       deadline);
  if (!state.was_ready) return id;
  state.deadline = kNoDeadline;
  connections_.OnReady(id, now);
  SendOne(state, now);
  return id;
}

void Trunks::Begin(ConnectionId id, Connection::Departure start,
                   const std::string& peer, int64_t now) {
  const auto trunk = std::make_shared<Trunk>(std::move(start.stream),
                                             Side::kAccepts, peer, start.group);
  // Another adapter's settings may have been older.
  const bool is_encrypted = shared_.tls != nullptr;
  if (is_encrypted && trunk->stream().FailIfRevoked(*shared_.tls)) {
    NoteRejected(*trunk, UnauthenticatedEnd::kNotTrusted,
                 trunk->stream().failure());
    return;
  }
  trunks_.emplace(id, State{.trunk = trunk,
                            .deadline = now + shared_.options.limits.retry_ns,
                            .was_ready = true});
  Guard(id, now, [&] {
    bool moved = false;
    if (Take(id, start.bytes, now, &moved)) ReceiveSome(id, now);
  });
}

void Trunks::OnEstablished(ConnectionId connection) {
  const auto found = trunk_of_.find(connection);
  if (found == trunk_of_.end()) return;
  trunks_.at(found->second).is_authenticated = true;
}

void Trunks::OnSilence(ConnectionId connection) {
  const auto found = trunk_of_.find(connection);
  if (found == trunk_of_.end()) return;
  trunks_.at(found->second).trunk->Retire();
}

void Trunks::OnForgotten(ConnectionId connection) {
  trunk_of_.erase(connection);
}

// --- Receiving --------------------------------------------------------------

bool Trunks::IsReady(ConnectionId id) const {
  const auto found = trunks_.find(id);
  return found != trunks_.end() && found->second.was_ready;
}

void Trunks::Guard(ConnectionId id, int64_t now,
                   absl::FunctionRef<void()> work) {
  const absl::Status status = WithinMemory([&] {
    work();
    return absl::OkStatus();
  });
  if (!status.ok() && Has(id)) End(id, now);
}

bool Trunks::Receive(ConnectionId id, int64_t now) {
  bool moved = true;
  Guard(id, now, [&] { moved = ReceiveSome(id, now); });
  return moved;
}

bool Trunks::ReceiveSome(ConnectionId id, int64_t now) {
  State& state = trunks_.at(id);
  bool moved = !state.was_ready;
  if (!state.was_ready && !MakeReady(id, state, now)) return true;
  // It may end in the midst of what arrives.
  const std::shared_ptr<Trunk> trunk = state.trunk;
  size_t turn_bytes = 0;
  while (turn_bytes < kTurnBytesOfTrunk && trunk->MayBeRead()) {
    const IoResult result = trunk->stream().Receive(shared_.buffer);
    if (result.outcome == IoOutcome::kNothing) break;
    if (result.outcome == IoOutcome::kClosed) return End(id, now) || moved;
    turn_bytes += result.bytes;
    const auto bytes = shared_.buffer.first(result.bytes);
    if (!Take(id, bytes, now, &moved)) return true;
    if (trunk->stream().HasDrained(result.bytes, shared_.buffer.size())) break;
  }
  return moved;
}

bool Trunks::MakeReady(ConnectionId id, State& state, int64_t now) {
  Stream& stream = state.trunk->stream();
  switch (stream.MakeReady()) {
    case TlsSession::Progress::kWaiting:
      state.trunk->Watch();
      return false;
    case TlsSession::Progress::kFailed:
      End(id, now);
      return false;
    case TlsSession::Progress::kDone:
      break;
  }
  // Other settings may be in use since the handshake began.
  if (shared_.tls != nullptr && stream.FailIfRevoked(*shared_.tls)) {
    NoteRejected(*state.trunk, UnauthenticatedEnd::kNotTrusted,
                 stream.failure());
    End(id, now);
    return false;
  }
  shared_.counters.offloaded += stream.is_offloaded() ? 1 : 0;
  state.was_ready = true;
  state.deadline = kNoDeadline;
  for (const ConnectionId lane : state.trunk->connections()) {
    connections_.OnReady(lane, now);
  }
  return true;
}

// Returns false if the trunk has ended: they are malformed, or it made room.
bool Trunks::Take(ConnectionId id, std::span<const std::byte> bytes,
                  int64_t now, bool* moved) {
  const std::shared_ptr<Trunk> trunk = trunks_.at(id).trunk;
  const auto give = [&](const Trunk::Arrival& arrival) {
    *moved |= OnArrival(id, arrival, now);
  };
  const bool awaited_answer = trunk->connects() && trunk->adapters() == 0;
  const bool is_good = trunk->Take(bytes, give);
  if (!Has(id)) return false;
  if (is_good) {
    if (awaited_answer && trunk->adapters() > 0) OnAnswer(trunk, now);
    return true;
  }
  NoteRejected(*trunk, UnauthenticatedEnd::kNotUnderstood, "");
  End(id, now);
  return false;
}

void Trunks::OnAnswer(const std::shared_ptr<Trunk>& trunk, int64_t now) {
  for (const Trunk::HeldLane& held : trunk->TakeHeld()) {
    const auto of = trunk_of_.find(held.connection);
    if (of == trunk_of_.end()) continue;  // it has ended meanwhile
    if (trunk->Carries(held.group)) {
      connections_.OnReady(held.connection, now);
      continue;
    }
    const ConnectionId before = of->second;
    const auto own = TrunkFor(trunk->peer(), held.group, now);
    if (!own.ok() || !(*own)->second.trunk->is_open()) {
      connections_.OnEnd(held.connection, now);
      continue;
    }
    State& state = (*own)->second;
    trunk->MoveLane(held.connection, *state.trunk);
    of->second = (*own)->first;
    if (trunk->lanes() == 0) trunks_.at(before).deadline = now;
    if (!state.was_ready) continue;
    state.deadline = kNoDeadline;
    connections_.OnReady(held.connection, now);
  }
}

bool Trunks::OnArrival(ConnectionId id, const Trunk::Arrival& arrival,
                       int64_t now) {
  const ConnectionId connection = arrival.connection;
  if (connection == ConnectionId()) return OnNewLane(id, arrival.number, now);
  if (!arrival.is_end) {
    return connections_.OnBytes(connection, arrival.bytes, now);
  }
  if (!arrival.is_answered) trunks_.at(id).trunk->Retire();  // TRK6
  return connections_.OnEnd(connection, now);
}

bool Trunks::OnNewLane(ConnectionId id, uint32_t number, int64_t now) {
  connections_.PrepareForPeer(now);
  const auto state = trunks_.find(id);
  if (state == trunks_.end()) return true;  // it was what made room
  Trunk& trunk = *state->second.trunk;
  // TRK7.
  if (shared_.tls != nullptr && !trunk.stream().IsTrustedBy(*shared_.tls)) {
    NoteRejected(trunk, UnauthenticatedEnd::kNotTrusted,
                 absl::StrCat("the certificate of ", trunk.stream().peer_name(),
                              " is good no more"));
    trunk.RefuseLane(number);
    return true;
  }
  const ConnectionId lane = connections_.NewId();
  state->second.deadline = kNoDeadline;
  trunk_of_[lane] = id;
  const int64_t until = now + shared_.options.limits.retry_ns;
  connections_.AddLane(lane, trunk.AcceptLane(number, lane), trunk.peer(),
                       std::nullopt, Deadline::AtNanos(until));
  return true;
}

// --- Sending ----------------------------------------------------------------

void Trunks::Send(int64_t now) {
  for (auto& [id, state] : trunks_) {
    SendOne(state, now);
    EndIfEmpty(state, now);
  }
}

// A trunk without lanes goes: at once at the side that made it, a little later
// at the other side, where a new lane may be on its way. Its connections may be
// there still, which are broken.
void Trunks::EndIfEmpty(State& state, int64_t now) {
  if (state.trunk->lanes() > 0) return;
  if (state.trunk->connects()) {
    state.deadline = std::min(state.deadline, now);
  } else if (state.deadline == kNoDeadline) {
    state.deadline = now + shared_.options.limits.retry_ns;
  }
}

void Trunks::SendOne(State& state, int64_t now) {
  Trunk& trunk = *state.trunk;
  const auto has_work = [&trunk] {
    return trunk.has_unsent() || trunk.has_senders() || trunk.waiting() > 0;
  };
  if (!state.was_ready || !has_work()) return;
  size_t rounds = kTurnBytesOfTrunk / Trunk::kUnsentBytesMax;
  for (bool goes_on = true; goes_on && rounds > 0; --rounds) {
    goes_on = trunk.Flush();
    if (goes_on) {
      for (const ConnectionId id : trunk.TakeSenders()) {
        connections_.OnSent(id, now);
      }
    }
    for (size_t waiting = trunk.waiting(); waiting > 0; --waiting) {
      goes_on |= trunk.LetNextSend([this, now](ConnectionId next) {
        return connections_.OnRoom(next, now);
      });
    }
    goes_on &= has_work();
  }
  trunk.Watch();
}

// --- Ends -------------------------------------------------------------------

bool Trunks::RunTimers(int64_t now) {
  bool moved = false;
  std::vector<ConnectionId> due;
  for (auto& [id, state] : trunks_) {
    if (now < state.deadline) continue;
    if (state.was_ready || state.trunk->lanes() == 0) {
      due.push_back(id);
    } else {
      // TRK6. Each of its lanes has a deadline of its own.
      state.trunk->Retire();
      state.deadline = kNoDeadline;
    }
  }
  for (const ConnectionId id : due) {
    const State& state = trunks_.at(id);
    if (!state.is_authenticated) {
      NoteRejected(*state.trunk, UnauthenticatedEnd::kSaidNothing, "");
    }
    moved |= End(id, now);
  }
  return moved;
}

int64_t Trunks::NextTimer() const {
  int64_t next = kNoDeadline;
  for (const auto& [id, state] : trunks_) next = std::min(next, state.deadline);
  return next;
}

bool Trunks::EndRevoked(const TlsSettings& settings, int64_t now) {
  std::vector<ConnectionId> revoked;
  for (const auto& [id, state] : trunks_) {
    Stream& stream = state.trunk->stream();
    if (state.was_ready && stream.is_open() && stream.FailIfRevoked(settings)) {
      revoked.push_back(id);
    }
  }
  for (const ConnectionId id : revoked) {
    const Trunk& trunk = *trunks_.at(id).trunk;
    NoteRejected(trunk, UnauthenticatedEnd::kNotTrusted,
                 trunk.stream().failure());
    End(id, now);
  }
  return !revoked.empty();
}

void Trunks::ForEachUnauthenticated(
    absl::FunctionRef<void(ConnectionId id, const std::string& peer)> visit)
    const {
  for (const auto& [id, state] : trunks_) {
    if (!state.is_authenticated) visit(id, state.trunk->peer());
  }
}

void Trunks::MakeRoom(ConnectionId id, int64_t now) {
  NoteRejected(*trunks_.at(id).trunk, UnauthenticatedEnd::kSaidNothing, "");
  End(id, now);
}

bool Trunks::End(ConnectionId id, int64_t now) {
  trunks_.at(id).trunk->End();
  trunks_.erase(id);
  std::vector<ConnectionId> lanes;
  for (const auto& [connection, trunk] : trunk_of_) {
    if (trunk == id) lanes.push_back(connection);
  }
  for (const ConnectionId lane : lanes) trunk_of_.erase(lane);
  bool moved = false;
  for (const ConnectionId lane : lanes) moved |= connections_.OnEnd(lane, now);
  return moved;
}

void Trunks::NoteRejected(const Trunk& trunk, UnauthenticatedEnd why,
                          std::string_view detail) {
  ++shared_.counters.rejected;
  if (shared_.options.on_rejected) {
    shared_.options.on_rejected(trunk.peer(), why, detail);
  }
}

}  // namespace alpheus::fabric::tcp
