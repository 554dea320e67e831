// SPDX-License-Identifier: Apache-2.0
// deletion_world: members of one log on a simulated network, an operator's
// process that deletes it, and others that open it.
#ifndef ALPHEUS_TESTS_RECOVERY_DELETION_DELETION_WORLD_H_
#define ALPHEUS_TESTS_RECOVERY_DELETION_DELETION_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "log/format/superline.h"
#include "quorum/membership/static_membership.h"
#include "recovery/deletion/log_deletion.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {

class DeletionWorld {
 public:
  explicit DeletionWorld(OpeningWorld::Options options);

  OpeningWorld& world() { return world_; }
  int host() const { return host_; }  // the operator's

  // Opens the log on a host without a replica, and writes a record on these
  // members.
  void OpenAndWrite(const std::string& payload, const std::vector<int>& nodes);

  recovery::LogDeletionOptions Options();
  // Begins a deletion, by another process each time.
  void Begin(const recovery::LogDeletionOptions& asked);
  void Begin() { Begin(Options()); }
  // Lets one event happen. Returns false if the deletion is over.
  bool Step();
  // Runs the deletion to its end, from its beginning.
  const recovery::LogDeletion& Delete();
  recovery::LogDeletion& deletion() { return *deletion_; }
  // Its process is killed.
  void Kill() { deletion_.reset(); }

  Deletion DeletionOf(int node) {
    return world_.replica(node).superline().deletion;
  }
  int CountMarked(int nodes);
  // In whose name the operator's process asks.
  NodeId node() const { return NodeId(static_cast<uint64_t>(host_) + 1); }
  // Opens the log on a host without a replica.
  std::unique_ptr<OpeningWorld::Primary> Open();
  // Lets this much time pass, in which nobody deletes.
  void Pass(int64_t ns);

  // Called before the deletion sees what arrived for it; may be empty.
  std::function<void()> before_turn;

 private:
  void PollOperator();

  OpeningWorld world_;
  const int host_;  // the operator's
  const int members_;
  Random random_{7};
  uint64_t processes_ = 0;
  std::unique_ptr<quorum::StaticMembership> ballots_;
  std::unique_ptr<recovery::LogDeletion> deletion_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_DELETION_DELETION_WORLD_H_
