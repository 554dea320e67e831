// SPDX-License-Identifier: Apache-2.0
// election_nemesis: draws the faults of one round of elections
// (election_round.h).
//
// Idea: as nemesis.h: all that is random is drawn before the round begins, so
// that it can be described.
//
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_NEMESIS_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_NEMESIS_H_

#include <cstdint>
#include <string>

#include "log/base/random.h"
#include "tools/nemesis/links/cutting_proxy.h"

namespace alpheus::demo {

// A fault of the primary, after which there is another one.
enum class ElectionFault {
  // Two candidates at once.
  kElectTwo,  // an operator elects both at the same time
  kWakeTwo,   // both are paused while the primary is killed
  kStartTwo,  // all are killed; two start at the same time
  // Others.
  kNone,         // it stays, unless the fault of a node or the service ends it
  kKillPrimary,  // SIGKILL in mid-stream
  kKillMachine,  // the primary and its node's own program
  kPause,        // SIGSTOP, until another one has appended
  kCut,          // its links to all nodes
  kDrain,        // an operator drains it
  kElect,        // an operator elects another one
};
inline constexpr ElectionFault kCollisions[] = {ElectionFault::kElectTwo,
                                                ElectionFault::kWakeTwo,
                                                ElectionFault::kStartTwo};
inline constexpr ElectionFault kMixedFaults[] = {
    ElectionFault::kNone,  ElectionFault::kKillPrimary,
    ElectionFault::kPause, ElectionFault::kKillMachine,
    ElectionFault::kCut,   ElectionFault::kDrain,
    ElectionFault::kElect, ElectionFault::kElectTwo};

const char* ElectionFaultName(ElectionFault fault);
// Returns whether another program must go on.
bool ReplacesPrimary(ElectionFault fault);

// A fault of ZooKeeper.
enum class ServiceFault {
  kNone,
  kKillOne,   // of an ensemble, its leader
  kPauseOne,  // the same with SIGSTOP
  kKillAll,
  kPauseAll,
  kLoseData,     // killed, and started again without their data
  kEndSessions,  // by a second client, all that one server knows
  kCut,          // its links to the primary
};
inline constexpr ServiceFault kServiceFaults[] = {
    ServiceFault::kNone,        ServiceFault::kKillOne,
    ServiceFault::kPauseOne,    ServiceFault::kKillAll,
    ServiceFault::kPauseAll,    ServiceFault::kLoseData,
    ServiceFault::kEndSessions, ServiceFault::kCut};

const char* ServiceFaultName(ServiceFault fault);

enum class ElectionKind {
  kCollisions,  // two candidates at once
  kMixed,       // faults of both planes
  // ZooKeeper stands still all the time while the log is appended to, and the
  // primary is killed in the middle of that time.
  kStopped,
};

struct ElectionPlan {
  ElectionFault fault = ElectionFault::kKillPrimary;
  uint64_t acks_before = 1;  // acknowledgements before the fault
  int64_t delay_nanos = 0;   // of the fault after those
  // Time between the fault's step at one candidate and at the other.
  int64_t apart_nanos = 0;
  uint64_t acks_after = 1;
  // Names a candidate: the one so many places after the primary's node.
  int candidate = 1;
  // Whether another node's own program is hit, too: killed or paused.
  bool hits_backup = false;
  bool pauses_backup = false;
  CutDirection cut = CutDirection::kBoth;
  ServiceFault service = ServiceFault::kNone;
  bool service_stays = false;  // hit until the next round begins
  // Time for which the log is appended to before the primary's fault, and again
  // after it; nothing else happens meanwhile. Not drawn.
  int64_t load_nanos = 0;

  // Returns one line for people.
  std::string ToString() const;
};

// Requires: three nodes at least. `has_service`: there is a ZooKeeper.
ElectionPlan DrawElection(ElectionKind kind, int node_count, bool has_service,
                          RandomSource* random);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_NEMESIS_H_
