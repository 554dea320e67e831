// SPDX-License-Identifier: Apache-2.0
// deleter: an operator who deletes the log.
//
// Idea: it does what `alpheus delete-log` does, on a machine of its own. It
// begins at any time, by lot is killed in the middle, and begins again, by
// another process each time. So marks stay on some members while others open
// the log. When faults have ended it goes on until the deletion is decided.
//
// Thread safety: one thread.
// References: recovery/deletion/log_deletion.h; protocol P-D1 to P-D5.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_DELETER_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_DELETER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/membership/static_membership.h"
#include "recovery/deletion/log_deletion.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class Deleter {
 public:
  // Starts to run.
  Deleter(World& world, int host);

  // Faults have ended: it is killed no more, and ends with the deletion.
  void Finish() { finishes_ = true; }
  // Returns whether a deletion has returned OK.
  bool is_done() const { return is_done_; }

 private:
  recovery::LogDeletionOptions DrawDeletion();
  void Run();
  void DeleteOnce();
  bool Turn();
  void Judge(const recovery::LogDeletion& deletion);

  World& world_;
  const int host_;
  Random random_;
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::unique_ptr<quorum::StaticMembership> ballots_;
  std::unique_ptr<recovery::LogDeletion> deletion_;
  Epoch above_;
  bool finishes_ = false;
  bool is_done_ = false;
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_DELETER_H_
