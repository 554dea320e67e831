// SPDX-License-Identifier: Apache-2.0
// listen_address: where a server of this process listens, as an operator writes
// it.
#ifndef ALPHEUS_API_WIRING_LISTEN_ADDRESS_H_
#define ALPHEUS_API_WIRING_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace alpheus {

struct ListenAddress {
  std::string text;          // "number:port", or "[number]:port" of IPv6
  bool is_loopback = false;  // other machines do not reach it
};

// Returns the address of "host:port". Port 0: any. May wait for a name server.
// Errors: InvalidArgument (no address); NotFound, Unavailable (a name that
// leads nowhere).
absl::StatusOr<ListenAddress> ResolveListenAddress(
    const std::string& host_and_port);

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_LISTEN_ADDRESS_H_
