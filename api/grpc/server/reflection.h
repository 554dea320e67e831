// SPDX-License-Identifier: Apache-2.0
// reflection: tells tools the server's services and messages, so that they need
// no proto file.
//
// Idea: gRPC's own one has a thread for each stream, so a peer could make the
// server start thousands. This one answers on gRPC's threads. It is the handler
// of all methods that no service has, since gRPC's names of it have two
// versions, of the same messages.
//
// Thread safety: gRPC's threads.
// References: gRPC, doc/server-reflection.md.
#ifndef ALPHEUS_API_GRPC_SERVER_REFLECTION_H_
#define ALPHEUS_API_GRPC_SERVER_REFLECTION_H_

#include <grpcpp/generic/async_generic_service.h>

#include <string>
#include <utility>
#include <vector>

#include "api/grpc/access/access.h"

namespace alpheus::rpc {

class Reflection final : public grpc::CallbackGenericService {
 public:
  // `services`: full names of those that it tells of. `access` must outlive it.
  Reflection(std::vector<std::string> services, const Access& access)
      : services_(std::move(services)), access_(access) {}

  // Answers questions until the client ends the stream, if it has a token of
  // any kind. Methods of other names are Unimplemented.
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const std::vector<std::string> services_;
  const Access& access_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_SERVER_REFLECTION_H_
