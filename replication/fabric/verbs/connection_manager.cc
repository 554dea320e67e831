// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/connection_manager.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/verbs/greeting.h"
#include "replication/fabric/verbs/wake_up.h"

namespace alpheus::fabric::verbs {
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

bool ConnectionManager::Open() {
  events_.reset(rdma_create_event_channel());
  return events_ != nullptr;
}

absl::Status ConnectionManager::SetNonBlocking() const {
  return verbs::SetNonBlocking(events_->fd);
}

CommunicationId ConnectionManager::MakeId() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    return nullptr;
  }
  return CommunicationId(id);
}

absl::StatusOr<std::string> ConnectionManager::Listen(
    std::string_view address) {
  ALPHEUS_ASSIGN_OR_RETURN(SocketAddress parsed, ParseSocketAddress(address));
  if (listener_) {
    return absl::AlreadyExistsError(
        absl::StrCat("this fabric listens on ", listens_on_,
                     " already; one address per fabric"));
  }
  CommunicationId listener = MakeId();
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

std::optional<ConnectionManager::Event> ConnectionManager::NextEvent() {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(events_.get(), &event) != 0) return std::nullopt;
  const rdma_conn_param& said = event->param.conn;
  const Event copy = {
      event->event, event->id,
      IsCalling(
          {static_cast<const std::byte*>(said.private_data),
           said.private_data == nullptr ? size_t{0} : said.private_data_len})};
  // Before anything ends: an end waits for events that are not acknowledged.
  (void)rdma_ack_cm_event(event);
  return copy;
}

bool ConnectionManager::EndListener(const rdma_cm_id* id) {
  if (id != listener_.get()) return false;
  listener_.reset();
  return true;
}

}  // namespace alpheus::fabric::verbs
