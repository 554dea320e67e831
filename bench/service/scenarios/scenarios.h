// SPDX-License-Identifier: Apache-2.0
// scenarios: what is measured of the service, a measurement each.
#ifndef ALPHEUS_BENCH_SERVICE_SCENARIOS_SCENARIOS_H_
#define ALPHEUS_BENCH_SERVICE_SCENARIOS_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"

namespace alpheus::bench::service {

// Amount of work; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  uint64_t ring_bytes = 0;
  int64_t warm_up_ms = 0;  // of each turn, before it is measured
  int64_t run_ms = 0;      // of each turn
  std::vector<uint64_t> latency_sizes;
  std::vector<uint64_t> rate_sizes;
  std::vector<uint64_t> in_flight;
  std::vector<uint64_t> stream_sizes;
  std::vector<uint64_t> streams;
  uint64_t tail_every_us = 0;  // a record
  uint64_t tail_warm_up_records = 0;
  uint64_t tail_records = 0;  // of each turn
  std::vector<uint64_t> fan_out_readers;
  uint64_t fan_out_every_us = 0;
  uint64_t fan_out_records = 0;
  uint64_t slow_flood_bytes = 0;  // before each turn
  uint64_t idle_streams = 0;
  uint64_t idle_rounds = 0;
  int64_t idle_ms = 0;         // that their cost in core time is measured for
  int64_t metrics_run_ms = 0;  // of each turn; several scrapes
  int64_t scrape_every_ms = 0;
};

// Presets. The full one takes half an hour, the quick one some minutes. The
// tiny one takes a minute; it is for tests, and its figures mean nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// One record at a time on one stream, by size.
absl::Status MeasureLatency(const Settings& settings, Report* report);
// Several records under way on one stream, by size.
absl::Status MeasureRate(const Settings& settings, Report* report);
// One record at a time on each of several streams, by size.
absl::Status MeasureStreams(const Settings& settings, Report* report);

// One reader that follows the log.
absl::Status MeasureTail(const Settings& settings, Report* report);
// Several of them.
absl::Status MeasureFanOut(const Settings& settings, Report* report);
// Readers and a writer beside a reader whose process stands still. The turns
// without it come twice, for what two equal runs differ by.
absl::Status MeasureSlowReader(const Settings& settings, Report* report);
// Memory and core time of streams on which nothing comes.
absl::Status MeasureIdle(const Settings& settings, Report* report);

// One record at a time, and several under way, of nodes whose metrics are
// scraped and of those whose are not. The turns without it come twice, for what
// two equal runs differ by.
absl::Status MeasureMetrics(const Settings& settings, Report* report);

struct Scenario {
  std::string_view name;
  absl::Status (*measure)(const Settings&, Report*);
};
inline constexpr std::array<Scenario, 8> kScenarios = {
    {{"latency", MeasureLatency},
     {"rate", MeasureRate},
     {"streams", MeasureStreams},
     {"tail", MeasureTail},
     {"fan-out", MeasureFanOut},
     {"slow-reader", MeasureSlowReader},
     {"idle", MeasureIdle},
     {"metrics", MeasureMetrics}}};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_SCENARIOS_SCENARIOS_H_
