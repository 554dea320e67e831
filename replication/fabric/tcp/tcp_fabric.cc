// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/tcp_fabric.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus {

using tcp::Connection;
using tcp::Request;

namespace {

// The listener's tag; connections have their ids, which never get there.
constexpr uint64_t kListenerTag = ~uint64_t{0};

// For what is received: large enough for few system calls, small enough for
// the cache.
constexpr size_t kBufferBytes = size_t{256} << 10;

// Posts behind each other that are sent without waiting for Poll.
constexpr size_t kBatchMax = 64;

// Of so many turns one asks epoll also where there is a single connection: for
// those who want to connect, and for room to send.
constexpr uint32_t kLoneTurnsMax = 8;

// How long answers are held at most by one who polls (T4): time to persist what
// came and to hear from another backup, little beside a sleeping peer's waking.
constexpr int64_t kHoldNanos = 20'000;

bool IsAtomic(Operation operation) {
  return operation == Operation::kCompareSwap ||
         operation == Operation::kFetchAdd;
}

absl::Status NoConnection(ConnectionId id) {
  return absl::NotFoundError(absl::StrCat(
      "connection ", id.value,
      " is not known here; it was closed, or is another fabric's"));
}

absl::Status CheckPrivateData(std::string_view data, uint32_t bytes_max) {
  if (data.size() <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("private data of ", data.size(), " bytes, but at most ",
                   bytes_max, " are taken; send the rest when connected"));
}

}  // namespace

// Counts among those whom a stand-in gives way to (T2).
class ABSL_SCOPED_LOCKABLE TcpFabric::Lock {
 public:
  explicit Lock(const TcpFabric& fabric)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(fabric.mutex_)
      : fabric_(fabric) {
    // Order: a hint; the mutex orders everything else.
    fabric_.wanting_.fetch_add(1, std::memory_order_relaxed);
    fabric_.mutex_.Lock();
    fabric_.wanting_.fetch_sub(1, std::memory_order_relaxed);
  }
  ~Lock() ABSL_UNLOCK_FUNCTION() { fabric_.mutex_.Unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  const TcpFabric& fabric_;
};

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
  Lock lock(*this);  // T1
  return regions_.Deregister(key);
}

// --- Connections ------------------------------------------------------------

absl::StatusOr<std::string> TcpFabric::Listen(std::string_view address) {
  ALPHEUS_RETURN_IF_ERROR(tcp::CheckAddress(address));
  Lock lock(*this);
  if (listener_.socket.is_open()) {
    return absl::AlreadyExistsError(
        absl::StrCat("this fabric listens on ", listener_.address,
                     " already; one address per fabric"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(listener_, tcp::ListenOn(address));
  poller_.Add(listener_.socket, kListenerTag, /*in=*/true, /*out=*/false);
  return listener_.address;
}

Connection& TcpFabric::Add(tcp::Descriptor socket, std::string peer,
                           std::optional<std::string> private_data,
                           Deadline deadline) {
  const ConnectionId id(++last_id_);
  auto connection = std::make_unique<Connection>(
      id, std::move(socket), std::move(peer), &shared_, std::move(private_data),
      deadline, clock_.NowNanos());
  if (cut_hosts_.contains(tcp::HostOf(connection->peer()))) {
    connection->SetCut(true);
  }
  return *connections_.emplace(id, std::move(connection)).first->second;
}

absl::StatusOr<ConnectionId> TcpFabric::Connect(std::string_view address,
                                                std::string_view private_data,
                                                Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, options_.limits.private_bytes_max));
  Lock lock(*this);
  absl::StatusOr<tcp::Descriptor> socket =
      tcp::StartConnect(address, options_.source_host);
  if (absl::IsInvalidArgument(socket.status())) return socket.status();
  // One that failed at once is told as kUnreachable, as one that fails later.
  const bool has_failed = !socket.ok();
  Add(has_failed ? tcp::Descriptor() : *std::move(socket), std::string(address),
      std::string(private_data),
      has_failed ? Deadline::AtNanos(clock_.NowNanos()) : deadline);
  const ConnectionId id(last_id_);
  tick_at_ = 0;
  WakeWaiters();  // there is a deadline more
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
  connection->Accept(private_data, clock_.NowNanos());
  WakeWaiters();
  return absl::OkStatus();
}

absl::Status TcpFabric::Reject(ConnectionId id, std::string_view private_data) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, options_.limits.private_bytes_max));
  Lock lock(*this);
  Connection* const connection = Find(id);
  if (connection == nullptr ||
      connection->state() != Connection::State::kRequested) {
    return NoConnection(id);
  }
  connection->Reject(private_data, clock_.NowNanos());
  ForgetIfDead(id);
  WakeWaiters();
  return absl::OkStatus();
}

