// SPDX-License-Identifier: Apache-2.0
// Listening, connecting, and how connections are answered and closed.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/verbs/verbs_fabric.h"
#include "replication/fabric/work_request.h"

namespace alpheus {

using verbs::Connection;

namespace {

constexpr int kBacklog = 128;

absl::Status ListenError(std::string_view what, std::string_view address) {
  const int error = errno;
  const std::string message = absl::StrCat(
      std::string(what), " ", std::string(address), ": ", std::strerror(error));
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(
        message,
        ". Another process has that address, perhaps this program started "
        "twice: end it, or give this one another address"));
  }
  return absl::UnavailableError(
      absl::StrCat(message, ". Is it an address of the adapter's network?"));
}

}  // namespace

verbs::CommunicationId VerbsFabric::MakeManager() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(manager_events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    return nullptr;
  }
  return verbs::CommunicationId(id);
}

absl::StatusOr<std::string> VerbsFabric::Listen(std::string_view address) {
  ALPHEUS_ASSIGN_OR_RETURN(SocketAddress parsed, ParseSocketAddress(address));
  MutexLock lock(mutex_);
  if (listener_) {
    return absl::AlreadyExistsError(
        absl::StrCat("this fabric listens on ", listens_on_,
                     " already; one address per fabric"));
  }
  verbs::CommunicationId listener = MakeManager();
  if (!listener) return ListenError("a listener for", address);
  if (rdma_bind_addr(listener.get(), parsed.get()) != 0) {
    return ListenError("binding to", address);
  }
  if (rdma_listen(listener.get(), kBacklog) != 0) {
    return ListenError("listening on", address);
  }
  listener_ = std::move(listener);
  listens_on_ = FormatSocketAddress(
      SocketAddressOf(rdma_get_local_addr(listener_.get())));
  return listens_on_;
}

absl::StatusOr<ConnectionId> VerbsFabric::Connect(std::string_view address,
                                                  std::string_view private_data,
                                                  Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, limits_.private_bytes_max));
  ALPHEUS_ASSIGN_OR_RETURN(SocketAddress to, ParseSocketAddress(address));
  MutexLock lock(mutex_);
  std::optional<SocketAddress> from =
      MakeSocketAddress(shared_.options.source_host, 0);
  const int64_t silence = clock_.NowNanos() + limits_.retry_ns;
  const ConnectionId id(++last_id_);
  auto connection = std::make_unique<Connection>(
      id, MakeManager(), std::string(address), std::string(private_data),
      deadline.is_set() ? deadline : Deadline::AtNanos(silence), &shared_);
  connection->Resolve(from ? from->get() : nullptr, to.get());
  connections_.emplace(id, std::move(connection));
  is_settled_ = false;
  WakeWaiters();  // there is one more deadline
  return id;
}

absl::Status VerbsFabric::Accept(ConnectionId id,
                                 std::string_view private_data) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(private_data, limits_.private_bytes_max));
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr ||
      connection->state() != Connection::State::kRequested) {
    return NoConnection(id);
  }
  connection->Accept(private_data);
  WakeWaiters();
  return absl::OkStatus();
}

absl::Status VerbsFabric::Reject(ConnectionId id,
                                 std::string_view private_data) {
  const absl::Status fits =
      CheckPrivateData(private_data, limits_.private_bytes_max);
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  switch (connection->state()) {
    case Connection::State::kRequested:
      connection->Reject(
          fits.ok() ? private_data : "",
          Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns));
      is_settled_ = false;
      break;
    case Connection::State::kBroken:  // the peer is gone
      if (!connection->is_request()) return NoConnection(id);
      connection->Close();
      break;
    default:
      return NoConnection(id);
  }
  Forget(id);
  return fits;
}

absl::Status VerbsFabric::Close(ConnectionId id) {
  MutexLock lock(mutex_);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (connection->state() == Connection::State::kRequested) {
    connection->Reject("",
                       Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns));
    is_settled_ = false;
  } else {
    connection->Close();
  }
  Forget(id);
  return absl::OkStatus();
}

void VerbsFabric::Forget(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found != connections_.end() &&
      found->second->state() == Connection::State::kDead) {
    found_ = {};
    connections_.erase(found);
  }
  std::erase_if(shared_.events, [id](const ConnectionEvent& event) {
    return event.connection == id;
  });
  WakeWaiters();
}

Connection* VerbsFabric::FindAny(ConnectionId id) {
  if (found_.first == id && found_.second != nullptr) return found_.second;
  const auto found = connections_.find(id);
  if (found == connections_.end()) return nullptr;
  found_ = {id, found->second.get()};
  return found_.second;
}

Connection* VerbsFabric::Find(ConnectionId id) {
  Connection* const connection = FindAny(id);
  if (connection == nullptr) return nullptr;
  switch (connection->state()) {
    case Connection::State::kAnonymous:
    case Connection::State::kLingering:
    case Connection::State::kDead:
      return nullptr;
    default:
      return connection;
  }
}

// --- The connection manager -------------------------------------------------

bool VerbsFabric::TakeManagerEvents() {
  bool moved = false;
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(manager_events_.get(), &event) == 0) {
    moved = true;
    const rdma_cm_event_type type = event->event;
    rdma_cm_id* const id = event->id;
    const rdma_conn_param& said = event->param.conn;
    const bool is_calling = verbs::IsCalling(
        {static_cast<const std::byte*>(said.private_data),
         said.private_data == nullptr ? size_t{0} : said.private_data_len});
    // Before anything ends: an end waits for events that are not acknowledged.
    (void)rdma_ack_cm_event(event);
    TakeManagerEvent(type, id, is_calling);
  }
  return moved;
}

void VerbsFabric::TakeManagerEvent(rdma_cm_event_type event, rdma_cm_id* id,
                                   bool is_calling) {
  if (event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    return TakeCall(verbs::CommunicationId(id), is_calling);
  }
  if (event == RDMA_CM_EVENT_DEVICE_REMOVAL && id == listener_.get()) {
    listener_.reset();  // removal of the adapter waits for it
    return;
  }
  const auto found = std::ranges::find_if(
      connections_,
      [id](const auto& entry) { return entry.second->manager() == id; });
  if (found != connections_.end()) found->second->OnEvent(event);
}

// Ids are in the order of time.
void VerbsFabric::MakeRoomForStranger() {
  const auto is_anonymous = [](const auto& entry) {
    return entry.second->state() == Connection::State::kAnonymous;
  };
  const auto count = std::ranges::count_if(connections_, is_anonymous);
  if (count < shared_.options.anonymous_max) return;
  const auto oldest = std::ranges::find_if(connections_, is_anonymous);
  ++shared_.counters.refused;
  oldest->second->Close();
  Forget(oldest->first);
}

void VerbsFabric::TakeCall(verbs::CommunicationId manager, bool is_calling) {
  if (!is_calling || manager->verbs != shared_.context) {
    ++shared_.counters.refused;
    (void)rdma_reject(manager.get(), nullptr, 0);
    return;
  }
  MakeRoomForStranger();
  const ConnectionId id(++last_id_);
  std::string peer =
      FormatSocketAddress(SocketAddressOf(rdma_get_peer_addr(manager.get())));
  auto connection = std::make_unique<Connection>(
      id, std::move(manager), std::move(peer),
      Deadline::AtNanos(clock_.NowNanos() + limits_.retry_ns), &shared_);
  connection->AnswerCall();
  connections_.emplace(id, std::move(connection));
  is_settled_ = false;
}

}  // namespace alpheus
