// SPDX-License-Identifier: Apache-2.0
// The power of a whole cluster is cut at every point of a short run.
#include <gtest/gtest.h>

#include "tests/crash/cluster_cuts.h"
#include "tests/crash/cluster_run.h"

namespace alpheus::testing {
namespace {

// Every kind of step once: a first epoch; records of several clients; cleaning;
// an epoch over records of a minority; a member whose history lost.
void ShortRun(ClusterRun& run, const ClusterCutOptions& options) {
  const int members = options.members;
  run.Open(0);
  run.Append();
  run.Reserve();
  run.Reserve();
  run.CompleteOne();
  run.Reserve();
  run.CompleteAll();
  run.Force();
  run.Cleanup(1);
  run.Append();
  run.Reserve();  // the first primary alone has it
  run.Kill();
  if (members > options.write_quorum) {
    run.Open(1);  // does not hear of it: node 1 is down
    run.CleanupThrough(2);
    run.Append();
    run.RestartAll();
    run.Kill();
  }
  run.RestartAll();
  run.Open(members);  // by a host that has no replica
  run.Append();
  run.CleanupAll();
  run.Append();
}

TEST(ClusterCutTest, EveryPointOfAShortRunReopens) {
  for (const auto& [members, w] : {std::pair(3, 2), std::pair(2, 2)}) {
    ClusterCutOptions options;
    options.members = members;
    options.write_quorum = w;
    ClusterCuts cuts(options);
    ClusterRun* now = nullptr;
    ClusterRun run(cuts, options, [&](bool is_fence) {
      // Every mix where most is open, and everywhere one drawn by lot.
      cuts.CutAt(now->world(), now->oracle(), /*mixes=*/is_fence, /*drawn=*/1);
    });
    now = &run;
    ShortRun(run, options);
    cuts.Print();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace alpheus::testing
