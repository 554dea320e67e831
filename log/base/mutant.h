// SPDX-License-Identifier: Apache-2.0
// mutant: the fixes of known holes, each of which a test build can take out.
//
// Idea: a test is worth what it catches. Each hole of the protocol that was
// found has a fix in the code and a test of its invariant; a mutant is that fix
// taken out. `tools/dev mutants` switches them on one at a time and demands
// that the test of the very hole fails. mutants.inc lists them.
//
//   if (!IsMutant(Mutant::kPadUnflushed)) pmem_.Flush(…);
//
// In an ordinary build IsMutant is the constant false: no code, no branch. In
// a build with the CMake option ALPHEUS_MUTANTS the environment variable
// ALPHEUS_MUTANT names the one that is on; an unknown name ends the program.
//
// Thread safety: selected before any static object is made, then constant.
// References: docs/testing.md, "Mutants".
#ifndef ALPHEUS_LOG_BASE_MUTANT_H_
#define ALPHEUS_LOG_BASE_MUTANT_H_

namespace alpheus {

enum class Mutant {
  kNone,
#define ALPHEUS_MUTANT(name, hole, what, test) name,
#include "log/base/mutants.inc"
#undef ALPHEUS_MUTANT
};

#if defined(ALPHEUS_MUTANTS)
namespace internal {
extern Mutant selected_mutant;
}  // namespace internal

inline bool IsMutant(Mutant mutant) {
  return internal::selected_mutant == mutant;
}
#else
constexpr bool IsMutant(Mutant /*mutant*/) { return false; }
#endif

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_MUTANT_H_
