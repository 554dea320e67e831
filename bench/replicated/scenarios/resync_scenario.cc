// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/copy_sink.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/resync_cluster.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kQuiet{300};
constexpr std::chrono::milliseconds kPace{1};
constexpr std::chrono::seconds kJoinTimeout{120};
constexpr const char* kResync = "resync";
constexpr const char* kFloor = "floor";
constexpr const char* kAtRest = "at rest";

// Measures one writer: forced appends, one after the other.
class Foreground {
 public:
  Foreground(Log& log, uint64_t bytes) : log_(log), payload_(bytes, 'F') {}

  absl::Status Append() { return log_.Append(payload_).status(); }

  // Appends and times each, until `is_over()`.
  template <class IsOver>
  absl::StatusOr<std::vector<double>> Until(IsOver is_over) {
    std::vector<double> times;
    do {
      const int64_t start = NowNanos();
      ALPHEUS_RETURN_IF_ERROR(Append());
      times.push_back(static_cast<double>(NowNanos() - start));
    } while (!is_over());
    return times;
  }

  absl::StatusOr<std::vector<double>> For(std::chrono::nanoseconds time) {
    const int64_t end = NowNanos() + time.count();
    return Until([end] { return NowNanos() >= end; });
  }

 private:
  Log& log_;
  const std::string payload_;
};

// A size of record, all rounds of it.
class Resyncs {
 public:
  Resyncs(const Settings& settings, uint64_t bytes)
      : settings_(settings), bytes_(bytes) {}

  // A log of its own; by turns one and the other comes first.
  absl::Status Round(uint64_t round) {
    ALPHEUS_ASSIGN_OR_RETURN(cluster_, ResyncCluster::Start(settings_));
    ALPHEUS_RETURN_IF_ERROR(cluster_->LoseMember());
    ALPHEUS_RETURN_IF_ERROR(cluster_->Miss());
    const bool floor_first = round % 2 == 0;
    if (floor_first) ALPHEUS_RETURN_IF_ERROR(CopyBare());
    ALPHEUS_RETURN_IF_ERROR(Resync());
    if (!floor_first) {
      ALPHEUS_RETURN_IF_ERROR(cluster_->LoseMember());
      ALPHEUS_RETURN_IF_ERROR(CopyBare());
    }
    return cluster_->Close();
  }

  // Runs a round while nobody appends.
  absl::Status RoundAtRest() {
    ALPHEUS_ASSIGN_OR_RETURN(cluster_, ResyncCluster::Start(settings_));
    ALPHEUS_RETURN_IF_ERROR(cluster_->LoseMember());
    ALPHEUS_RETURN_IF_ERROR(cluster_->Miss());
    ALPHEUS_ASSIGN_OR_RETURN(const int64_t start, StartMemberAndAwaitTry([] {
                               return absl::OkStatus();
                             }));
    while (!cluster_->HasCaughtUp()) {
      if (HasTimedOut(start)) return TooLate("did not get what it missed");
      std::this_thread::sleep_for(kPace);
    }
    SampleCopy(kAtRest, NowNanos() - start);
    return cluster_->Close();
  }

  void AddTo(Report* report) const {
    for (const auto& [key, values] : samples_) {
      const auto& [candidate, metric] = key;
      const std::string unit = metric == "duration" ? "ms"
                               : metric == "rate"   ? "MiB/s"
                                                    : "ns";
      report->measurements.push_back(
          {.scenario = kResync,
           .candidate = candidate,
           .metric = metric,
           .unit = unit,
           .parameters = {{"bytes", bytes_}, {"mib", settings_.resync_mib}},
           .samples = values,
           .details = {{"appends", AppendsOf(candidate)}}});
    }
  }

 private:
  absl::Status Resync() {
    Foreground foreground(cluster_->log(), bytes_);
    ALPHEUS_RETURN_IF_ERROR(Quiet(kResync, foreground));
    ALPHEUS_ASSIGN_OR_RETURN(const int64_t start, StartMemberAndAwaitTry([&] {
                               return foreground.Append();
                             }));
    ALPHEUS_ASSIGN_OR_RETURN(std::vector<double> times, foreground.Until([&] {
      return cluster_->HasCaughtUp() || HasTimedOut(start);
    }));
    Sample(kResync, std::move(times), NowNanos() - start);
    if (cluster_->HasCaughtUp()) return absl::OkStatus();
    return TooLate("did not get what it missed");
  }

