// SPDX-License-Identifier: Apache-2.0
// contest: a loaded store, and its candidates: without a log, with Alpheus
// under each force policy, with a log by group commit.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_CONTEST_H_
#define ALPHEUS_BENCH_ORDERED_STORE_CONTEST_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/local/candidates/contestants.h"
#include "bench/ordered_store/scenarios.h"
#include "bench/ordered_store/store_candidate.h"
#include "log/pmem/region.h"

namespace alpheus::bench::ordered_store {

// Of Alpheus and of its peer: as the paper's group commit.
inline constexpr uint32_t kGroup = 128;

class Contest {
 public:
  // Errors: as Log::Format and Log::Open; as MakeScratchRegion.
  static absl::StatusOr<std::unique_ptr<Contest>> Make(const Settings& settings,
                                                       double skew);

  // "unlogged" is the first.
  const Candidates& candidates() const { return candidates_; }
  // The same but that, as what they are.
  const std::vector<StoreCandidate*>& logged() const { return logged_; }

 private:
  Contest() = default;
  void Add(std::shared_ptr<CommitLog> log);

  Store store_;
  KeysOfWorkers keys_;
  std::optional<Region> region_;  // of the peer
  Candidates candidates_;
  std::vector<StoreCandidate*> logged_;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_CONTEST_H_
