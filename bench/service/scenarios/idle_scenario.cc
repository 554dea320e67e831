// SPDX-License-Identifier: Apache-2.0
#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/contestants/served_log.h"
#include "bench/service/grpc/echo_server.h"
#include "bench/service/grpc/idle_streams.h"
#include "bench/service/load/micros.h"
#include "bench/service/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::OwnProcess;

namespace {

// Findings of one turn.
struct Idle {
  double bytes_per_stream = 0;
  double core_us_per_second = 0;
  double open_us_per_stream = 0;
};

// Returns the memory of a process that is no file's. Errors: Unavailable.
absl::StatusOr<double> OwnMemoryOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  double kib = 0;
  while (file >> word) {
    if (word == "RssAnon:" && file >> kib) return kib * 1024;
  }
  return absl::UnavailableError(
      absl::StrCat("/proc/", pid, "/status has no RssAnon"));
}

absl::StatusOr<Idle> MeasureStreamsOf(const std::string& address, pid_t pid,
                                      const std::string& log, StreamKind kind,
                                      const Settings& settings) {
  const auto count = static_cast<double>(settings.idle_streams);
  ALPHEUS_ASSIGN_OR_RETURN(const double before, OwnMemoryOf(pid));
  const int64_t begin = NowNanos();
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<IdleStreams> streams,
      IdleStreams::Open(address, log, kind, settings.idle_streams));
  Idle idle;
  idle.open_us_per_stream = MicrosBetween(begin, NowNanos()) / count;
  const std::chrono::milliseconds time(settings.idle_ms);
  std::this_thread::sleep_for(time);
  ALPHEUS_ASSIGN_OR_RETURN(const double after, OwnMemoryOf(pid));
  idle.bytes_per_stream = (after - before) / count;
  const double core_us = CoreMicrosOf(pid);
  std::this_thread::sleep_for(time);
  idle.core_us_per_second = (CoreMicrosOf(pid) - core_us) /
                            std::chrono::duration<double>(time).count();
  if (streams->CountOpen() >= settings.idle_streams) return idle;
  return absl::UnavailableError("idle streams have ended");
}

// Memory that is given back stays the process's. So each turn has a new one.
absl::StatusOr<Idle> MeasureEcho(const Settings& settings) {
  ALPHEUS_ASSIGN_OR_RETURN(const OwnProcess echo,
                           OwnProcess::Start({kEchoKind}));
  return MeasureStreamsOf(echo.said(), echo.pid(), "echo", StreamKind::kAppends,
                          settings);
}

absl::StatusOr<Idle> MeasureLog(StreamKind kind, const Settings& settings) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServiceCluster> cluster,
      ServiceCluster::Start(settings.folder, settings.ring_bytes));
  return MeasureStreamsOf(cluster->addresses().front(), cluster->primary(),
                          cluster->log(), kind, settings);
}

}  // namespace

absl::Status MeasureIdle(const Settings& settings, Report* report) {
  const std::vector<
      std::pair<std::string, std::function<absl::StatusOr<Idle>()>>>
      contestants = {
          {kEchoName, [&] { return MeasureEcho(settings); }},
          {"alpheus, appends",
           [&] { return MeasureLog(StreamKind::kAppends, settings); }},
          {"alpheus, tails",
           [&] { return MeasureLog(StreamKind::kTail, settings); }}};
  std::vector<std::vector<Idle>> found(contestants.size());
  ALPHEUS_RETURN_IF_ERROR(Interleave(
      settings.idle_rounds, contestants.size(), [&](size_t i) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(const Idle idle, contestants[i].second());
        found[i].push_back(idle);
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < contestants.size(); ++i) {
    const auto add = [&](const char* metric, const char* unit,
                         double Idle::* value) {
      std::vector<double> samples;
      for (const Idle& one : found[i]) samples.push_back(one.*value);
      report->measurements.push_back(
          {.scenario = "idle",
           .candidate = contestants[i].first,
           .metric = metric,
           .unit = unit,
           .parameters = {{"streams", settings.idle_streams}},
           .samples = std::move(samples),
           .details = {}});
    };
    add("memory", "B/stream", &Idle::bytes_per_stream);
    add("core time", "us/s", &Idle::core_us_per_second);
    add("opening", "us/stream", &Idle::open_us_per_stream);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::service
