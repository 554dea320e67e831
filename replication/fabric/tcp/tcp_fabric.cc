// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/tcp_fabric.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/tcp/tcp_fabric_lock.h"
#include "replication/fabric/work_request.h"

namespace alpheus::fabric::tcp {
namespace {

// Bytes of the receive buffer: large enough for few system calls, small enough
// for the cache.
constexpr size_t kBufferBytes = size_t{256} << 10;

// One of this many turns asks epoll although there is a single connection, for
// peers that want to connect: they can wait for some microseconds.
constexpr uint32_t kLoneTurnsMax = 64;

// Nanoseconds for which a polling thread delays answers (TF4): time to persist
// what came and to hear from another backup, little beside the wake-up of a
// sleeping peer.
constexpr int64_t kDelayNanos = 20'000;

// Nanoseconds until the listener is checked again when descriptors have run
// out: short for waiting peers, and no load.
constexpr int64_t kAcceptPauseNanos = 50'000'000;

// Connections that one turn receives from. A turn's answers leave at its end,
// so that with more of them all peers would wait for the last one's request,
// and then all be answered at once. With fewer, epoll would be asked for each.
constexpr size_t kReadyMax = 8;
// The same for a turn that checks timers.
constexpr size_t kReadyAtTickMax = 63;

// Bytes that one turn takes from one trunk, or gives to it.
constexpr size_t kTrunkTurnBytes = size_t{1} << 20;

constexpr int64_t kNever = Deadline().at_nanos();

// Posts in a row that are sent without waiting for Poll.
constexpr size_t kBatchMax = 64;

}  // namespace

TcpFabric::TcpFabric(const TcpFabricOptions& options, const Clock& clock,
                     RandomSource& random)
    : options_(options),
      clock_(clock),
      regions_(random),
      buffer_(kBufferBytes),
      shared_{options_, regions_, poller_, counters_, buffer_, {}, {}} {}

TcpFabric::~TcpFabric() = default;

// --- Memory -----------------------------------------------------------------

absl::StatusOr<RegionKey> TcpFabric::Register(std::span<std::byte> bytes,
                                              RemoteAccess access) {
  Lock lock(*this);
  return regions_.Register(bytes, access);
}

absl::Status TcpFabric::Deregister(RegionKey key) {
  Lock lock(*this);  // TF1
  return regions_.Deregister(key);
}

// --- Posting ----------------------------------------------------------------

absl::Status TcpFabric::CheckPost(ConnectionId id, const WorkRequest& request) {
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (!connection->is_established()) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", id.value, " to ", connection->peer(),
                     " is not established, or broken; see its events"));
  }
  if (connection->requester().posted() >= options_.limits.sends_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "connection ", id.value, ": ", options_.limits.sends_max,
        " sends are posted and not completed; poll for completions first"));
  }
  if (!request.local.bytes.empty()) {
    ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(request.local));
  }
  return CheckWorkRequest(request, connection->message_bytes_max());
}

absl::Status TcpFabric::Post(ConnectionId id, const WorkRequest& request) {
  Lock lock(*this);
  ALPHEUS_RETURN_IF_ERROR(CheckPost(id, request));
  Connection& connection = *Find(id);
  connection.requester().Post(request);
  // A waiting thread won't poll until something comes.
  if (waiters_ > 0 || connection.requester().unsent() >= kBatchMax) {
    const int64_t now = clock_.NowNanos();
    connection.Send(now);
    SendTrunks(now);
    if (HasNews()) WakeWaiters();
  } else {
    MarkForSending(id);
  }
  return absl::OkStatus();
}

absl::Status TcpFabric::PostReceive(ConnectionId id, WorkId work,
                                    LocalBytes into) {
  Lock lock(*this);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (connection->state() == Connection::State::kBroken) {
    return absl::FailedPreconditionError(absl::StrCat(
        "connection ", id.value, " to ", connection->peer(), " is broken"));
  }
  if (connection->responder().receives() >= options_.limits.receives_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("connection ", id.value, ": ",
                     options_.limits.receives_max, " receives are posted"));
  }
  if (!into.bytes.empty()) ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(into));
  const size_t before = shared_.completions.size();
  connection->PostReceive(work, into, clock_.NowNanos());
  MarkForSending(id);
  if (shared_.completions.size() != before) WakeWaiters();
  return absl::OkStatus();
}

