// SPDX-License-Identifier: Apache-2.0
// seed_runner: runs seeds, each in a process of its own, several at a time.
//
// Idea: a simulated crash destroys nothing (TH1 of threads.h), so a run leaves
// memory behind. A run may also fail a check, which aborts, or never end. So
// each runs in a child process: the others continue, and the cause of a child's
// death counts as a violation of its seed.
//
// Invariants:
//   SR1. Each requested run is reported once.
//   SR2. A run starts from the same state, whatever ran before.
// Thread safety: one thread of a process that has no others: it forks.
// References: docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_RUN_SEED_RUNNER_H_
#define ALPHEUS_TOOLS_SIM_RUN_SEED_RUNNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "tools/sim/run/run.h"
#include "tools/sim/world/options.h"

namespace alpheus::sim {

// Names of violations that a child could not report itself.
inline constexpr char kCheckFailed[] = "CHECK";  // ALPHEUS_CHECK
inline constexpr char kCrashed[] = "CRASH";      // a signal, a sanitizer
inline constexpr char kHung[] = "HUNG";          // took too long

struct SeedOutcome {
  RunResult result;
  int64_t cpu_ns = 0;
};

class SeedRunner {
 public:
  using Simulation = std::function<RunResult(const RunOptions&)>;

  struct Options {
    int jobs = 1;
    // Processor time after which a run counts as hung. By the clock it may take
    // ten times as much, since it shares the machine.
    int cpu_seconds_max = 20;
    Simulation simulation = [](const RunOptions& options) {
      return RunSeed(options, {});
    };
  };

  // The clock must outlive it.
  SeedRunner(Options options, const Clock& clock);

  // Runs the cases that `next` gives, until it gives none, or until `told`
  // returns false and the running ones have ended. Outcomes come in the order
  // in which runs end.
  // Errors: Unavailable (the system gives no more processes or pipes).
  absl::Status RunAll(
      const std::function<std::optional<RunOptions>()>& next,
      const std::function<bool(const RunOptions&, const SeedOutcome&)>& report);

  // Runs one case.
  absl::StatusOr<SeedOutcome> Run(const RunOptions& options);

 private:
  const Options options_;
  const Clock& clock_;
};

// Encodes a child's message to its parent. Decode returns nothing if it is
// truncated.
std::string EncodeResult(const RunResult& result);
std::optional<RunResult> DecodeResult(std::string_view text);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SEED_RUNNER_H_
