// SPDX-License-Identifier: Apache-2.0
// log_server: listens for the service's clients, over gRPC.
//
// Idea: all of gRPC is behind this header, so that a build without it has the
// same daemon, but for one error. The server has no thread for each call or
// stream (gRPC's callback API): gRPC has a few threads of its own, and one
// reads for tails that are woken.
//
//   grpc.health.v1   ""                      the process is alive
//                    "alpheus/<log>/append"  this node takes requests
//                    "alpheus/<log>/tail"    this node shows records
//
// Thread safety: Start and the destructor by one thread. Requires: the logs are
// withdrawn before the destructor.
// References: docs/design/service.md;
// api/grpc/proto/alpheus/v1/log_service.proto.
#ifndef ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_
#define ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/service/served/served_logs.h"

namespace alpheus::rpc {

class LogServer {
 public:
  // Checks what Start checks before it listens. May wait for a name server.
  // Errors: InvalidArgument (no address, or not of this machine's own loopback
  // network: without TLS anybody could read and write); NotFound, Unavailable
  // (a name that leads nowhere); Unimplemented (built without gRPC).
  static absl::Status Check(const std::string& listen);
  // Listens at this address, "host:port", for requests to these logs, which
  // must outlive it. Port 0: any. Errors: as Check; Unavailable (the address
  // can't be had); ResourceExhausted (no thread).
  static absl::StatusOr<std::unique_ptr<LogServer>> Start(
      const std::string& listen, service::ServedLogs& logs);
  // Ends all calls. Those that are about to be answered have a second for that.
  virtual ~LogServer() = default;

  // Returns the address on which it listens.
  virtual const std::string& address() const = 0;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_SERVER_LOG_SERVER_H_
