// SPDX-License-Identifier: Apache-2.0
// memory_record_log: a log in memory whose records become durable when a test
// says so.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_API_SERVICE_LOG_MEMORY_RECORD_LOG_H_
#define ALPHEUS_TESTS_API_SERVICE_LOG_MEMORY_RECORD_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/service/log/record_log.h"
#include "log/base/bytes.h"

namespace alpheus::service {

class MemoryRecordLog final : public RecordLog {
 public:
  struct Record {
    Place place;
    std::string payload;
  };

  explicit MemoryRecordLog(Epoch epoch) : epoch_(epoch) {}

  absl::StatusOr<Place> Append(
      std::span<const std::span<const std::byte>> parts) override {
    if (on_append) on_append();
    if (!refusal.ok()) return refusal;
    Record record = {{epoch_, next_lsn()}, {}};
    for (const auto part : parts) record.payload.append(AsText(part));
    if (record.payload.size() > payload_bytes_max()) {
      return absl::InvalidArgumentError("too large");
    }
    records_.push_back(std::move(record));
    next_ = next_ + 1;
    return records_.back().place;
  }
  absl::Status BeginForce(Lsn lsn) override {
    forced_ = std::max(forced_, lsn);
    return failure_;
  }
  absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) override {
    if (lsn <= durable_) {
      callback(absl::OkStatus());
    } else if (!failure_.ok()) {
      return failure_;
    } else {
      waiting_.emplace(lsn, std::move(callback));
    }
    return absl::OkStatus();
  }
  absl::Status CleanupThrough(Lsn lsn) override {
    const auto end = std::ranges::find_if(
        records_,
        [lsn](const Record& record) { return record.place.lsn > lsn; });
    cleaned_.insert(cleaned_.end(), records_.begin(), end);
    records_.erase(records_.begin(), end);
    head_ = std::max(head_, lsn + 1);
    return absl::OkStatus();
  }
  Lsn next_lsn() const override { return next_; }
  Lsn durable_lsn() const override { return durable_; }
  Lsn head_lsn() const override { return head_; }
  size_t payload_bytes_max() const override { return 1'000; }
  uint64_t free_bytes() const override { return room; }

  // All records up to this one are durable.
  void MakeDurable(Lsn lsn) {
    durable_ = std::max(durable_, lsn);
    while (!waiting_.empty() && waiting_.begin()->first <= durable_) {
      const auto callback = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      callback(absl::OkStatus());
    }
  }
  void MakeAllDurable() { MakeDurable(next_ - 1); }
  // Another process opens the log.
  void Fail() {
    failure_ = absl::AbortedError("the log lost its epoch");
    refusal = failure_;
    for (auto& [lsn, callback] : std::exchange(waiting_, {})) {
      callback(failure_);
    }
  }
  // The process ends: no callback runs any more.
  void End() { waiting_.clear(); }
  // Returns the log as a later primary opens it, with its records up to `end`,
  // which may be more than were durable.
  MemoryRecordLog OpenedWith(Lsn end) const {
    MemoryRecordLog opened(epoch_ + 1);
    opened.head_ = head_;
    opened.next_ = end + 1;
    opened.durable_ = end;
    opened.cleaned_ = cleaned_;
    for (const Record& record : records_) {
      if (record.place.lsn <= end) opened.records_.push_back(record);
    }
    return opened;
  }

  const std::vector<Record>& records() const { return records_; }
  // Returns the records that were cleaned, oldest first.
  const std::vector<Record>& cleaned() const { return cleaned_; }
  Lsn forced() const { return forced_; }

  // Called inside of each Append, as a log runs callbacks there.
  std::function<void()> on_append;
  // Error of each Append; OK: none.
  absl::Status refusal;
  // The room that it says is free.
  uint64_t room = 1 << 20;

 private:
  Epoch epoch_;
  std::vector<Record> records_;
  std::vector<Record> cleaned_;
  Lsn head_{1};
  Lsn next_{1};
  Lsn durable_;
  Lsn forced_;
  absl::Status failure_;
  std::multimap<Lsn, std::function<void(const absl::Status&)>> waiting_;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_TESTS_API_SERVICE_LOG_MEMORY_RECORD_LOG_H_
