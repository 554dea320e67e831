// SPDX-License-Identifier: Apache-2.0
// socket_address: addresses as people write them and as the kernel takes them.
//
// Idea: a fabric's addresses are host:port with the host as a number, over TCP
// and over RDMA connections alike; names are nobody's business here.
//
// Thread safety: values and pure functions.
#ifndef ALPHEUS_REPLICATION_FABRIC_SOCKET_ADDRESS_H_
#define ALPHEUS_REPLICATION_FABRIC_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Nothing if the host is not a number of IPv4 or IPv6.
std::optional<SocketAddress> MakeSocketAddress(std::string_view host,
                                               uint16_t port);
// "10.0.0.1:7000", "[::1]:7000". Errors: InvalidArgument.
absl::StatusOr<SocketAddress> ParseSocketAddress(std::string_view text);
// A copy of the kernel's, which is of IPv4 or IPv6.
SocketAddress SocketAddressOf(const sockaddr* address);
// The form that ParseSocketAddress takes.
std::string FormatSocketAddress(const SocketAddress& address);

// "127.0.0.1" of "127.0.0.1:7000".
std::string_view HostOf(std::string_view address);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_FABRIC_SOCKET_ADDRESS_H_
