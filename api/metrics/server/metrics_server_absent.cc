// SPDX-License-Identifier: Apache-2.0
// The server of a build without prometheus-cpp: there is none.
#include "api/metrics/server/metrics_server.h"

namespace alpheus::metrics {

absl::Status MetricsServer::Check(const MetricsServerOptions& /*options*/) {
  return absl::UnimplementedError(
      "this program was built without prometheus-cpp, and shows no metrics. "
      "Install prometheus-cpp-dev, and build it again");
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsServerOptions& options, Collect /*collect*/) {
  return Check(options);
}

}  // namespace alpheus::metrics
