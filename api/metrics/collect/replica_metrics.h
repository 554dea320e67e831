// SPDX-License-Identifier: Apache-2.0
// replica_metrics: the node's replicas and its peers.
#ifndef ALPHEUS_API_METRICS_COLLECT_REPLICA_METRICS_H_
#define ALPHEUS_API_METRICS_COLLECT_REPLICA_METRICS_H_

#include "api/metrics/model/family.h"
#include "api/node/node_status.h"

namespace alpheus::metrics {

// Adds them as they are now. Any thread.
void AddReplicaMetrics(const NodeStatus& status, Families* families);

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_REPLICA_METRICS_H_
