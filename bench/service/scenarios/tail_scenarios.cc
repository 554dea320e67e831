// SPDX-License-Identifier: Apache-2.0
#include <sys/types.h>

#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/contestants/cleaner.h"
#include "bench/service/contestants/followers.h"
#include "bench/service/contestants/served_log.h"
#include "bench/service/grpc/echo_server.h"
#include "bench/service/grpc/service_calls.h"
#include "bench/service/load/appender.h"
#include "bench/service/load/followed.h"
#include "bench/service/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::OwnProcess;

namespace {

// Readers beside one that stands still.
constexpr uint64_t kOthers = 4;
constexpr uint64_t kFloodPayloadBytes = 16 << 10;

// Quantiles of one contestant, one per round.
using Quantiles = std::map<std::string, std::vector<double>>;

void AddQuantiles(const std::string& of, std::vector<double> times,
                  Quantiles* samples) {
  for (const auto& [metric, value] : replicated::Summarize(std::move(times))) {
    (*samples)[of + " " + metric].push_back(value);
  }
}

void Add(Delivered delivered, Quantiles* samples) {
  AddQuantiles("append", std::move(delivered.append_us), samples);
  AddQuantiles("from sent", std::move(delivered.from_sent_us), samples);
  AddQuantiles("from answered", std::move(delivered.from_answered_us), samples);
}

void AddTo(Report* report, const std::string& scenario,
           const std::string& candidate, const Pace& pace,
           const Quantiles& samples) {
  for (const auto& [metric, values] : samples) {
    report->measurements.push_back(
        {.scenario = scenario,
         .candidate = candidate,
         .metric = metric,
         .unit = "us",
         .parameters = {{"bytes", pace.bytes}, {"readers", pace.readers}},
         .samples = values,
         .details = {}});
  }
}

// Nodes whose log is followed.
absl::StatusOr<Delivered> Follow(const ServiceCluster& cluster,
                                 const Pace& pace) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Appender> appender,
      StartClient(ClientOptionsOf(cluster.addresses(), cluster.log())));
  Cleaner cleaner(cluster, pace.bytes);
  return RunFollowed(*appender, FollowersOf(cluster.addresses(), cluster.log()),
                     pace, [&cleaner](uint64_t lsn) { cleaner.Note(lsn); });
}

// The floor: a server that hands records on, with the same clients.
absl::StatusOr<Delivered> FollowEcho(const std::string& address,
                                     const Pace& pace) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Appender> appender,
                           StartClient(ClientOptionsOf({address}, "echo")));
  return RunFollowed(*appender, FollowersOf({address}, "echo"), pace,
                     [](uint64_t /*lsn*/) {});
}

absl::Status MeasureFollowed(const std::string& scenario,
                             const Settings& settings,
                             const std::vector<Pace>& paces, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServiceCluster> cluster,
      ServiceCluster::Start(settings.folder, settings.ring_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(const OwnProcess echo,
                           OwnProcess::Start({kEchoKind}));
  for (const Pace& pace : paces) {
    const std::vector<
        std::pair<std::string, std::function<absl::StatusOr<Delivered>()>>>
        contestants = {
            {kEchoName, [&] { return FollowEcho(echo.said(), pace); }},
            {kAlpheusName, [&] { return Follow(*cluster, pace); }}};
    std::vector<Quantiles> samples(contestants.size());
    ALPHEUS_RETURN_IF_ERROR(Interleave(
        settings.rounds, contestants.size(), [&](size_t i) -> absl::Status {
          ALPHEUS_ASSIGN_OR_RETURN(Delivered delivered,
                                   contestants[i].second());
          Add(std::move(delivered), &samples[i]);
          return absl::OkStatus();
        }));
    for (size_t i = 0; i < contestants.size(); ++i) {
      AddTo(report, scenario, contestants[i].first, pace, samples[i]);
    }
  }
  return absl::OkStatus();
}

// Appends so many bytes as fast as it goes. Returns the first LSN.
absl::StatusOr<uint64_t> Flood(const ServiceCluster& cluster, uint64_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Appender> appender,
      StartClient(ClientOptionsOf(cluster.addresses(), cluster.log())));
  const std::string payload(kFloodPayloadBytes, 'F');
  Cleaner cleaner(cluster, kFloodPayloadBytes);
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t first, appender->Append(payload));
  for (uint64_t done = 0; done < bytes; done += payload.size()) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t lsn, appender->Append(payload));
    cleaner.Note(lsn);
  }
  return first;
}

struct SlowTurn {
  const char* name;
  bool has_stopped_reader;
};
constexpr std::array<SlowTurn, 3> kSlowTurns = {
    {{"alone", false}, {"alone again", false}, {"beside a stopped", true}}};

// The reader gets its first record, is stopped, and has more before it than
// the kernel takes for it.
absl::StatusOr<Delivered> RunSlowTurn(const ServiceCluster& cluster,
                                      const SlowTurn& turn, const Pace& pace,
                                      uint64_t flood_bytes) {
  std::optional<OwnProcess> stopped;
  if (turn.has_stopped_reader) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t first, Flood(cluster, 0));
    ALPHEUS_ASSIGN_OR_RETURN(
        OwnProcess started,
        StartReader(cluster.addresses(), cluster.log(), first));
    stopped.emplace(std::move(started));
    stopped->Signal(SIGSTOP);
  }
  ALPHEUS_RETURN_IF_ERROR(Flood(cluster, flood_bytes).status());
  return Follow(cluster, pace);
}

}  // namespace

absl::Status MeasureTail(const Settings& settings, Report* report) {
  const Pace pace{
      .every_ns = static_cast<int64_t>(settings.tail_every_us) * 1'000,
      .warm_up_records = settings.tail_warm_up_records,
      .records = settings.tail_records};
  return MeasureFollowed("tail", settings, {pace}, report);
}

absl::Status MeasureFanOut(const Settings& settings, Report* report) {
  std::vector<Pace> paces;
  for (const uint64_t readers : settings.fan_out_readers) {
    paces.push_back(
        {.readers = readers,
         .every_ns = static_cast<int64_t>(settings.fan_out_every_us) * 1'000,
         .warm_up_records = settings.tail_warm_up_records / 10,
         .records = settings.fan_out_records});
  }
  return MeasureFollowed("fan-out", settings, paces, report);
}

absl::Status MeasureSlowReader(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServiceCluster> cluster,
      ServiceCluster::Start(settings.folder, settings.ring_bytes));
  const Pace pace{
      .readers = kOthers,
      .every_ns = static_cast<int64_t>(settings.tail_every_us) * 1'000,
      .warm_up_records = settings.tail_warm_up_records,
      .records = settings.tail_records};
  std::vector<Quantiles> samples(kSlowTurns.size());
  ALPHEUS_RETURN_IF_ERROR(Interleave(
      settings.rounds, kSlowTurns.size(), [&](size_t i) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(Delivered delivered,
                                 RunSlowTurn(*cluster, kSlowTurns[i], pace,
                                             settings.slow_flood_bytes));
        Add(std::move(delivered), &samples[i]);
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < kSlowTurns.size(); ++i) {
    AddTo(report, "slow-reader", kSlowTurns[i].name, pace, samples[i]);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::service
