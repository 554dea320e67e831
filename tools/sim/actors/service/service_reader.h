// SPDX-License-Identifier: Apache-2.0
// service_reader: a client of the service that reads.
//
// Idea: it asks any process that has the log open, a deposed one included, up
// to where the log is durable. Most of its reads are linearizable. The others
// ask for what the process has: they show how often that is old, and are not
// judged. It waits for one answer at a time, and gives up the connection of one
// that is late.
//
// Thread safety: one thread.
// References: protocol P-H23; service_checker.h (SVC8).
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_READER_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_READER_H_

#include <cstdint>
#include <optional>

#include "log/base/random.h"
#include "tools/sim/actors/service/service_connections.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class ServiceClients;

class ServiceReader {
 public:
  // Starts it.
  ServiceReader(World& world, ServiceClients& all, uint64_t number);

 private:
  void Run();
  void Read();

  World& world_;
  ServiceClients& all_;
  Random random_;
  // The last one, while it works.
  struct Connection {
    ServiceConnectionId id = 0;
    PrimaryNumber primary = 0;
  };
  std::optional<Connection> connection_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_READER_H_
