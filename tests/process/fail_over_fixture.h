// SPDX-License-Identifier: Apache-2.0
// fail_over_fixture: three nodes, and a program at each that stands for
// primary (tools/nemesis/processes/standing_programs.h).
#ifndef ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_
#define ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/process/cluster_fixture.h"
#include "tests/support/fixtures/patience.h"
#include "tools/nemesis/oracles/cluster_reading.h"
#include "tools/nemesis/processes/standing_programs.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/fed_writer.h"

namespace alpheus::testing {

// For options that have it in seconds.
inline std::string PatienceSeconds() {
  return absl::StrCat(std::chrono::seconds(kPatience).count());
}

class ProgramFailOverTest : public ClusterTest {
 protected:
  void Begin(const std::vector<std::string>& options = {"--silence-ms",
                                                        "5000"}) {
    StartCluster();
    StandAll(options);
  }
  // Makes the log. Requires: the cluster runs.
  void MakeLog() {
    Format("main", "4MiB");
    programs_ = std::make_unique<demo::StandingPrograms>(
        cluster_.get(), &feed_, [](const demo::ClusterWriter& ended) {
          return absl::DataLossError(absl::StrCat(ended.ToString(),
                                                  " ended by itself with ",
                                                  ended.end()->ToString()));
        });
  }
  void StandAll(const std::vector<std::string>& options) {
    MakeLog();
    for (int node = 1; node <= 3; ++node) Stand(node, options);
  }
  // Requires: MakeLog.
  demo::ClusterWriter& Stand(int node,
                             const std::vector<std::string>& options) {
    demo::ClusterWriterPlan plan;
    plan.node = node;
    plan.has_own_replica = true;
    plan.first_number = history_.DrawFirstNumber();
    plan.lsn_floor = history_.LsnFloor(programs_->Terms());
    plan.limits = limits_;
    // A busy machine must not decide.
    plan.options = {"--ack-timeout-ms", "60000"};
    plan.options.insert(plan.options.end(), options.begin(), options.end());
    demo::ClusterWriter* const started = *programs_->Start(std::move(plan));
    return *started;
  }
  bool Eventually(const std::function<bool()>& is_so) {
    const absl::Status waited = programs_->Await("it is so", is_so);
    EXPECT_TRUE(waited.ok()) << waited;
    return waited.ok();
  }
  // Feeds all until a program other than `but` has acknowledged so many records
  // more.
  demo::ClusterWriter* Next(const demo::ClusterWriter* but,
                            uint64_t count = 20) {
    const auto next = programs_->AwaitPrimary(but, count);
    EXPECT_TRUE(next.ok()) << next.status() << "\n" << Said();
    return next.ok() ? *next : nullptr;
  }
  static void Kill(demo::ClusterWriter* program) {
    const absl::Status killed = program->Kill();
    EXPECT_TRUE(killed.ok()) << killed;
  }
  std::string Said() const { return programs_->Said(); }
  // Each acknowledged record is in the log, at its LSN, once, and nothing that
  // nobody wrote.
  void CheckAll() {
    const absl::Status killed = programs_->KillAll();
    ASSERT_TRUE(killed.ok()) << killed;
    ASSERT_TRUE(cluster_->AwaitServed("main").ok());
    Append(3, "");
    auto records = demo::ReadLog(cluster_.get(), "main");
    ASSERT_TRUE(records.ok()) << records.status();
    const absl::Status looked = history_.Check(
        programs_->Terms(), *std::move(records), /*is_final=*/true);
    EXPECT_TRUE(looked.ok()) << looked << "\n" << Said();
  }

  // Few, as those that are taken when the log is lost are left out.
  demo::FeedLimits limits_ = {.ring_bytes_max = 256 << 10,
                              .unacknowledged_max = 8};
  std::unique_ptr<demo::StandingPrograms> programs_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_
