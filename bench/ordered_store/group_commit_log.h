// SPDX-License-Identifier: Apache-2.0
// group_commit_log: a log by group commit alone, in the manner of Query Fresh:
// each worker has a buffer in memory, and whoever makes a group full seals it:
// takes all buffers and brings them into persistent memory as one. A baseline
// of this benchmark.
//
// Idea: a change costs a place, a counter that all workers share, and a copy
// into the worker's own buffer; a fence is paid once a group. Sealing is done
// by one worker at a time; the others go on filling the next group, and wait
// only when that is full, too.
//
// Invariants:
//   G1. A group holds all places from the one behind the last group's on,
//       without a gap: a place is taken with the buffer locked, and a group is
//       cut with all buffers locked.
//   G2. At most two groups, and a change of each worker, are not durable.
// Persistence: a group is its header and the buffers one behind the other; its
// checksum covers all of it, so one fence makes it durable, and a torn one is
// the end. Places rise for ever, so that what an earlier lap has left behind
// the end does not continue the last group, and is the end, too. Thread safety:
// as commit_log.h. References: Wang, Johnson, Pandis, "Query Fresh: Log
// shipping on steroids" (VLDB 2018); Arcadia §5.6.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_GROUP_COMMIT_LOG_H_
#define ALPHEUS_BENCH_ORDERED_STORE_GROUP_COMMIT_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bench/ordered_store/commit_log.h"

namespace alpheus::bench::ordered_store {

class GroupCommitLog final : public CommitLog {
 public:
  // On `memory`, which must outlive it and holds nothing but zeros.
  GroupCommitLog(std::span<std::byte> memory, uint64_t group, int workers);

  std::string name() const override;
  absl::StatusOr<uint64_t> Write(int worker,
                                 std::span<const std::byte> change) override;
  // Leaves it to a later one, unless the group is full.
  absl::Status Commit(int worker, uint64_t place) override;
  uint64_t durable() const override {
    return durable_.load(std::memory_order_acquire);
  }
  absl::Status CommitAll() override;
  absl::Status Reclaim() override;
  uint64_t ExposureBound(int threads) const override {
    return 2 * group_ + static_cast<uint64_t>(threads);
  }

  // Gives each change of the groups that are whole to `visit`, in the order of
  // their places. Returns the number.
  static uint64_t Replay(std::span<const std::byte> memory, const Visit& visit);

 private:
  struct alignas(64) Buffer {
    std::mutex mutex;
    std::vector<std::byte> bytes;  // entries, by rising place
  };

  absl::Status Seal();
  absl::Status StoreGroup(uint64_t first, uint64_t end, uint64_t bytes);

  const std::span<std::byte> memory_;
  const uint64_t group_;
  std::vector<Buffer> buffers_;
  std::atomic<uint64_t> next_{1};  // the next place
  std::atomic<uint64_t> durable_{0};

  // Of who seals.
  std::mutex sealing_;
  std::vector<std::vector<std::byte>> sealed_;  // by worker
  uint64_t end_ = 0;                            // of the last group in memory_
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_GROUP_COMMIT_LOG_H_
