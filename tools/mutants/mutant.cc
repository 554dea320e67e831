// SPDX-License-Identifier: Apache-2.0
// Compiled only with ALPHEUS_MUTANTS.
#include "tools/mutants/mutant.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace alpheus {

constinit uint64_t internal::selected_mutant = 0;

namespace {

constexpr auto kHashes = std::to_array<uint64_t>({
#define ALPHEUS_MUTANT(name) MutantName::Hash(#name),
#include "tools/mutants/mutant_names.inc"  // which weave.py writes
#undef ALPHEUS_MUTANT
});

constexpr bool AllDiffer() {
  auto sorted = kHashes;
  std::sort(sorted.begin(), sorted.end());
  return sorted.front() != 0 &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}
static_assert(AllDiffer(), "two mutants have one hash: rename one");

uint64_t Named(const char* name) {
  if (name == nullptr || *name == '\0') return 0;
  const uint64_t hash = MutantName::Hash(name);
  if (std::find(kHashes.begin(), kHashes.end(), hash) != kHashes.end()) {
    return hash;
  }
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
