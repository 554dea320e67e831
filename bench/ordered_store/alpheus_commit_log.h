// SPDX-License-Identifier: Apache-2.0
// alpheus_commit_log: changes in a local log of Alpheus, step by step, through
// its public header: reserved, copied and completed with the record locked,
// forced by the policy without.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_ALPHEUS_COMMIT_LOG_H_
#define ALPHEUS_BENCH_ORDERED_STORE_ALPHEUS_COMMIT_LOG_H_

#include <memory>
#include <string>
#include <utility>

#include "alpheus/log.h"
#include "bench/harness/force_policy.h"
#include "bench/ordered_store/commit_log.h"

namespace alpheus::bench::ordered_store {

class AlpheusCommitLog final : public CommitLog {
 public:
  AlpheusCommitLog(std::shared_ptr<Log> log, const ForcePolicy& policy)
      : log_(std::move(log)), policy_(policy) {}

  std::string name() const override { return CandidateName(policy_); }
  absl::StatusOr<uint64_t> Write(int worker,
                                 std::span<const std::byte> change) override;
  absl::Status Commit(int worker, uint64_t place) override;
  uint64_t durable() const override { return log_->durable_lsn().value; }
  absl::Status CommitAll() override;
  absl::Status Reclaim() override;
  uint64_t ExposureBound(int threads) const override {
    return bench::ExposureBound(policy_, threads);
  }

  // What an opened log has recovered, in order. Returns the number.
  // Errors: as RecoveredRange.
  static absl::StatusOr<uint64_t> Replay(const Log& log, const Visit& visit);

 private:
  const std::shared_ptr<Log> log_;
  const ForcePolicy policy_;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_ALPHEUS_COMMIT_LOG_H_
