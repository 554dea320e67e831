// SPDX-License-Identifier: Apache-2.0
// metrics_scraper: asks nodes for their metrics at intervals, as Prometheus
// does.
//
// Idea: it is plain HTTP by a thread of this process, which does nothing with
// what comes. So what a turn beside it costs more is the nodes' cost.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_SERVICE_CLUSTER_METRICS_SCRAPER_H_
#define ALPHEUS_BENCH_SERVICE_CLUSTER_METRICS_SCRAPER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::service {

class MetricsScraper {
 public:
  // Begins to scrape all of these, HOST:PORT each with a numeric IPv4 address:
  // at once, and then every `interval`.
  MetricsScraper(std::vector<std::string> addresses,
                 std::chrono::milliseconds interval);
  ~MetricsScraper();

  // Ends it. Returns how many answers came. Errors: the first one of a scrape.
  absl::StatusOr<uint64_t> Stop();

 private:
  void Run();

  const std::vector<std::string> addresses_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool is_stopped_ = false;
  absl::Status failed_;
  uint64_t answers_ = 0;
  std::thread thread_;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CLUSTER_METRICS_SCRAPER_H_
