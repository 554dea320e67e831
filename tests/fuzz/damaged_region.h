// SPDX-License-Identifier: Apache-2.0
// damaged_region: a region with one part of it damaged, read both ways; what
// the targets of a single part do besides reading that part by itself.
#ifndef ALPHEUS_TESTS_FUZZ_DAMAGED_REGION_H_
#define ALPHEUS_TESTS_FUZZ_DAMAGED_REGION_H_

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/mutations.h"

namespace alpheus::testing {

// Mutates the target's part of PlainImage() as the input says, and compares
// what the production reader and the naive one make of it.
void FuzzDamagedRegion(FuzzInput& input, MutationTarget target);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_DAMAGED_REGION_H_
