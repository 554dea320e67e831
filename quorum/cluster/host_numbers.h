// SPDX-License-Identifier: Apache-2.0
// host_numbers: where a host's name leads, as the numbers that fabrics take.
//
// Idea: an address is judged by where it leads, not by how it is spelled:
// "localhost", 127.1 and ::ffff:127.0.0.1 are this machine, and a host called
// 127.example.com is not.
//
// Thread safety: pure functions, but for LookUpHost, which asks the system and
// may wait for a name server.
#ifndef ALPHEUS_QUORUM_CLUSTER_HOST_NUMBERS_H_
#define ALPHEUS_QUORUM_CLUSTER_HOST_NUMBERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quorum/members/address.h"

namespace alpheus {

// All numbers of a host, at least one: those of IPv4 first, each in the one
// form that the system prints. Errors: NotFound (nobody knows the name),
// Unavailable (the name server does not answer).
using HostLookup =
    std::function<absl::StatusOr<std::vector<std::string>>(const std::string&)>;
absl::StatusOr<std::vector<std::string>> LookUpHost(const std::string& host);

// Of numbers as a HostLookup gives them.
bool IsLoopbackNumber(std::string_view number);
// 0.0.0.0 or ::, all addresses of a machine: something to listen on only.
bool IsUnspecifiedNumber(std::string_view number);

struct ResolvedAddress {
  Address address;           // its host is a number
  bool is_loopback = false;  // all numbers of the host are
};
// The first number of the host. Errors: as HostLookup, naming the address and
// what to do.
absl::StatusOr<ResolvedAddress> ResolveAddress(const Address& address,
                                               const HostLookup& look_up);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_CLUSTER_HOST_NUMBERS_H_
