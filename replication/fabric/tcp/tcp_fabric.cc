// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/tcp_fabric.h"

#include <algorithm>
#include <array>
#include <utility>

#include "log/base/within_memory.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/tcp/tcp_fabric_lock.h"

namespace alpheus {

using tcp::Connection;

namespace {

// Bytes of the receive buffer: large enough for few system calls, small enough
// for the cache.
constexpr size_t kBufferBytes = size_t{256} << 10;

// One of this many turns asks epoll although there is a single connection, for
// peers that want to connect: they can wait for some microseconds.
constexpr uint32_t kLoneTurnsMax = 64;

// Nanoseconds for which a polling thread holds answers (TF4): time to persist
// what came and to hear from another backup, little beside the wake-up of a
// sleeping peer.
constexpr int64_t kHoldNanos = 20'000;

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

// --- Progress ---------------------------------------------------------------

size_t TcpFabric::Poll(std::span<Completion> completions,
                       std::vector<ConnectionEvent>* events) {
  Lock lock(*this);
  // A waiting thread would not send held answers.
  Advance(clock_.NowNanos(), /*may_hold=*/waiters_ == 0,
          /*has_room=*/!completions.empty());
  events->insert(events->end(), shared_.events.begin(), shared_.events.end());
  shared_.events.clear();
  const size_t count = std::min(completions.size(), shared_.completions.size());
  const auto end = shared_.completions.begin() + static_cast<int64_t>(count);
  std::copy(shared_.completions.begin(), end, completions.begin());
  shared_.completions.erase(shared_.completions.begin(), end);
  return count;
}

bool TcpFabric::Progress() {
  // TF2. A thread that wants the lock makes the progress, or comes again.
  if (wanting_.load(std::memory_order_relaxed) > 0) return false;
  if (!mutex_.TryLock()) return false;
  const bool moved = Advance(clock_.NowNanos(), /*may_hold=*/false,
                             /*has_room=*/true);
  if (HasNews()) WakeWaiters();
  mutex_.Unlock();
  return moved;
}

bool TcpFabric::Advance(int64_t now, bool may_hold, bool has_room) {
  bool moved = SendPosted(now, may_hold && now < hold_until_);
  const bool is_tick = now >= tick_at_;
  // TF5.
  if (moved && !is_tick && !has_room) return moved;
  // No peer is taken for silent before everything that arrived was read.
  if (is_tick || !ReceiveWithoutAsking(now, &moved)) {
    moved |= ReceiveReady(now);
  }
  if (is_tick) moved |= RunTimers(now);
  may_hold &= now < hold_until_ || !shared_.completions.empty();
  moved |= SendPosted(now, may_hold);
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

bool TcpFabric::SendPosted(int64_t now, bool may_hold) {
  bool moved = false;
  size_t held = 0;
  for (const ConnectionId id : sending_) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    if (may_hold && found->second->owes_answers_only()) {
      sending_[held++] = id;
    } else {
      Connection& connection = *found->second;
      moved |= Guard(connection, now, [&] { return connection.Send(now); });
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
  // Other states have more than bytes to handle.
  if (found == connections_.end() || !found->second->is_established()) {
    return false;
  }
  Connection& connection = *found->second;
  *moved |= Guard(connection, now, [&] { return connection.Receive(now); });
  MarkForSending(found->first);
  return true;
}

bool TcpFabric::ReceiveReady(int64_t now) {
  std::array<tcp::Poller::Ready, 63> ready;
  ++counters_.wait_calls;
  const size_t count = poller_.Wait(/*timeout_ns=*/0, ready);
  bool moved = false;
  for (const tcp::Poller::Ready& one : std::span(ready).first(count)) {
    if (one.tag == kListenerTag) {
      moved |= AcceptWaiting(now);
      continue;
    }
    const ConnectionId id(one.tag);
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& connection = *found->second;
    moved |= Guard(connection, now, [&] { return connection.Receive(now); });
    MarkForSending(id);
    ForgetIfDead(id);
  }
  return moved;
}

bool TcpFabric::RunTimers(int64_t now) {
  bool moved = false;
  ResumeAccepting(now);
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = *entry->second;
    moved |= connection.OnTimers(now);
    const bool is_dead = connection.state() == Connection::State::kDead;
    entry = is_dead ? connections_.erase(entry) : std::next(entry);
  }
  shared_.looked_at = now;
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
    SendPosted(now, /*may_hold=*/false);
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
  std::array<tcp::Poller::Ready, 1> ready;
  const size_t count = poller_.Wait(timeout_ns, ready);
  Lock lock(*this);
  if (count == 1 && ready[0].in && !ready[0].out &&
      ready[0].tag != kListenerTag) {
    ready_ = ConnectionId(ready[0].tag);
    lone_turns_ = 0;
  } else {
    tick_at_ = 0;  // perhaps a timer is due
  }
  // Only the last one clears: the others must be woken, too.
  if (--waiters_ == 0) poller_.ClearWake();
}

void TcpFabric::Wake() { poller_.Wake(); }

// --- Watching ---------------------------------------------------------------

TcpFabricCounters TcpFabric::counters() const {
  Lock lock(*this);
  TcpFabricCounters now = counters_;
  now.kept_bytes = shared_.kept_bytes;
  return now;
}

void TcpFabric::SetCut(std::string_view host, bool is_cut) {
  Lock lock(*this);
  if (is_cut) {
    cut_hosts_.emplace(host);
  } else {
    cut_hosts_.erase(std::string(host));
  }
  for (const auto& [id, connection] : connections_) {
    if (HostOf(connection->peer()) == host) connection->SetCut(is_cut);
  }
}

}  // namespace alpheus
