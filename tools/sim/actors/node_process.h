// SPDX-License-Identifier: Apache-2.0
// node_process: the daemon of one machine: serves its replica while no other
// process of the machine has it.
//
// Thread safety: one thread.
// References: api/node/node.h, whose loop this is in virtual time.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_NODE_PROCESS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_NODE_PROCESS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "log/base/random.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/replica_server.h"
#include "recovery/server/served_log.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class NodeProcess final : private recovery::LocalRegions {
 public:
  // Starts to run.
  NodeProcess(World& world, World::Machine& machine);

  ProcessId process() const { return process_; }
  ProcessClock& clock() { return clock_; }
  // Returns the number of peers that it rejected.
  uint64_t rejects() const {
    return server_ == nullptr ? 0 : server_->rejects().total();
  }

  enum class Released { kNotYet, kYes, kRefused };
  // Releases the region for an application of this machine, unless the replica
  // has promised an epoch above `promised_max`, as a node does by Release of
  // messages.h. kNotYet: ask again.
  Released Release(std::optional<Epoch> promised_max);

 private:
  void LetGo();
  bool HasPromisedAbove(std::optional<Epoch> epoch) const;
  absl::Status WhyUnserved(Uuid log_id) override;
  absl::StatusOr<recovery::ServerHello> ReadServerHello(Uuid log_id) override;
  void OnLockHolderGone(Uuid log_id) override;
  recovery::ReplicaServerOptions ServerOptions();
  void CloseFailed();
  void BeSuspicious();
  void Run();
  void TryToServe();
  bool Turn();

  World& world_;
  World::Machine& machine_;
  const int host_;
  const ProcessId process_;
  Random random_;  // of nonces
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::unique_ptr<recovery::ReplicaServer> server_;
  recovery::ServedLog* served_ = nullptr;  // while it serves it
  bool is_suspect_ = false;  // a fence failed; not marked on the medium yet
  bool must_release_ = false;
  std::optional<Epoch> release_max_;  // limit of that release
  int64_t recheck_at_ = 0;
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_NODE_PROCESS_H_
