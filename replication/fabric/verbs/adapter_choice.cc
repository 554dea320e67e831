// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/adapter_choice.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/verbs/handles.h"

namespace alpheus::fabric::verbs {
namespace {

// Without an event channel its calls wait for their outcome.
absl::StatusOr<CommunicationId> MakeWaitingId() {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) != 0) {
    return absl::UnavailableError(
        absl::StrCat("rdma_create_id: ", std::strerror(errno),
                     ". Is the module rdma_ucm loaded?"));
  }
  return CommunicationId(id);
}

}  // namespace

absl::StatusOr<std::string> DeviceOf(std::string_view host) {
  std::optional<SocketAddress> address = MakeSocketAddress(host, 0);
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(host), "\" is no number of a host"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const CommunicationId id, MakeWaitingId());
  const bool is_bound = rdma_bind_addr(id.get(), address->get()) == 0;
  if (!is_bound || id->verbs == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no adapter with RDMA of this machine has the address ",
        std::string(host),
        is_bound ? "" : absl::StrCat(": ", std::strerror(errno)),
        ". `rdma link` lists the adapters, and their network interfaces"));
  }
  return std::string(ibv_get_device_name(id->verbs->device));
}

absl::StatusOr<std::string> SourceHostTowards(std::string_view address,
                                              int timeout_ms) {
  ALPHEUS_ASSIGN_OR_RETURN(SocketAddress to, ParseSocketAddress(address));
  ALPHEUS_ASSIGN_OR_RETURN(const CommunicationId id, MakeWaitingId());
  if (rdma_resolve_addr(id.get(), nullptr, to.get(), timeout_ms) != 0 ||
      id->verbs == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "no adapter with RDMA of this machine leads to ", std::string(address),
        ": ", std::strerror(errno),
        ". `rdma link` lists the adapters, and their network interfaces"));
  }
  return std::string(HostOf(
      FormatSocketAddress(SocketAddressOf(rdma_get_local_addr(id.get())))));
}

}  // namespace alpheus::fabric::verbs
