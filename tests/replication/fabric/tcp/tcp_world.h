// SPDX-License-Identifier: Apache-2.0
// tcp_world: three software adapters in one process, on loopback.
//
// Each has a loopback address of its own. Time is the test's: it goes on only
// when no adapter moved anything and the kernel had nothing for a moment, so
// that a slow machine never looks like a silent peer. After Heal it stands
// still until the kernel has sent again what was dropped.
//
// Thread safety: one thread; the clock any.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_WORLD_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_WORLD_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/replication/fabric/world.h"

namespace alpheus::testing {

class HandClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_; }
  void Forward(int64_t nanos) { now_ += nanos; }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

class TcpWorld final : public FabricWorld {
 public:
  // `names`: what the hosts' certificates call them, if what they send is
  // encrypted; one for each of the three. `shares_sockets`: as the option of
  // that name.
  explicit TcpWorld(const std::vector<std::string>& names = {},
                    bool shares_sockets = false);

  int hosts() const override { return static_cast<int>(fabrics_.size()); }
  fabric::tcp::TcpFabric& fabric(int host) override {
    return *fabrics_[static_cast<size_t>(host)];
  }
  std::shared_ptr<fabric::Fabric> adapter(int host) {
    return fabrics_[static_cast<size_t>(host)];
  }
  std::string ListenAddress(int host) override;
  std::string UnusedAddress(int host) override;
  int64_t NowNanos() override { return clock_.NowNanos(); }
  bool Pass() override;
  void Cut(int host, int other) override;
  void Heal(int host, int other) override;

  HandClock& clock() { return clock_; }
  const fabric::tcp::TcpFabricOptions& options() const { return options_; }

 private:
  // Whether the kernel still has to send packets that were dropped before Heal.
  bool IsRepeating();

  HandClock clock_;
  Random random_{/*seed=*/7};
  fabric::tcp::TcpFabricOptions options_;
  std::vector<std::shared_ptr<fabric::tcp::TcpFabric>> fabrics_;
  // By address; those whose cables are cut, and those whose cable was healed
  // and that may have packets to send again.
  std::map<std::string, std::set<std::string>> cut_off_;
  std::set<std::string> healed_;
  int next_to_wait_ = 0;
  int64_t idle_ns_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_TCP_WORLD_H_
