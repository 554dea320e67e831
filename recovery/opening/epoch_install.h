// SPDX-License-Identifier: Apache-2.0
// epoch_install: the last phase of an opening: from a plan to an epoch that
// enough replicas have installed.
//
// Idea: a PlanRunner repairs and installs on all replicas at once. This class
// says how long the opening waits for replicas that it does not need, and ends
// their repairs.
//
// Invariants:
//   EIN1. Once enough have installed, the opening waits for the others while
//         they make progress: for gather_ns after the last step or copied
//         piece, and while a replica reads the log that it installs. After the
//         deadline it waits for nobody.
//   EIN2. The phase is over only when no copy needs memory or a connection.
// Thread safety: one thread.
// References: protocol P-A4.5, P-A4.6; plan_runner.h, epoch_opening.h.
#ifndef ALPHEUS_RECOVERY_OPENING_EPOCH_INSTALL_H_
#define ALPHEUS_RECOVERY_OPENING_EPOCH_INSTALL_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "recovery/opening/plan_runner.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct EpochInstallOptions {
  int64_t gather_ns = 0;  // 0: not even for those that read their rings
  Deadline deadline;
  uint32_t write_quorum = 0;  // for messages, as is_change
  bool is_change = false;
};

class EpochInstall {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Fabric, clock and random must outlive the object.
  EpochInstall(const PlanTerms& terms, PlanInput input, fabric::Fabric& fabric,
               const Clock& clock, RandomSource& random,
               const EpochInstallOptions& options)
      : runner_(terms, std::move(input), fabric, random),
        clock_(clock),
        options_(options) {}

  void OnCompletion(const fabric::Completion& completion) {
    runner_.OnCompletion(completion);
  }
  // Advances. After an error the opening is over. Errors: those of the runner;
  // Unavailable (the deadline).
  absl::Status Advance();

  bool is_over() const { return is_stopping_ && runner_.is_quiet(); }
  // Returns true once it waits for nobody any more, and only ends copies.
  bool is_stopping() const { return is_stopping_; }
  // Returns true if Advance is to be called again at once.
  bool is_at_work() const { return runner_.is_at_work(); }
  // Returns when Advance has something to do although nothing was taken.
  int64_t wake_at() const { return wake_at_; }
  const PlanRunner& runner() const { return runner_; }

 private:
  // Stops once nobody is to be waited for.
  absl::Status Gather();

  PlanRunner runner_;
  const Clock& clock_;
  const EpochInstallOptions options_;
  bool is_stopping_ = false;
  // When enough were there, or when the rest last made progress.
  std::optional<int64_t> gathered_at_;
  uint64_t progress_ = 0;  // the runner's progress at gathered_at_
  int64_t wake_at_ = kNever;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_EPOCH_INSTALL_H_