absl::Status TcpFabric::Close(ConnectionId id) {
  Lock lock(*this);  // T1
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  connection->Close(clock_.NowNanos());
  ForgetIfDead(id);
  std::erase_if(shared_.events, [id](const ConnectionEvent& event) {
    return event.connection == id;
  });
  WakeWaiters();
  return absl::OkStatus();
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
    connections_.erase(found);
  }
}

// --- Posting ----------------------------------------------------------------

absl::Status TcpFabric::PostWrite(ConnectionId connection, WorkId work,
                                  LocalBytes from, RemoteAddress to) {
  return Post(connection, {.operation = Operation::kWrite,
                           .work = work,
                           .local = from,
                           .remote = to});
}

absl::Status TcpFabric::PostWriteImmediate(ConnectionId connection, WorkId work,
                                           LocalBytes from, RemoteAddress to,
                                           uint32_t immediate) {
  return Post(connection, {.operation = Operation::kWriteImmediate,
                           .work = work,
                           .local = from,
                           .remote = to,
                           .immediate = immediate});
}

absl::Status TcpFabric::PostRead(ConnectionId connection, WorkId work,
                                 LocalBytes into, RemoteAddress from) {
  return Post(connection, {.operation = Operation::kRead,
                           .work = work,
                           .local = into,
                           .remote = from});
}

absl::Status TcpFabric::PostCompareSwap(ConnectionId connection, WorkId work,
                                        LocalBytes into, RemoteAddress word,
                                        uint64_t expected, uint64_t desired) {
  return Post(connection, {.operation = Operation::kCompareSwap,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {expected, desired}});
}

absl::Status TcpFabric::PostFetchAdd(ConnectionId connection, WorkId work,
                                     LocalBytes into, RemoteAddress word,
                                     uint64_t add) {
  return Post(connection, {.operation = Operation::kFetchAdd,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {add, 0}});
}

absl::Status TcpFabric::PostFlush(ConnectionId connection, WorkId work,
                                  RemoteAddress range, uint64_t bytes) {
  return Post(connection, {.operation = Operation::kFlush,
                           .work = work,
                           .remote = range,
                           .range_bytes = bytes});
}

absl::Status TcpFabric::PostSend(ConnectionId connection, WorkId work,
                                 LocalBytes from) {
  return Post(connection,
              {.operation = Operation::kSend, .work = work, .local = from});
}

absl::Status TcpFabric::CheckPost(ConnectionId id, const Request& request) {
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
  if (request.local.bytes.size() > connection->message_bytes_max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("connection ", id.value, ": a message of ",
                     request.local.bytes.size(), " bytes, but at most ",
                     connection->message_bytes_max(), " are taken; split it"));
  }
  if (IsAtomic(request.operation) &&
      (request.local.bytes.size() != sizeof(uint64_t) ||
       request.remote.offset % sizeof(uint64_t) != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an atomic on offset ", request.remote.offset, " into ",
                     request.local.bytes.size(),
                     " bytes; it takes a word of 8 bytes on a multiple of 8"));
  }
  return absl::OkStatus();
}

