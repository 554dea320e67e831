// SPDX-License-Identifier: Apache-2.0
// sim_responder: the responder of a simulated adapter, which executes the
// requests of a peer one after the other, in steps.
//
// Idea: a step lands, or reads, one part of a request. A write or a message
// into attached memory goes into the stages as a whole instead (sim_staging.h).
// Where the adapter acknowledges by itself (InfiniBand) the next request's turn
// comes at once then, unless a receive must complete: that comes after the
// words (SM4).
//
// Invariants:
//   1. Each step looks up its queue pair and its region again, so that Close
//      and Deregister are fences (FB5).
//   2. On a broken connection only writes continue, for a seeded number of
//      steps, and nothing is answered.
// Thread safety: as SimNetwork.
// References: fabric.h; staged_memory.h; sim_fabric.h, which owns it.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_SIM_RESPONDER_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_SIM_RESPONDER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/persist/platform/platform.h"
#include "tools/model/fabric/queue_pair.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::model {

class SimFabric;
class SimNetwork;

class SimResponder {
 public:
  // All must outlive it.
  SimResponder(SimFabric& adapter, SimNetwork& network, int host,
               const fabric::RegionTable& regions,
               replication::Transport transport, StagedMemory& stages)
      : adapter_(adapter),
        network_(network),
        host_(host),
        regions_(regions),
        transport_(transport),
        stages_(stages) {}

  // As Fabric::PostReceive.
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into);

  // A message of the peer's requester.
  void OnRequest(fabric::ConnectionId connection, const Request& request);
  // The words of the request that is executed have left the stages. Requires:
  // the queue pair is there.
  void OnVisible(fabric::ConnectionId connection);

 private:
  void ScheduleStart(const QueuePair& pair, int64_t after_ns);
  void ScheduleStep(const QueuePair& pair);
  void Start(fabric::ConnectionId connection);
  void StartLanding(QueuePair& pair, std::span<std::byte> target);
  void StartStaged(QueuePair& pair, std::span<std::byte> target);
  void StartSend(QueuePair& pair);
  void ExecuteAtomic(QueuePair& pair, std::span<std::byte> word);
  void Step(fabric::ConnectionId connection);
  bool HasReceive(const QueuePair& pair) const;
  bool NeedsReceiveNow(const QueuePair& pair) const;
  void RetryReceiver(QueuePair& pair, bool landing);
  void FinishLanding(QueuePair& pair);
  void CompleteReceive(QueuePair& pair, fabric::CompletionStatus status);
  void Refuse(QueuePair& pair, fabric::CompletionStatus status);
  void Answer(QueuePair& pair);
  void Respond(QueuePair& pair, fabric::CompletionStatus status);
  void NextRequest(QueuePair& pair);
  void RefuseLanding(QueuePair& pair);

  SimFabric& adapter_;
  SimNetwork& network_;
  const int host_;
  const fabric::RegionTable& regions_;
  const replication::Transport transport_;
  StagedMemory& stages_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_RESPONDER_H_
