// SPDX-License-Identifier: Apache-2.0
// nemesis: draws the faults of one round on a cluster (cluster_round.h).
//
// Idea: everything random in a round is drawn here from a seed, before it
// starts. So a round can be described, and tried again. The exact moment of a
// signal depends on the machine, and differs in each run.
//
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "tools/nemesis/links/cutting_proxy.h"

namespace alpheus::demo {

enum class Fault {
  kNone,           // the primary ends by itself
  kKillPrimary,    // SIGKILL in mid-stream
  kKillMachine,    // the primary and the node's own program at once
  kPausePrimary,   // until another primary has appended
  kKillBackups,    // few: it must continue
  kPauseBackups,   // the same with SIGSTOP
  kResyncBackups,  // killed; once resynced, others are killed
  kReplaceMedia,   // killed, their regions lost; replaced, then others are
                   // killed
  kKillTooMany,    // so many that it must fail, or wait
  kPauseTooMany,   // the same with SIGSTOP
  kDeposePrimary,  // keeps its node's replica; no backup is spare
  kCutLinks,       // to few nodes: the primary must continue
  kCutTooMany,     // to so many that it must fail, or wait
};
inline constexpr Fault kFaults[] = {
    Fault::kNone,          Fault::kKillPrimary,   Fault::kKillMachine,
    Fault::kPausePrimary,  Fault::kKillBackups,   Fault::kPauseBackups,
    Fault::kResyncBackups, Fault::kReplaceMedia,  Fault::kKillTooMany,
    Fault::kPauseTooMany,  Fault::kDeposePrimary, Fault::kCutLinks,
    Fault::kCutTooMany};

const char* FaultName(Fault fault);

// Returns whether its primary is alive when another one has appended; it must
// then end with an error.
bool LeavesPrimary(Fault fault);
bool IsOfLinks(Fault fault);
// Returns " (to the node)"; nothing for none.
const char* CutName(CutDirection cut);

struct NemesisCluster {
  int node_count = 3;
  int write_quorum = 2;
  int spare_count = 1;    // nodes that may be down while a log is written
  bool has_links = true;  // that can be cut
};

// Upper bound on the acknowledgements required in each phase of a plan.
inline constexpr uint64_t kPlannedAcksMax = 300;

struct RoundPlan {
  Fault fault = Fault::kNone;
  int primary_node = 1;
  bool has_own_replica = false;
  uint64_t acks_before = 1;    // acknowledgements before the fault
  int64_t delay_nanos = 0;     // delay of the fault after those
  uint64_t acks_during = 1;    // required with few backups gone
  std::vector<int> hit_nodes;  // nodes hit by faults of backups or links
  CutDirection cut = CutDirection::kNone;
  int64_t cut_nanos = 0;           // at least
  std::vector<int> next_hits;      // hit when those are resynced or replaced
  bool return_late = false;        // return only under a successor
  bool tries_in_vain = false;      // too many gone: another primary tries
  bool waits_for_silence = false;  // too many cut: it must fall silent
  bool cut_for_all = false;        // late links are the successor's too
  // Lifetimes of primaries that are killed while they recover, or when they
  // have just begun to append.
  std::vector<int64_t> short_lives_nanos;
  int successor_node = 2;
  bool successor_has_own_replica = false;
  uint64_t acks_after = 1;
  bool kills_successor = false;  // false: it ends by itself

  // Returns one line for people.
  std::string ToString() const;
};

RoundPlan DrawRound(const NemesisCluster& cluster, RandomSource* random);
// Draws a round with this fault.
RoundPlan DrawRound(const NemesisCluster& cluster, Fault fault,
                    RandomSource* random);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_H_
