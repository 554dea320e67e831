// SPDX-License-Identifier: Apache-2.0
// node_stubs: connections to the nodes of a log, one to each.
//
// Thread safety: one thread at a time; stubs by many.
#ifndef ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_
#define ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_

#include <map>
#include <memory>
#include <string>

#include "alpheus/v1/log_service.grpc.pb.h"

namespace alpheus::client {

class NodeStubs {
 public:
  using Stub = v1::LogService::Stub;

  // Returns the calls to a node. Valid as long as this object.
  Stub& At(const std::string& address);

 private:
  std::map<std::string, std::unique_ptr<Stub>> stubs_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_