void TcpFabric::MarkForSending(ConnectionId id) {
  if (sending_.empty() || sending_.back() != id) sending_.push_back(id);
}

// --- Turns ------------------------------------------------------------------

size_t TcpFabric::Poll(std::span<Completion> completions,
                       std::vector<ConnectionEvent>* events) {
  Lock lock(*this);
  // A waiting thread would not send delayed answers.
  Advance(clock_.NowNanos(), /*may_delay=*/waiters_ == 0,
          /*has_room=*/!completions.empty());
  events->insert(events->end(), shared_.events.begin(), shared_.events.end());
  shared_.events.clear();
  const size_t count = std::min(completions.size(), shared_.completions.size());
  const auto end = shared_.completions.begin() + static_cast<int64_t>(count);
  std::copy(shared_.completions.begin(), end, completions.begin());
  shared_.completions.erase(shared_.completions.begin(), end);
  return count;
}

bool TcpFabric::RunTurn() {
  // TF2. A thread that wants the lock makes the progress, or comes again.
  if (wanting_.load(std::memory_order_relaxed) > 0) return false;
  if (!mutex_.TryLock()) return false;
  const bool moved = Advance(clock_.NowNanos(), /*may_delay=*/false,
                             /*has_room=*/true);
  if (HasNews()) WakeWaiters();
  mutex_.Unlock();
  return moved;
}

bool TcpFabric::Advance(int64_t now, bool may_delay, bool has_room) {
  bool moved = SendPosted(now, may_delay && now < delay_until_);
  const bool is_tick = now >= tick_at_;
  // TF5.
  const bool is_handover = moved && !has_room;
  const bool is_too_soon = std::exchange(has_handed_over_, is_handover) &&
                           caller_sleeps_ && now - received_at_ < kDelayNanos;
  if (!is_tick && (is_handover || is_too_soon)) return moved;
  caller_sleeps_ = std::exchange(has_slept_, false);
  received_at_ = now;
  // No peer is taken for silent before everything that arrived was read.
  if (is_tick || !ReceiveWithoutAsking(now, &moved)) {
    moved |= ReceiveReady(now, is_tick ? kReadyAtTickMax : kReadyMax);
  }
  if (is_tick) moved |= RunTimers(now);
  may_delay &= now < delay_until_ || !shared_.completions.empty();
  moved |= SendPosted(now, may_delay);
  return moved;
}

template <class Work>
bool TcpFabric::Guard(Connection& connection, int64_t now, const Work& work) {
  bool moved = true;
  const absl::Status status = WithinMemory([&] {
    moved = work();
    return absl::OkStatus();
  });
  if (!status.ok()) connection.Abandon(now);
  return moved;
}

bool TcpFabric::SendPosted(int64_t now, bool may_delay) {
  bool moved = false;
  size_t delayed = 0;
  for (const ConnectionId id : sending_) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    if (may_delay && found->second->owes_answers_only()) {
      sending_[delayed++] = id;
    } else {
      Connection& connection = *found->second;
      moved |= Guard(connection, now, [&] { return connection.Send(now); });
    }
  }
  sending_.resize(delayed);
  if (delayed == 0) {
    delay_until_ = 0;
  } else if (delay_until_ == 0) {
    delay_until_ = now + kDelayNanos;
  }
  SendTrunks(now);
  return moved;
}

bool TcpFabric::ReceiveWithoutAsking(int64_t now, bool* moved) {
  const ConnectionId lone = LoneSocket();
  const bool is_lone = lone != ConnectionId();
  if (is_lone && ++lone_turns_ % kLoneTurnsMax == 0) return false;
  const ConnectionId id = is_lone ? lone : ready_;
  ready_ = {};
  // Other states have more than bytes to handle.
  const auto trunk = trunks_.find(id);
  const auto found = connections_.find(id);
  const bool has_bytes_only =
      trunk != trunks_.end()
          ? trunk->second.was_ready
          : found != connections_.end() && found->second->is_established();
  if (!has_bytes_only) return false;
  *moved |= ReceiveFrom(id, now);
  return true;
}

ConnectionId TcpFabric::LoneSocket() const {
  const size_t alone = connections_.size() - trunk_of_.size();
  if (alone + trunks_.size() != 1) return {};
  return alone == 1 ? connections_.begin()->first : trunks_.begin()->first;
}

