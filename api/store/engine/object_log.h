// SPDX-License-Identifier: Apache-2.0
// object_log: what a store needs of its log.
//
// Idea: the store's rules (engine.h) are the same on a log of this process and
// on a simulated one. Objects are read where they lie in the ring, so a log
// shows its ring, and places in it.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_STORE_ENGINE_OBJECT_LOG_H_
#define ALPHEUS_API_STORE_ENGINE_OBJECT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus::store {

// A record that was found again, or is open: its payload in the ring, and the
// payload's offset, which is counted since the log began.
struct PlacedRecord {
  Lsn lsn;
  Epoch epoch;
  RingOffset offset;
  std::span<const std::byte> payload;
};

// Reads durable records in the order of the log.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;

  // Returns the next durable record, whose payload is a copy until the next
  // call; nothing if there is none yet. Errors: as LogTail::Next.
  virtual absl::StatusOr<std::optional<PlacedRecord>> Next() = 0;
};

class ObjectLog {
 public:
  virtual ~ObjectLog() = default;

  // Appends a record of so many bytes, which `fill` writes in the ring at
  // `offset`. Does not wait. Errors, after which nothing was written, and
  // `fill` was not called: InvalidArgument (too large); ResourceExhausted (no
  // room); DeadlineExceeded (to be tried again: the log would have waited); the
  // log's failure. Any error once `fill` was called: outcome unknown, the log
  // has failed.
  virtual absl::StatusOr<PlacedRecord> Append(
      size_t bytes,
      absl::FunctionRef<void(RingOffset offset, std::span<std::byte> payload)>
          fill) = 0;
  // Calls `visit` for each record that the opening found, in LSN order. Errors:
  // as Log::ForEachRecovered.
  virtual absl::Status ForEachRecovered(
      absl::FunctionRef<absl::Status(const PlacedRecord& record)> visit) = 0;

  // As the calls of alpheus/log.h.
  virtual absl::Status BeginForce(Lsn lsn) = 0;
  virtual absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::Status CheckPayloads() const = 0;
  virtual uint64_t free_bytes() const = 0;
  virtual absl::Status CleanupThrough(Lsn lsn) = 0;

  // Returns a reader from the oldest record on that is not cleaned. Must not
  // outlive the log.
  virtual absl::StatusOr<std::unique_ptr<ObjectReader>> ReadFromHead() = 0;

  // Returns the ring: the byte of offset x lies at x modulo its size.
  virtual std::span<const std::byte> ring() const = 0;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_OBJECT_LOG_H_
