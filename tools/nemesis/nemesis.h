// SPDX-License-Identifier: Apache-2.0
// nemesis: draws what goes wrong in one round on a cluster (cluster_round.h).
//
// Idea: all chance of a round is drawn here, from a seed, before it starts; so
// a round can be told, and tried again. When exactly a signal arrives is left
// to the machine, and differs in each run.
//
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_NEMESIS_NEMESIS_H_
#define ALPHEUS_TOOLS_NEMESIS_NEMESIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "tools/nemesis/cutting_proxy.h"

namespace alpheus::demo {

enum class Fault {
  kNone,           // the primary comes to its end
  kKillPrimary,    // SIGKILL in mid-stream
  kKillMachine,    // the primary and the node's own program at once
  kPausePrimary,   // goes on when another primary has appended
  kKillBackups,    // so few that it must go on
  kPauseBackups,   // the same with SIGSTOP
  kRejoinBackups,  // killed, and when they have joined again others are killed
  kReplaceMedia,   // killed, their regions lost; replaced, then others are
                   // killed
  kKillTooMany,    // so many that it must fail, or wait
  kPauseTooMany,   // the same with SIGSTOP
  kDeposePrimary,  // goes on with its node's replica, and no backup is spare
  kCutLinks,       // to so few nodes that the primary must go on
  kCutTooMany,     // to so many that it must fail, or wait
};
inline constexpr Fault kFaults[] = {
    Fault::kNone,          Fault::kKillPrimary,   Fault::kKillMachine,
    Fault::kPausePrimary,  Fault::kKillBackups,   Fault::kPauseBackups,
    Fault::kRejoinBackups, Fault::kReplaceMedia,  Fault::kKillTooMany,
    Fault::kPauseTooMany,  Fault::kDeposePrimary, Fault::kCutLinks,
    Fault::kCutTooMany};

const char* FaultName(Fault fault);

// Its primary is alive when another one has appended, and must end with an
// error then.
bool LeavesPrimary(Fault fault);
bool IsOfLinks(Fault fault);
// " (to the node)"; nothing for none.
const char* CutName(CutDirection cut);

struct NemesisCluster {
  int node_count = 3;
  int write_quorum = 2;
  int spare_count = 1;    // nodes that may be down while a log is written
  bool has_links = true;  // that can be cut
};

// In each of a plan's phases a primary must acknowledge so many at most.
inline constexpr uint64_t kPlannedAcksMax = 300;

struct RoundPlan {
  Fault fault = Fault::kNone;
  int primary_node = 1;
  bool has_own_replica = false;
  uint64_t acks_before = 1;    // the fault comes after so many
  int64_t delay_nanos = 0;     // and then so much later
  uint64_t acks_during = 1;    // with few backups gone it acknowledges so many
  std::vector<int> hit_nodes;  // by faults of backups, and of links to them
  CutDirection cut = CutDirection::kNone;
  int64_t cut_nanos = 0;           // at least
  std::vector<int> next_hits;      // when those have joined, or are replaced
  bool return_late = false;        // they come back when a successor is at work
  bool tries_in_vain = false;      // with too many gone, another primary tries
  bool waits_for_silence = false;  // with too many cut it must fall silent
  bool cut_for_all = false;        // links that heal late: the successor's, too
  // Primaries that are killed so long after their start: while they recover,
  // or when they have just begun to append.
  std::vector<int64_t> short_lives_nanos;
  int successor_node = 2;
  bool successor_has_own_replica = false;
  uint64_t acks_after = 1;
  bool kills_successor = false;  // else it comes to its end

  // For people; one line.
  std::string ToString() const;
};

RoundPlan DrawRound(const NemesisCluster& cluster, RandomSource* random);
// The same with this fault.
RoundPlan DrawRound(const NemesisCluster& cluster, Fault fault,
                    RandomSource* random);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_NEMESIS_H_
