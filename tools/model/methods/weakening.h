// SPDX-License-Identifier: Apache-2.0
// weakening: steps with something taken away, by which the model shows that
// each step of a row is needed.
//
// Idea: to run a row does not show which of its steps are superfluous. So each
// row is made worse in every simple way, and each of these must lose something:
//
//   dropped    one step is missing. A step that only waits for it (a receive
//              for its message, a completion for its operation) is missing,
//              too, as in a program that was written so.
//   swapped    two neighbouring steps of one program are exchanged.
//   weaker     a step is replaced by one that does less: a copy without its
//              flush; b copied before a; b copied before a is flushed; a WRITE
//              for the atomic one; for a FLUSH and its completion the
//              completion of what was posted before.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_
#define ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_

#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/method.h"

namespace alpheus::model {

struct Weakening {
  enum class Kind { kDropped, kSwapped, kWeaker };
  Kind kind = Kind::kDropped;
  std::string what;  // "without rq:comp(flush)"
  std::vector<replication::Step> steps;
};

std::vector<Weakening> WeakeningsOf(std::span<const replication::Step> steps);

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_
