// SPDX-License-Identifier: Apache-2.0
// metrics_server: serves a node's metrics to Prometheus, at /metrics.
//
// Idea: all of prometheus-cpp is behind this header, so that a build without it
// has the same daemon, but for one error. It has two threads of its own, which
// answer one scrape each: a scraper that stands still takes one for ten
// seconds.
//
// Invariants:
//   MSV1. An address that other machines reach is listened on only if the
//         operator has said that anybody may read the metrics: they have
//         neither TLS nor tokens.
// Thread safety: Start and the destructor by one thread; `collect` is called by
// threads of the server.
// References: docs/use/metrics.md.
#ifndef ALPHEUS_API_METRICS_SERVER_METRICS_SERVER_H_
#define ALPHEUS_API_METRICS_SERVER_METRICS_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/metrics/model/family.h"

namespace alpheus::metrics {

struct MetricsServerOptions {
  // Where to listen, "host:port". Port 0: any.
  std::string listen;
  // Other machines may read the metrics (MSV1).
  bool is_public = false;

  bool operator==(const MetricsServerOptions&) const = default;
};

class MetricsServer {
 public:
  using Collect = std::function<std::vector<Family>()>;

  // Checks what Start checks before it listens. May wait for a name server.
  // Errors: InvalidArgument (no address; one that other machines reach, and not
  // as MSV1 says); NotFound, Unavailable (a name that leads nowhere);
  // Unimplemented (built without prometheus-cpp).
  static absl::Status Check(const MetricsServerOptions& options);
  // Answers scrapes by what `collect` returns. Errors: as Check; Unavailable
  // (the address can't be had, or no thread).
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const MetricsServerOptions& options, Collect collect);
  // Waits for scrapes that are being answered.
  virtual ~MetricsServer() = default;

  // Returns the address on which it listens.
  virtual const std::string& address() const = 0;
};

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_SERVER_METRICS_SERVER_H_
