// SPDX-License-Identifier: Apache-2.0
// oracle: collects the violations of a run; the first one counts.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_ORACLE_H_
#define ALPHEUS_TOOLS_SIM_WORLD_ORACLE_H_

#include <optional>
#include <string>
#include <utility>

#include "log/base/clock.h"

namespace alpheus::sim {

struct Violation {
  std::string invariant;  // of the protocol: P-C1, P-INV-22, ...
  std::string what;
  int64_t at_ns = 0;  // virtual time
};

class Oracle {
 public:
  explicit Oracle(const Clock& clock) : clock_(clock) {}

  void Violate(std::string invariant, std::string what) {
    if (violation_) return;
    violation_ =
        Violation{std::move(invariant), std::move(what), clock_.NowNanos()};
  }
  const std::optional<Violation>& violation() const { return violation_; }

 private:
  const Clock& clock_;
  std::optional<Violation> violation_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_ORACLE_H_
