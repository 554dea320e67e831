// SPDX-License-Identifier: Apache-2.0
// process_fabric: the adapter of one simulated process: it uses the process's
// own clock, and other threads may run before each call.
//
// Thread safety: one thread.
// References: fabric.h; process_clock.h.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_PROCESS_FABRIC_H_
#define ALPHEUS_TOOLS_SIM_WORLD_PROCESS_FABRIC_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replication/fabric/fabric.h"
#include "tools/sim/world/process_clock.h"

namespace alpheus::sim {

class ProcessFabric final : public fabric::Fabric {
 public:
  // `before_call` is called before each call that does anything.
  ProcessFabric(fabric::Fabric& inner, const ProcessClock& clock,
                std::function<void()> before_call)
      : inner_(inner), clock_(clock), before_call_(std::move(before_call)) {}

  Limits limits() const override { return inner_.limits(); }
  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override;
  absl::Status Deregister(fabric::RegionKey key) override;
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<fabric::ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) override;
  absl::Status Accept(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Reject(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Close(fabric::ConnectionId connection) override;
  absl::Status Post(fabric::ConnectionId connection,
                    const fabric::WorkRequest& request) override;
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into) override;
  size_t Poll(std::span<fabric::Completion> completions,
              std::vector<fabric::ConnectionEvent>* events) override;
  bool RunTurn() override;
  void WaitForActivity(Deadline deadline) override;
  void FlushSends() override { inner_.FlushSends(); }
  void Wake() override { inner_.Wake(); }

 private:
  fabric::Fabric& inner_;
  const ProcessClock& clock_;
  const std::function<void()> before_call_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_PROCESS_FABRIC_H_