bool TcpFabric::ReceiveFrom(ConnectionId id, int64_t now) {
  const auto trunk = trunks_.find(id);
  if (trunk != trunks_.end()) return ReceiveFromTrunk(id, trunk->second, now);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  Connection& connection = *found->second;
  const bool moved =
      Guard(connection, now, [&] { return connection.Receive(now); });
  MarkForSending(id);
  BecomeTrunk(id, now);
  ForgetIfDead(id);
  return moved;
}

bool TcpFabric::ReceiveReady(int64_t now, size_t connections_max) {
  std::array<Poller::Ready, kReadyAtTickMax> ready;
  ++counters_.wait_calls;
  const size_t count =
      poller_.Wait(/*timeout_ns=*/0, std::span(ready).first(connections_max))
          .count;
  bool moved = false;
  for (const Poller::Ready& one : std::span(ready).first(count)) {
    moved |= one.tag == kListenerTag ? AcceptWaiting(now)
                                     : ReceiveFrom(ConnectionId(one.tag), now);
  }
  return moved;
}

// --- Trunks -----------------------------------------------------------------

absl::Status TcpFabric::AddToTrunk(std::string_view address,
                                   std::string_view private_data,
                                   Deadline deadline) {
  const int64_t now = clock_.NowNanos();
  auto own = std::ranges::find_if(trunks_, [&](const auto& entry) {
    const Trunk& trunk = *entry.second.trunk;
    return trunk.connects() && trunk.peer() == address &&
           trunk.HasRoomForLane();
  });
  if (own == trunks_.end()) {
    absl::StatusOr<Descriptor> socket =
        StartConnect(address, options_.source_host);
    if (absl::IsInvalidArgument(socket.status())) return socket.status();
    const ConnectionId id(++last_id_);
    auto stream = std::make_unique<SocketStream>(
        socket.ok() ? *std::move(socket) : Descriptor(), options_.tls,
        TlsSession::Side::kConnects, poller_, id.value, counters_);
    own = trunks_
              .emplace(
                  id,
                  TrunkState{.trunk = std::make_shared<Trunk>(
                                 std::move(stream), TlsSession::Side::kConnects,
                                 std::string(address)),
                             .deadline = now + options_.limits.retry_ns,
                             .is_authenticated = true})
              .first;
  }
  TrunkState& state = own->second;
  const ConnectionId id(++last_id_);
  AddLane(own->first, id, state.trunk->OpenLane(id), std::string(private_data),
          deadline);
  if (!state.was_ready) return absl::OkStatus();
  connections_.at(id)->Receive(now);  // it greets
  SendTrunk(state, now);
  return absl::OkStatus();
}

void TcpFabric::AddLane(ConnectionId trunk, ConnectionId id,
                        std::unique_ptr<Stream> lane,
                        std::optional<std::string> private_data,
                        Deadline deadline) {
  TrunkState& state = trunks_.at(trunk);
  connections_.emplace(
      id, std::make_unique<Connection>(
              id, std::move(lane), /*is_alone=*/false, state.trunk->peer(),
              &shared_, std::move(private_data), deadline, clock_.NowNanos()));
  trunk_of_[id] = trunk;
  if (state.was_ready) state.deadline = kNever;
}

void TcpFabric::BecomeTrunk(ConnectionId id, int64_t now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  std::optional<Connection::TrunkStart> start = found->second->TakeTrunk();
  if (!start) return;
  const auto trunk = std::make_shared<Trunk>(std::move(start->stream),
                                             TlsSession::Side::kAccepts,
                                             found->second->peer());
  TrunkState& state =
      trunks_
          .emplace(id, TrunkState{.trunk = trunk,
                                  .deadline = now + options_.limits.retry_ns,
                                  .was_ready = true})
          .first->second;
  bool moved = false;
  if (TakeFromTrunk(id, state, start->bytes, now, &moved)) {
    ReceiveFromTrunk(id, state, now);
  }
}

