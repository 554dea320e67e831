// SPDX-License-Identifier: Apache-2.0
// service_cluster_fixture: three daemons that stand for a log and serve it.
#ifndef ALPHEUS_TESTS_API_GRPC_SERVICE_CLUSTER_FIXTURE_H_
#define ALPHEUS_TESTS_API_GRPC_SERVICE_CLUSTER_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "tests/api/grpc/admin_token.h"
#include "tests/api/grpc/log_client.h"
#include "tests/process/cluster_fixture.h"
#include "tests/support/fixtures/own_host.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {

class ServiceClusterTest : public ClusterTest {
 protected:
  static constexpr int kNodes = 3;

  void SetUp() override {
    demo::ClusterOptions options = ThreeNodes(directory_.path());
    for (int node = 1; node <= kNodes; ++node) {
      addresses_.push_back(OwnHost() + ":7411");
      options.client_addresses[node] = addresses_.back();
      // A busy machine must not decide who is primary.
      std::vector<std::string>& more = options.node_options[node];
      more = {"--stand",         "main",         "--serve",
              addresses_.back(), "--silence-ms", "5000"};
      if (asks_for_tokens_) {
        more.insert(more.end(), {"--tokens", tokens_.file()});
      }
    }
    StartCluster(options);
    Format("main", "4MiB");
    FindPrimary();
  }

  // Waits for a primary, and connects to it as the same client.
  void FindPrimary() {
    const auto before = std::move(client_);
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (Clock::Real().NowNanos() < end) {
      cluster_->Listen();
      for (primary_ = 1; primary_ <= kNodes; ++primary_) {
        if (!cluster_->is_running(primary_)) continue;
        client_ = std::make_unique<LogClient>(
            addresses_[primary_ - 1], grpc::InsecureChannelCredentials(),
            asks_for_tokens_ ? tokens_.token() : "");
        grpc::ClientContext context;
        client_->Authorize(&context);
        v1::GetStatusRequest request;
        request.set_log("main");
        v1::GetStatusResponse status;
        if (!client_->stub().GetStatus(&context, request, &status).ok()) {
          continue;
        }
        if (!status.is_primary()) continue;
        if (before != nullptr) client_->client = before->client;
        client_->epoch = status.epoch();
        return;
      }
    }
    FAIL() << "nobody is primary";
  }

  void AwaitAllInSync() {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (Clock::Real().NowNanos() < end) {
      cluster_->Listen();
      int in_sync = 0;
      for (const nlohmann::json& replica : Status()) {
        in_sync += replica.value("in_sync", false) ? 1 : 0;
      }
      if (in_sync == kNodes) return;
    }
    FAIL() << "a member does not join";
  }

  bool asks_for_tokens_ = false;  // set before SetUp
  const AdminToken tokens_;
  std::vector<std::string> addresses_;
  std::unique_ptr<LogClient> client_;
  int primary_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_SERVICE_CLUSTER_FIXTURE_H_
