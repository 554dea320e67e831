// SPDX-License-Identifier: Apache-2.0
// Candidates and policies do what they are measured for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "bench/harness/machine.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/contestants.h"
#include "bench/local/candidates/floor.h"
#include "bench/local/scenarios/exposure.h"
#include "bench/local/scenarios/scenarios.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench {
namespace {

using ::testing::ElementsAre;

// Needs /dev/shm to be taken for persistent memory: PMEM_IS_PMEM_FORCE=1, set
// for this program where it is registered.
class CandidateTest : public ::testing::Test {
 protected:
  Workload SmallWorkload(uint64_t bytes, int workers) const {
    return {.folder = directory_.path(),
            .ring_bytes = 2 << 20,
            .payload_bytes = bytes,
            .workers = workers};
  }

  const testing::TempDirectory directory_;
};

// Three laps of the ring, so that each cleans, rewinds or zeroes; the names
// are those that bench/plots knows.
TEST_F(CandidateTest, EveryCandidateGoesRoundItsRing) {
  const Workload workload = SmallWorkload(1000, 2);
  const auto makers = FloorsLogsAndFrequencies(workload);
  ASSERT_TRUE(makers.ok()) << makers.status();
  const auto candidates = MakeAll(*makers, workload);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  std::set<std::string> names;
  for (const auto& candidate : *candidates) {
    names.insert(candidate->name());
    uint64_t reclaims = 0;
    for (const int worker : {0, 1, 0}) {
      const auto batch =
          candidate->Run(worker, workload.ring_bytes / workload.payload_bytes);
      ASSERT_TRUE(batch.ok()) << candidate->name() << ": " << batch.status();
      EXPECT_GT(batch->append_ns, 0);
      reclaims += batch->reclaims;
    }
    const bool is_floor = candidate->name().starts_with("floor-");
    EXPECT_EQ(reclaims == 0, is_floor) << candidate->name();
  }
  for (const char* name :
       {"floor-nt16", "alpheus", "alpheus-freq8", "alpheus-freq16",
        "libpmemlog", "flex", "zero-init"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// The files are gone as soon as they are mapped.
TEST_F(CandidateTest, LeavesNoFileBehind) {
  const auto candidates = MakeAll(Logs(), SmallWorkload(64, 1));
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// GC1 (log/core/durability/group_commit.h), and F x T of the paper
// (section 4.4).
TEST_F(CandidateTest, ExposureKeepsTheBoundOfItsPolicy) {
  const auto machine = DescribeMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  for (const int threads : {1, 3}) {
    for (const ForcePolicy& policy :
         {ForcePolicy{.frequency = 1}, ForcePolicy{.frequency = 8},
          ForcePolicy{.group = 128}}) {
      const auto counts = SampleExposure(
          SmallWorkload(64, threads),
          {.policy = policy, .threads = threads, .ops_per_thread = 3000},
          machine->cores);
      ASSERT_TRUE(counts.ok()) << counts.status();
      uint64_t sum = 0;
      for (const uint64_t count : *counts) sum += count;
      EXPECT_EQ(sum, 3000u * static_cast<uint64_t>(threads));
      EXPECT_LE(counts->size() - 1, ExposureBound(policy, threads))
          << CandidateName(policy) << ", " << threads << " threads";
      // Each completed record is exposed until it is forced.
      if (threads == 1) {
        EXPECT_EQ((*counts)[0], 0u);
      }
    }
  }
}

// One thread sees a group fill up evenly.
TEST_F(CandidateTest, GroupCommitForcesWholeGroups) {
  const auto machine = DescribeMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  const auto counts = SampleExposure(
      SmallWorkload(64, 1),
      {.policy = {.group = 4}, .threads = 1, .ops_per_thread = 400},
      machine->cores);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(*counts, ElementsAre(0, 100, 100, 100, 100));
}

TEST_F(CandidateTest, FolderThatIsNotThereIsReported) {
  Workload workload = SmallWorkload(64, 1);
  workload.folder += "/nowhere";
  EXPECT_FALSE(FloorsLogsAndFrequencies(workload).ok());
  for (const auto& makers : {Floors(), Logs()}) {
    for (const MakeCandidate& make : makers) {
      EXPECT_FALSE(make(workload).ok());
    }
  }
}

}  // namespace
}  // namespace alpheus::bench
