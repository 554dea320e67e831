// SPDX-License-Identifier: Apache-2.0
// shown_token: the token in the metadata of a call.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_GRPC_CALLS_SHOWN_TOKEN_H_
#define ALPHEUS_API_GRPC_CALLS_SHOWN_TOKEN_H_

#include <grpcpp/server_context.h>

#include "api/grpc/access/access.h"

namespace alpheus::rpc {

// Returns the digest of the token, if there is one and `access` asks for it.
// Two are none.
Shown ShownIn(const grpc::CallbackServerContext& context, const Access& access);

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_SHOWN_TOKEN_H_
