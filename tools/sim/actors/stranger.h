// SPDX-License-Identifier: Apache-2.0
// stranger: somebody who reaches the nodes' ports and has not the cluster's
// key.
//
// Idea: it connects to a drawn node and asks for something before it has proved
// anything, proves by another key, says again what it has recorded of a good
// handshake, comes with another cluster's id, or talks nonsense (nonsense.h).
// It must get nothing, and the node must count it. That it disturbs nobody is
// what all other checkers say: what it would be given is a promise, a region
// key or the end of a session.
//
// Thread safety: one thread.
// References: protocol P-H17; handshake.h, HSK1 to HSK3; refusals.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_STRANGER_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_STRANGER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/base/random.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/inquiry.h"
#include "recovery/protocol/messages.h"
#include "tools/sim/faults/nonsense.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class Stranger {
 public:
  // Begins to run by itself.
  Stranger(World& world, int host);

 private:
  // What it has recorded of a process that has the key.
  struct Recorded {
    int machine = 0;
    Hello hello;
    Challenge challenge;
    Prove prove;
  };

  void Run();
  Hello DrawHello();
  Inquiry::Options At(const World::Machine& machine, const Hello& hello);
  void AskUnproved(const World::Machine& machine);
  void ProveByAnotherKey(const World::Machine& machine);
  void ComeFromAnotherCluster(const World::Machine& machine);
  void Record(const World::Machine& machine);
  void Replay();
  void TalkNonsense(const World::Machine& machine);
  NonsenseCall DrawNonsenseCall(const World::Machine& machine);
  void JudgeNonsense(const World::Machine& machine, const NonsenseTalk& talk,
                     std::optional<uint64_t> before);
  // Whether the node, which was not started anew, has counted one more.
  bool IsCounted(int machine, std::optional<uint64_t> before);
  // Until it is done; false if that takes too long.
  template <class Talk>
  bool Finish(Talk& talk);
  // How often the node of that machine has refused somebody; nothing if it has
  // none.
  std::optional<uint64_t> Refused(int machine);
  // It is over: it was to get nothing. `before`: refused until then.
  void Judge(const World::Machine& machine, const char* what,
             const Inquiry& inquiry, std::optional<uint64_t> before);

  World& world_;
  const int host_;
  Random random_;
  Random nonsense_;  // draws of its own
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::optional<Recorded> recorded_;
  ProcessId node_ = 0;  // that was counted before
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_STRANGER_H_
