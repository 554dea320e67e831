// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/node_collector.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "api/metrics/collect/call_metrics.h"
#include "api/metrics/collect/log_metrics.h"
#include "api/metrics/collect/replica_metrics.h"
#include "api/metrics/collect/service_metrics.h"
#include "api/metrics/model/catalogue.h"

namespace alpheus::metrics {

std::vector<Family> NodeCollector::Collect() const {
  Families families;
  families.Add(kBuildInfo,
               {{"version", ALPHEUS_PROJECT_VERSION},
                {"node", absl::StrCat(sources_.node)}},
               uint64_t{1});
  families.Add(kStartTime, {}, static_cast<double>(sources_.start_time_s));
  const std::optional<NodeStatus> status = sources_.observe();
  families.Add(kNodeResponsive, {}, uint64_t{status ? 1U : 0U});
  if (status) AddReplicaMetrics(*status, &families);
  sources_.held->ForEach(
      [&](const HeldLogs::Held& held) { AddLogMetrics(held, &families); });
  if (sources_.served != nullptr) {
    AddServiceMetrics(*sources_.served, &families);
  }
  if (sources_.calls != nullptr) AddCallMetrics(*sources_.calls, &families);
  if (sources_.connections) {
    AddConnectionMetrics(sources_.connections(), &families);
  }
  return families.Take();
}

}  // namespace alpheus::metrics
