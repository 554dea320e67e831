// SPDX-License-Identifier: Apache-2.0
// open_object_log: a log of this process, as a store appends to it.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_STORE_ENGINE_OPEN_OBJECT_LOG_H_
#define ALPHEUS_API_STORE_ENGINE_OPEN_OBJECT_LOG_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "api/store/engine/object_log.h"
#include "log/base/ids.h"

namespace alpheus::store {

class OpenObjectLog final : public ObjectLog {
 public:
  // `log` must outlive this object.
  explicit OpenObjectLog(Log& log) : log_(log) {}

  absl::StatusOr<PlacedRecord> Append(
      size_t bytes,
      absl::FunctionRef<void(RingOffset offset, std::span<std::byte> payload)>
          fill) override;
  absl::Status ForEachRecovered(
      absl::FunctionRef<absl::Status(const PlacedRecord& record)> visit)
      override;
  absl::Status BeginForce(Lsn lsn) override { return log_.BeginForce(lsn); }
  absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) override {
    return log_.OnDurable(lsn, std::move(callback));
  }
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    return log_.OnEpochConfirmed(std::move(callback));
  }
  absl::Status CheckPayloads() const override { return log_.CheckPayloads(); }
  uint64_t free_bytes() const override { return log_.free_bytes(); }
  absl::Status CleanupThrough(Lsn lsn) override {
    return log_.CleanupThrough(lsn);
  }
  absl::StatusOr<std::unique_ptr<ObjectReader>> ReadFromHead() override;
  std::span<const std::byte> ring() const override { return log_.ring(); }

 private:
  Log& log_;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_OPEN_OBJECT_LOG_H_
