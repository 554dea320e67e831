// SPDX-License-Identifier: Apache-2.0
// sim_staging: hands what lands in attached memory of a simulated adapter to
// the stages, and moves it through them.
//
// Idea: when its turn has come, a request is in the adapter as a whole. From
// there its words move in steps of all connections together. A connection is a
// channel of the stages.
//
// Thread safety: as SimNetwork.
// References: staged_memory.h; sim_fabric.h, which owns it.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_SIM_STAGING_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_SIM_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "replication/fabric/fabric.h"
#include "tools/model/fabric/queue_pair.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::model {

class SimFabric;
class SimNetwork;

class SimStaging {
 public:
  // All must outlive it.
  SimStaging(SimFabric& adapter, SimNetwork& network, int host,
             StagedMemory& stages)
      : adapter_(adapter), network_(network), host_(host), stages_(stages) {}

  // Receive the bytes of the request that is executed: those that have not been
  // received yet, without its last packet or with it.
  void ReceiveBeforeLastPacket(QueuePair& pair, std::span<std::byte> target);
  void ReceiveAll(QueuePair& pair, std::span<std::byte> target);
  // Receives the result of an atomic.
  void ReceiveWord(const QueuePair& pair, std::span<std::byte> word,
                   uint64_t value);
  // Calls the responder's OnVisible once nothing of the connection is on its
  // way any more.
  void AwaitVisible(QueuePair& pair);
  // Schedules moves, until there is no word left to move.
  void ScheduleMoves();

 private:
  void Receive(QueuePair& pair, std::span<std::byte> target, uint64_t end);
  StagedMemory::Write WriteOf(const QueuePair& pair);
  void MakeMoves();
  void ContinueIfVisible(fabric::ConnectionId connection);

  SimFabric& adapter_;
  SimNetwork& network_;
  const int host_;
  StagedMemory& stages_;
  bool moves_scheduled_ = false;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_STAGING_H_