bool TcpFabric::ReceiveFromTrunk(ConnectionId id, TrunkState& state,
                                 int64_t now) {
  const std::shared_ptr<Trunk> trunk = state.trunk;
  if (!state.was_ready) {
    switch (trunk->stream().MakeReady()) {
      case TlsSession::Progress::kWaiting:
        trunk->Watch();
        return true;
      case TlsSession::Progress::kFailed:
        EndTrunk(id, now);
        return true;
      case TlsSession::Progress::kDone:
        counters_.offloaded += trunk->stream().is_offloaded() ? 1 : 0;
        state.was_ready = true;
        state.deadline = kNever;
        break;
    }
    for (const ConnectionId lane : trunk->connections()) {
      ReceiveFrom(lane, now);  // it greets
    }
  }
  bool moved = false;
  size_t turn_bytes = 0;
  while (turn_bytes < kTrunkTurnBytes && trunk->MayBeRead()) {
    const IoResult result = trunk->stream().Receive(buffer_);
    if (result.outcome == IoOutcome::kNothing) break;
    if (result.outcome == IoOutcome::kClosed) {
      EndTrunk(id, now);
      return true;
    }
    turn_bytes += result.bytes;
    const auto bytes = std::span(buffer_).first(result.bytes);
    if (!TakeFromTrunk(id, state, bytes, now, &moved)) return true;
    if (trunk->stream().HasDrained(result.bytes, buffer_.size())) break;
  }
  return moved;
}

bool TcpFabric::TakeFromTrunk(ConnectionId id, TrunkState& state,
                              std::span<const std::byte> bytes, int64_t now,
                              bool* moved) {
  const std::shared_ptr<Trunk> trunk = state.trunk;
  // Runs under the lock that this function requires.
  const auto give = [&](const Trunk::Arrival& arrival)
                        ABSL_NO_THREAD_SAFETY_ANALYSIS {
                          *moved |= OnArrival(id, arrival, now);
                        };
  if (trunk->Take(bytes, give)) return true;
  NoteRejected(*trunk, UnauthenticatedEnd::kNotUnderstood);
  EndTrunk(id, now);
  return false;
}

bool TcpFabric::OnArrival(ConnectionId trunk, const Trunk::Arrival& arrival,
                          int64_t now) {
  if (arrival.connection == ConnectionId()) {
    MakeRoomForUnauthenticated();
    const auto state = trunks_.find(trunk);
    if (state == trunks_.end()) return true;  // it made the room
    const ConnectionId id(++last_id_);
    const Deadline until = Deadline::AtNanos(now + options_.limits.retry_ns);
    AddLane(trunk, id, state->second.trunk->AcceptLane(arrival.number, id),
            std::nullopt, until);
    return true;
  }
  const auto found = connections_.find(arrival.connection);
  if (found == connections_.end()) return false;
  Connection& connection = *found->second;
  bool moved = true;
  if (arrival.is_end) {
    connection.OnStreamEnd(now);
  } else {
    moved = Guard(connection, now,
                  [&] { return connection.Take(arrival.bytes, now); });
  }
  MarkForSending(arrival.connection);
  ForgetIfDead(arrival.connection);
  return moved;
}

void TcpFabric::EndTrunk(ConnectionId id, int64_t now) {
  trunks_.at(id).trunk->End();
  trunks_.erase(id);
  std::vector<ConnectionId> lanes;
  for (const auto& [connection, trunk] : trunk_of_) {
    if (trunk == id) lanes.push_back(connection);
  }
  for (const ConnectionId lane : lanes) {
    trunk_of_.erase(lane);
    const auto found = connections_.find(lane);
    if (found == connections_.end()) continue;
    found->second->OnStreamEnd(now);
    ForgetIfDead(lane);
  }
}

void TcpFabric::SendTrunks(int64_t now) {
  for (auto& [id, state] : trunks_) SendTrunk(state, now);
}

void TcpFabric::SendTrunk(TrunkState& state, int64_t now) {
  Trunk& trunk = *state.trunk;
  const auto has_work = [&] {
    return trunk.has_unsent() || trunk.waiting() > 0;
  };
  if (!state.was_ready || !has_work()) return;
  size_t rounds = kTrunkTurnBytes / Trunk::kUnsentBytesMax;
  bool goes_on = true;
  while (goes_on && rounds-- > 0) {
    goes_on = trunk.Flush();
    if (goes_on) {
      for (const ConnectionId id : trunk.TakeSenders()) {
        const auto found = connections_.find(id);
        if (found != connections_.end()) found->second->OnTrunkSent(now);
      }
    }
    for (size_t waiting = trunk.waiting(); waiting > 0; --waiting) {
      const auto found = connections_.find(trunk.TakeWaiting());
      if (found == connections_.end()) continue;
      Connection& connection = *found->second;
      goes_on |= Guard(connection, now, [&] { return connection.Send(now); });
    }
    goes_on &= has_work();
  }
  trunk.Watch();
}

