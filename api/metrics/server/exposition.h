// SPDX-License-Identifier: Apache-2.0
// exposition: families as prometheus-cpp has them.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_METRICS_SERVER_EXPOSITION_H_
#define ALPHEUS_API_METRICS_SERVER_EXPOSITION_H_

#include <prometheus/metric_family.h>

#include "api/metrics/model/family.h"

namespace alpheus::metrics {

// Durations become seconds, and the counts of buckets those of all up to them.
prometheus::MetricFamily Expose(const Family& family);

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_SERVER_EXPOSITION_H_
