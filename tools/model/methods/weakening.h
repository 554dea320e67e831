// SPDX-License-Identifier: Apache-2.0
// weakening: steps with something taken away, by which the model shows that
// each step of a row is needed.
//
// Idea: what a row says nothing of can't be found by running it. So each row is
// made worse in every simple way, and each of these must lose something:
//
//   dropped    one step is not there. If another one only waits for it (a
//              receive for its message, a completion for its operation), that
//              one is not there either, as in a program that was written so.
//   swapped    two neighbouring steps of one program are the other way round.
//   weaker     a step becomes one that does less: a copy without its flush; b
//              copied before a; b copied before a is flushed; a WRITE for the
//              atomic one; for a FLUSH and its completion the completion of
//              what was posted before.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_
#define ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_

#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/method.h"

namespace alpheus {

struct Weakening {
  enum class Kind { kDropped, kSwapped, kWeaker };
  Kind kind = Kind::kDropped;
  std::string what;  // "without rq:comp(flush)"
  std::vector<Step> steps;
};

std::vector<Weakening> WeakeningsOf(std::span<const Step> steps);

}  // namespace alpheus

#endif  // ALPHEUS_TOOLS_MODEL_METHODS_WEAKENING_H_
