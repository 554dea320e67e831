// SPDX-License-Identifier: Apache-2.0
// service_connections: what clients of the service and primaries send each
// other.
//
// Idea: a connection goes from a client to a machine. Its messages arrive in
// their order, soon, late or very late, at the process that has the log open
// there then: that is another opening if the one of before has ended. A client
// that has waited long enough gives its connection up: it hears no answer of it
// any more. What it has sent is there all the same, and the primary reads it
// whenever it gets to it, perhaps after what other connections brought later.
//
//   client     request 7 ---------- gives up ---- resumes ---- 7 again
//                        \                            \           \ (another
//   primary               .......... late ..........> 7 > resumed  > 7  one)
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CONNECTIONS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "api/client/append/append_session.h"
#include "api/service/clients/client_requests.h"
#include "api/service/log/service_log.h"
#include "api/service/record/service_record.h"
#include "log/base/random.h"
#include "log/core/durability/persisted_by.h"
#include "tools/sim/checkers/service_checker.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class PrimaryProcess;

using ServiceConnectionId = size_t;

// A request to append, as it is sent once.
struct ServiceRequest {
  service::Request number;
  client::Payload payload;
  CopyNumber copy = 0;  // for the checker; another one each time it is sent
};

struct ServiceMessage {
  enum class Kind { kOpen, kResume, kAppend, kClose, kCleanup, kRead };

  Kind kind = Kind::kAppend;
  Epoch epoch = {};  // of the opening that it is meant for; kResume: of any
  service::ClientId client = {};
  std::optional<service::ClientKey> key = {};  // kOpen
  std::vector<ServiceRequest> requests = {};   // kAppend
  PersistedBy by = PersistedBy::kQuorum;       // kAppend: when to answer
  uint64_t lowest_unanswered = 0;              // kResume
  Epoch last_epoch = {};                       // kResume
  Lsn through = {};                            // kCleanup
  service::Consistency consistency = {};       // kRead
};

struct ServiceAnswer {
  ServiceMessage::Kind kind = ServiceMessage::Kind::kAppend;  // of the message
  // The log has failed: nothing is known.
  bool is_unknown = false;
  Epoch epoch = {};                      // of the opening that answers
  std::vector<uint64_t> sequences = {};  // kAppend: one for each verdict
  std::vector<service::Verdict> verdicts = {};
  service::Resumed resumed = {};  // kResume
  Lsn through = {};               // kRead: last LSN that it shows
};

class ServiceConnections {
 public:
  explicit ServiceConnections(World& world);

  // Members for clients.
  // Returns a primary that has the log open and serves clients, by lot; a
  // deposed one may be among them. nullptr: there is none.
  PrimaryProcess* FindOpen(Random& random) const;
  // Connects to the machine of this primary.
  ServiceConnectionId Connect(const PrimaryProcess& primary);
  void Send(ServiceConnectionId connection, ServiceMessage message);
  // Takes the next answer that has arrived.
  std::optional<ServiceAnswer> Receive(ServiceConnectionId connection);
  // Half of the connections that are given up lose what is on its way.
  void GiveUp(ServiceConnectionId connection);
  // Waits for an answer.
  void Wait(ServiceConnectionId connection, int64_t until_ns);

  // Members for a primary.
  struct Arrived {
    ServiceConnectionId connection = 0;
    ServiceMessage message;
  };
  // Takes the next message of one of its connections, by lot. Nobody gets
  // another one of that connection before Done.
  std::optional<Arrived> Take(PrimaryNumber primary);
  void Done(ServiceConnectionId connection);
  // Waits for a message.
  void WaitAsPrimary(PrimaryNumber primary, int64_t until_ns);
  void Answer(ServiceConnectionId connection, ServiceAnswer answer);

 private:
  struct Connection {
    int machine = 0;
    PrimaryNumber primary = 0;  // that reads it
    bool is_read = false;       // a thread of the primary has a message of it
    bool is_cut = false;        // nothing arrives any more
    std::deque<ServiceMessage> arrived = {};
    std::deque<ServiceAnswer> answers = {};
    int64_t last_arrival_ns = 0;  // of messages that are on their way
    int64_t last_answer_ns = 0;
  };

  // Lets the primary of now read the connection, if there is another one.
  void Route(ServiceConnectionId id);
  int64_t DrawDelay();
  // Returns after how long something arrives that may not overtake what arrives
  // at `last_ns`, which it changes.
  int64_t After(int64_t& last_ns);

  World& world_;
  Random random_;
  std::deque<Connection> connections_;
  // Connections by primary; the addresses are keys for threads to wait for.
  std::map<PrimaryNumber, std::vector<ServiceConnectionId>> by_primary_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_SERVICE_SERVICE_CONNECTIONS_H_
