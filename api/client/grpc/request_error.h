// SPDX-License-Identifier: Apache-2.0
// request_error: what the details of a status say (log_service.proto).
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_CLIENT_GRPC_REQUEST_ERROR_H_
#define ALPHEUS_API_CLIENT_GRPC_REQUEST_ERROR_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "alpheus/v1/log_service.pb.h"

namespace alpheus::client {

// Returns the error in the details; nothing set: there is none.
v1::RequestError ErrorIn(const grpc::Status& status);
// Returns the error of a call that no other node would answer better; OK: one
// may.
absl::Status FinalError(const grpc::Status& status);

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_REQUEST_ERROR_H_
