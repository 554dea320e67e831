// SPDX-License-Identifier: Apache-2.0
// host_numbers: resolves a host's name into the numbers that fabrics take.
//
// Idea: an address is judged by its numbers, not by its spelling: "localhost",
// 127.1 and ::ffff:127.0.0.1 are this machine, and a host called
// 127.example.com is not.
//
// Thread safety: pure functions, except LookUpHost, which asks the system and
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

namespace alpheus::quorum {

// Returns all numbers of a host, at least one: IPv4 first, each in the one form
// that the system prints. Errors: NotFound (unknown name), Unavailable (the
// name server does not answer).
using HostLookup =
    std::function<absl::StatusOr<std::vector<std::string>>(const std::string&)>;
absl::StatusOr<std::vector<std::string>> LookUpHost(const std::string& host);

// Both take numbers as a HostLookup gives them.
bool IsLoopbackNumber(std::string_view number);
// Returns true for 0.0.0.0 and ::, all addresses of a machine, which are for
// listening only.
bool IsUnspecifiedNumber(std::string_view number);

struct ResolvedAddress {
  Address address;           // its host is a number
  bool is_loopback = false;  // true if all numbers of the host are
};
// Returns the first number of the host. Errors: as HostLookup; the error names
// the address and the remedy.
absl::StatusOr<ResolvedAddress> ResolveAddress(const Address& address,
                                               const HostLookup& look_up);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_CLUSTER_HOST_NUMBERS_H_