bool TcpFabric::RunTrunkTimers(int64_t now) {
  std::vector<ConnectionId> due;
  for (auto& [id, state] : trunks_) {
    if (now < state.deadline) continue;
    if (state.was_ready) {
      due.push_back(id);
    } else {
      // TRK6. Each of its lanes has a deadline of its own.
      state.trunk->Retire();
      state.deadline = kNever;
    }
  }
  for (const ConnectionId id : due) {
    const bool is_unused = !trunks_.at(id).is_authenticated;
    if (is_unused)
      NoteRejected(*trunks_.at(id).trunk, UnauthenticatedEnd::kSaidNothing);
    EndTrunk(id, now);
  }
  return !due.empty();
}

// A trunk without lanes goes: at once at the side that made it, a little later
// at the other side, where a new lane may be on its way.
void TcpFabric::NoteLanes(ConnectionId id) {
  TrunkState& state = trunks_.at(id);
  if (state.trunk->lanes() > 0) return;
  const bool goes_now = state.trunk->connects();
  state.deadline =
      clock_.NowNanos() + (goes_now ? 0 : options_.limits.retry_ns);
  tick_at_ = std::min(tick_at_, state.deadline);
}

void TcpFabric::NoteRejected(const Trunk& trunk, UnauthenticatedEnd why) {
  ++counters_.rejected;
  if (options_.on_rejected) options_.on_rejected(trunk.peer(), why, "");
}

bool TcpFabric::RunTimers(int64_t now) {
  bool moved = false;
  ResumeAccepting(now);
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = *entry->second;
    const bool was_broken = connection.state() == Connection::State::kBroken;
    moved |= connection.OnTimers(now);
    const bool is_broken = connection.state() == Connection::State::kBroken;
    const auto trunk = trunk_of_.find(entry->first);
    if (is_broken && !was_broken && trunk != trunk_of_.end()) {
      trunks_.at(trunk->second).trunk->Retire();  // TRK6
    }
    const bool is_dead = connection.state() == Connection::State::kDead;
    entry = is_dead ? Erase(entry) : std::next(entry);
  }
  moved |= RunTrunkTimers(now);
  SendTrunks(now);
  shared_.timers_ran_at = now;
  // Coarse, so that a turn need not check all connections.
  const int64_t shortest =
      std::min(options_.limits.retry_ns, options_.receiver_wait_ns);
  tick_at_ = std::min(NextTimer(), now + shortest / 16);
  return moved;
}

int64_t TcpFabric::NextTimer() const {
  int64_t next = accept_at_;
  for (const auto& [id, connection] : connections_) {
    next = std::min(next, connection->next_timer());
  }
  for (const auto& [id, state] : trunks_) next = std::min(next, state.deadline);
  return next;
}

// --- Waiting ----------------------------------------------------------------

bool TcpFabric::HasNews() const {
  return !shared_.completions.empty() || !shared_.events.empty();
}

void TcpFabric::WakeWaiters() {
  if (waiters_ > 0) poller_.Wake();
}

void TcpFabric::WaitForActivity(Deadline deadline) {
  int64_t timeout_ns = -1;
  {
    Lock lock(*this);
    const int64_t now = clock_.NowNanos();
    SendPosted(now, /*may_delay=*/false);
    if (HasNews()) return;
    const int64_t until = std::min(NextTimer(), deadline.at_nanos());
    if (until <= now) {
      tick_at_ = 0;
      return;
    }
    if (until != Deadline().at_nanos()) timeout_ns = until - now;
    ++waiters_;
    ++counters_.wait_calls;
  }
  std::array<Poller::Ready, 1> ready;
  const Poller::Waited waited = poller_.Wait(timeout_ns, ready);
  Lock lock(*this);
  caller_sleeps_ = has_slept_ = true;
  is_woken_ |= waited.is_woken;
  if (waited.count == 1 && ready[0].in && !ready[0].out &&
      ready[0].tag != kListenerTag) {
    ready_ = ConnectionId(ready[0].tag);
    lone_turns_ = 0;
  } else {
    tick_at_ = 0;  // perhaps a timer is due
  }
  // Only the last one clears: the others must be woken, too. A Wake that none
  // of them has seen is for the next wait.
  if (--waiters_ == 0 && std::exchange(is_woken_, false)) poller_.ClearWake();
}

