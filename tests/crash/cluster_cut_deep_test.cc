// SPDX-License-Identifier: Apache-2.0
// Long runs of clusters of all sizes, whose power is cut by lot: the run itself
// goes on from what a cut has left.
//
// ALPHEUS_SEED sets the first seed, ALPHEUS_CLUSTER_CUT_RUNS the runs of each
// size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "tests/crash/cluster_cuts.h"
#include "tests/crash/cluster_run.h"

namespace alpheus::testing {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// One operation of somebody.
void Operate(ClusterRun& run, const ClusterCutOptions& options,
             Random& random) {
  const auto members = static_cast<uint64_t>(options.members);
  const int needed = std::max(options.write_quorum,
                              options.members - options.write_quorum + 1);
  if (!run.is_open()) {
    if (random.Below(2) == 0) run.RestartAll();
    for (int node = 1; run.members_up() < needed; ++node) {
      if (!run.world().IsUp(node)) run.world().Restart(node);
    }
    run.Open(static_cast<int>(random.Below(members + 2)));
    return;
  }
  const ClusterOracle& oracle = run.oracle();
  const int node = 1 + static_cast<int>(random.Below(members));
  switch (random.Below(24)) {
    case 0:
      return run.Kill();
    case 1:
      if (random.Below(2) == 0 && node != run.host() + 1) {
        return run.Isolate(node);
      }
      if (run.members_up() > needed && run.world().IsUp(node) &&
          node != run.host() + 1) {
        run.CrashMember(node);
      }
      return;
    case 2:
      return run.CleanupAll();
    case 3:
    case 4:
      return run.CleanupThrough(oracle.cleaned + random.Below(6));
    case 5:
      return run.Cleanup(oracle.cleaned + 1 + random.Below(3));
    case 6:
    case 7:
    case 8:
    case 9:
      return run.Force();
    case 10:
    case 11:
    case 12:
    case 13:
      return run.CompleteOne();
    case 14:
      return run.AbortOne();
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
      return run.Reserve();
    default:
      return run.Append();
  }
}

void LongRun(const ClusterCutOptions& options) {
  ClusterCuts cuts(options);
  Random random(options.seed);
  ClusterRun* now = nullptr;
  struct Left {
    Images images;
    ClusterOracle oracle;
  };
  std::optional<Left> left;
  ClusterRun run(cuts, options, [&](bool is_fence) {
    if (::testing::Test::HasFailure()) return;
    if (random.Below(is_fence ? 40 : 300) == 0) {
      cuts.CutAt(now->world(), now->oracle(), /*mixes=*/false, /*drawn=*/1);
    }
    if (!left && random.Below(is_fence ? 150 : 1500) == 0) {
      left = Left{cuts.Draw(now->world()), now->oracle()};
    }
  });
  now = &run;
  for (int i = 0; i < 200 && !::testing::Test::HasFailure(); ++i) {
    Operate(run, options, random);
    if (left && !::testing::Test::HasFailure()) {
      run.PowerCut(left->images, left->oracle);
      left.reset();
    }
  }
  cuts.Print();
}

class ClusterCutDeepTest
    : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ClusterCutDeepTest, LongRunsReopen) {
  const uint64_t seed = FromEnvironment("ALPHEUS_SEED", 1);
  const uint64_t runs = FromEnvironment("ALPHEUS_CLUSTER_CUT_RUNS", 2);
  for (uint64_t i = 0; i < runs; ++i) {
    ClusterCutOptions options;
    options.members = GetParam().first;
    options.write_quorum = GetParam().second;
    options.seed = seed + i;
    options.depth = 3;
    options.cuts_per_opening = 1;
    options.all_choices = false;
    std::printf("ALPHEUS_SEED=%llu\n",
                static_cast<unsigned long long>(options.seed));
    std::fflush(stdout);
    LongRun(options);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AllSizes, ClusterCutDeepTest,
                         ::testing::Values(std::pair(1, 1), std::pair(2, 1),
                                           std::pair(2, 2), std::pair(3, 1),
                                           std::pair(3, 2), std::pair(3, 3),
                                           std::pair(4, 2), std::pair(4, 3),
                                           std::pair(5, 2), std::pair(5, 3),
                                           std::pair(5, 4)),
                         [](const auto& size) {
                           return "N" + std::to_string(size.param.first) + "W" +
                                  std::to_string(size.param.second);
                         });

}  // namespace
}  // namespace alpheus::testing
