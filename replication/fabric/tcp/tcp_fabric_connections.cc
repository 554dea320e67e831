// SPDX-License-Identifier: Apache-2.0
// Listening, connecting, and how connections are answered and closed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/tcp_fabric_lock.h"
#include "replication/fabric/work_request.h"

namespace alpheus {

using tcp::Connection;

namespace {

// Nanoseconds until the listener is checked again when descriptors have run
// out: short for waiting peers, and no load.
constexpr int64_t kAcceptPauseNanos = 50'000'000;

}  // namespace

absl::StatusOr<std::string> TcpFabric::Listen(std::string_view address) {
  ALPHEUS_RETURN_IF_ERROR(tcp::CheckAddress(address));
  Lock lock(*this);
  if (listener_.socket.is_open()) {
    return absl::AlreadyExistsError(
        absl::StrCat("this fabric listens on ", listener_.address,
                     " already; one address per fabric"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(tcp::Listener listener, tcp::ListenOn(address));
  ALPHEUS_RETURN_IF_ERROR(poller_.Add(listener.socket, kListenerTag,
                                      /*in=*/true, /*out=*/false));
  listener_ = std::move(listener);
  return listener_.address;
}

Connection& TcpFabric::Add(tcp::Descriptor socket, std::string peer,
                           std::optional<std::string> private_data,
                           Deadline deadline) {
  const ConnectionId id(++last_id_);
  auto connection = std::make_unique<Connection>(
      id, std::move(socket), std::move(peer), &shared_, std::move(private_data),
      deadline, clock_.NowNanos());
  if (cut_hosts_.contains(HostOf(connection->peer()))) {
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
  ALPHEUS_RETURN_IF_ERROR(poller_.status());
  // A failure at once is reported as kUnreachable, like a later one.
  Add(socket.ok() ? *std::move(socket) : tcp::Descriptor(),
      std::string(address), std::string(private_data), deadline);
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
  connection->Accept(private_data, clock_.NowNanos());
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
    connections_.erase(found);
  }
}

// TF8. Ids are in the order of time.
void TcpFabric::MakeRoomForStranger() {
  std::map<std::string_view, size_t> by_host;
  size_t count = 0;
  for (const auto& [id, connection] : connections_) {
    if (!connection->is_stranger()) continue;
    ++count;
    ++by_host[HostOf(connection->peer())];
  }
  if (count < options_.anonymous_max) return;
  const auto most = std::ranges::max_element(
      by_host, {}, [](const auto& entry) { return entry.second; });
  const auto oldest =
      std::ranges::find_if(connections_, [&](const auto& entry) {
        return entry.second->is_stranger() &&
               HostOf(entry.second->peer()) == most->first;
      });
  oldest->second->MakeRoom();
  connections_.erase(oldest);
}

bool TcpFabric::AcceptWaiting(int64_t now) {
  bool moved = false;
  for (;;) {
    tcp::Accepted accepted = tcp::AcceptOne(listener_.socket);
    if (accepted.outcome == tcp::AcceptOutcome::kExhausted) PauseAccepting(now);
    if (accepted.outcome != tcp::AcceptOutcome::kSome) return moved;
    moved = true;
    is_exhausted_ = false;
    MakeRoomForStranger();
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
  if (std::exchange(is_exhausted_, true) || !options_.report) return;
  options_.report(absl::StrCat(
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

}  // namespace alpheus
