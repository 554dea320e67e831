// SPDX-License-Identifier: Apache-2.0
#include "bench/service/scenarios/scenarios.h"

namespace alpheus::bench::service {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.ring_bytes = 64 << 20;
  s.warm_up_ms = 200;
  s.run_ms = 1'000;
  s.latency_sizes = {64, 1024, 4096, 16384};
  s.rate_sizes = {64, 1024, 16384};
  s.in_flight = {1, 16, 64};
  s.stream_sizes = {64, 16384};
  s.streams = {1, 4, 16, 64};
  s.tail_every_us = 1'000;
  s.tail_warm_up_records = 100;
  s.tail_records = 2'000;
  s.fan_out_readers = {4, 16, 64};
  s.fan_out_every_us = 10'000;
  s.fan_out_records = 200;
  s.slow_flood_bytes = 32 << 20;
  s.idle_streams = 10'000;
  s.idle_rounds = 3;
  s.idle_ms = 2'000;
  s.metrics_run_ms = 5'000;
  s.scrape_every_ms = 1'000;
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.run_ms = 500;
  s.latency_sizes = {64};
  s.rate_sizes = {64};
  s.in_flight = {1, 64};
  s.stream_sizes = {64};
  s.streams = {1, 16};
  s.tail_records = 1'000;
  s.fan_out_readers = {4, 16};
  s.fan_out_records = 100;
  s.idle_streams = 2'000;
  s.idle_rounds = 2;
  s.idle_ms = 1'000;
  s.metrics_run_ms = 3'000;
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.ring_bytes = 4 << 20;
  s.warm_up_ms = 5;
  s.run_ms = 100;
  s.rate_sizes = {64, 16384};
  s.streams = {2};
  s.tail_warm_up_records = 5;
  s.tail_records = 20;
  s.fan_out_readers = {2};
  s.fan_out_every_us = 1'000;
  s.fan_out_records = 10;
  s.slow_flood_bytes = 1 << 20;
  s.idle_streams = 20;
  s.idle_rounds = 1;
  s.idle_ms = 10;
  s.metrics_run_ms = 100;
  s.scrape_every_ms = 20;
  return s;
}

}  // namespace alpheus::bench::service
