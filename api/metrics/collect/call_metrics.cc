// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/call_metrics.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "api/metrics/model/catalogue.h"

namespace alpheus::metrics {

using rpc::Method;

// A code that never came would be a line for each method: only OK is shown
// before it first came, so that rates begin at 0.
void AddCallMetrics(const rpc::CallCounts& calls, Families* families) {
  for (size_t i = 0; i < rpc::kMethodCount; ++i) {
    const auto method = static_cast<Method>(i);
    const std::string name(rpc::NameOf(method));
    for (size_t code = 0; code < rpc::kCodeNames.size(); ++code) {
      const uint64_t ended = calls.ended(method, code);
      if (ended == 0 && code != 0) continue;
      families->Add(
          kCalls,
          {{"method", name}, {"code", std::string(rpc::kCodeNames[code])}},
          ended);
    }
    if (i < rpc::kUnaryCount) {
      families->Add(kCallSeconds, {{"method", name}}, calls.durations(method));
    } else {
      families->Add(kOpenStreams, {{"method", name}},
                    calls.open_streams(method));
    }
  }
}

void AddConnectionMetrics(const rpc::ConnectionCounts& connections,
                          Families* families) {
  families->Add(kClientConnections, {}, connections.open);
  families->Add(kRefusedClientConnections, {}, connections.refused);
}

}  // namespace alpheus::metrics
