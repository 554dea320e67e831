// SPDX-License-Identifier: Apache-2.0
// local_demo: shows that a killed writer of one region loses nothing that it
// acknowledged. See kill_round.h and recovery_oracle.h.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_DEMO_LOCAL_DEMO_H_
#define ALPHEUS_TOOLS_DEMO_LOCAL_DEMO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus::demo {

struct LocalDemoOptions {
  std::string file;  // lines to feed
  uint64_t rounds = 1;
  uint64_t threads = 4;
  uint64_t seed = 0;
  std::string directory;  // parent of its own directory
  std::string size;       // of the region; empty: depends on the rounds
  bool quiet = false;

  bool is_one_round() const { return rounds == 1; }
};

// Runs the demonstration and prints its steps, or with `quiet` one line.
// Errors: DataLoss (a violation; the message names it, and the place of the
// region); others: the demonstration could not run.
absl::Status RunLocalDemo(const LocalDemoOptions& arguments);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_DEMO_LOCAL_DEMO_H_
