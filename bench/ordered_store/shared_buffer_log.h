// SPDX-License-Identifier: Apache-2.0
// shared_buffer_log: a log by group commit alone, in the manner of Query Fresh:
// all workers fill one buffer in memory, and the worker that fills a group
// writes the filled part to persistent memory. A baseline of this benchmark.
//
// Idea: a change gets its place, and with it its room in the buffer, by one
// fetch-and-add; workers fill their rooms at once. Each publishes the place
// from which it may still be filling, so that the flushing worker finds the
// whole prefix without a lock. One fence per group. One worker at a time
// flushes, on its own core, where Query Fresh has a thread for it. The others
// continue with the next group, and wait only when that is full too. A client
// would hear of its change when `durable` reaches it.
//
// Invariants:
//   SBL1. The flushed prefix has no gap: a worker publishes that it fills
//         before it takes its place; the flushing worker reads the next place
//         first, and then what each worker published.
//   SBL2. At most two groups, and a change of each worker, are not durable.
//   SBL3. A room in the buffer is reused only when its content is durable. It
//         follows from SBL2, as the buffer has that many rooms.
// Persistence: records follow one another by rising place; each has a checksum,
// made by the worker that fills it. The first one that is torn, or whose place
// does not follow, is the end: places always rise, so leftovers of an earlier
// lap do not continue the last record.
// Thread safety: as commit_log.h; a worker writes only when its last change is
// committed.
// References: Wang, Johnson, Pandis, "Query Fresh: Log shipping on steroids"
// (VLDB 2018), and ERMIA, whose log it uses; Arcadia §5.6.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_SHARED_BUFFER_LOG_H_
#define ALPHEUS_BENCH_ORDERED_STORE_SHARED_BUFFER_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bench/ordered_store/commit_log.h"

namespace alpheus::bench::ordered_store {

class SharedBufferLog final : public CommitLog {
 public:
  struct Shape {
    uint64_t group = 0;
    int workers = 0;
    uint64_t change_bytes = 0;  // of each change: a place gives an offset
  };

  // Uses `memory`, which must outlive it and contain only zeros.
  // Requires: it has room for two groups and a change of each worker.
  SharedBufferLog(std::span<std::byte> memory, const Shape& shape);

  std::string name() const override;
  // Writes; never full. Requires: change.size() == change_bytes.
  absl::StatusOr<uint64_t> Write(int worker,
                                 std::span<const std::byte> change) override;
  // Leaves the commit to a later one, unless the group is full.
  absl::Status Commit(int worker, uint64_t place) override;
  uint64_t durable() const override {
    return durable_.load(std::memory_order_acquire);
  }
  absl::Status CommitAll() override;
  absl::Status Reclaim() override;
  uint64_t ExposureBound(int threads) const override {
    return 2 * group_ + static_cast<uint64_t>(threads) - 1;
  }

  // Steps of Write, to test what happens between them.
  uint64_t Reserve(int worker);
  void Fill(int worker, uint64_t place, std::span<const std::byte> change);

  // Calls `visit` with each change of whole records, in the order of their
  // places. Returns their number.
  static uint64_t Replay(std::span<const std::byte> memory,
                         uint64_t change_bytes, const Visit& visit);

 private:
  static constexpr uint64_t kNothing = std::numeric_limits<uint64_t>::max();

  struct alignas(64) Filling {
    std::atomic<uint64_t> from{kNothing};  // no place below it
  };

  std::byte* RoomOf(uint64_t place) {
    return buffer_.data() + place % rooms_ * record_bytes_;
  }
  uint64_t FilledPlace() const;
  absl::Status Flush();

  const std::span<std::byte> memory_;
  const uint64_t group_;
  const uint64_t change_bytes_;
  const uint64_t record_bytes_;
  const uint64_t rooms_;
  std::vector<std::byte> buffer_;
  std::vector<Filling> filling_;               // by worker
  alignas(64) std::atomic<uint64_t> next_{1};  // the next place
  alignas(64) std::atomic<uint64_t> durable_{0};

  // Lock of the flushing worker.
  std::mutex flushing_;
  uint64_t end_ = 0;  // end of the last record in memory_
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_SHARED_BUFFER_LOG_H_
