// SPDX-License-Identifier: Apache-2.0
// service_metrics: what clients do with each log.
#ifndef ALPHEUS_API_METRICS_COLLECT_SERVICE_METRICS_H_
#define ALPHEUS_API_METRICS_COLLECT_SERVICE_METRICS_H_

#include "api/metrics/model/family.h"
#include "api/service/served/served_logs.h"

namespace alpheus::metrics {

// Adds them as they are now. Any thread.
void AddServiceMetrics(service::ServedLogs& logs, Families* families);

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_SERVICE_METRICS_H_
