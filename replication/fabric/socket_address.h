// SPDX-License-Identifier: Apache-2.0
// socket_address: addresses as people write them and as the kernel takes them.
//
// Idea: a fabric's addresses are host:port with the host as a number, over TCP
// and RDMA alike. Names are resolved elsewhere (quorum/cluster/host_numbers.h).
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

namespace alpheus::fabric {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Returns nothing if the host is not a number of IPv4 or IPv6.
std::optional<SocketAddress> MakeSocketAddress(std::string_view host,
                                               uint16_t port);
// Parses "10.0.0.1:7000" or "[::1]:7000". Errors: InvalidArgument.
absl::StatusOr<SocketAddress> ParseSocketAddress(std::string_view text);
// Returns a copy of the kernel's address, of IPv4 or IPv6.
SocketAddress SocketAddressOf(const sockaddr* address);
// Returns the form that ParseSocketAddress takes.
std::string FormatSocketAddress(const SocketAddress& address);

// Returns "127.0.0.1" for "127.0.0.1:7000".
std::string_view HostOf(std::string_view address);
// Returns bytes that stand for all numbers that one host may have as it likes:
// of IPv4 the number, of IPv6 its network of 64 bits. `host` is a number.
std::string NetworkOf(std::string_view host);

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_SOCKET_ADDRESS_H_