  // Copies the same bytes by a thread of this process, over a socket of its
  // own.
  absl::Status CopyBare() {
    Foreground foreground(cluster_->log(), bytes_);
    const std::span<const std::byte> missed = cluster_->missed();
    ALPHEUS_ASSIGN_OR_RETURN(
        const BackupProcess sink,
        BackupProcess::Start(kSinkKind, settings_.folder, missed.size()));
    ALPHEUS_RETURN_IF_ERROR(Quiet(kFloor, foreground));
    std::atomic<bool> is_copied{false};
    absl::Status copied;
    const int64_t start = NowNanos();
    std::thread copier([&] {
      copied = FillSink(sink.address(), missed);
      is_copied.store(true, std::memory_order_release);
    });
    absl::StatusOr<std::vector<double>> times = foreground.Until(
        [&] { return is_copied.load(std::memory_order_acquire); });
    const int64_t end = NowNanos();
    copier.join();
    ALPHEUS_RETURN_IF_ERROR(copied);
    ALPHEUS_RETURN_IF_ERROR(times.status());
    Sample(kFloor, *std::move(times), end - start);
    return absl::OkStatus();
  }

  // Just before, on the same log: what both are held against.
  absl::Status Quiet(const std::string& before, Foreground& foreground) {
    ALPHEUS_ASSIGN_OR_RETURN(std::vector<double> times, foreground.For(kQuiet));
    Sample(absl::StrCat("before ", before), std::move(times), 0);
    return absl::OkStatus();
  }

  // The log tries a member that is away after 1, 2, 4, ... seconds. Returns
  // when the try was seen; when it was last looked for in vain, if it was over
  // before this thread could see it.
  template <class Between>
  absl::StatusOr<int64_t> StartMemberAndAwaitTry(Between between) {
    const uint64_t joins = cluster_->log().replication_status().joins;
    const int64_t start = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(cluster_->StartMember());
    int64_t last_look = start;
    while (!HasTimedOut(start)) {
      const int64_t look = NowNanos();
      const ReplicationStatus status = cluster_->log().replication_status();
      if (status.joining) return NowNanos();
      if (status.joins > joins || cluster_->HasCaughtUp()) return last_look;
      last_look = look;
      ALPHEUS_RETURN_IF_ERROR(between());
      std::this_thread::sleep_for(kPace);
    }
    return TooLate("was not tried");
  }

  static bool HasTimedOut(int64_t start) {
    return NowNanos() - start > std::chrono::nanoseconds(kJoinTimeout).count();
  }

  absl::Status TooLate(const char* what) const {
    return absl::DeadlineExceededError(absl::StrCat(
        "the member that came back ", what, " within ", kJoinTimeout.count(),
        " s: ", cluster_->log().replication_status().ToString()));
  }

  double AppendsOf(const std::string& candidate) const {
    const auto found = appends_.find(candidate);
    return found == appends_.end() ? 0 : found->second;
  }

  // `nanos`: of the copy; 0: there was none.
  void Sample(const std::string& candidate, std::vector<double> times,
              int64_t nanos) {
    appends_[candidate] += static_cast<double>(times.size());
    const double longest = *std::max_element(times.begin(), times.end());
    samples_[{candidate, "longest"}].push_back(longest);
    for (const auto& [metric, value] : Summarize(std::move(times))) {
      samples_[{candidate, metric}].push_back(value);
    }
    if (nanos != 0) SampleCopy(candidate, nanos);
  }

  void SampleCopy(const std::string& candidate, int64_t nanos) {
    const double ms = static_cast<double>(nanos) / 1e6;
    samples_[{candidate, "duration"}].push_back(ms);
    samples_[{candidate, "rate"}].push_back(
        static_cast<double>(settings_.resync_mib) / ms * 1e3);
  }

  const Settings settings_;
  const uint64_t bytes_;
  std::unique_ptr<ResyncCluster> cluster_;
  // One sample per round, by candidate and metric.
  std::map<std::pair<std::string, std::string>, std::vector<double>> samples_;
  std::map<std::string, double> appends_;  // of all rounds
};

}  // namespace

absl::Status MeasureResync(const Settings& settings, Report* report) {
  for (const uint64_t bytes : settings.resync_sizes) {
    Resyncs resyncs(settings, bytes);
    const bool is_first = bytes == settings.resync_sizes.front();
    for (uint64_t round = 0; round < settings.rounds; ++round) {
      ALPHEUS_RETURN_IF_ERROR(resyncs.Round(round));
      if (is_first) ALPHEUS_RETURN_IF_ERROR(resyncs.RoundAtRest());
    }
    resyncs.AddTo(report);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
