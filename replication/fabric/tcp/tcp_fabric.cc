// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/tcp_fabric.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/tcp/socket_stream.h"
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

// Between two questions for settings of TLS, when no connection begins: time in
// which a revoked peer may go on, and a file or two to look at.
constexpr int64_t kAskForTlsNanos = 1'000'000'000;

// Posts in a row that are sent without waiting for Poll.
constexpr size_t kBatchMax = 64;

}  // namespace

TcpFabric::TcpFabric(const TcpFabricOptions& options, const Clock& clock,
                     RandomSource& random)
    : options_(options),
      clock_(clock),
      regions_(random),
      buffer_(kBufferBytes),
      shared_{options_, regions_, poller_, counters_, buffer_, {}, {}},
      trunks_(shared_, *this) {
  {
    Lock lock(*this);
    AskForTls(clock_.NowNanos());
  }
  if (options_.exchange != nullptr) {
    options_.exchange->Join(options_.adapter, poller_);
  }
}

TcpFabric::~TcpFabric() {
  if (options_.exchange != nullptr) options_.exchange->Leave(options_.adapter);
}

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
    trunks_.Send(now);
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
  // The bytes that it read can wake nobody any more.
  if (HasNews()) WakeWaiters();
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
  moved |= TakeBrought(now);
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
  trunks_.Send(now);
  return moved;
}

bool TcpFabric::ReceiveWithoutAsking(int64_t now, bool* moved) {
  const ConnectionId lone = LoneSocket();
  const bool is_lone = lone != ConnectionId();
  if (is_lone && ++lone_turns_ % kLoneTurnsMax == 0) return false;
  const ConnectionId id = is_lone ? lone : ready_;
  ready_ = {};
  // Other states have more than bytes to handle.
  const auto found = connections_.find(id);
  const bool has_bytes_only =
      trunks_.IsReady(id) ||
      (found != connections_.end() && found->second->is_established());
  if (!has_bytes_only) return false;
  *moved |= ReceiveFrom(id, now);
  return true;
}

ConnectionId TcpFabric::LoneSocket() const {
  const size_t alone = connections_.size() - trunks_.lanes();
  if (alone + trunks_.size() != 1) return {};
  return alone == 1 ? connections_.begin()->first : trunks_.front();
}

bool TcpFabric::ReceiveFrom(ConnectionId id, int64_t now) {
  if (trunks_.Has(id)) return trunks_.Receive(id, now);
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  Connection& connection = *found->second;
  const bool moved =
      Guard(connection, now, [&] { return connection.Receive(now); });
  MarkForSending(id);
  if (auto departure = connection.TakeDeparture()) {
    const std::string peer = connection.peer();
    Erase(found);
    Depart(id, *std::move(departure), peer, now);
    return true;
  }
  ForgetIfDead(id);
  return moved;
}

void TcpFabric::Depart(ConnectionId id, Connection::Departure departure,
                       const std::string& peer, int64_t now) {
  if (shared_.IsOwn(departure.group)) {  // a trunk, then
    trunks_.Begin(id, std::move(departure), peer, now);
    return;
  }
  const uint32_t adapter = AdapterOf(departure.group, shared_.adapters());
  departure.stream->LeaveAdapter();
  const absl::Status brought = WithinMemory([&] {
    options_.exchange->Bring(
        adapter, {std::move(departure.stream), peer, departure.group,
                  departure.is_trunk, std::move(departure.bytes)});
    return absl::OkStatus();
  });
  brought.IgnoreError();  // the socket is closed, and the peer comes again
}

