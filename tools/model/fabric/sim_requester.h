// SPDX-License-Identifier: Apache-2.0
// sim_requester: the requester of a simulated adapter, which takes an operation
// from its posting to its completion.
//
// Idea: a posted operation departs after a moment, as a message to the peer's
// responder. Its response completes it. A peer that shows no life for too long
// fails the first operation, and the connection breaks.
//
// Invariants:
//   1. Operations of a connection depart and complete in the order of posting
//      (FB3).
//   2. An operation whose own bytes were deregistered touches them no more: it
//      fails in its turn (FB3, FB5).
// Thread safety: as SimNetwork.
// References: fabric.h; sim_fabric.h, which owns it.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_SIM_REQUESTER_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_SIM_REQUESTER_H_

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "tools/model/fabric/queue_pair.h"

namespace alpheus::model {

class SimFabric;
class SimNetwork;

class SimRequester {
 public:
  // All must outlive it.
  SimRequester(SimFabric& adapter, SimNetwork& network,
               const fabric::RegionTable& regions)
      : adapter_(adapter), network_(network), regions_(regions) {}

  // As Fabric::Post.
  absl::Status Post(fabric::ConnectionId connection,
                    const fabric::WorkRequest& request);

  // Messages of the peer's responder: it is there, though it has not executed
  // the request yet; its response to the oldest request.
  void OnAlive(fabric::ConnectionId connection);
  void OnResponse(fabric::ConnectionId connection, const Response& response);

 private:
  void Depart(fabric::ConnectionId connection);
  void Transmit(QueuePair& pair, const fabric::WorkRequest& work);
  void Watch(QueuePair& pair);
  void OnSilence(fabric::ConnectionId connection);
  void CompleteFirstSend(QueuePair& pair, fabric::CompletionStatus status);
  void FailFirstSend(QueuePair& pair, fabric::CompletionStatus status,
                     Break news);
  void FailFirstIfItLostItsBytes(QueuePair& pair);

  SimFabric& adapter_;
  SimNetwork& network_;
  const fabric::RegionTable& regions_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_REQUESTER_H_
