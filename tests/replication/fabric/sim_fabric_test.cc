// SPDX-License-Identifier: Apache-2.0
// The conformance suite in virtual time, and what only a simulation can show.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replication/fabric/sim/sim_network.h"
#include "tests/replication/fabric/conformance.h"

namespace alpheus::testing {
namespace {

class SimWorld final : public FabricWorld {
 public:
  explicit SimWorld(const SimOptions& options) : network_(options) {}

  int hosts() const override { return network_.options().hosts; }
  Fabric& fabric(int host) override { return network_.fabric(host); }
  std::string ListenAddress(int host) override {
    return SimNetwork::Address(host, 0);
  }
  std::string UnusedAddress(int host) override {
    return SimNetwork::Address(host, 999);
  }
  int64_t NowNanos() override { return network_.clock().NowNanos(); }
  bool Pass() override { return network_.Step(); }
  void Cut(int host, int other) override { network_.Cut(host, other); }
  void Heal(int host, int other) override { network_.Heal(host, other); }

 private:
  SimNetwork network_;
};

// Seeds that differ in how finely writes land, too.
std::vector<ConformanceParam> SimWorlds() {
  std::vector<ConformanceParam> worlds;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    SimOptions options;
    options.seed = seed;
    options.packet_bytes = seed % 2 == 0 ? 64 : 1024;
    worlds.push_back({absl::StrCat("Seed", seed), [options] {
                        return std::make_unique<SimWorld>(options);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Sim, FabricConformanceTest,
                         ::testing::ValuesIn(SimWorlds()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
