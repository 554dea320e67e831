// SPDX-License-Identifier: Apache-2.0
// tail_client: an application that only reads: follows the log through
// RemoteTail, from a drawn LSN on, for a drawn time, and then another one does.
//
// Idea: it has no replica and no region; it stands on one of the machines, so
// that their cuts are its own, and asks all replicas or a drawn one. What it is
// shown is told to the history, as what an opening shows is: from then on it is
// chosen, and no later opening may lack it or have another record there (RT1,
// RT2 of remote_tail.h). Now and then it asks all anew, and when it says that
// there is no more it must have heard of the newest epoch that had acknowledged
// anything (RT5).
//
// Thread safety: one thread.
// References: docs/design/reading_and_scrubbing.md; history.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_TAIL_CLIENT_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_TAIL_CLIENT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"
#include "recovery/follow/remote_tail.h"
#include "tools/sim/world/process_clock.h"
#include "tools/sim/world/process_fabric.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class TailClient {
 public:
  // Begins to run by itself.
  TailClient(World& world, int host);

 private:
  Lsn DrawFrom();
  RemoteTail::Options DrawTail();
  void Run();
  void Begin();
  // Whether anything came.
  bool Turn();
  void Show();
  void Judge(const absl::Status& status);
  // RT5.
  void JudgeEnd();

  World& world_;
  const int host_;
  Random random_;
  ProcessClock clock_;
  ProcessFabric fabric_;
  std::unique_ptr<RemoteTail> tail_;
  int64_t ends_at_ = 0;
  bool asks_all_ = false;
  uint64_t list_id_ = 0;
  // The newest epoch that had acknowledged anything when the tail was told to
  // ask anew; nothing: it was not.
  std::optional<Epoch> asked_after_;
  bool is_overtaken_ = false;  // the last one
  // What must be shown next; 0: any, the tail begins at the head.
  Lsn next_;
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_TAIL_CLIENT_H_
