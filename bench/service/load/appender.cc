// SPDX-License-Identifier: Apache-2.0
#include "bench/service/load/appender.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/harness/clock.h"
#include "bench/service/load/micros.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{30};

absl::StatusOr<Sample> RunOneByOne(
    Appender& appender, const Load& load,
    const std::function<void(uint64_t)>& appended) {
  const std::string payload(load.bytes, 'Z');
  Sample sample;
  int64_t last = NowNanos();
  const int64_t begin = last + load.warm_up_ns;
  int64_t measured_from = 0;
  // A busy machine may give no answer in that time.
  while (last < begin + load.run_ns || sample.latency_us.empty()) {
    const bool is_measured = last >= begin;
    if (is_measured && measured_from == 0) measured_from = last;
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t lsn, appender.Append(payload));
    const int64_t now = NowNanos();
    if (is_measured) sample.latency_us.push_back(MicrosBetween(last, now));
    appended(lsn);
    last = NowNanos();
  }
  sample.seconds = MicrosBetween(measured_from, last) / 1e6;
  return sample;
}

// Keeps the records of all streams under way. Records that are answered too
// late keep it alive.
class Window : public std::enable_shared_from_this<Window> {
 public:
  Window(const Load& load, const std::function<void(uint64_t)>& appended)
      : payload_(load.bytes, 'Z'),
        appended_(appended),
        begin_ns_(NowNanos() + load.warm_up_ns),
        end_ns_(begin_ns_ + load.run_ns) {
    streams_.resize(load.streams);
  }

  absl::StatusOr<Sample> Run(const Appenders& appenders, uint64_t in_flight) {
    for (size_t i = 0; i < appenders.size(); ++i) {
      for (uint64_t k = 0; k < in_flight; ++k) {
        {
          const std::lock_guard lock(mutex_);
          ++under_way_;
        }
        Send(*appenders[i], streams_[i]);
      }
    }
    const auto run_time = std::chrono::nanoseconds(end_ns_ - NowNanos());
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, run_time + kAnswerTimeout,
                           [this] { return under_way_ == 0; })) {
      return absl::DeadlineExceededError("records have no answer");
    }
    if (!failed_.ok()) return failed_;
    Sample sample;
    for (const Stream& stream : streams_) {
      sample.latency_us.insert(sample.latency_us.end(),
                               stream.latency_us.begin(),
                               stream.latency_us.end());
    }
    sample.seconds =
        MicrosBetween(begin_ns_, std::max(end_ns_, late_ns_.load())) / 1e6;
    return sample;
  }

 private:
  // Answers of one stream come one at a time.
  struct Stream {
    std::vector<double> latency_us;
  };

  void Send(Appender& appender, Stream& stream) {
    const int64_t sent = NowNanos();
    const absl::Status begun =
        appender.Begin(payload_, [self = shared_from_this(), &appender, &stream,
                                  sent](const absl::StatusOr<uint64_t>& lsn) {
          self->Take(appender, stream, sent, lsn);
        });
    if (!begun.ok()) End(begun);
  }

  void Take(Appender& appender, Stream& stream, int64_t sent,
            const absl::StatusOr<uint64_t>& lsn) {
    if (!lsn.ok()) return End(lsn.status());
    appended_(*lsn);
    const int64_t now = NowNanos();
    if (IsMeasured(now)) {
      stream.latency_us.push_back(MicrosBetween(sent, now));
    }
    if (now >= end_ns_) return End(absl::OkStatus());
    Send(appender, stream);
  }

  // A busy machine may give no answer in the time of the turn. The turn then
  // lasts until the first one.
  bool IsMeasured(int64_t now) {
    if (now < begin_ns_) return false;
    const bool is_first = !has_measured_.exchange(true);
    if (now < end_ns_) return true;
    if (is_first) late_ns_ = now;
    return is_first;
  }

  void End(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    failed_.Update(status);
    if (--under_way_ == 0) changed_.notify_all();
  }

  const std::string payload_;
  const std::function<void(uint64_t)> appended_;
  const int64_t begin_ns_;
  const int64_t end_ns_;
  std::vector<Stream> streams_;
  std::atomic<bool> has_measured_{false};
  std::atomic<int64_t> late_ns_{0};  // of a first answer after end_ns_
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t under_way_ = 0;
  absl::Status failed_;
};

}  // namespace

absl::StatusOr<Sample> RunLoad(const Appenders& appenders, const Load& load,
                               const std::function<void(uint64_t)>& appended) {
  // To connect is no part of it.
  const std::string first(load.bytes, 'Z');
  for (const auto& appender : appenders) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t lsn, appender->Append(first));
    appended(lsn);
  }
  if (load.streams == 1 && load.in_flight == 1) {
    return RunOneByOne(*appenders.front(), load, appended);
  }
  const auto window = std::make_shared<Window>(load, appended);
  return window->Run(appenders, load.in_flight);
}

}  // namespace alpheus::bench::service
