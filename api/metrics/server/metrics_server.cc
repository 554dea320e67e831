// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/server/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/metrics/server/exposition.h"
#include "api/wiring/listen_address.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"

namespace alpheus::metrics {
namespace {

absl::StatusOr<std::string> CheckedAddress(
    const MetricsServerOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(ListenAddress address,
                           ResolveListenAddress(options.listen));
  if (!address.is_loopback && !options.is_public) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.listen,
        " is not of this machine alone: metrics have neither TLS nor tokens, "
        "so anybody there could read them. Give --metrics-public if they may; "
        "or listen on 127.0.0.1"));
  }
  return std::move(address.text);
}

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(MetricsServer::Collect collect)
      : collect_(std::move(collect)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> exposed;
    const absl::Status collected = WithinMemory([&] {
      for (const Family& family : collect_()) exposed.push_back(Expose(family));
      return absl::OkStatus();
    });
    // Rather less than a node that ends for want of memory.
    collected.IgnoreError();
    return exposed;
  }

 private:
  const MetricsServer::Collect collect_;
};

class ExposingServer final : public MetricsServer {
 public:
  explicit ExposingServer(Collect collect)
      : collector_(std::make_shared<Collector>(std::move(collect))) {}

  absl::Status Listen(const std::string& address) {
    // Milliseconds without a word after which a peer is left.
    const std::vector<std::string> options = {"listening_ports",    address,
                                              "num_threads",        "2",
                                              "request_timeout_ms", "10000"};
    // lint: allow(exception) prometheus-cpp reports errors so, and only here
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(options);
      exposer_->RegisterCollectable(collector_);
      // lint: allow(exception) as above
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat(
          "can't serve metrics on ", address,
          ": another process has the port, this machine lacks the address, or "
          "no thread could be started (",
          error.what(), ")"));
    }
    address_ = absl::StrCat(address.substr(0, address.rfind(':') + 1),
                            exposer_->GetListeningPorts().front());
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  const std::shared_ptr<Collector> collector_;
  std::string address_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // ends first
};

}  // namespace

absl::Status MetricsServer::Check(const MetricsServerOptions& options) {
  return CheckedAddress(options).status();
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsServerOptions& options, Collect collect) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string address, CheckedAddress(options));
  auto server = std::make_unique<ExposingServer>(std::move(collect));
  ALPHEUS_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace alpheus::metrics
