// SPDX-License-Identifier: Apache-2.0
// service_server: how a simulated primary serves clients: the product's
// ServiceLog on its log, and the connections that bring requests.
//
// Idea: each thread reads a message of any connection, hands it to ServiceLog,
// and goes on. Answers leave when the log says that they may. Each record
// begins with its operation's number, by which history.h knows it.
//
// Thread safety: threads of the primary's process (threads.h).
// References: service_log.h; service_connections.h; service_checker.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_SERVER_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_SERVER_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "api/service/log/service_log.h"
#include "log/core/durability/persisted_by.h"
#include "tools/sim/actors/rocksdb_files.h"
#include "tools/sim/actors/service/service_connections.h"
#include "tools/sim/world/history.h"

namespace alpheus::sim {

class PrimaryProcess;

class ServiceServer {
 public:
  // For an epoch that is open.
  explicit ServiceServer(PrimaryProcess& primary);
  ~ServiceServer();

  // Takes the records that the opening has shown. Called before all others.
  void Recover(std::span<const History::Shown> records);
  // Runs a thread.
  void RunThread();
  Epoch epoch() const { return service_.epoch(); }

 private:
  class Port;

  void Handle(const ServiceConnections::Arrived& arrived);
  // For a client's beginning or end.
  void BeginOrEnd(ServiceConnectionId connection,
                  const ServiceMessage& message);
  void Resume(ServiceConnectionId connection, const ServiceMessage& message);
  void Append(ServiceConnectionId connection, const ServiceMessage& message);
  void Clean(ServiceConnectionId connection, const ServiceMessage& message);
  void Read(ServiceConnectionId connection, const ServiceMessage& message);
  // Judges until the log has held up none, or the primary ends. `judge` adds
  // verdicts behind those that are there.
  void JudgeUntilItGoesOn(
      const std::function<void(std::vector<service::Verdict>*)>& judge,
      std::vector<service::Verdict>* verdicts);
  // Answers once these verdicts may be told.
  void AnswerWhenSettled(ServiceConnectionId connection,
                         std::span<const service::Verdict> verdicts,
                         ServiceAnswer answer,
                         PersistedBy by = PersistedBy::kQuorum);

  PrimaryProcess& primary_;
  ServiceConnections& connections_;
  // ServiceLog's own lock would block the one thread that all of them are.
  FiberMutex one_at_a_time_;
  const std::unique_ptr<Port> port_;
  service::ServiceLog service_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_SERVER_H_
