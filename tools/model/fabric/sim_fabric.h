// SPDX-License-Identifier: Apache-2.0
// sim_fabric: the adapter of one host of a SimNetwork.
//
// Control is here: it connects and closes, and owns the queue pairs. The
// adapter has three more parts: the requester (sim_requester.h) sends posted
// work and completes it; the responder (sim_responder.h) executes peers'
// operations; the staging (sim_staging.h) hands writes into attached memory to
// the stages. They act on queue pairs, in events of the network. An event names
// its queue pair by id and finds nothing once that was closed: this is the
// fence (FB5).
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
#include "tools/model/fabric/sim_requester.h"
#include "tools/model/fabric/sim_responder.h"
#include "tools/model/fabric/sim_staging.h"
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

  // For its parts, and for those of a peer in the messages that it sends.
  SimRequester& requester() { return requester_; }
  SimResponder& responder() { return responder_; }
  SimStaging& staging() { return staging_; }
  // Return nullptr once the queue pair was closed. With a mutant Find returns
  // closed ones, too; FindOpen returns those that the program may name.
  QueuePair* Find(fabric::ConnectionId connection);
  QueuePair* FindOpen(fabric::ConnectionId connection);
  const std::map<fabric::ConnectionId, QueuePair>& pairs() const {
    return pairs_;
  }
  // Breaks the connection: posted work is flushed; late bytes may land.
  void BreakPair(QueuePair& pair, Break news);
  void Complete(const QueuePair& pair, fabric::Completion completion);
  // Sends a message to the peer's adapter; `beside` the connection: without its
  // order.
  void ToPeer(const QueuePair& pair, const char* name, bool beside,
              std::function<void(SimFabric&)> deliver);
  // Schedules a function for this adapter, if it is still there then.
  void After(int64_t ns, std::function<void(SimFabric&)> happen);
  void Trace(const QueuePair& pair, std::string_view what);

 private:
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
  void Flush(QueuePair& pair);
  void Overrun();
  void BreakAll();

  SimNetwork& network_;
  const int host_;
  const uint64_t incarnation_;
  StagedMemory& stages_;
  fabric::RegionTable regions_;
  std::set<int> ports_;
  std::map<fabric::ConnectionId, QueuePair> pairs_;
  std::deque<fabric::Completion> completions_;
  bool has_overrun_ = false;  // all connections will break
  std::vector<fabric::ConnectionEvent> events_;
  SimRequester requester_;
  SimResponder responder_;
  SimStaging staging_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_SIM_FABRIC_H_
