// SPDX-License-Identifier: Apache-2.0
// commit_log: the interface that makes the changes of an ordered store durable.
//
// A change is written while its record is locked, and gets its place in the
// order of all changes. The lock is released, and then the change is committed
// as the log's policy says: some commits return when it is durable, some leave
// it to a later commit. Changes become durable in the order of their places.
//
// Thread safety: several threads call Write and Commit at once, each with its
// own number below the number of workers.
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

  // Writes a change; returns its place, counted from 1 without gaps. Errors:
  // ResourceExhausted (full; nothing was written): Reclaim; other errors of the
  // log.
  virtual absl::StatusOr<uint64_t> Write(int worker,
                                         std::span<const std::byte> change) = 0;
  // Commits a change. Errors: ResourceExhausted (full; nothing is lost):
  // Reclaim, and again.
  virtual absl::Status Commit(int worker, uint64_t place) = 0;
  // Returns the place up to which all changes are durable.
  virtual uint64_t durable() const = 0;
  // Makes all written changes durable. Requires: nobody writes. Errors: as
  // Commit.
  virtual absl::Status CommitAll() = 0;
  // Frees the room of durable changes, like a store that has written a
  // checkpoint. Called by a worker that holds no record.
  virtual absl::Status Reclaim() = 0;

  // Returns the most changes that a crash may lose, committed or not.
  virtual uint64_t ExposureBound(int threads) const = 0;
};

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_COMMIT_LOG_H_
