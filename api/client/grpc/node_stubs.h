// SPDX-License-Identifier: Apache-2.0
// node_stubs: connections to the nodes of a log, one to each.
//
// Invariants:
//   NDS1. A connection may take as long as an answer: nodes may be far away.
// Thread safety: one thread at a time; stubs and security() by many.
#ifndef ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_
#define ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/client/grpc/channel_security.h"

namespace alpheus::client {

class NodeStubs {
 public:
  using Stub = v1::LogService::Stub;

  // `connect_ms`: that a node has to take a connection, with TLS if there is
  // any.
  NodeStubs(ChannelSecurity security, uint32_t connect_ms)
      : security_(std::move(security)),
        connect_ms_(static_cast<int>(connect_ms)) {}

  // Returns the calls to a node, valid as long as this object; null if nothing
  // may be sent to this address (CHS1, channel_security.h).
  Stub* At(const std::string& address);
  // Every call is authorized by it.
  const ChannelSecurity& security() const { return security_; }

 private:
  const ChannelSecurity security_;
  const int connect_ms_;
  std::map<std::string, std::unique_ptr<Stub>> stubs_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_NODE_STUBS_H_
