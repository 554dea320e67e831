// SPDX-License-Identifier: Apache-2.0
// service_clients: clients of the service, which live outside of all primaries.
//
// Idea: a client outlives primaries and connections. What it has sent, and what
// it sends next, is the product's business: its AppendSession. The rest is
// here. It sends groups of requests, several at a time, to any process that has
// the log open, a deposed one included. It gives a connection up when it has
// lost its patience, resumes with another one, to any process, and goes on. A
// payload that was refused it sends again by another number. It also asks for
// cleaning, ends, and begins anew. Now and then another process resumes in its
// name, and it has to resume again.
//
// Invariants, as docs/design/service.md asks of clients:
//   SCL1. Answers on a connection that was given up are not heard.
//   SCL2. A client asks to end once all of its requests are answered, and sends
//         nothing after that.
// Thread safety: one thread.
// References: docs/design/service.md; service_checker.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CLIENTS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CLIENTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/sim/actors/service/service_connections.h"
#include "tools/sim/actors/service/service_reader.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class ServiceClient;

class ServiceClients {
 public:
  // Starts them.
  explicit ServiceClients(World& world);
  ~ServiceClients();

  ServiceConnections& connections() { return connections_; }
  // From now on they send nothing new.
  void Rest() { is_resting_ = true; }
  bool is_resting() const { return is_resting_; }
  // Returns whether each request has its answer.
  bool AreAllAnswered() const;
  // Returns another token.
  uint64_t NewToken() { return ++tokens_; }

 private:
  ServiceConnections connections_;
  bool is_resting_ = false;
  uint64_t tokens_ = 0;
  std::vector<std::unique_ptr<ServiceClient>> clients_;
  std::vector<std::unique_ptr<ServiceReader>> readers_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CLIENTS_H_