bool TcpFabric::TakeBrought(int64_t now) {
  if (!MayHaveBrought()) return false;
  for (TravellingSocket& socket :
       options_.exchange->TakeFor(options_.adapter)) {
    ++counters_.brought;
    MakeRoomForUnauthenticated();
    const ConnectionId id = NewId();
    socket.stream->JoinAdapter(poller_, id.value, counters_);
    if (socket.is_trunk) {
      trunks_.Begin(id,
                    {std::move(socket.stream), socket.group,
                     /*is_trunk=*/true, std::move(socket.bytes)},
                    socket.peer, now);
      continue;
    }
    const Deadline deadline = Deadline::AtNanos(now + options_.limits.retry_ns);
    Connection& connection =
        *connections_
             .emplace(id, std::make_unique<Connection>(
                              id, std::move(socket.stream), /*is_alone=*/true,
                              std::move(socket.peer), &shared_, std::nullopt,
                              deadline, now))
             .first->second;
    Guard(connection, now, [&] {
      // The settings of its handshake may be older than this adapter's.
      if (connection.EndIfRevoked(now)) return true;
      return connection.Take(socket.bytes, now);
    });
    ReceiveFrom(id, now);
  }
  tick_at_ = 0;  // there are more deadlines
  return true;
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

// --- Lanes ------------------------------------------------------------------

template <class Work>
bool TcpFabric::GoOn(ConnectionId id, int64_t now, const Work& work) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return false;
  Connection& connection = *found->second;
  const bool moved = Guard(connection, now, [&] { return work(connection); });
  MarkForSending(id);
  ForgetIfDead(id);
  return moved;
}

bool TcpFabric::OnReady(ConnectionId id, int64_t now) {
  return GoOn(id, now, [now](Connection& one) { return one.Receive(now); });
}

bool TcpFabric::OnBytes(ConnectionId id, std::span<const std::byte> bytes,
                        int64_t now) {
  return GoOn(id, now, [=](Connection& one) { return one.Take(bytes, now); });
}

bool TcpFabric::OnRoom(ConnectionId id, int64_t now) {
  return GoOn(id, now, [now](Connection& one) { return one.Send(now); });
}

bool TcpFabric::OnEnd(ConnectionId id, int64_t now) {
  return GoOn(id, now, [now](Connection& one) {
    const bool is_news = one.state() != Connection::State::kBroken;
    one.OnStreamEnd(now);
    return is_news;
  });
}

void TcpFabric::OnSent(ConnectionId id, int64_t now) {
  const auto found = connections_.find(id);
  if (found != connections_.end()) found->second->OnTrunkSent(now);
}

// --- Timers -----------------------------------------------------------------

// TF11.
void TcpFabric::AskForTls(int64_t now) {
  if (!options_.tls) return;
  ask_for_tls_at_ = now + kAskForTlsNanos;
  std::shared_ptr<const TlsSettings> tls = options_.tls();
  if (tls == shared_.tls) return;
  shared_.tls = std::move(tls);
  has_new_tls_ = true;
  tick_at_ = 0;
}

bool TcpFabric::RunTimers(int64_t now) {
  bool moved = false;
  ResumeAccepting(now);
  if (now >= ask_for_tls_at_) AskForTls(now);
  if (has_new_tls_) {
    for (const auto& [id, connection] : connections_) {
      moved |= connection->EndIfRevoked(now);
    }
    if (shared_.tls != nullptr) moved |= trunks_.EndRevoked(*shared_.tls, now);
    has_new_tls_ = false;  // where memory runs out before, all are looked at
  }
  moved |= RunTimersOfConnections(now);
  moved |= trunks_.RunTimers(now);
  trunks_.Send(now);
  shared_.timers_ran_at = now;
  // Coarse, so that a turn need not check all connections.
  const int64_t shortest =
      std::min(options_.limits.retry_ns, options_.receiver_wait_ns);
  tick_at_ = std::min(NextTimer(), now + shortest / 16);
  return moved;
}

