// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/server/exposition.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "log/base/duration_histogram.h"

namespace alpheus::metrics {
namespace {

constexpr double kNanosPerSecond = 1e9;

prometheus::ClientMetric::Histogram ExposeDurations(
    const DurationHistogram::Reading& reading) {
  prometheus::ClientMetric::Histogram histogram;
  for (size_t i = 0; i < reading.counts.size(); ++i) {
    histogram.sample_count += reading.counts[i];
    const bool is_last = i == DurationHistogram::kBoundsNs.size();
    histogram.bucket.push_back(
        {histogram.sample_count,
         is_last ? std::numeric_limits<double>::infinity()
                 : static_cast<double>(DurationHistogram::kBoundsNs[i]) /
                       kNanosPerSecond});
  }
  histogram.sample_sum = static_cast<double>(reading.sum_ns) / kNanosPerSecond;
  return histogram;
}

prometheus::ClientMetric ExposeSample(Kind kind, const Sample& sample) {
  prometheus::ClientMetric exposed;
  for (const auto& [name, value] : sample.labels) {
    exposed.label.push_back({name, value});
  }
  switch (kind) {
    case Kind::kCounter:
      exposed.counter.value = sample.value;
      break;
    case Kind::kGauge:
      exposed.gauge.value = sample.value;
      break;
    case Kind::kHistogram:
      exposed.histogram = ExposeDurations(sample.durations);
      break;
  }
  return exposed;
}

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kGauge:
      return prometheus::MetricType::Gauge;
    case Kind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

prometheus::MetricFamily Expose(const Family& family) {
  const Metric& metric = family.metric;
  prometheus::MetricFamily exposed{std::string(metric.name),
                                   std::string(metric.help),
                                   TypeOf(metric.kind),
                                   {}};
  for (const Sample& sample : family.samples) {
    exposed.metric.push_back(ExposeSample(metric.kind, sample));
  }
  return exposed;
}

}  // namespace alpheus::metrics
