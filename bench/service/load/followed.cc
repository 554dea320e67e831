// SPDX-License-Identifier: Apache-2.0
#include "bench/service/load/followed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/service/load/micros.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

constexpr int64_t kDeliveryTimeoutNs = 20'000'000'000;
constexpr std::chrono::milliseconds kLookAgain{1};
// Records of other turns have other marks.
constexpr size_t kMarkBytes = 2 * sizeof(uint64_t);

std::string PayloadOf(uint64_t turn, uint64_t number, uint64_t bytes) {
  std::string payload(std::max<uint64_t>(bytes, kMarkBytes), 'Z');
  std::memcpy(payload.data(), &turn, sizeof(turn));
  std::memcpy(payload.data() + sizeof(turn), &number, sizeof(number));
  return payload;
}

// One reader's thread.
class Reading {
 public:
  Reading(const MakeFollower& make, uint64_t turn, uint64_t records)
      : make_(make), turn_(turn), came_ns_(records) {
    thread_ = std::thread([this] {
      const absl::Status status = Run();
      const std::lock_guard lock(mutex_);
      status_ = status;
    });
  }
  ~Reading() {
    End();
    thread_.join();
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Ends it; does not wait.
  void End() { is_over_ = true; }

  bool is_ready() const { return is_ready_; }
  bool is_at_end() const { return is_at_end_; }
  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  int64_t came_ns(size_t number) const { return came_ns_[number].load(); }

 private:
  absl::Status Run() {
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Follower> follower, make_());
    is_ready_ = true;
    while (!is_over_) {
      ALPHEUS_ASSIGN_OR_RETURN(const std::string payload, follower->Next());
      const int64_t now = NowNanos();
      if (payload.size() < kMarkBytes) continue;
      uint64_t turn = 0;
      uint64_t number = 0;
      std::memcpy(&turn, payload.data(), sizeof(turn));
      std::memcpy(&number, payload.data() + sizeof(turn), sizeof(number));
      if (turn != turn_ || number >= came_ns_.size()) continue;
      came_ns_[number].store(now);
      if (number + 1 == came_ns_.size()) is_at_end_ = true;
    }
    return absl::OkStatus();
  }

  const MakeFollower& make_;
  const uint64_t turn_;
  std::vector<std::atomic<int64_t>> came_ns_;  // 0: not yet
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_ready_{false};
  std::atomic<bool> is_at_end_{false};
  std::mutex mutex_;
  absl::Status status_;
  std::thread thread_;  // last: uses the rest
};

// One record.
struct Written {
  int64_t sent_ns = 0;
  std::atomic<int64_t> answered_ns{0};
};

// A reader ends when its wait for a record does, so all end at the same time.
class Readings {
 public:
  Readings() = default;
  ~Readings() {
    for (const auto& one : all_) one->End();
  }
  Readings(const Readings&) = delete;
  Readings& operator=(const Readings&) = delete;

  void Add(std::unique_ptr<Reading> one) { all_.push_back(std::move(one)); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<std::unique_ptr<Reading>> all_;
};

// Waits until all readers are so. Errors: those of one; DeadlineExceeded.
absl::Status Await(const Readings& readings, bool (Reading::*is_so)() const) {
  const int64_t end = NowNanos() + kDeliveryTimeoutNs;
  for (const auto& reading : readings) {
    while (!((*reading).*is_so)()) {
      ALPHEUS_RETURN_IF_ERROR(reading->status());
      if (NowNanos() > end) {
        return absl::DeadlineExceededError("a reader lacks a record");
      }
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  return absl::OkStatus();
}

// Answers that come after an error find the records still there.
struct Writing {
  explicit Writing(uint64_t records) : written(records) {}

  std::vector<Written> written;
  std::mutex mutex;
  absl::Status failed;
  uint64_t answered = 0;
};

absl::Status Write(Appender& appender, const Pace& pace, uint64_t turn,
                   const std::function<void(uint64_t)>& appended,
                   const std::shared_ptr<Writing>& writing) {
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < writing->written.size(); ++i) {
    std::this_thread::sleep_until(
        begin +
        std::chrono::nanoseconds(static_cast<int64_t>(i) * pace.every_ns));
    writing->written[i].sent_ns = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(appender.Begin(
        PayloadOf(turn, i, pace.bytes),
        [writing, i, appended](const absl::StatusOr<uint64_t>& lsn) {
          writing->written[i].answered_ns.store(NowNanos());
          if (lsn.ok()) appended(*lsn);
          const std::lock_guard lock(writing->mutex);
          writing->failed.Update(lsn.status());
          ++writing->answered;
        }));
  }
  const int64_t end = NowNanos() + kDeliveryTimeoutNs;
  for (;;) {
    {
      const std::lock_guard lock(writing->mutex);
      if (writing->answered == writing->written.size()) return writing->failed;
    }
    if (NowNanos() > end) {
      return absl::DeadlineExceededError("a record has no answer");
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace

absl::StatusOr<Delivered> RunFollowed(
    Appender& appender, const MakeFollower& make, const Pace& pace,
    const std::function<void(uint64_t)>& appended) {
  const uint64_t records = pace.warm_up_records + pace.records;
  const auto turn = static_cast<uint64_t>(NowNanos());
  Readings readings;
  for (uint64_t i = 0; i < pace.readers; ++i) {
    readings.Add(std::make_unique<Reading>(make, turn, records));
  }
  ALPHEUS_RETURN_IF_ERROR(Await(readings, &Reading::is_ready));
  const auto writing = std::make_shared<Writing>(records);
  ALPHEUS_RETURN_IF_ERROR(Write(appender, pace, turn, appended, writing));
  ALPHEUS_RETURN_IF_ERROR(Await(readings, &Reading::is_at_end));
  Delivered delivered;
  for (uint64_t i = pace.warm_up_records; i < records; ++i) {
    const Written& one = writing->written[i];
    const int64_t answered = one.answered_ns.load();
    delivered.append_us.push_back(MicrosBetween(one.sent_ns, answered));
    for (const auto& reading : readings) {
      const int64_t came = reading->came_ns(i);
      if (came == 0) {
        return absl::DataLossError(
            absl::StrCat("record ", i, " was not delivered"));
      }
      delivered.from_sent_us.push_back(MicrosBetween(one.sent_ns, came));
      delivered.from_answered_us.push_back(MicrosBetween(answered, came));
    }
  }
  return delivered;
}

}  // namespace alpheus::bench::service
