// SPDX-License-Identifier: Apache-2.0
// family: the samples of one metric, as Prometheus takes them.
//
// It needs nothing of prometheus-cpp, so that a build without it has, and
// tests, all that is measured.
//
// Thread safety: values.
// References: docs/use/metrics.md; https://prometheus.io/docs/practices/naming.
#ifndef ALPHEUS_API_METRICS_MODEL_FAMILY_H_
#define ALPHEUS_API_METRICS_MODEL_FAMILY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/base/duration_histogram.h"

namespace alpheus::metrics {

enum class Kind { kCounter, kGauge, kHistogram };

// Description of a metric. Texts live as long as the process; the help is one
// line without a backslash, which prometheus-cpp would not escape.
struct Metric {
  std::string_view name;
  Kind kind = Kind::kGauge;
  std::string_view help;
};

// Names and values. Values come of closed sets: names of logs, ids of nodes,
// methods, codes, reasons.
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Sample {
  Labels labels;
  double value = 0;  // of a counter or gauge
  DurationHistogram::Reading durations = {};
};

struct Family {
  Metric metric;
  std::vector<Sample> samples;
};

// Families in the making: the samples of one metric come together, in whatever
// order they are added.
class Families {
 public:
  void Add(const Metric& metric, Labels labels, double value) {
    Of(metric).push_back({std::move(labels), value});
  }
  void Add(const Metric& metric, Labels labels, uint64_t value) {
    Add(metric, std::move(labels), static_cast<double>(value));
  }
  void Add(const Metric& metric, Labels labels,
           const DurationHistogram::Reading& durations) {
    Of(metric).push_back({std::move(labels), 0, durations});
  }
  // Returns what was added, by the order in which each metric came first.
  std::vector<Family> Take() { return std::move(families_); }

 private:
  std::vector<Sample>& Of(const Metric& metric) {
    for (Family& family : families_) {
      if (family.metric.name == metric.name) return family.samples;
    }
    families_.push_back({metric, {}});
    return families_.back().samples;
  }

  std::vector<Family> families_;
};

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_MODEL_FAMILY_H_
