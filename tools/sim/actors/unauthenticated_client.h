// SPDX-License-Identifier: Apache-2.0
// unauthenticated_client: a client that reaches the nodes' ports and does not
// have the cluster's key.
//
// Idea: it connects to a drawn node and asks for something before it has proved
// anything, proves by another key, replays a recorded good handshake, uses
// another cluster's id, or sends malformed messages (malformed_requests.h). It
// must get nothing, and the node must count it. All other checkers show that it
// disturbs nobody: it could only get a promise, a region key or the end of a
// session.
//
// Thread safety: one thread.
// References: protocol P-H17; handshake.h, HSK1 to HSK3; reject_counters.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_UNAUTHENTICATED_CLIENT_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_UNAUTHENTICATED_CLIENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/base/random.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "tools/sim/faults/malformed_requests.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class UnauthenticatedClient {
 public:
  // Starts to run.
  UnauthenticatedClient(World& world, int host);

 private:
  // Recording of a process that has the key.
  struct Recorded {
    int machine = 0;
    recovery::Hello hello;
    recovery::Challenge challenge;
    recovery::Prove prove;
  };

  void Run();
  recovery::Hello DrawHello();
  recovery::ControlCall::Options At(const World::Machine& machine,
                                    const recovery::Hello& hello);
  void AskUnproved(const World::Machine& machine);
  void ProveByAnotherKey(const World::Machine& machine);
  void ComeFromAnotherCluster(const World::Machine& machine);
  void Record(const World::Machine& machine);
  void Replay();
  void SendMalformed(const World::Machine& machine);
  MalformedCall DrawMalformedCall(const World::Machine& machine);
  void JudgeMalformed(const World::Machine& machine,
                      const MalformedConversation& talk,
                      std::optional<uint64_t> before);
  // Returns whether the node, which was not restarted, has counted one more.
  bool IsCounted(int machine, std::optional<uint64_t> before);
  // Waits until it is done; returns false if that takes too long.
  template <class Talk>
  bool Finish(Talk& talk);
  // Returns how many peers the node of that machine has rejected; nothing if it
  // has no node.
  std::optional<uint64_t> Rejected(int machine);
  // Judges a finished attempt, which must have got nothing. `before`: rejected
  // until then.
  void Judge(const World::Machine& machine, const char* what,
             const recovery::ControlCall& control_call,
             std::optional<uint64_t> before);

  World& world_;
  const int host_;
  Random random_;
  Random malformed_;  // separate draws
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::optional<Recorded> recorded_;
  ProcessId node_ = 0;  // counted before
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_UNAUTHENTICATED_CLIENT_H_
