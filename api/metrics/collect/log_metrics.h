// SPDX-License-Identifier: Apache-2.0
// log_metrics: a log for which the node stands, and what it shows while it is
// open here.
#ifndef ALPHEUS_API_METRICS_COLLECT_LOG_METRICS_H_
#define ALPHEUS_API_METRICS_COLLECT_LOG_METRICS_H_

#include "api/metrics/collect/held_logs.h"
#include "api/metrics/model/family.h"

namespace alpheus::metrics {

// Adds them as they are now. Any thread.
void AddLogMetrics(const HeldLogs::Held& held, Families* families);

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_LOG_METRICS_H_
