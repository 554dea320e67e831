// SPDX-License-Identifier: Apache-2.0
// commit_log: what makes the changes of an ordered store durable.
//
// A change is written while its record is locked, and gets its place in the
// order of all changes; the lock is released, and then it is committed as far
// as the log's policy says: some come back when it is durable, some leave it to
// a later commit. Changes become durable in the order of their places.
//
// Thread safety: Write and Commit are called by several threads at once, each
// with a number of its own, below the number of workers that it was made for.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_COMMIT_LOG_H_
#define ALPHEUS_BENCH_ORDERED_STORE_COMMIT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::ordered_store {

class CommitLog {
 public:
  using Visit = std::function<void(std::span<const std::byte>)>;

  virtual ~CommitLog() = default;

  virtual std::string name() const = 0;

  // Gives the change its place, counted from 1 without gaps.
  // Errors: ResourceExhausted (full; nothing was written): Reclaim; others as
  // the log has them.
  virtual absl::StatusOr<uint64_t> Write(int worker,
                                         std::span<const std::byte> change) = 0;
  // Errors: ResourceExhausted (full; nothing is lost): Reclaim, and again.
  virtual absl::Status Commit(int worker, uint64_t place) = 0;
  // All up to this place are durable.
  virtual uint64_t durable() const = 0;
  // Makes all durable that is written. Requires: nobody writes. Errors: as
  // Commit.
  virtual absl::Status CommitAll() = 0;
  // Takes back the room of what is durable, as a store does that has written a
  // checkpoint. By a worker that holds no record.
  virtual absl::Status Reclaim() = 0;

  // What a crash may take of changes whose Commit has returned or not, at most.
  virtual uint64_t ExposureBound(int threads) const = 0;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_COMMIT_LOG_H_
