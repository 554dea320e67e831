// SPDX-License-Identifier: Apache-2.0
// Compiled only with ALPHEUS_MUTANTS.
#include "log/base/mutant.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace alpheus {

constinit Mutant internal::selected_mutant = Mutant::kNone;

namespace {

Mutant Named(const char* name) {
  if (name == nullptr || *name == '\0') return Mutant::kNone;
#define ALPHEUS_MUTANT(mutant, hole, what, test) \
  if (std::string_view(name) == #mutant) return Mutant::mutant;
#include "log/base/mutants.inc"
#undef ALPHEUS_MUTANT
  std::fprintf(stderr,
               "ALPHEUS_MUTANT=%s: there is no such mutant; "
               "`tools/dev mutants --list` lists them\n",
               name);
  std::_Exit(2);
}

// Before all static objects: some hold checksums.
[[gnu::constructor(101)]] void SelectMutant() {
  internal::selected_mutant = Named(std::getenv("ALPHEUS_MUTANT"));
}

}  // namespace
}  // namespace alpheus
