// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/write/append_workers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/standard_streams.h"

namespace alpheus::cli {
namespace {

// Half of what may be exposed by default (LogOptions::exposure_records_max).
constexpr uint32_t kTogetherMax = 2048;
// In a queue of records that are acknowledged (AW1).
constexpr size_t kAcknowledgedMax = 16;

}  // namespace

bool RecordQueue::Push(NumberedRecord record) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return HasRoomOrIsCancelled(); });
  if (cancelled_) return false;
  bytes_ += record.payload.size();
  records_.push_back(std::move(record));
  // Only the first one is waited for.
  if (records_.size() == 1) changed_.notify_one();
  return true;
}

bool RecordQueue::PopAll(std::deque<NumberedRecord>* records) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return HasRecordsOrEnded(); });
  records->clear();
  records->swap(records_);
  bytes_ = 0;
  changed_.notify_one();
  return !records->empty();
}

void RecordQueue::End() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void RecordQueue::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = true;
  ended_ = true;
  records_.clear();
  bytes_ = 0;
  changed_.notify_all();
}

bool RecordQueue::HasRoomOrIsCancelled() const {
  return cancelled_ || records_.empty() ||
         (records_.size() < records_max_ && bytes_ < kBytesMax);
}

bool RecordQueue::HasRecordsOrEnded() const {
  return ended_ || !records_.empty();
}

std::string WhatIsInTheLog(const std::string& cat, Lsn begin, Lsn durable,
                           Lsn next) {
  durable = std::max(durable, begin - 1);
  const uint64_t count = durable.value + 1 - begin.value;
  if (durable + 1 >= next) {
    return absl::StrCat(count, " records of this input are in the log; ", cat,
                        " shows them");
  }
  return absl::StrCat("At least ", count,
                      " records of this input are in the log, up to LSN ",
                      durable.value, "; more may be. ", cat,
                      " shows which, after the log was opened again. Check "
                      "this before you append the rest");
}

AppendWorkers::AppendWorkers(Log* log, const AppendWorkersOptions& options)
    : log_(*log),
      options_(options),
      next_index_(options.first_index),
      failure_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ALPHEUS_CHECK(failure_fd_ >= 0,
                "a failure must wake the thread that waits for input");
  for (int i = 0; i < options_.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(
        options_.ack_fd < 0 ? RecordQueue::kRecordsMax : kAcknowledgedMax));
  }
  // Only now: a worker that fails cancels the queues of all.
  for (int i = 0; i < options_.threads; ++i) {
    workers_[i]->thread = std::thread([this, i] { Work(i); });
  }
}

AppendWorkers::~AppendWorkers() {
  for (const auto& worker : workers_) worker->queue.Cancel();
  Join();
  // A failure leaves nothing to do.
  (void)close(failure_fd_);
}

bool AppendWorkers::Push(std::string payload) {
  const uint64_t index = next_index_++;
  Worker& worker = *workers_[index % workers_.size()];
  return worker.queue.Push({index, std::move(payload)});
}

absl::Status AppendWorkers::Finish() {
  for (const auto& worker : workers_) worker->queue.End();
  Join();
  absl::Status forced = ForceAll();
  const MutexLock lock(failure_mutex_);
  return failure_.ok() ? forced : failure_;
}

void AppendWorkers::Work(int worker_index) {
  std::deque<NumberedRecord> records;
  while (workers_[worker_index]->queue.PopAll(&records)) {
    uint64_t index = 0;
    absl::Status status;
    for (const NumberedRecord& record : records) {
      index = record.index;
      status = AppendOne(worker_index, record);
      if (!status.ok()) break;
    }
    if (status.ok()) status = ForceTogether(worker_index, &index);
    if (status.ok()) continue;
    Fail(index, status);
    return;
  }
}

absl::Status AppendWorkers::AppendOne(int worker_index,
                                      const NumberedRecord& record) {
  {
    const MutexLock lock(failure_mutex_);
    if (!failure_.ok()) return failure_;  // AW3
  }
  ForceOptions force;
  force.frequency = is_forced_together() ? kTogetherMax : options_.frequency;
  const absl::StatusOr<Lsn> appended =
      log_.Append(std::string_view(record.payload), force);
  if (absl::IsResourceExhausted(appended.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(appended.status().message(), ": ", options_.when_full));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, appended);
  Worker& worker = *workers_[worker_index];
  if (is_forced_together()) worker.unforced.push_back({lsn, record.index});
  if (options_.ack_fd < 0) return absl::OkStatus();
  worker.unacknowledged.push_back({lsn, record.index});
  return Acknowledge(worker_index);
}

absl::Status AppendWorkers::ForceTogether(int worker_index, uint64_t* index) {
  std::deque<Appended>& unforced = workers_[worker_index]->unforced;
  if (unforced.empty()) return absl::OkStatus();
  if (const absl::Status forced = log_.Force(unforced.back().lsn);
      !forced.ok()) {
    const auto first = std::ranges::find_if(
        unforced, [durable = log_.durable_lsn()](const Appended& appended) {
          return appended.lsn > durable;
        });
    *index = first == unforced.end() ? unforced.back().index : first->index;
    return forced;
  }
  unforced.clear();
  return absl::OkStatus();
}

absl::Status AppendWorkers::Acknowledge(int worker_index) {
  std::deque<Appended>& waiting = workers_[worker_index]->unacknowledged;
  while (!waiting.empty() && waiting.front().lsn <= log_.durable_lsn()) {
    const Appended appended = waiting.front();
    waiting.pop_front();
    ALPHEUS_RETURN_IF_ERROR(WriteAll(
        options_.ack_fd, absl::StrCat(appended.lsn.value, " ", appended.index,
                                      " ", worker_index, "\n")));
  }
  return absl::OkStatus();
}

void AppendWorkers::Fail(uint64_t record_index, const absl::Status& status) {
  {
    const MutexLock lock(failure_mutex_);
    if (failure_.ok()) {
      failure_ = absl::Status(
          status.code(),
          absl::StrCat("record ", record_index,
                       " of the input, counted from 0: ", status.message()));
    }
  }
  for (const auto& worker : workers_) worker->queue.Cancel();
  const uint64_t one = 1;
  // Fails only when it is full, which is as readable as can be.
  (void)!write(failure_fd(), &one, sizeof(one));
}

bool AppendWorkers::has_failed() {
  const MutexLock lock(failure_mutex_);
  return !failure_.ok();
}

void AppendWorkers::Join() {
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

absl::Status AppendWorkers::ForceAll() {
  const Lsn next = log_.next_lsn();
  if (log_.durable_lsn() + 1 < next) {
    ALPHEUS_RETURN_IF_ERROR(log_.Force(next - 1));
  }
  if (options_.ack_fd < 0) return absl::OkStatus();
  for (int i = 0; i < options_.threads; ++i) {
    ALPHEUS_RETURN_IF_ERROR(Acknowledge(i));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::cli