void TcpFabric::Wake() { poller_.Wake(); }

// --- Watching ---------------------------------------------------------------

TcpFabricCounters TcpFabric::counters() const {
  Lock lock(*this);
  TcpFabricCounters now = counters_;
  now.kept_bytes = shared_.kept_bytes;
  now.sockets = trunks_.size() + static_cast<uint64_t>(std::ranges::count_if(
                                     connections_, [](const auto& entry) {
                                       return entry.second->has_socket();
                                     }));
  return now;
}

// --- Connections ------------------------------------------------------------

absl::StatusOr<std::string> TcpFabric::Listen(std::string_view address) {
  ALPHEUS_RETURN_IF_ERROR(CheckAddress(address));
  Lock lock(*this);
  if (listener_.socket.is_open()) {
    return absl::AlreadyExistsError(
        absl::StrCat("this fabric listens on ", listener_.address,
                     " already; one address per fabric"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(Listener listener, ListenOn(address));
  ALPHEUS_RETURN_IF_ERROR(poller_.Add(listener.socket, kListenerTag,
                                      /*in=*/true, /*out=*/false));
  listener_ = std::move(listener);
  return listener_.address;
}

void TcpFabric::Add(Descriptor socket, std::string peer,
                    std::optional<std::string> private_data,
                    Deadline deadline) {
  const ConnectionId id(++last_id_);
  auto stream = std::make_unique<SocketStream>(
      std::move(socket), options_.tls,
      private_data ? TlsSession::Side::kConnects : TlsSession::Side::kAccepts,
      poller_, id.value, counters_);
  connections_.emplace(
      id, std::make_unique<Connection>(
              id, std::move(stream), /*is_alone=*/true, std::move(peer),
              &shared_, std::move(private_data), deadline, clock_.NowNanos()));
}

TcpFabric::Connections::iterator TcpFabric::Erase(Connections::iterator entry) {
  const auto trunk = trunk_of_.find(entry->first);
  const auto next = connections_.erase(entry);
  if (trunk == trunk_of_.end()) return next;
  const ConnectionId id = trunk->second;
  trunk_of_.erase(trunk);
  NoteLanes(id);
  return next;
}

absl::StatusOr<ConnectionId> TcpFabric::Connect(std::string_view address,
                                                std::string_view private_data,
                                                Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, options_.limits.private_bytes_max));
  Lock lock(*this);
  ALPHEUS_RETURN_IF_ERROR(CheckAddress(address));
  ALPHEUS_RETURN_IF_ERROR(poller_.status());
  // A failure at once is reported as kUnreachable, like a later one.
  if (options_.shares_sockets) {
    ALPHEUS_RETURN_IF_ERROR(AddToTrunk(address, private_data, deadline));
  } else {
    absl::StatusOr<Descriptor> socket =
        StartConnect(address, options_.source_host);
    if (absl::IsInvalidArgument(socket.status())) return socket.status();
    Add(socket.ok() ? *std::move(socket) : Descriptor(), std::string(address),
        std::string(private_data), deadline);
  }
  const ConnectionId id(last_id_);
  tick_at_ = 0;
  WakeWaiters();  // there is one more deadline
  return id;
}

absl::Status TcpFabric::Accept(ConnectionId id, std::string_view private_data) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, options_.limits.private_bytes_max));
  Lock lock(*this);
  Connection* const connection = Find(id);
  if (connection == nullptr ||
      connection->state() != Connection::State::kRequested) {
    return NoConnection(id);
  }
  const int64_t now = clock_.NowNanos();
  connection->Accept(private_data, now);
  const auto trunk = trunk_of_.find(id);
  if (trunk != trunk_of_.end()) {
    trunks_.at(trunk->second).is_authenticated = true;
  }
  SendTrunks(now);
  WakeWaiters();
  return absl::OkStatus();
}

