// SPDX-License-Identifier: Apache-2.0
// store: an ordered key-value store in memory, whose changes are in a log: like
// a database such as Masstree, as its log sees it.
//
// Invariants:
//   OST1. A key's changes are in the log in the order in which they were made,
//         each with its resulting value. So replaying a prefix of the log
//         gives, for each key, a state that the store has had.
// Thread safety: Update and Read concurrently; Load and Replay alone.
#ifndef ALPHEUS_BENCH_ORDERED_STORE_STORE_H_
#define ALPHEUS_BENCH_ORDERED_STORE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/ordered_store/commit_log.h"
#include "bench/ordered_store/ordered_map.h"

namespace alpheus::bench::ordered_store {

// Record written for each change.
struct Change {
  uint64_t key;
  uint64_t changes;  // of that key, this one included
  Value value;
};

class Store {
 public:
  // Loads keys 0 to count - 1, in no order, each with the value that follows
  // from it.
  void Load(uint64_t count);

  // Does a read-modify-write: the new value depends on all of the old one; a
  // new key begins with zeros. Returns the change's place in the log. Errors:
  // as CommitLog::Write; then nothing has changed.
  absl::StatusOr<uint64_t> Update(int worker, uint64_t key, CommitLog& log);
  // Does the same without a log.
  void UpdateUnlogged(uint64_t key);

  // Reads a key; returns false if there is none.
  bool Read(uint64_t key, Change* found);

  // Applies a change from a log. Errors: DataLoss (it is no change, or is not
  // the next one of its key).
  absl::Status Replay(std::span<const std::byte> change);

  const OrderedMap& map() const { return map_; }

 private:
  OrderedMap map_;
};

// Returns whether keys and values of both are equal.
bool AreEqual(const Store& a, const Store& b);

}  // namespace alpheus::bench::ordered_store

#endif  // ALPHEUS_BENCH_ORDERED_STORE_STORE_H_
