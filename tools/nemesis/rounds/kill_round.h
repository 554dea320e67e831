// SPDX-License-Identifier: Apache-2.0
// kill_round: feeds the real `alpheus append`, kills it in mid-stream, lets the
// real `alpheus` recover, and has the oracle judge the result.
//
// A round on a region:
//   1. append --ack, killed by SIGKILL at a random moment
//   2. verify and cat, which only read, of what the kill left
//   3. append of nothing: opens the log for real, recovers, opens an epoch
//   4. cat again (must give the same), verify (must be complete)
//   5. judge (recovery_oracle.h) against feed, acknowledgements and the records
//      that the last round found
// The next round continues with the same region. SIGKILL leaves the page cache
// alone: this is no power cut.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_KILL_ROUND_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_KILL_ROUND_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/writers/feed.h"
#include "tools/nemesis/writers/victim.h"

namespace alpheus::demo {

struct KillRoundOptions {
  std::string binary;     // path of `alpheus`
  std::string directory;  // exists; holds the region
  uint64_t region_bytes = 0;
  uint64_t threads = 4;
  uint64_t ack_count_max = 0;           // most acknowledgements before the kill
  int64_t delay_nanos_max = 1'000'000;  // and then at most this much later
  bool kills_early = false;  // now and then while the log is being opened
};

// Way of flushing a region: the two backends of the persistence primitive.
enum class FlushPath {
  kAsIs,  // as the medium requires
  kCpu,   // CPU instructions (PMEM_IS_PMEM_FORCE=1)
  kMsync,
};

struct RoundReport {
  KillPlan plan;
  uint64_t acknowledged_count = 0;
  int64_t alive_nanos = 0;     // from start to kill
  std::string tail_verdict;    // after the kill: complete or torn
  int64_t recovery_nanos = 0;  // the whole process that opens and closes
  Judgement judgement;
};

// Region and the records that must be in it.
class KilledRegion {
 public:
  // `feed` and `random` must outlive it.
  KilledRegion(const KillRoundOptions& options, const Feed* feed,
               RandomSource* random)
      : options_(options), feed_(*feed), random_(*random) {}

  // Formats the region; nothing is expected in it.
  // Errors: FailedPrecondition (error of `alpheus format`); Unavailable.
  absl::Status Format();

  // Runs a round. Errors: DataLoss (the judgement does not hold, or a step
  // failed that must not: the message has all details); Unavailable (a program
  // can't be started).
  absl::StatusOr<RoundReport> RunRound(FlushPath flush_path);

  // Cleans all records if they fill more than a third of the ring.
  // Errors: as RunRound, if a cleaned record is found again.
  absl::Status CleanupIfFull();

  std::string path() const;
  // Returns the path of the bytes that the last kill left.
  std::string killed_copy_path() const;

 private:
  Program Alpheus(const std::vector<std::string>& arguments) const;
  // Returns the output of a command that must succeed; otherwise DataLoss.
  absl::StatusOr<std::string> MustSucceed(
      const std::vector<std::string>& arguments) const;
  KillPlan DrawPlan();
  uint64_t SurvivorRingBytes() const;
  absl::StatusOr<KillOutcome> KillMidStream(const KillPlan& plan);
  absl::Status KeepCopy() const;
  absl::StatusOr<std::string> Verify() const;
  absl::StatusOr<std::string> ReadPayloads() const;  // framed as len32
  absl::StatusOr<std::vector<RecoveredRecord>> AddLsns(
      const std::string& framed) const;
  absl::StatusOr<int64_t> Recover() const;
  absl::Status CheckRepeatable(const std::string& before) const;
  absl::Status Judge(const KillOutcome& outcome,
                     std::vector<RecoveredRecord> recovered,
                     RoundReport* report);

  const KillRoundOptions options_;
  const Feed& feed_;
  RandomSource& random_;
  FlushPath flush_path_ = FlushPath::kAsIs;
  uint64_t next_number_ = 0;  // of the feed
  std::vector<PlacedRecord> survivors_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_KILL_ROUND_H_
