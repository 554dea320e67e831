// SPDX-License-Identifier: Apache-2.0
#include "quorum/cluster/host_numbers.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace alpheus::quorum {
namespace {

std::string TextOf(int family, const void* number) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(family, number, text.data(), text.size()) == nullptr
             ? std::string()
             : std::string(text.data());
}

// Returns the number; an IPv4 number inside an IPv6 one as IPv4.
std::string NumberOf(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return TextOf(AF_INET, &v4.sin_addr);
  }
  if (address.sa_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    return TextOf(AF_INET, &v6.sin6_addr.s6_addr[12]);
  }
  return TextOf(AF_INET6, &v6.sin6_addr);
}

bool IsOfIpv6(const std::string& number) {
  return absl::StrContains(number, ":");
}

absl::Status LookupError(int error) {
  const std::string why = gai_strerror(error);
  if (error == EAI_AGAIN || error == EAI_SYSTEM || error == EAI_MEMORY) {
    return absl::UnavailableError(why);
  }
  return absl::NotFoundError(why);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> LookUpHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) return LookupError(error);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list,
                                                             freeaddrinfo);
  std::vector<std::string> numbers;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    std::string number = NumberOf(*one->ai_addr);
    if (!number.empty()) numbers.push_back(std::move(number));
  }
  // Sorted, so that all processes pick the same one, whatever order a name
  // server gives.
  std::ranges::sort(numbers, {}, [](const std::string& number) {
    return std::pair(IsOfIpv6(number), number);
  });
  if (!numbers.empty()) return numbers;
  return absl::NotFoundError("it has no IPv4 or IPv6 number");
}

bool IsLoopbackNumber(std::string_view number) {
  const std::string text(number);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

bool IsUnspecifiedNumber(std::string_view number) {
  const std::string text(number);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return v4.s_addr == 0;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_UNSPECIFIED(&v6);
}

absl::StatusOr<ResolvedAddress> ResolveAddress(const Address& address,
                                               const HostLookup& look_up) {
  const absl::StatusOr<std::vector<std::string>> numbers =
      look_up(address.host);
  if (!numbers.ok()) {
    return absl::Status(
        numbers.status().code(),
        absl::StrCat(
            address.ToString(), ": the number of this host can't be found: ",
            numbers.status().message(),
            ". Write the number, or enter the name in /etc/hosts or in DNS"));
  }
  return ResolvedAddress{{numbers->front(), address.port},
                         std::ranges::all_of(*numbers, IsLoopbackNumber)};
}

}  // namespace alpheus::quorum
