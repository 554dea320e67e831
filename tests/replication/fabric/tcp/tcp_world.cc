// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/tcp/tcp_world.h"

#include "absl/strings/str_cat.h"
#include "tests/replication/fabric/tcp/cut_sockets.h"
#include "tests/replication/fabric/tcp/test_tls.h"

namespace alpheus::testing {
namespace {

constexpr int kHosts = 3;
constexpr int64_t kStepNanos = 10'000'000;

std::string Host(int host) { return absl::StrCat("127.0.0.", host + 1); }

}  // namespace

TcpWorld::TcpWorld(const std::vector<std::string>& names, bool shares_sockets) {
  options_.shares_sockets = shares_sockets;
  options_.limits.retry_ns = 400'000'000;
  options_.receiver_wait_ns = 100'000'000;
  for (int host = 0; host < kHosts; ++host) {
    fabric::tcp::TcpFabricOptions options = options_;
    options.source_host = Host(host);
    if (!names.empty()) {
      options.tls = Always(
          MakeTls(TestNodeAuthority(),
                  absl::StrCat("URI:", names[static_cast<size_t>(host)])));
    }
    fabrics_.push_back(
        std::make_shared<fabric::tcp::TcpFabric>(options, clock_, random_));
  }
}

std::string TcpWorld::ListenAddress(int host) {
  return absl::StrCat(Host(host), ":0");
}

std::string TcpWorld::UnusedAddress(int host) {
  return absl::StrCat(Host(host), ":1");
}

bool TcpWorld::Pass() {
  bool moved = false;
  for (const auto& fabric : fabrics_) moved |= fabric->RunTurn();
  if (moved) {
    idle_ns_ = 0;
    return true;
  }
  fabric(next_to_wait_)
      .WaitForActivity(Deadline::AtNanos(clock_.NowNanos() + 1'000'000));
  next_to_wait_ = (next_to_wait_ + 1) % hosts();
  if (IsRepeating()) return true;
  clock_.Forward(kStepNanos);
  idle_ns_ += kStepNanos;
  // All timers have had their turn by then.
  return idle_ns_ < 2 * options_.limits.retry_ns;
}

bool TcpWorld::IsRepeating() {
  for (auto host = healed_.begin(); host != healed_.end();) {
    if (cut_off_[*host].empty() && HasPacketsInFlight(*host)) return true;
    host = healed_.erase(host);
  }
  return false;
}

void TcpWorld::Cut(int host, int other) {
  cut_off_[Host(host)].insert(Host(other));
  cut_off_[Host(other)].insert(Host(host));
  DropPackets(Host(host), cut_off_[Host(host)]);
  DropPackets(Host(other), cut_off_[Host(other)]);
}

void TcpWorld::Heal(int host, int other) {
  cut_off_[Host(host)].erase(Host(other));
  cut_off_[Host(other)].erase(Host(host));
  DropPackets(Host(host), cut_off_[Host(host)]);
  DropPackets(Host(other), cut_off_[Host(other)]);
  healed_.insert({Host(host), Host(other)});
}

}  // namespace alpheus::testing
