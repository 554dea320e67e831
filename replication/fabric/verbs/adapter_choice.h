// SPDX-License-Identifier: Apache-2.0
// adapter_choice: finds which of a machine's adapters leads to an address.
//
// Idea: users need not name one. The connection manager knows which adapter has
// an address of this machine, and which one reaches another machine.
//
// Thread safety: concurrently; they ask the kernel.
// References: rdma_bind_addr(3), rdma_resolve_addr(3).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_CHOICE_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_CHOICE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus::fabric::verbs {

// Returns the name of the adapter that has this address, a number without port.
// Errors: InvalidArgument (not a number); NotFound (none has it).
absl::StatusOr<std::string> DeviceOf(std::string_view host);

// Returns the own address, a number without port, from which an adapter reaches
// `address` (host:port); for an own address, that one. Waits up to
// `timeout_ms`. Errors: InvalidArgument (not an address); Unavailable (no
// adapter does).
absl::StatusOr<std::string> SourceHostTowards(std::string_view address,
                                              int timeout_ms);

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_CHOICE_H_
