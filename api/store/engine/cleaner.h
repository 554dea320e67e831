// SPDX-License-Identifier: Apache-2.0
// cleaner: frees the oldest part of a store's log.
//
// Idea: the log is a ring, and most objects in its oldest part are replaced or
// deleted. The cleaner reads on from the head, has the engine append the others
// again, and cleans the log up to there once these copies are durable and the
// index names them:
//
//   head                                                        end
//   | a1 b1 | c1 a2 | d1 b2 | ...              ... | e7 | copy of c1 |
//     both replaced, then c1 is the newest: copied, and the head moves on
//
// A deletion at the head is dropped with the rest: every older version of its
// key lies before it.
//
// It begins when more than begin_percent of the ring are in use, and stops
// below end_percent. Garbage are the bytes in use that no newest object has;
// where there is little (room.h), it rests, since it would copy nearly all that
// it frees.
//
// Invariants:
//   CLN1. The head passes a record only once each object of it that was the
//         newest of its key has a durable copy, or a newer version that is
//         durable (P-E16, P-O13).
//   CLN2. Only records that the engine has shown are read: the index must know
//         what they hold.
// Thread safety: one thread, that of the engine.
// References: docs/design/object_store.md#cleaning.
#ifndef ALPHEUS_API_STORE_ENGINE_CLEANER_H_
#define ALPHEUS_API_STORE_ENGINE_CLEANER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/engine/engine.h"
#include "api/store/engine/object_log.h"
#include "log/base/ids.h"

namespace alpheus::store {

class Cleaner {
 public:
  struct Options {
    uint64_t begin_percent = 70;
    uint64_t end_percent = 60;
    // A step ends with the record whose copies reach so many bytes. At most
    // what a record of the store takes.
    uint64_t step_bytes = uint64_t{64} << 10;
  };

  // Both must outlive the cleaner.
  Cleaner(ObjectLog& log, Engine& engine, const Options& options);

  // Begins a step, which submits copies, or ends one; the caller then has the
  // engine append. Returns true if it did anything. Errors: ResourceExhausted,
  // DeadlineExceeded (the log took no copy; the next call begins again); those
  // of reading and cleaning the log; the log's failure.
  absl::StatusOr<bool> Poll();
  // Returns whether copies are under way.
  bool is_busy() const { return step_ != nullptr; }
  // Returns how many bytes of objects were copied so far.
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  // A record that was read. Its payload stays where it is if this is moved.
  struct Read {
    PlacedRecord record;
    std::vector<std::byte> payload;
  };
  // Copies that are under way.
  struct Step {
    // Until the engine has appended the copies.
    std::deque<Read> records;
    size_t waits = 0;  // copies that have no answer yet
    absl::Status status;
  };

  bool IsDue();
  absl::StatusOr<bool> BeginStep();
  absl::StatusOr<bool> EndStep();
  // Reads one record ahead. Returns false if there is none that was shown.
  absl::StatusOr<bool> ReadNext();

  ObjectLog& log_;
  Engine& engine_;
  const Options options_;
  bool is_cleaning_ = false;
  std::unique_ptr<ObjectReader> reader_;
  std::optional<Read> next_;
  std::shared_ptr<Step> step_;
  uint64_t copied_bytes_ = 0;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_CLEANER_H_