absl::Status TcpFabric::Post(ConnectionId id, const Request& request) {
  Lock lock(*this);
  ALPHEUS_RETURN_IF_ERROR(CheckPost(id, request));
  Connection& connection = *Find(id);
  connection.requester().Post(request);
  // A thread that waits won't poll until something comes.
  if (waiters_ > 0 || connection.requester().unsent() >= kBatchMax) {
    connection.Send(clock_.NowNanos());
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

// --- Progress ---------------------------------------------------------------

size_t TcpFabric::Poll(std::span<Completion> completions,
                       std::vector<ConnectionEvent>* events) {
  Lock lock(*this);
  // A waiting thread would not look after what is held.
  Advance(clock_.NowNanos(), /*may_hold=*/waiters_ == 0);
  events->insert(events->end(), shared_.events.begin(), shared_.events.end());
  shared_.events.clear();
  const size_t count = std::min(completions.size(), shared_.completions.size());
  const auto end = shared_.completions.begin() + static_cast<int64_t>(count);
  std::copy(shared_.completions.begin(), end, completions.begin());
  shared_.completions.erase(shared_.completions.begin(), end);
  return count;
}

bool TcpFabric::Progress() {
  // T2. Whoever wants the lock makes the progress, or will come again.
  if (wanting_.load(std::memory_order_relaxed) > 0) return false;
  if (!mutex_.TryLock()) return false;
  const bool moved = Advance(clock_.NowNanos(), /*may_hold=*/false);
  if (HasNews()) WakeWaiters();
  mutex_.Unlock();
  return moved;
}

bool TcpFabric::Advance(int64_t now, bool may_hold) {
  bool moved = SendPosted(now, may_hold && now < hold_until_);
  const bool is_tick = now >= tick_at_;
  // Nobody is taken for silent before all that came has been read.
  if (is_tick || !ReceiveWithoutAsking(now, &moved)) {
    moved |= ReceiveReady(now);
  }
  if (is_tick) moved |= RunTimers(now);
  may_hold &= now < hold_until_ || !shared_.completions.empty();
  moved |= SendPosted(now, may_hold);
  return moved;
}

bool TcpFabric::SendPosted(int64_t now, bool may_hold) {
  bool moved = false;
  size_t held = 0;
  for (const ConnectionId id : sending_) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    if (may_hold && found->second->owes_answers_only()) {
      sending_[held++] = id;
    } else {
      moved |= found->second->Send(now);
    }
  }
  sending_.resize(held);
  if (held == 0) {
    hold_until_ = 0;
  } else if (hold_until_ == 0) {
    hold_until_ = now + kHoldNanos;
  }
  return moved;
}

bool TcpFabric::ReceiveWithoutAsking(int64_t now, bool* moved) {
  const bool is_lone = connections_.size() == 1;
  if (is_lone && ++lone_turns_ % kLoneTurnsMax == 0) return false;
  const auto found = is_lone ? connections_.begin() : connections_.find(ready_);
  ready_ = {};
  // Others have more to hear than bytes.
  if (found == connections_.end() || !found->second->is_established()) {
    return false;
  }
  *moved |= found->second->Receive(now);
  MarkForSending(found->first);
  return true;
}

bool TcpFabric::ReceiveReady(int64_t now) {
  std::array<tcp::Poller::Ready, 63> ready;
  ++counters_.wait_calls;
  const size_t count = poller_.Wait(/*timeout_ms=*/0, ready);
  bool moved = false;
  for (const tcp::Poller::Ready& one : std::span(ready).first(count)) {
    if (one.tag == kListenerTag) {
      moved |= AcceptWaiting(now);
      continue;
    }
    const ConnectionId id(one.tag);
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    moved |= found->second->Receive(now);
    MarkForSending(id);
    ForgetIfDead(id);
  }
  return moved;
}

bool TcpFabric::AcceptWaiting(int64_t now) {
  bool moved = false;
  for (;;) {
    tcp::Accepted accepted = tcp::AcceptOne(listener_.socket);
    if (!accepted.socket.is_open()) return moved;
    moved = true;
    const auto anonymous = std::ranges::count_if(connections_, [](auto& entry) {
      return entry.second->state() == Connection::State::kAnonymous;
    });
    if (anonymous >= options_.anonymous_max) {
      ++counters_.refused;
      continue;
    }
    Add(std::move(accepted.socket), std::move(accepted.peer), std::nullopt,
        Deadline::AtNanos(now + options_.limits.retry_ns));
  }
}

bool TcpFabric::RunTimers(int64_t now) {
  bool moved = false;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = *entry->second;
    moved |= connection.OnTimers(now);
    const bool is_dead = connection.state() == Connection::State::kDead;
    entry = is_dead ? connections_.erase(entry) : std::next(entry);
  }
  // Coarse, so that a turn need not look at all connections.
  const int64_t shortest =
      std::min(options_.limits.retry_ns, options_.receiver_wait_ns);
  tick_at_ = std::min(NextTimer(), now + shortest / 16);
  return moved;
}

int64_t TcpFabric::NextTimer() const {
  int64_t next = Deadline().at_nanos();
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
  int timeout_ms = -1;
  {
    Lock lock(*this);
    const int64_t now = clock_.NowNanos();
    SendPosted(now, /*may_hold=*/false);
    if (HasNews()) return;
    const int64_t until = std::min(NextTimer(), deadline.at_nanos());
    if (until <= now) {
      tick_at_ = 0;
      return;
    }
    if (until != Deadline().at_nanos()) {
      const int64_t wait_ms = (until - now + 999'999) / 1'000'000;
      timeout_ms = static_cast<int>(std::min<int64_t>(wait_ms, 1 << 30));
    }
    ++waiters_;
    ++counters_.wait_calls;
  }
  std::array<tcp::Poller::Ready, 1> ready;
  const size_t count = poller_.Wait(timeout_ms, ready);
  Lock lock(*this);
  if (count == 1 && ready[0].in && !ready[0].out &&
      ready[0].tag != kListenerTag) {
    ready_ = ConnectionId(ready[0].tag);
    lone_turns_ = 0;
  } else {
    tick_at_ = 0;  // perhaps it is a timer's turn
  }
  // The last one: the others must be woken too.
  if (--waiters_ == 0) poller_.ClearWake();
}

void TcpFabric::Wake() { poller_.Wake(); }

// --- Watching ---------------------------------------------------------------

TcpFabricCounters TcpFabric::counters() const {
  Lock lock(*this);
  return counters_;
}

void TcpFabric::SetCut(std::string_view host, bool is_cut) {
  Lock lock(*this);
  if (is_cut) {
    cut_hosts_.emplace(host);
  } else {
    cut_hosts_.erase(std::string(host));
  }
  for (const auto& [id, connection] : connections_) {
    if (tcp::HostOf(connection->peer()) == host) connection->SetCut(is_cut);
  }
}

}  // namespace alpheus
