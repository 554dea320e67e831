// SPDX-License-Identifier: Apache-2.0
// memory_log: a log in memory whose durability a test decides.
#ifndef ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_
#define ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/engine/object_log.h"
#include "log/base/bytes.h"

namespace alpheus::testing {

class MemoryLog final : public store::ObjectLog {
 public:
  // `first_offset`: where the ring's first record would be, counted since the
  // log began. A multiple of the ring's size.
  explicit MemoryLog(size_t ring_bytes, uint64_t first_offset = 0)
      : ring_(ring_bytes), next_offset_(first_offset) {}

  absl::StatusOr<store::PlacedRecord> Append(
      size_t bytes,
      absl::FunctionRef<void(RingOffset offset, std::span<std::byte> payload)>
          fill) override {
    if (!next_append.ok()) return next_append;
    const uint64_t end =
        RoundUp(next_offset_ + kHeaderBytes + bytes, kLineBytes);
    if (end - first() > ring_.size()) {
      return absl::ResourceExhaustedError("the ring is full, says the test");
    }
    const RingOffset offset(next_offset_ + kHeaderBytes);
    const std::span<std::byte> payload =
        std::span(ring_).subspan(offset.value % ring_.size(), bytes);
    fill(offset, payload);
    next_offset_ = end;
    records_.push_back({Lsn(records_.size() + 1), Epoch(1), offset, payload});
    return records_.back();
  }
  absl::Status ForEachRecovered(
      absl::FunctionRef<absl::Status(const store::PlacedRecord& record)> visit)
      override {
    for (const store::PlacedRecord& one : records_) {
      if (absl::Status visited = visit(one); !visited.ok()) return visited;
    }
    return absl::OkStatus();
  }
  absl::Status BeginForce(Lsn /*lsn*/) override { return next_force; }
  absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) override {
    waiting_.emplace_back(lsn, std::move(callback));
    return absl::OkStatus();
  }
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    ++confirmations;
    confirming_.push_back(std::move(callback));
    return absl::OkStatus();
  }
  size_t payload_bytes_max() const override { return ring_.size() / 2 - 64; }
  std::span<const std::byte> ring() const override { return ring_; }

  // ---- What the test decides

  // Makes all records up to this one durable.
  void MakeDurable(size_t records) {
    durable_ = std::max(durable_, records);
    std::vector<Waiting> waiting = std::exchange(waiting_, {});
    for (auto& [lsn, callback] : waiting) {
      if (lsn.value <= records) {
        callback(absl::OkStatus());
      } else {
        waiting_.emplace_back(lsn, std::move(callback));
      }
    }
  }
  void MakeAllDurable() { MakeDurable(records_.size()); }
  void Confirm() {
    for (auto& callback : std::exchange(confirming_, {})) {
      callback(absl::OkStatus());
    }
  }
  void Fail(const absl::Status& failure) {
    for (auto& [lsn, callback] : std::exchange(waiting_, {})) callback(failure);
    for (auto& callback : std::exchange(confirming_, {})) callback(failure);
  }
  // What a crash leaves: at least the durable records.
  void Crash(size_t records) {
    waiting_.clear();
    confirming_.clear();
    records_.resize(std::max(records, durable_));
    durable_ = records_.size();
    if (!records_.empty()) {
      next_offset_ =
          RoundUp(records_.back().offset.value + records_.back().payload.size(),
                  kLineBytes);
    }
  }

  size_t records() const { return records_.size(); }
  size_t durable() const { return durable_; }
  const store::PlacedRecord& record(size_t i) const { return records_[i]; }

  absl::Status next_append;
  absl::Status next_force;
  int confirmations = 0;

 private:
  using Waiting = std::pair<Lsn, std::function<void(const absl::Status&)>>;
  static constexpr size_t kHeaderBytes = 48;

  uint64_t first() const {
    return records_.empty() ? next_offset_
                            : records_.front().offset.value - kHeaderBytes;
  }

  std::vector<std::byte> ring_;
  uint64_t next_offset_;
  std::vector<store::PlacedRecord> records_;
  size_t durable_ = 0;  // records
  std::vector<Waiting> waiting_;
  std::vector<std::function<void(const absl::Status&)>> confirming_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_
