// SPDX-License-Identifier: Apache-2.0
// victim: a running `alpheus append --ack` that is fed, listened to and killed.
//
// Idea: the victim's input never ends (fed_writer.h): the kill always comes in
// mid-stream.
//
// The input is prepared in a large pipe and the acknowledgements have room in
// another one. So the victim runs at full speed while its killer sleeps until
// the moment comes. A killer that listens would mostly be late and find the
// victim waiting for it.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_WRITERS_VICTIM_H_
#define ALPHEUS_TOOLS_NEMESIS_WRITERS_VICTIM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/writers/fed_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

// Time of the kill: `delay_nanos` after acknowledgement number `ack_count`, or,
// if that takes too long, `wait_nanos_max` after the first one. With ack_count
// 0 the delay runs from the start of the process: it may die while it recovers.
struct KillPlan {
  uint64_t ack_count = 0;
  int64_t delay_nanos = 0;
  int64_t wait_nanos_max = 2'000'000'000;
  // Bound on the ring space of fed records, in bytes, so that the ring never
  // fills.
  uint64_t ring_bytes_max = 0;
};

struct KillOutcome {
  std::vector<Acknowledgement> acknowledgements;
  uint64_t fed_count = 0;
  int64_t alive_nanos = 0;
  // Set if the victim ended before it was killed, or fell silent.
  std::optional<std::string> misbehaviour;
};

class Victim {
 public:
  // Feeds records from `first_number` on. All arguments must outlive the
  // victim.
  Victim(ChildProcess* child, const Feed* feed, uint64_t first_number,
         const KillPlan& plan, const Clock& clock = Clock::Real());

  // Runs until the victim is dead. Errors: DataLoss (it wrote something that is
  // no acknowledgement).
  absl::StatusOr<KillOutcome> RunUntilKilled();

 private:
  bool IsTimeToKill();
  void PlanKill(int64_t now);
  void SleepUntilKill();
  void CheckDeath(const ProcessEnd& end);

  ChildProcess& child_;
  const Clock& clock_;
  const KillPlan plan_;
  FedWriter writer_;
  std::optional<int64_t> kill_at_nanos_;
  std::optional<int64_t> first_ack_nanos_;
  KillOutcome outcome_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_WRITERS_VICTIM_H_
