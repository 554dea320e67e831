// SPDX-License-Identifier: Apache-2.0
// echo_server: a bare gRPC server with the messages of the service and no log:
// the floor of what goes through gRPC.
//
// Idea: it has the service's options, callbacks and messages. It answers each
// message of a stream of requests at once, on the thread that has read it, and
// hands each record to all tails. It keeps nothing, so any client's requests
// are new to it.
//
// Thread safety: one thread; gRPC has its own.
// References: api/grpc/server/log_server.cc.
#ifndef ALPHEUS_BENCH_SERVICE_GRPC_ECHO_SERVER_H_
#define ALPHEUS_BENCH_SERVICE_GRPC_ECHO_SERVER_H_

#include "absl/status/status.h"

namespace alpheus::bench::service {

inline constexpr const char* kEchoKind = "echo";

// Serves until it is killed. Says its address. Errors: Unavailable.
absl::Status ServeEcho();

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_GRPC_ECHO_SERVER_H_
