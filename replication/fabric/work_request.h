// SPDX-License-Identifier: Apache-2.0
// work_request: the parts that all adapters share: kinds of operations, and
// checks of a fabric's calls.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_
#define ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"

namespace alpheus::fabric {

inline bool IsAtomic(Operation operation) {
  return operation == Operation::kCompareSwap ||
         operation == Operation::kFetchAdd;
}

// Returns true if the local bytes are the target of an operation.
inline bool Fetches(Operation operation) {
  return operation == Operation::kRead || IsAtomic(operation);
}

// Checks what Fabric requires of the request itself: an atomic's alignment, a
// message's length. Errors: InvalidArgument.
absl::Status CheckWorkRequest(const WorkRequest& request,
                              uint64_t message_bytes_max);

// Errors of Fabric that are the same in all adapters.
absl::Status NoConnection(ConnectionId id);
absl::Status CheckPrivateData(std::string_view data, uint32_t bytes_max);

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_WORK_REQUEST_H_
