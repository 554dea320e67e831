// SPDX-License-Identifier: Apache-2.0
// memory_log: a log in memory whose durability a test decides.
#ifndef ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_
#define ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
    // A record lies in one piece.
    const uint64_t record_bytes = RoundUp(kHeaderBytes + bytes, kLineBytes);
    const uint64_t left = ring_.size() - next_offset_ % ring_.size();
    const uint64_t begin =
        left < record_bytes ? next_offset_ + left : next_offset_;
    const uint64_t end = begin + record_bytes;
    if (end - first() > ring_.size()) {
      return absl::ResourceExhaustedError("the ring is full, says the test");
    }
    const RingOffset offset(begin + kHeaderBytes);
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
    for (size_t i = head_; i < records_.size(); ++i) {
      if (absl::Status visited = visit(records_[i]); !visited.ok()) {
        return visited;
      }
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
  absl::Status CheckPayloads() const override { return absl::OkStatus(); }
  uint64_t free_bytes() const override {
    return ring_.size() - (next_offset_ - first());
  }
  // Cleaned records are overwritten: nothing may look there any more.
  absl::Status CleanupThrough(Lsn lsn) override {
    if (lsn.value > durable_) {
      return absl::FailedPreconditionError("not durable, says the test");
    }
    for (; head_ < lsn.value; ++head_) {
      const store::PlacedRecord& record = records_[head_];
      std::fill_n(&ring_[record.offset.value % ring_.size()],
                  record.payload.size(), std::byte{0xdd});
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<store::ObjectReader>> ReadFromHead() override {
    return std::make_unique<Reader>(*this);
  }
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
  // A crash leaves at least the durable records.
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
  int reads_until_failure = -1;  // never

 private:
  using Waiting = std::pair<Lsn, std::function<void(const absl::Status&)>>;
  static constexpr size_t kHeaderBytes = 48;

  class Reader final : public store::ObjectReader {
   public:
    explicit Reader(MemoryLog& log) : log_(log), next_(log.head_) {}
    absl::StatusOr<std::optional<store::PlacedRecord>> Next() override {
      if (log_.reads_until_failure == 0) {
        return absl::DataLossError("unreadable, says the test");
      }
      if (log_.reads_until_failure > 0) --log_.reads_until_failure;
      if (next_ >= log_.durable_) return std::nullopt;
      return log_.records_[next_++];
    }

   private:
    MemoryLog& log_;
    size_t next_;
  };

  // Where the oldest record begins that is not cleaned.
  uint64_t first() const {
    return head_ < records_.size() ? records_[head_].offset.value - kHeaderBytes
                                   : next_offset_;
  }

  std::vector<std::byte> ring_;
  uint64_t next_offset_;
  std::vector<store::PlacedRecord> records_;
  size_t head_ = 0;     // records that are cleaned
  size_t durable_ = 0;  // records
  std::vector<Waiting> waiting_;
  std::vector<std::function<void(const absl::Status&)>> confirming_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_STORE_ENGINE_MEMORY_LOG_H_
