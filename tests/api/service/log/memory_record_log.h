// SPDX-License-Identifier: Apache-2.0
// memory_record_log: a log in memory whose records are persisted when a test
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
#include "log/core/durability/persisted_by.h"

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
    if (is_held_) return absl::DeadlineExceededError("held");
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
  absl::Status OnPersisted(
      Lsn lsn, PersistedBy by,
      std::function<void(const absl::Status&)> callback) override {
    if (lsn <= Persisted(by)) {
      callback(absl::OkStatus());
    } else if (!failure_.ok()) {
      return failure_;
    } else {
      waiting_[by].emplace(lsn, std::move(callback));
    }
    return absl::OkStatus();
  }
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    if (!failure_.ok()) return failure_;
    confirmations_.push_back(std::move(callback));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> OnResumed(
      std::function<void(const absl::Status&)> callback) override {
    if (!failure_.ok()) return failure_;
    if (!is_held_) return false;
    resumptions_.push_back(std::move(callback));
    return true;
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
  Lsn durable_lsn() const override { return Persisted(PersistedBy::kQuorum); }
  Lsn head_lsn() const override { return head_; }
  size_t payload_bytes_max() const override { return 1'000; }
  uint64_t free_bytes() const override { return room; }

  // These replicas persist all records up to this one.
  void Persist(PersistedBy by, Lsn lsn) {
    persisted_[by] = std::max(persisted_[by], lsn);
    auto& waiting = waiting_[by];
    while (!waiting.empty() && waiting.begin()->first <= persisted_[by]) {
      const auto callback = std::move(waiting.begin()->second);
      waiting.erase(waiting.begin());
      callback(absl::OkStatus());
    }
  }
  // All replicas do.
  void MakeDurable(Lsn lsn) {
    for (const PersistedBy by : {PersistedBy::kOwnReplica, PersistedBy::kQuorum,
                                 PersistedBy::kAllInSync}) {
      Persist(by, lsn);
    }
  }
  void MakeAllDurable() { MakeDurable(next_ - 1); }
  // The epoch is confirmed to all who have asked. Returns how many those were.
  size_t Confirm() {
    const auto asked = std::exchange(confirmations_, {});
    for (const auto& callback : asked) callback(absl::OkStatus());
    return asked.size();
  }
  // The members change: nothing is appended.
  void Hold() { is_held_ = true; }
  void Resume() {
    is_held_ = false;
    for (const auto& callback : std::exchange(resumptions_, {})) {
      callback(absl::OkStatus());
    }
  }
  // Another process opens the log.
  void Fail() {
    failure_ = absl::AbortedError("the log lost its epoch");
    refusal = failure_;
    for (const auto& [by, waiting] : std::exchange(waiting_, {})) {
      for (const auto& [lsn, callback] : waiting) callback(failure_);
    }
    for (const auto& callback : std::exchange(confirmations_, {})) {
      callback(failure_);
    }
    for (const auto& callback : std::exchange(resumptions_, {})) {
      callback(failure_);
    }
  }
  // The process ends: no callback runs any more.
  void End() {
    waiting_.clear();
    confirmations_.clear();
    resumptions_.clear();
  }
  // Returns the log as a later primary opens it, with its records up to `end`,
  // which may be more than were durable.
  MemoryRecordLog OpenedWith(Lsn end) const {
    MemoryRecordLog opened(epoch_ + 1);
    opened.head_ = head_;
    opened.next_ = end + 1;
    opened.MakeDurable(end);
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
  Lsn Persisted(PersistedBy by) const {
    const auto found = persisted_.find(by);
    return found == persisted_.end() ? Lsn() : found->second;
  }

  Epoch epoch_;
  std::vector<Record> records_;
  std::vector<Record> cleaned_;
  Lsn head_{1};
  Lsn next_{1};
  Lsn forced_;
  absl::Status failure_;
  std::map<PersistedBy, Lsn> persisted_;
  std::map<PersistedBy,
           std::multimap<Lsn, std::function<void(const absl::Status&)>>>
      waiting_;
  std::vector<std::function<void(const absl::Status&)>> confirmations_;
  bool is_held_ = false;
  std::vector<std::function<void(const absl::Status&)>> resumptions_;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_TESTS_API_SERVICE_LOG_MEMORY_RECORD_LOG_H_
