// SPDX-License-Identifier: Apache-2.0
// call_metrics: calls of clients, by method and code, and their connections.
#ifndef ALPHEUS_API_METRICS_COLLECT_CALL_METRICS_H_
#define ALPHEUS_API_METRICS_COLLECT_CALL_METRICS_H_

#include "api/grpc/calls/call_counts.h"
#include "api/grpc/connections/connection_limits.h"
#include "api/metrics/model/family.h"

namespace alpheus::metrics {

// Adds them as they are now. Any thread.
void AddCallMetrics(const rpc::CallCounts& calls, Families* families);
void AddConnectionMetrics(const rpc::ConnectionCounts& connections,
                          Families* families);

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_CALL_METRICS_H_
