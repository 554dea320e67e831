// SPDX-License-Identifier: Apache-2.0
// tail_client: an application that only reads: follows the log through
// RemoteTail from a drawn LSN for a drawn time; then another one starts.
//
// Idea: it has no replica and no region. It runs on one of the machines, so
// that their cuts hit it, and asks all replicas or a drawn one. The history
// gets the records that it is shown, like those of an opening: from then on
// they are chosen, and no later opening may lack them or have others there
// (RT1, RT2 of remote_tail.h). Now and then it asks all nodes again. When it
// says that there is no more, it must have heard of the newest epoch that had
// acknowledged anything (RT5).
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
  // Starts to run.
  TailClient(World& world, int host);

 private:
  Lsn DrawFrom();
  recovery::RemoteTail::Options DrawTail();
  void Run();
  void Begin();
  // Runs a turn; returns whether anything came.
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
  std::unique_ptr<recovery::RemoteTail> tail_;
  int64_t ends_at_ = 0;
  bool asks_all_ = false;
  uint64_t list_id_ = 0;
  // Newest epoch that had acknowledged anything when the tail was told to ask
  // again; nothing: it was not told.
  std::optional<Epoch> asked_after_;
  bool is_overtaken_ = false;  // the last tail was
  // LSN that must be shown next; 0: any, the tail begins at the head.
  Lsn next_;
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_TAIL_CLIENT_H_