absl::Status TcpFabric::Reject(ConnectionId id, std::string_view private_data) {
  const absl::Status fits =
      CheckPrivateData(private_data, options_.limits.private_bytes_max);
  Lock lock(*this);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  switch (connection->state()) {
    case Connection::State::kRequested:
      connection->Reject(fits.ok() ? private_data : "", clock_.NowNanos());
      break;
    case Connection::State::kBroken:  // the peer is gone
      connection->Close(clock_.NowNanos());
      break;
    default:
      return NoConnection(id);
  }
  Forget(id);
  return fits;
}

absl::Status TcpFabric::Close(ConnectionId id) {
  Lock lock(*this);  // TF1
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  connection->Close(clock_.NowNanos());
  Forget(id);
  return absl::OkStatus();
}

void TcpFabric::Forget(ConnectionId id) {
  ForgetIfDead(id);
  SendTrunks(clock_.NowNanos());
  std::erase_if(shared_.events, [id](const ConnectionEvent& event) {
    return event.connection == id;
  });
  WakeWaiters();
}

Connection* TcpFabric::Find(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return nullptr;
  switch (found->second->state()) {
    case Connection::State::kAnonymous:
    case Connection::State::kLingering:
    case Connection::State::kDead:
      return nullptr;
    default:
      return found->second.get();
  }
}

void TcpFabric::ForgetIfDead(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found != connections_.end() &&
      found->second->state() == Connection::State::kDead) {
    Erase(found);
  }
}

// TF8. Ids are in the order of time.
void TcpFabric::MakeRoomForUnauthenticated() {
  std::map<ConnectionId, std::string_view> hosts;
  for (const auto& [id, connection] : connections_) {
    if (connection->is_unauthenticated())
      hosts[id] = HostOf(connection->peer());
  }
  for (const auto& [id, state] : trunks_) {
    if (!state.is_authenticated) hosts[id] = HostOf(state.trunk->peer());
  }
  if (hosts.size() < options_.anonymous_max) return;
  std::map<std::string_view, size_t> counts;
  for (const auto& [id, host] : hosts) ++counts[host];
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& entry) { return entry.second; });
  const ConnectionId oldest =
      std::ranges::find(hosts, most->first, [](const auto& entry) {
        return entry.second;
      })->first;
  const auto trunk = trunks_.find(oldest);
  if (trunk != trunks_.end()) {
    NoteRejected(*trunk->second.trunk, UnauthenticatedEnd::kSaidNothing);
    return EndTrunk(oldest, clock_.NowNanos());
  }
  const auto connection = connections_.find(oldest);
  connection->second->MakeRoom();
  Erase(connection);
}

bool TcpFabric::AcceptWaiting(int64_t now) {
  bool moved = false;
  for (;;) {
    Accepted accepted = AcceptOne(listener_.socket);
    if (accepted.outcome == AcceptOutcome::kExhausted) PauseAccepting(now);
    if (accepted.outcome != AcceptOutcome::kSome) return moved;
    moved = true;
    is_exhausted_ = false;
    MakeRoomForUnauthenticated();
    // Runs under the lock that this function requires.
    const absl::Status added =
        WithinMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          Add(std::move(accepted.socket), std::move(accepted.peer),
              std::nullopt, Deadline::AtNanos(now + options_.limits.retry_ns));
          return absl::OkStatus();
        });
    if (!added.ok()) {
      PauseAccepting(now);
      return moved;
    }
  }
}

// Waiting peers keep the listener ready: if it were watched, it would wake this
// host again and again for nothing.
void TcpFabric::PauseAccepting(int64_t now) {
  ++counters_.accept_pauses;
  poller_.Change(listener_.socket, kListenerTag, /*in=*/false, /*out=*/false);
  accept_at_ = now + kAcceptPauseNanos;
  tick_at_ = std::min(tick_at_, accept_at_);
  if (std::exchange(is_exhausted_, true) || !options_.warn) return;
  options_.warn(absl::StrCat(
      listener_.address,
      ": connections wait to be accepted, but no descriptor is left for them, "
      "or no memory; looked at again every ",
      kAcceptPauseNanos / 1'000'000,
      " ms. Raise the limit of open files (ulimit -n)"));
}

void TcpFabric::ResumeAccepting(int64_t now) {
  if (now < accept_at_) return;
  poller_.Change(listener_.socket, kListenerTag, /*in=*/true, /*out=*/false);
  accept_at_ = Deadline().at_nanos();
}

}  // namespace alpheus::fabric::tcp
