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
// It begins when so much of the ring is in use that begin_percent is exceeded,
// and stops below end_percent, or once so much of the ring is live that it frees
// hardly anything.
//
// Invariants:
//   CLN1. The head passes a record only once each object of it that was the
//         newest of its key has a durable copy, or a newer version that is
//         durable (P-E16, P-O13).
// Thread safety: one thread, that of the engine.
// References: docs/design/object_store.md#cleaning.
#ifndef ALPHEUS_API_STORE_ENGINE_CLEANER_H_
#define ALPHEUS_API_STORE_ENGINE_CLEANER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "api/store/engine/engine.h"
#include "api/store/engine/object_log.h"
#include "log/base/ids.h"

namespace alpheus::store {

class Cleaner {
 public:
  struct Options {
    uint64_t begin_percent = 70;
    uint64_t end_percent = 60;
    // More of the ring than this is not cleaned while live objects have it.
    uint64_t live_percent_max = 90;
    // Bytes of records that are read before the copies of them are awaited.
    uint64_t step_bytes = uint64_t{256} << 10;
  };

  // Both must outlive the cleaner.
  Cleaner(ObjectLog& log, Engine& engine, const Options& options)
      : log_(log), engine_(engine), options_(options) {}

  // Reads on, and submits copies; the caller then has the engine append. Returns
  // true if it did anything. Errors: those of reading and cleaning the log.
  absl::StatusOr<bool> Poll();
  // Returns whether copies are under way.
  bool is_busy() const { return step_ != nullptr; }
  // Returns how many bytes were copied so far.
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  // Copies that are under way.
  struct Step {
    // The payloads, until the engine has appended the copies.
    std::deque<std::vector<std::byte>> payloads;
    Lsn through;
    size_t waits = 0;  // records whose copies are not durable yet
    absl::Status status;
  };

  bool IsDue();
  absl::StatusOr<bool> BeginStep();
  absl::StatusOr<bool> EndStep();

  ObjectLog& log_;
  Engine& engine_;
  const Options options_;
  bool is_cleaning_ = false;
  std::unique_ptr<ObjectReader> reader_;
  std::shared_ptr<Step> step_;
  uint64_t copied_bytes_ = 0;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_CLEANER_H_
