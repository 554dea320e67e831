// SPDX-License-Identifier: Apache-2.0
// open_log: a log of this process, as the service appends to it.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_SERVICE_LOG_OPEN_LOG_H_
#define ALPHEUS_API_SERVICE_LOG_OPEN_LOG_H_

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "api/service/log/record_log.h"
#include "log/base/ids.h"

namespace alpheus::service {

class OpenLog final : public RecordLog {
 public:
  // `log` must outlive this object.
  explicit OpenLog(Log& log) : log_(log) {}

  absl::StatusOr<Place> Append(
      std::span<const std::span<const std::byte>> parts) override;
  absl::Status BeginForce(Lsn lsn) override { return log_.BeginForce(lsn); }
  absl::Status OnPersisted(
      Lsn lsn, PersistedBy by,
      std::function<void(const absl::Status&)> callback) override;
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    return log_.OnEpochConfirmed(std::move(callback));
  }
  absl::StatusOr<bool> OnResumed(
      std::function<void(const absl::Status&)> callback) override {
    return log_.OnResumed(std::move(callback));
  }
  absl::Status CleanupThrough(Lsn lsn) override {
    return log_.CleanupThrough(lsn);
  }
  Lsn next_lsn() const override { return log_.next_lsn(); }
  Lsn durable_lsn() const override { return log_.durable_lsn(); }
  Lsn head_lsn() const override { return log_.head_lsn(); }
  size_t payload_bytes_max() const override { return log_.payload_bytes_max(); }
  uint64_t free_bytes() const override { return log_.free_bytes(); }

 private:
  Log& log_;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_LOG_OPEN_LOG_H_
