// SPDX-License-Identifier: Apache-2.0
// sim_fabric: the adapter of one host of a SimNetwork.
//
// Four parts, one file each: control (sim_fabric.cc) connects and closes; the
// requester (sim_requester.cc) sends posted work and completes it; the
// responder (sim_responder.cc) executes peers' operations; sim_staging.cc hands
// writes into attached memory to the stages. They act on queue pairs, in events
// of the network. An event names its queue pair by id and finds nothing once
// that was closed: this is the fence (FB5).
//
// The adapter works while its program does nothing; Poll only takes.
// Thread safety: as SimNetwork.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_SIM_FABRIC_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_SIM_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/persist/platform/platform.h"
#include "tools/model/fabric/queue_pair.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::model {

class SimFabric final : public fabric::Fabric {
 public:
  // `network`, `keys` and `stages` must outlive it.
  SimFabric(SimNetwork& network, int host, uint64_t incarnation,
            RandomSource& keys, replication::Transport transport,
            StagedMemory& stages);

  Limits limits() const override;
  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override;
  absl::Status Deregister(fabric::RegionKey key) override;
  // Listens on "sim:<host>:<port>"; port 0 is any free one.
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<fabric::ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) override;
  absl::Status Accept(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Reject(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Close(fabric::ConnectionId connection) override;
  absl::Status Post(fabric::ConnectionId connection,
                    const fabric::WorkRequest& request) override;
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into) override;
  size_t Poll(std::span<fabric::Completion> completions,
              std::vector<fabric::ConnectionEvent>* events) override;
  bool RunTurn() override { return false; }
  void WaitForActivity(Deadline deadline) override;
  void Wake() override {}

  // Closes each connection, as the program's Close does.
  void CloseAll();

 private:
  enum class Break { kNotifyPeer, kSilent };

  // Control.
  QueuePair* Find(
      fabric::ConnectionId connection);  // with a mutant also closed ones
  // those that the program may name
  QueuePair* FindOpen(fabric::ConnectionId connection);
  QueuePair* FindPeersOf(const QueuePairAddress& peer);
  QueuePairAddress AddressOf(const QueuePair& pair) const;
  QueuePair& NewQueuePair(QueuePairState state);
  absl::StatusOr<QueuePair*> FindRequest(fabric::ConnectionId connection,
                                         std::string_view private_data,
                                         const char* call);
  void OnConnectRequest(int port, const QueuePairAddress& from,
                        const std::string& private_data);
  void OnAccepted(fabric::ConnectionId connection, const QueuePairAddress& peer,
                  const std::string& private_data);
  void OnRefused(fabric::ConnectionId connection,
                 fabric::ConnectionEvent::Kind kind,
                 const std::string& private_data);
  void OnConfirmed(fabric::ConnectionId connection);
  void OnPeerBroke(const QueuePairAddress& peer);
  void AbandonConnecting(fabric::ConnectionId connection);
  void NotifyPeerOfEnd(const QueuePair& pair);
  void Event(fabric::ConnectionEvent::Kind kind, const QueuePair& pair,
             const std::string& private_data = "");
  // Breaks the connection: posted work is flushed; late bytes may land.
  void BreakPair(QueuePair& pair, Break news);
  void Flush(QueuePair& pair);
  void Complete(const QueuePair& pair, fabric::Completion completion);
  void Overrun();
  void BreakAll();
  void ToPeer(const QueuePair& pair, const char* name, bool beside,
              std::function<void(SimFabric&)> deliver);
  void After(int64_t ns, std::function<void(SimFabric&)> happen);
  void Trace(const QueuePair& pair, std::string_view what);

  // Requester.
  void Depart(fabric::ConnectionId connection);
  void Transmit(QueuePair& pair, const fabric::WorkRequest& work);
  void Watch(QueuePair& pair);
  void OnSilence(fabric::ConnectionId connection);
  void OnAlive(fabric::ConnectionId connection);
  void OnResponse(fabric::ConnectionId connection, const Response& response);
  void CompleteFirstSend(QueuePair& pair, fabric::CompletionStatus status);
  void FailFirstSend(QueuePair& pair, fabric::CompletionStatus status,
                     Break news);
  void FailFirstIfItLostItsBytes(QueuePair& pair);

  // Responder.
  void OnRequest(fabric::ConnectionId connection, const Request& request);
  void ScheduleStart(const QueuePair& pair, int64_t after_ns);
  void ScheduleStep(const QueuePair& pair);
  void Start(fabric::ConnectionId connection);
  void StartLanding(QueuePair& pair, std::span<std::byte> target);
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

  // Stages: a connection is a channel.
  void StartStaged(QueuePair& pair, std::span<std::byte> target);
  void ReceiveStaged(QueuePair& pair, std::span<std::byte> target,
                     uint64_t end);
  StagedMemory::Write StagedWrite(const QueuePair& pair);
  void AwaitVisible(QueuePair& pair);
  void ScheduleMoves();
  void MakeMoves();
  void ContinueIfVisible(fabric::ConnectionId connection);

  SimNetwork& network_;
  const int host_;
  const uint64_t incarnation_;
  const replication::Transport transport_;
  StagedMemory& stages_;
  bool moves_scheduled_ = false;
  fabric::RegionTable regions_;
  std::set<int> ports_;
  std::map<fabric::ConnectionId, QueuePair> pairs_;
  std::deque<fabric::Completion> completions_;
  bool has_overrun_ = false;  // all connections will break
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_FABRIC_H_
