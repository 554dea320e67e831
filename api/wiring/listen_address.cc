// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/listen_address.h"

#include "log/base/status_macros.h"
#include "quorum/cluster/host_numbers.h"
#include "quorum/members/address.h"

namespace alpheus {

// Port 0 is no address, but may be listened on.
absl::StatusOr<ListenAddress> ResolveListenAddress(
    const std::string& host_and_port) {
  std::string text = host_and_port;
  const bool is_any_port = text.ends_with(":0");
  if (is_any_port) text.back() = '1';
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::Address address,
                           quorum::ParseAddress(text));
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ResolvedAddress resolved,
                           quorum::ResolveAddress(address, quorum::LookUpHost));
  text = resolved.address.ToString();
  if (is_any_port) text.back() = '0';
  return ListenAddress{text, resolved.is_loopback};
}

}  // namespace alpheus
