// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/connections/connection_limits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/check.h"
#include "log/base/clock.h"
#include "quorum/cluster/host_numbers.h"
#include "replication/fabric/socket_address.h"

namespace alpheus::rpc {
namespace {

constexpr int64_t kSecondNs = 1'000 * kNanosPerMs;

// Returns what stands for the peer's host; empty: this machine.
std::string HostKeyOf(std::string_view peer) {
  const std::string_view host = fabric::HostOf(peer);
  if (quorum::IsLoopbackNumber(host)) return {};
  return fabric::NetworkOf(host);
}

}  // namespace

ConnectionLimits::ConnectionLimits(const ConnectionLimitOptions& options)
    : options_(options),
      price_ns_(kSecondNs / static_cast<int64_t>(options.per_second)),
      credit_ns_(kSecondNs) {
  ALPHEUS_CHECK(options.open_max > 0 && options.of_host_max > 0,
                "a server lets somebody in");
}

int64_t ConnectionLimits::RestNanos(int64_t now_ns) {
  const int64_t passed = now_ns - std::exchange(refilled_ns_, now_ns);
  credit_ns_ += std::min(passed, kSecondNs);
  credit_ns_ = std::min(credit_ns_, kSecondNs);
  return std::max<int64_t>(0, price_ns_ - credit_ns_);
}

void ConnectionLimits::Come() {
  ALPHEUS_CHECK(credit_ns_ >= price_ns_, "a connection may come now");
  credit_ns_ -= price_ns_;
}

absl::Status ConnectionLimits::Enter(std::string_view peer) {
  const absl::string_view name(peer.data(), peer.size());
  if (open_ >= options_.open_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a connection from ", name, " is closed: ", open_,
        " connections of clients are open. Raise --connections-max, or have "
        "clients share connections"));
  }
  const std::string host = HostKeyOf(peer);
  if (!host.empty()) {
    uint64_t& of_host = of_host_[host];
    if (of_host >= options_.of_host_max) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a connection from ", name, " is closed: ", of_host,
          " connections of its host are open. Raise --connections-of-host-max, "
          "or have its programs share connections"));
    }
    ++of_host;
  }
  ++open_;
  return absl::OkStatus();
}

void ConnectionLimits::Leave(std::string_view peer) {
  ALPHEUS_CHECK(open_ > 0, "a connection that leaves has come");
  --open_;
  const std::string host = HostKeyOf(peer);
  if (host.empty()) return;
  const auto found = of_host_.find(host);
  ALPHEUS_CHECK(found != of_host_.end(), "a connection that leaves has come");
  if (--found->second == 0) of_host_.erase(found);
}

}  // namespace alpheus::rpc
