// SPDX-License-Identifier: Apache-2.0
// service_clients: clients of the service, which live outside of all primaries.
//
// Idea: a client outlives primaries and connections. It sends groups of
// requests to any process that has the log open, a deposed one included, gives
// a connection up when it has lost its patience, and goes on with another one,
// to the same process or a later one. There it repeats its requests, or asks
// what became of them, by lot. A payload that will never be appended, or was
// refused, it sends again by another number. It also asks for cleaning, ends,
// and begins anew.
//
// Invariants, as docs/design/service.md asks of clients:
//   SCL1. Numbers rise by one, and each is used for one payload with one set of
//         conditions.
//   SCL2. The lowest number without an answer is told as it is.
//   SCL3. A client goes to no epoch before one that has answered it.
//   SCL4. Answers on a connection that was given up are not heard.
//   SCL5. A client asks to end once all of its requests are answered.
// Thread safety: one thread.
// References: docs/design/service.md; service_checker.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_CLIENTS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_CLIENTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/sim/actors/service_connections.h"
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
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_CLIENTS_H_
