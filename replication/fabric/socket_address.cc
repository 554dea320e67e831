// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace alpheus::fabric {
namespace {

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

std::optional<SocketAddress> MakeSocketAddress(std::string_view host,
                                               uint16_t port) {
  SocketAddress address;
  const std::string text(host);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.bytes = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.bytes = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

absl::StatusOr<SocketAddress> ParseSocketAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon != std::string_view::npos &&
      absl::SimpleAtoi(View(text.substr(colon + 1)), &port) && port <= 65535) {
    if (const auto address =
            MakeSocketAddress(HostOf(text), static_cast<uint16_t>(port))) {
      return *address;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", View(text), "\" is not an address; write host:port, the host as a ",
      "number, such as 10.0.0.1:7000 or [::1]:7000"));
}

SocketAddress SocketAddressOf(const sockaddr* address) {
  SocketAddress copy;
  copy.bytes = address->sa_family == AF_INET ? sizeof(sockaddr_in)
                                             : sizeof(sockaddr_in6);
  std::memcpy(&copy.storage, address, copy.bytes);
  return copy;
}

std::string FormatSocketAddress(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return absl::StrCat(text.data(), ":", ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  return absl::StrCat("[", text.data(), "]:", ntohs(v6->sin6_port));
}

std::string_view HostOf(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

std::string NetworkOf(std::string_view host) {
  in6_addr v6{};
  std::string text(host);
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return text;
  // A number of IPv4 at a socket of IPv6 is behind 96 bits that all share.
  const size_t bytes = IN6_IS_ADDR_V4MAPPED(&v6) ? sizeof(v6) : sizeof(v6) / 2;
  text.resize(bytes);
  std::memcpy(text.data(), &v6, bytes);
  return text;
}

}  // namespace alpheus::fabric