bool TcpFabric::RunTimersOfConnections(int64_t now) {
  bool moved = false;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = *entry->second;
    const bool was_broken = connection.state() == Connection::State::kBroken;
    moved |= connection.OnTimers(now);
    const bool is_broken = connection.state() == Connection::State::kBroken;
    if (is_broken && !was_broken) trunks_.OnSilence(entry->first);
    const bool is_dead = connection.state() == Connection::State::kDead;
    entry = is_dead ? Erase(entry) : std::next(entry);
  }
  return moved;
}

int64_t TcpFabric::NextTimer() const {
  int64_t next = std::min({accept_at_, ask_for_tls_at_, trunks_.NextTimer()});
  for (const auto& [id, connection] : connections_) {
    next = std::min(next, connection->next_timer());
  }
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
    if (HasNews() || MayHaveBrought()) return;
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
  const int64_t now = clock_.NowNanos();
  AskForTls(now);
  const ConnectionId id = NewId();
  auto stream = std::make_unique<SocketStream>(
      std::move(socket), shared_.tls,
      private_data ? TlsSession::Side::kConnects : TlsSession::Side::kAccepts,
      poller_, id.value, counters_);
  connections_.emplace(
      id, std::make_unique<Connection>(id, std::move(stream), /*is_alone=*/true,
                                       std::move(peer), &shared_,
                                       std::move(private_data), deadline, now));
}

void TcpFabric::AddLane(ConnectionId id, std::unique_ptr<Stream> lane,
                        const std::string& peer,
                        std::optional<std::string> private_data,
                        Deadline deadline) {
  connections_.emplace(
      id, std::make_unique<Connection>(id, std::move(lane), /*is_alone=*/false,
                                       peer, &shared_, std::move(private_data),
                                       deadline, clock_.NowNanos()));
}

TcpFabric::ConnectionMap::iterator TcpFabric::Erase(
    ConnectionMap::iterator entry) {
  const ConnectionId id = entry->first;
  const auto next = connections_.erase(entry);
  trunks_.OnForgotten(id);
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
  ConnectionId id;
  if (options_.shares_sockets) {
    const int64_t now = clock_.NowNanos();
    AskForTls(now);
    ALPHEUS_ASSIGN_OR_RETURN(
        id, trunks_.Connect(address, private_data, deadline, now));
  } else {
    absl::StatusOr<Descriptor> socket =
        StartConnect(address, options_.source_host);
    if (absl::IsInvalidArgument(socket.status())) return socket.status();
    // A failure at once is reported as kUnreachable, like a later one.
    Add(socket.ok() ? *std::move(socket) : Descriptor(), std::string(address),
        std::string(private_data), deadline);
    id = ConnectionId(last_id_);
  }
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
  trunks_.OnEstablished(id);
  trunks_.Send(now);
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
  trunks_.Send(clock_.NowNanos());
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
  const bool is_dead = found != connections_.end() &&
                       found->second->state() == Connection::State::kDead;
  if (!is_dead) return;
  Erase(found);
  tick_at_ = 0;  // perhaps its trunk goes, too
}

// TF8. Numbers are in the order of time.
void TcpFabric::MakeRoomForUnauthenticated() {
  std::map<ConnectionId, std::string_view> hosts;
  for (const auto& [id, connection] : connections_) {
    if (connection->is_unauthenticated()) {
      hosts[id] = HostOf(connection->peer());
    }
  }
  trunks_.ForEachUnauthenticated(
      [&hosts](ConnectionId id, const std::string& peer) {
        hosts[id] = HostOf(peer);
      });
  if (hosts.size() < options_.anonymous_max) return;
  std::map<std::string_view, size_t> counts;
  for (const auto& [id, host] : hosts) ++counts[host];
  const auto most = std::ranges::max_element(
      counts, {}, [](const auto& entry) { return entry.second; });
  const auto oldest = std::ranges::find(
      hosts, most->first, [](const auto& entry) { return entry.second; });
  const int64_t now = clock_.NowNanos();
  if (trunks_.Has(oldest->first)) return trunks_.MakeRoom(oldest->first, now);
  const auto connection = connections_.find(oldest->first);
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
