// SPDX-License-Identifier: Apache-2.0
// record_log: what the service needs of an open log.
//
// Idea: the service's rules (service_log.h) are the same on a log of this
// process and on a simulated one.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_SERVICE_LOG_RECORD_LOG_H_
#define ALPHEUS_API_SERVICE_LOG_RECORD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/service/clients/client_requests.h"
#include "log/base/ids.h"
#include "log/core/durability/persisted_by.h"

namespace alpheus::service {

class RecordLog {
 public:
  virtual ~RecordLog() = default;

  // Reserves, fills and completes one record of these parts, in their order.
  // Does not wait. Returns the record's place. A log that fails meanwhile says
  // so in BeginForce and OnPersisted: then the outcome is unknown. Errors,
  // after which nothing was written: InvalidArgument (too large);
  // ResourceExhausted (no room); DeadlineExceeded (to be tried again: the log
  // would have waited); the log's failure.
  virtual absl::StatusOr<Place> Append(
      std::span<const std::span<const std::byte>> parts) = 0;
  // As the calls of alpheus/log.h.
  virtual absl::Status BeginForce(Lsn lsn) = 0;
  virtual absl::Status OnPersisted(
      Lsn lsn, PersistedBy by,
      std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::StatusOr<bool> OnResumed(
      std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::Status CleanupThrough(Lsn lsn) = 0;
  virtual Lsn next_lsn() const = 0;
  virtual Lsn durable_lsn() const = 0;
  virtual Lsn head_lsn() const = 0;
  virtual size_t payload_bytes_max() const = 0;
  virtual uint64_t free_bytes() const = 0;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_LOG_RECORD_LOG_H_
