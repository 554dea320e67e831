// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/contest.h"

#include <algorithm>
#include <utility>

#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/ordered_store/alpheus_commit_log.h"
#include "bench/ordered_store/shared_buffer_log.h"
#include "bench/ordered_store/zipfian.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {
namespace {

// Of each worker, more than what a core caches of them.
constexpr uint64_t kKeysOfWorker = 1 << 18;

}  // namespace

absl::StatusOr<std::unique_ptr<Contest>> Contest::Make(const Settings& settings,
                                                       double skew) {
  std::unique_ptr<Contest> contest(new Contest);
  const int workers =
      *std::max_element(settings.threads.begin(), settings.threads.end());
  contest->store_.Load(settings.keys);
  for (int worker = 0; worker < workers; ++worker) {
    contest->keys_.push_back(DrawKeys(static_cast<uint64_t>(worker) + 1,
                                      settings.keys, skew,
                                      std::min(kKeysOfWorker, settings.keys)));
  }
  const Workload workload{.folder = settings.folder,
                          .ring_bytes = settings.ring_bytes,
                          .payload_bytes = sizeof(Change),
                          .workers = workers};
  contest->Add(nullptr);
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> made, MakeScratchLog(workload));
  const std::shared_ptr<Log> log = std::move(made);
  for (const ForcePolicy& policy :
       {ForcePolicy{}, ForcePolicy{.frequency = 8},
        ForcePolicy{.frequency = 16}, ForcePolicy{.group = kGroup}}) {
    contest->Add(std::make_shared<AlpheusCommitLog>(log, policy));
  }
  ALPHEUS_ASSIGN_OR_RETURN(contest->region_,
                           MakeScratchRegion(workload, "query-fresh"));
  contest->Add(std::make_shared<SharedBufferLog>(
      contest->region_->bytes(),
      SharedBufferLog::Shape{.group = kGroup,
                             .workers = workers,
                             .change_bytes = sizeof(Change)}));
  return contest;
}

void Contest::Add(std::shared_ptr<CommitLog> log) {
  const bool is_logged = log != nullptr;
  auto candidate =
      std::make_unique<StoreCandidate>(store_, std::move(log), keys_);
  if (is_logged) logged_.push_back(candidate.get());
  candidates_.push_back(std::move(candidate));
}

}  // namespace alpheus::bench::ordered_store
