// SPDX-License-Identifier: Apache-2.0
// The server of a build without gRPC: there is none.
#include "api/grpc/server/log_server.h"

namespace alpheus::rpc {

absl::Status LogServer::Check(const LogServerOptions& /*options*/,
                              const WallClock& /*clock*/) {
  return absl::UnimplementedError(
      "this program was built without gRPC, and serves no clients. Install "
      "libgrpc++-dev, libprotobuf-dev, protobuf-compiler and "
      "protobuf-compiler-grpc, and build it again");
}

absl::StatusOr<std::unique_ptr<LogServer>> LogServer::Start(
    const LogServerOptions& options, service::ServedLogs& /*logs*/,
    std::function<void(const std::string&)> /*say*/, const WallClock& clock,
    Administrator* /*administrator*/) {
  return Check(options, clock);
}

}  // namespace alpheus::rpc
