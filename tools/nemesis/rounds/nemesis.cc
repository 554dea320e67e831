// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/nemesis.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace alpheus::demo {
namespace {

constexpr uint64_t kDelayNanosMax = 2'000'000;
// Typical time of starting, recovering and opening an epoch.
constexpr uint64_t kShortLifeNanosMax = 60'000'000;
constexpr uint64_t kShortLivesMax = 2;
// A primary gives a backup up after a second.
constexpr uint64_t kCutNanosMax = 1'600'000'000;
constexpr CutDirection kCuts[] = {CutDirection::kBoth, CutDirection::kToServer,
                                  CutDirection::kToClient};

bool DrawOneIn(uint64_t n, RandomSource* random) {
  return random->Below(n) == 0;
}

// `count` of these nodes, each once.
std::vector<int> DrawOf(std::vector<int> nodes, uint64_t count,
                        RandomSource* random) {
  for (size_t i = 0; i < count; ++i) {
    std::swap(nodes[i], nodes[i + random->Below(nodes.size() - i)]);
  }
  nodes.resize(count);
  return nodes;
}

// `count` of the nodes 1 to `node_count`, all but `but` (0: none).
std::vector<int> DrawNodes(int node_count, int but, uint64_t count,
                           RandomSource* random) {
  std::vector<int> nodes;
  for (int node = 1; node <= node_count; ++node) {
    if (node != but) nodes.push_back(node);
  }
  return DrawOf(std::move(nodes), count, random);
}

bool HitsOthersNext(Fault fault) {
  return fault == Fault::kResyncBackups || fault == Fault::kReplaceMedia;
}

bool IsOfFewBackups(Fault fault) {
  return fault == Fault::kKillBackups || fault == Fault::kPauseBackups ||
         HitsOthersNext(fault) || fault == Fault::kCutLinks;
}

bool IsOfTooMany(Fault fault) {
  return fault == Fault::kKillTooMany || fault == Fault::kPauseTooMany ||
         fault == Fault::kCutTooMany;
}

uint64_t DrawHitCount(const NemesisCluster& cluster, const RoundPlan& plan,
                      RandomSource* random) {
  if (IsOfFewBackups(plan.fault)) {
    return cluster.spare_count == 0
               ? 0
               : 1 + random->Below(static_cast<uint64_t>(cluster.spare_count));
  }
  if (plan.fault == Fault::kDeposePrimary) {
    return static_cast<uint64_t>(cluster.spare_count);
  }
  if (!IsOfTooMany(plan.fault)) return 0;
  // The primary's own replica stays.
  const int candidates = cluster.node_count - (plan.has_own_replica ? 1 : 0);
  const int least = cluster.node_count - cluster.write_quorum + 1;
  const int more = candidates - least;
  return static_cast<uint64_t>(least) +
         random->Below(static_cast<uint64_t>(more) + 1);
}

// Without those that have joined again there would be too few.
void DrawNextHits(const NemesisCluster& cluster, RoundPlan* plan,
                  RandomSource* random) {
  std::vector<int> nodes;
  for (int node = 1; node <= cluster.node_count; ++node) {
    const bool is_kept =
        (plan->has_own_replica && node == plan->primary_node) ||
        std::find(plan->hit_nodes.begin(), plan->hit_nodes.end(), node) !=
            plan->hit_nodes.end();
    if (!is_kept) nodes.push_back(node);
  }
  const uint64_t count = std::min<uint64_t>(
      nodes.size(), static_cast<uint64_t>(cluster.spare_count));
  plan->next_hits = DrawOf(std::move(nodes), count, random);
}

void DrawHits(const NemesisCluster& cluster, RoundPlan* plan,
              RandomSource* random) {
  // With W = 1 the replica of the primary alone would be a quorum.
  if (IsOfTooMany(plan->fault) && cluster.write_quorum == 1) {
    plan->has_own_replica = false;
  }
  plan->hit_nodes = DrawNodes(cluster.node_count,
                              plan->has_own_replica ? plan->primary_node : 0,
                              DrawHitCount(cluster, *plan, random), random);
  if (HitsOthersNext(plan->fault)) DrawNextHits(cluster, plan, random);
  plan->return_late = IsOfFewBackups(plan->fault) && DrawOneIn(2, random);
  plan->tries_in_vain = IsOfTooMany(plan->fault) && DrawOneIn(2, random);
  if (plan->fault == Fault::kDeposePrimary) plan->return_late = true;
}

void DrawCut(RoundPlan* plan, RandomSource* random) {
  if (!IsOfLinks(plan->fault)) return;
  plan->cut = kCuts[random->Below(std::size(kCuts))];
  plan->cut_nanos = static_cast<int64_t>(random->Below(kCutNanosMax));
  if (plan->fault == Fault::kCutTooMany) {
    plan->tries_in_vain = false;  // others' links are whole
    plan->waits_for_silence = DrawOneIn(2, random);
    plan->return_late = DrawOneIn(2, random);
  } else {
    plan->cut_for_all = plan->return_late && DrawOneIn(2, random);
  }
}

void DrawSuccessors(const NemesisCluster& cluster, RoundPlan* plan,
                    RandomSource* random) {
  for (uint64_t lives = random->Below(kShortLivesMax + 1); lives > 0; --lives) {
    plan->short_lives_nanos.push_back(
        static_cast<int64_t>(random->Below(kShortLifeNanosMax)));
  }
  plan->successor_node =
      DrawNodes(cluster.node_count, plan->primary_node, 1, random)[0];
  plan->successor_has_own_replica = DrawOneIn(2, random);
  for (const int node : plan->hit_nodes) {
    // Its region is still locked by a program that is paused.
    if (plan->return_late && node == plan->successor_node) {
      plan->successor_has_own_replica = false;
    }
  }
  plan->acks_after = 1 + random->Below(kPlannedAcksMax);
  plan->kills_successor = DrawOneIn(2, random);
}

}  // namespace

