// SPDX-License-Identifier: Apache-2.0
// verbs_world: three adapters' worth of connections in one process, on the RDMA
// devices of this machine.
//
// A verbs adapter keeps its own time, so this world's time is real; but it goes
// slower, as the cases' deadlines are made for hosts that answer in
// microseconds, and a guest's processor and adapter are programs. While an
// adapter has something in flight the world waits for it, however busy the
// machine is; then for so many passes, each on another processor, that what the
// kernel was doing has been done.
// Memory is the heap's or, with ALPHEUS_VERBS_DEVICE, a device-DAX's: that one
// takes native FLUSHes.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_VERBS_WORLD_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_VERBS_WORLD_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/verbs/verbs_fabric.h"
#include "tests/replication/fabric/world.h"

namespace alpheus::testing {

class SlowClock final : public Clock {
 public:
  static constexpr int64_t kFactor = 50;
  int64_t NowNanos() const override {
    return Clock::Real().NowNanos() / kFactor;
  }
};

class VerbsWorld final : public FabricWorld {
 public:
  // The addresses of the hosts, which may be one, from the environment
  // (ALPHEUS_VERBS_ADDRESSES, with commas between them); empty: there are none.
  static std::vector<std::string> Addresses();

  // Errors: the adapters'.
  static absl::StatusOr<std::unique_ptr<VerbsWorld>> Make();
  // Heals what was cut.
  ~VerbsWorld() override;

  int hosts() const override { return static_cast<int>(fabrics_.size()); }
  fabric::verbs::VerbsFabric& fabric(int host) override {
    return *fabrics_[static_cast<size_t>(host)];
  }
  std::string ListenAddress(int host) override;
  std::string UnusedAddress(int host) override;
  WorldMemory Memory(int host, uint64_t bytes,
                     fabric::RemoteAccess access) override;
  bool CompletedWritesAreVisible() const override { return false; }
  int64_t NowNanos() override { return clock_.NowNanos(); }
  bool Pass() override;
  void Cut(int host, int other) override;
  void Heal(int host, int other) override;

 private:
  VerbsWorld() = default;
  const std::string& AddressOf(int host) const {
    return addresses_[static_cast<size_t>(host) % addresses_.size()];
  }

  std::vector<std::string> addresses_ = Addresses();
  SlowClock clock_;
  EntropyRandom random_;
  fabric::verbs::VerbsFabricOptions options_;
  std::vector<std::unique_ptr<fabric::verbs::VerbsFabric>> fabrics_;
  std::set<std::pair<int, int>> cuts_;
  std::shared_ptr<std::byte> device_;  // mapped when it is first asked for
  uint64_t device_used_ = 0;
  int next_to_wait_ = 0;
  int still_passes_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_VERBS_WORLD_H_
