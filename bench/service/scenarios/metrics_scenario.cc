// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/interleave.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/service/cluster/metrics_scraper.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/contestants/served_log.h"
#include "bench/service/load/contestant.h"
#include "bench/service/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

struct MetricsTurn {
  const char* name;
  bool is_scraped;
};
constexpr std::array<MetricsTurn, 3> kMetricsTurns = {
    {{"unscraped", false}, {"unscraped again", false}, {"scraped", true}}};

// Samples of one kind of turn, one per round.
struct MetricsSamples {
  std::map<std::string, std::vector<double>> by_metric;
};

absl::Status RunMetricsTurn(const ServiceCluster& cluster, Contestant& log,
                            const MetricsTurn& turn, const Load& load,
                            const Settings& settings, MetricsSamples* samples) {
  std::optional<MetricsScraper> scraper;
  if (turn.is_scraped) {
    scraper.emplace(cluster.metrics_addresses(),
                    std::chrono::milliseconds(settings.scrape_every_ms));
  }
  ALPHEUS_ASSIGN_OR_RETURN(Sample sample, log.Run(load));
  if (scraper) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t answers, scraper->Stop());
    samples->by_metric["scrapes"].push_back(static_cast<double>(answers));
  }
  const auto records = static_cast<double>(sample.latency_us.size());
  for (const auto& [part, micros] : sample.core_us) {
    samples->by_metric[part + " cores"].push_back(micros / records);
  }
  samples->by_metric["rate"].push_back(sample.rate());
  for (const auto& [metric, value] :
       replicated::Summarize(std::move(sample.latency_us))) {
    samples->by_metric[metric].push_back(value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureMetrics(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<ServiceCluster> cluster,
      ServiceCluster::Start(settings.folder, settings.ring_bytes,
                            /*has_metrics=*/true));
  const std::unique_ptr<Contestant> log = ServedLog(*cluster);
  for (const uint64_t in_flight : settings.in_flight) {
    Load load;
    load.in_flight = in_flight;
    load.warm_up_ns = settings.warm_up_ms * 1'000'000;
    load.run_ns = settings.metrics_run_ms * 1'000'000;
    std::array<MetricsSamples, kMetricsTurns.size()> samples;
    ALPHEUS_RETURN_IF_ERROR(
        Interleave(settings.rounds, kMetricsTurns.size(), [&](size_t i) {
          return RunMetricsTurn(*cluster, *log, kMetricsTurns[i], load,
                                settings, &samples[i]);
        }));
    for (size_t i = 0; i < kMetricsTurns.size(); ++i) {
      for (const auto& [metric, values] : samples[i].by_metric) {
        report->measurements.push_back(
            {.scenario = "metrics",
             .candidate = kMetricsTurns[i].name,
             .metric = metric,
             .unit = metric == "rate"      ? "records/s"
                     : metric == "scrapes" ? "answers"
                                           : "us",
             .parameters = {{"bytes", load.bytes}, {"in_flight", in_flight}},
             .samples = values,
             .details = {}});
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::service