const char* FaultName(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kKillPrimary:
      return "primary killed";
    case Fault::kKillMachine:
      return "primary and its node killed";
    case Fault::kPausePrimary:
      return "primary paused";
    case Fault::kKillBackups:
      return "backups killed";
    case Fault::kPauseBackups:
      return "backups paused";
    case Fault::kResyncBackups:
      return "backups resync";
    case Fault::kReplaceMedia:
      return "media replaced";
    case Fault::kKillTooMany:
      return "too many killed";
    case Fault::kPauseTooMany:
      return "too many paused";
    case Fault::kDeposePrimary:
      return "primary deposed";
    case Fault::kCutLinks:
      return "links cut";
    case Fault::kCutTooMany:
      return "too many links cut";
  }
  return "?";
}

bool LeavesPrimary(Fault fault) {
  return fault == Fault::kPausePrimary || fault == Fault::kReplaceMedia ||
         fault == Fault::kDeposePrimary || fault == Fault::kCutTooMany;
}

bool IsOfLinks(Fault fault) {
  return fault == Fault::kCutLinks || fault == Fault::kCutTooMany;
}

const char* CutName(CutDirection cut) {
  switch (cut) {
    case CutDirection::kNone:
      return "";
    case CutDirection::kToServer:
      return " (to the node)";
    case CutDirection::kToClient:
      return " (from the node)";
    case CutDirection::kBoth:
      return " (both ways)";
  }
  return "?";
}

RoundPlan DrawRound(const NemesisCluster& cluster, RandomSource* random) {
  Fault fault = kFaults[random->Below(std::size(kFaults))];
  while (IsOfLinks(fault) && !cluster.has_links) {
    fault = kFaults[random->Below(std::size(kFaults))];
  }
  return DrawRound(cluster, fault, random);
}

RoundPlan DrawRound(const NemesisCluster& cluster, Fault fault,
                    RandomSource* random) {
  RoundPlan plan;
  plan.fault = fault;
  plan.primary_node = 1 + static_cast<int>(random->Below(
                              static_cast<uint64_t>(cluster.node_count)));
  plan.has_own_replica = DrawOneIn(2, random) || fault == Fault::kDeposePrimary;
  plan.acks_before = 1 + random->Below(kPlannedAcksMax);
  plan.delay_nanos = static_cast<int64_t>(random->Below(kDelayNanosMax));
  plan.acks_during = 1 + random->Below(kPlannedAcksMax);
  DrawHits(cluster, &plan, random);
  DrawCut(&plan, random);
  DrawSuccessors(cluster, &plan, random);
  return plan;
}

std::string RoundPlan::ToString() const {
  return absl::StrCat(
      FaultName(fault), CutName(cut), "; primary on node ", primary_node,
      has_own_replica ? " with" : " without", " replica, ", acks_before,
      " acknowledgements before it; nodes hit: ",
      hit_nodes.empty() ? "none" : absl::StrJoin(hit_nodes, " "),
      next_hits.empty()
          ? ""
          : absl::StrCat(", then ", absl::StrJoin(next_hits, " ")),
      return_late ? ", back late" : "",
      cut_nanos == 0 ? ""
                     : absl::StrCat(", cut for ", cut_nanos / 1'000'000, " ms"),
      cut_for_all ? ", for successors, too" : "", "; ",
      short_lives_nanos.size(), " recoveries cut short; successor on node ",
      successor_node, successor_has_own_replica ? " with" : " without",
      " replica, ", acks_after, " acknowledgements, ",
      kills_successor ? "killed" : "ended");
}

}  // namespace alpheus::demo
