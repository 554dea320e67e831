// SPDX-License-Identifier: Apache-2.0
// address: host and port of a node, as an operator writes them.
//
// Thread safety: values and pure functions; no name is looked up.
#ifndef ALPHEUS_QUORUM_MEMBERS_ADDRESS_H_
#define ALPHEUS_QUORUM_MEMBERS_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus::quorum {

struct Address {
  std::string host;   // name or number, in lower case, without brackets
  uint16_t port = 0;  // 1 to 65535

  bool operator==(const Address&) const = default;

  // The form that ParseAddress takes.
  std::string ToString() const;
};

// Parses "name:port", "1.2.3.4:port" or "[fe80::1%eth0]:port". Names are
// resolved later (host_numbers.h). Errors: InvalidArgument (anything else).
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_ADDRESS_H_
