// SPDX-License-Identifier: Apache-2.0
// candidate_agent: registers a machine with the membership service, stands for
// primary, and starts the application when it is first.
//
// Idea: each machine with a membership service has such an agent: a thread of
// the node's daemon, or a process of its own where there is no node. Safety
// never rests on what the service tells it: an application that it started runs
// until it is fenced, unless the agent ends it. Lots decide what the agent
// does:
//   * Its session has expired, or another machine is first: it ends the
//     application in good order, kills it, or does nothing, like a process that
//     did not notice.
//   * Its connection is lost: cautious agents end the application, others wait.
//   * The application ended by itself, and may be unable to open the log from
//     here: the agent stands again at once, or first withdraws, so that others
//     go first.
//
// Thread safety: one thread.
// References: sim_znodes.h; protocol P-H24.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_CANDIDATE_AGENT_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_CANDIDATE_AGENT_H_

#include <cstdint>
#include <memory>

#include "log/base/random.h"
#include "quorum/membership/zookeeper/znode_membership.h"
#include "tools/sim/actors/sim_znodes.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class CandidateAgent {
 public:
  // Starts to run as a thread of that process.
  CandidateAgent(World& world, World::Machine& machine, ProcessId process);

  ProcessId process() const { return process_; }

 private:
  enum class End { kInOrder, kKilled, kUnnoticed };

  void Run();
  void TakeEvents();
  void Act();
  void Start();
  bool IsRunning() const;
  void Abandon();
  void LetOthersGoFirst();

  World& world_;
  World::Machine& machine_;
  const ProcessId process_;
  ProcessClock own_clock_;  // used without a node
  const ProcessClock& clock_;
  Random random_;
  const quorum::PrimaryId self_;
  const bool is_cautious_;
  const std::unique_ptr<quorum::ZnodeMembership> membership_;
  ProcessId application_ = 0;  // started by the agent
  int64_t stands_again_at_ = 0;
  bool has_stepped_down_ = false;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_CANDIDATE_AGENT_H_
