// SPDX-License-Identifier: Apache-2.0
// standing_agent: stands for primary of the log at one machine, as a program
// does that uses the election of recovery/election, and starts the application
// when it is to open the log.
//
// Idea: the candidacy is the product's, with an adapter of its own, and so are
// the nodes' desks. The application is PrimaryProcess. In the product both are
// one process, so a pause of the application pauses the agent, too. With a
// membership service the agent has its entries there; the application asks the
// service for ballots, in a session of its own.
//
// Now and then an agent speaks for an operator: by lot a machine is elected or
// drained. Where nothing fails, no machine is. With the actor `drain` one agent
// has one machine after the other drained, except the last one. A drained
// primary must end its log well (CAN2 of candidate.h).
//
// Thread safety: one thread.
// References: candidacy.h, api/log/candidate.cc, whose loop this is in virtual
// time.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_STANDING_AGENT_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_STANDING_AGENT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "log/base/random.h"
#include "quorum/membership/membership.h"
#include "recovery/election/candidacy.h"
#include "recovery/election/membership_entries.h"
#include "recovery/protocol/control_call.h"
#include "recovery/server/election_desk.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Times of a simulated election.
recovery::ElectionOptions SimulatedElection();
recovery::ElectionDeskOptions SimulatedDesk();
inline constexpr int64_t kHeartbeatNanos = 300'000;

class StandingAgent {
 public:
  // Starts to run as a process of its own.
  StandingAgent(World& world, World::Machine& machine);

  ProcessId process() const { return process_; }
  // Returns the limit of the opening that it has started (Election::PromisedMax
  // at that time); nothing: there is no limit, or no opening.
  std::optional<Epoch> PromisedMax() const;
  // Returns whether that process is its application.
  bool HasStarted(ProcessId process) const { return application_ == process; }
  bool is_drained() const;

 private:
  void Run();
  void EnterMembership(const recovery::ElectionOptions& election);
  bool Turn();
  void Act(recovery::Candidacy::Advice advice);
  void Look();
  void CheckOpening() const;
  void DrawNextInstruction();
  void Instruct();
  // Returns the instruction of an operator who elects and drains anybody.
  recovery::Instruction AnyInstruction();
  // Returns the next instruction of an operator who only drains, if somebody
  // else stands after it; nothing: there is none now.
  std::optional<recovery::Instruction> NextDrain();
  void Tell(const recovery::Instruction& instruction);
  bool IsRunning() const;
  quorum::MembersCopy Members() const;
  recovery::CandidacyOptions Options();
  // Goes by the list that its machine has now.
  void FollowList();
  // Returns whether somebody else is to have the log, or its node is no member.
  bool MayNotOpen() const;

  World& world_;
  World::Machine& machine_;
  const int host_;
  const ProcessId process_;
  Random random_;
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::unique_ptr<recovery::Candidacy> candidacy_;
  // Null without a membership service.
  std::unique_ptr<quorum::Membership> membership_;
  std::unique_ptr<recovery::MembershipEntries> entries_;
  uint64_t list_id_ = 0;               // of the members that it asks
  ProcessId application_ = 0;          // started by the agent
  std::optional<Epoch> promised_max_;  // of its opening
  bool is_open_ = false;               // it has opened the log
  int64_t instructs_at_ = 0;
  std::optional<int> drains_;  // the machine that it has drained last
  std::vector<std::unique_ptr<recovery::ControlCall>> instructions_;
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_STANDING_AGENT_H_
