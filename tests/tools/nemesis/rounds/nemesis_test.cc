// SPDX-License-Identifier: Apache-2.0
// Does the nemesis draw what it may, and all of it?
#include "tools/nemesis/rounds/nemesis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "tools/nemesis/rounds/election_nemesis.h"

namespace alpheus::demo {
namespace {

constexpr uint64_t kDraws = 2000;

constexpr NemesisCluster kClusters[] = {
    {.node_count = 2, .write_quorum = 2, .spare_count = 0},
    {.node_count = 3, .write_quorum = 2, .spare_count = 1},
    {.node_count = 3, .write_quorum = 1, .spare_count = 0},
    {.node_count = 5, .write_quorum = 3, .spare_count = 2},
    {.node_count = 5, .write_quorum = 4, .spare_count = 1}};

bool IsHit(const RoundPlan& plan, int node) {
  return std::find(plan.hit_nodes.begin(), plan.hit_nodes.end(), node) !=
         plan.hit_nodes.end();
}

// How many nodes a fault takes away, from none to all.
void CheckHits(const NemesisCluster& cluster, const RoundPlan& plan) {
  const std::set<int> different(plan.hit_nodes.begin(), plan.hit_nodes.end());
  ASSERT_EQ(different.size(), plan.hit_nodes.size());
  const int hits = static_cast<int>(different.size());
  switch (plan.fault) {
    case Fault::kKillBackups:
    case Fault::kPauseBackups:
    case Fault::kResyncBackups:
    case Fault::kReplaceMedia:
    case Fault::kCutLinks:
      EXPECT_LE(hits, cluster.spare_count);
      EXPECT_EQ(hits == 0, cluster.spare_count == 0);
      break;
    case Fault::kKillTooMany:
    case Fault::kPauseTooMany:
    case Fault::kCutTooMany:
      EXPECT_LT(cluster.node_count - hits, cluster.write_quorum);
      break;
    case Fault::kDeposePrimary:
      EXPECT_EQ(hits, cluster.spare_count);
      EXPECT_TRUE(plan.has_own_replica && plan.return_late);
      break;
    default:
      EXPECT_EQ(hits, 0);
  }
  EXPECT_EQ(plan.cut != CutDirection::kNone, IsOfLinks(plan.fault));
  // Its successors can't wait for links to be healed.
  EXPECT_FALSE(plan.cut_for_all && hits > cluster.spare_count);
  EXPECT_FALSE(plan.has_own_replica && IsHit(plan, plan.primary_node));
  EXPECT_LE(static_cast<int>(plan.next_hits.size()), cluster.spare_count);
  EXPECT_EQ(plan.next_hits.empty(), (plan.fault != Fault::kResyncBackups &&
                                     plan.fault != Fault::kReplaceMedia) ||
                                        cluster.spare_count == 0);
  for (const int node : plan.next_hits) {
    EXPECT_FALSE(IsHit(plan, node));
    EXPECT_FALSE(plan.has_own_replica && node == plan.primary_node);
  }
  for (const int node : plan.hit_nodes) {
    EXPECT_GE(node, 1);
    EXPECT_LE(node, cluster.node_count);
  }
}

TEST(NemesisTest, EveryPlanIsOneThatTheClusterCanPlay) {
  for (const NemesisCluster& cluster : kClusters) {
    Random random(11);
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      const RoundPlan plan = DrawRound(cluster, &random);
      SCOPED_TRACE(plan.ToString());
      CheckHits(cluster, plan);
      EXPECT_GE(plan.primary_node, 1);
      EXPECT_LE(plan.primary_node, cluster.node_count);
      EXPECT_GE(plan.successor_node, 1);
      EXPECT_LE(plan.successor_node, cluster.node_count);
      EXPECT_NE(plan.successor_node, plan.primary_node);
      EXPECT_GE(plan.acks_before, 1u);
      EXPECT_GE(plan.acks_after, 1u);
      // A region of a program that is paused can't be taken from it.
      EXPECT_FALSE(plan.return_late && plan.successor_has_own_replica &&
                   IsHit(plan, plan.successor_node));
    }
  }
}

TEST(NemesisTest, EveryFaultIsDrawnWithAndWithoutEachOfItsChoices) {
  Random random(12);
  std::map<Fault, uint64_t> faults;
  std::set<size_t> hit_counts;
  std::set<size_t> lives;
  std::set<bool> own;
  std::set<bool> late;
  std::set<bool> vain;
  std::set<bool> killed;
  std::set<bool> silent;
  std::set<bool> for_all;
  std::map<CutDirection, uint64_t> cuts;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const RoundPlan plan = DrawRound(kClusters[3], &random);
    ++faults[plan.fault];
    hit_counts.insert(plan.hit_nodes.size());
    lives.insert(plan.short_lives_nanos.size());
    own.insert(plan.has_own_replica);
    late.insert(plan.return_late);
    vain.insert(plan.tries_in_vain);
    killed.insert(plan.kills_successor);
    silent.insert(plan.waits_for_silence);
    for_all.insert(plan.cut_for_all);
    ++cuts[plan.cut];
  }
  for (const Fault fault : kFaults) {
    EXPECT_GT(faults[fault], kDraws / 20) << FaultName(fault);
  }
  EXPECT_EQ(hit_counts, (std::set<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(lives, (std::set<size_t>{0, 1, 2}));
  for (const CutDirection cut : {CutDirection::kBoth, CutDirection::kToServer,
                                 CutDirection::kToClient}) {
    EXPECT_GT(cuts[cut], kDraws / 40) << CutName(cut);
  }
  for (const auto& choice : {own, late, vain, killed, silent, for_all}) {
    EXPECT_EQ(choice.size(), 2u);
  }
}

TEST(ElectionNemesisTest, EveryFaultIsDrawnAndLeavesAMajority) {
  Random random(14);
  std::map<ElectionFault, uint64_t> faults;
  std::map<ServiceFault, uint64_t> services;
  std::set<bool> hits_backup;
  std::set<bool> stays;
  std::set<int> candidates;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const ElectionPlan plan = DrawElection(ElectionKind::kMixed, 3,
                                           /*has_service=*/true, &random);
    SCOPED_TRACE(plan.ToString());
    ++faults[plan.fault];
    ++services[plan.service];
    hits_backup.insert(plan.hits_backup);
    stays.insert(plan.service_stays);
    candidates.insert(plan.candidate);
    EXPECT_GE(plan.acks_before, 1u);
    EXPECT_GE(plan.acks_after, 1u);
    if (!plan.hits_backup) continue;
    // These take a second replica away.
    EXPECT_NE(plan.fault, ElectionFault::kKillMachine);
    EXPECT_NE(plan.fault, ElectionFault::kPause);
    EXPECT_NE(plan.fault, ElectionFault::kCut);
  }
  for (const ElectionFault fault : kMixedFaults) {
    EXPECT_GT(faults[fault], kDraws / 20) << ElectionFaultName(fault);
  }
  for (const ServiceFault fault : kServiceFaults) {
    EXPECT_GT(services[fault], kDraws / 20) << ServiceFaultName(fault);
  }
  EXPECT_EQ(hits_backup.size(), 2u);
  EXPECT_EQ(stays.size(), 2u);
  EXPECT_EQ(candidates, (std::set<int>{1, 2}));
}

TEST(ElectionNemesisTest, CollisionsAreOfCandidatesAlone) {
  Random random(15);
  std::map<ElectionFault, uint64_t> faults;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const ElectionPlan plan = DrawElection(ElectionKind::kCollisions, 3,
                                           /*has_service=*/true, &random);
    ++faults[plan.fault];
    EXPECT_FALSE(plan.hits_backup);
    EXPECT_EQ(plan.service, ServiceFault::kNone);
  }
  EXPECT_EQ(faults.size(), std::size(kCollisions));
}

TEST(ElectionNemesisTest, WhileTheServiceIsStoppedOnlyThePrimaryIsHit) {
  Random random(16);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const ElectionPlan plan = DrawElection(ElectionKind::kStopped, 3,
                                           /*has_service=*/true, &random);
    EXPECT_EQ(plan.fault, ElectionFault::kKillPrimary);
    EXPECT_FALSE(plan.hits_backup);
    EXPECT_EQ(plan.service, ServiceFault::kPauseAll);
    EXPECT_FALSE(plan.service_stays);
  }
}

TEST(NemesisTest, SeedRepeatsThePlans) {
  Random first(13);
  Random second(13);
  for (int draw = 0; draw < 100; ++draw) {
    EXPECT_EQ(DrawRound(kClusters[1], &first).ToString(),
              DrawRound(kClusters[1], &second).ToString());
  }
}

}  // namespace
}  // namespace alpheus::demo
