// SPDX-License-Identifier: Apache-2.0
// node_collector: reads what is measured of a node, at each scrape.
//
// Idea: nothing is gathered while nobody scrapes. Counters are kept where
// things happen (counters.h), and all else is asked for here: a log and a node
// tell their state anyway. So metrics cost an embedded log nothing, and the
// service a few additions for each call.
//
// Thread safety: Collect by many threads at once.
// References: docs/use/metrics.md; catalogue.h.
#ifndef ALPHEUS_API_METRICS_COLLECT_NODE_COLLECTOR_H_
#define ALPHEUS_API_METRICS_COLLECT_NODE_COLLECTOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "api/grpc/calls/call_counts.h"
#include "api/grpc/connections/connection_limits.h"
#include "api/metrics/collect/held_logs.h"
#include "api/metrics/model/family.h"
#include "api/node/node_status.h"
#include "api/service/served/served_logs.h"

namespace alpheus::metrics {

// Parts of a node that are measured. All must outlive the collector.
struct NodeSources {
  uint64_t node = 0;         // id
  int64_t start_time_s = 0;  // of the process, since 1970
  const HeldLogs* held = nullptr;
  // The same logs, as they are served; null: the node serves none.
  service::ServedLogs* served = nullptr;
  const rpc::CallCounts* calls = nullptr;                   // null: the same
  std::function<rpc::ConnectionCounts()> connections = {};  // empty: the same
  // As Node::Observe.
  std::function<std::optional<NodeStatus>()> observe = {};
};

class NodeCollector {
 public:
  explicit NodeCollector(NodeSources sources) : sources_(std::move(sources)) {}

  // Blocks for as long as `observe` does. Takes no lock that an append to the
  // log takes; of the service the one that orders requests, to read two
  // numbers.
  std::vector<Family> Collect() const;

 private:
  const NodeSources sources_;
};

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_NODE_COLLECTOR_H_
