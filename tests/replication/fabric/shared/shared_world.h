// SPDX-License-Identifier: Apache-2.0
// shared_world: hosts whose fabrics are shares of shared adapters over TCP.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_SHARED_SHARED_WORLD_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_SHARED_SHARED_WORLD_H_

#include <memory>
#include <string>
#include <vector>

#include "replication/fabric/shared/shared_adapter.h"
#include "tests/replication/fabric/tcp/tcp_world.h"

namespace alpheus::testing {

class SharedWorld final : public FabricWorld {
 public:
  explicit SharedWorld(bool shares_sockets) : tcp_({}, shares_sockets) {
    for (int host = 0; host < tcp_.hosts(); ++host) {
      const auto adapter = std::make_shared<fabric::SharedAdapter>(
          tcp_.adapter(host), tcp_.clock());
      shares_.push_back(adapter->AddShare());
    }
  }

  int hosts() const override { return tcp_.hosts(); }
  fabric::Fabric& fabric(int host) override {
    return *shares_[static_cast<size_t>(host)];
  }
  std::string ListenAddress(int host) override {
    return tcp_.ListenAddress(host);
  }
  std::string UnusedAddress(int host) override {
    return tcp_.UnusedAddress(host);
  }
  int64_t NowNanos() override { return tcp_.NowNanos(); }
  bool Pass() override { return tcp_.Pass(); }
  void Cut(int host, int other) override { tcp_.Cut(host, other); }
  void Heal(int host, int other) override { tcp_.Heal(host, other); }

 private:
  TcpWorld tcp_;
  std::vector<std::unique_ptr<fabric::Fabric>> shares_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_SHARED_SHARED_WORLD_H_
