// SPDX-License-Identifier: Apache-2.0
// mutations: what faulty media, misdirected writes and forgers do to a region.
//
// Idea: a flipped bit is caught by the first checksum and goes no deeper. So
// most mutations here change a field and put the checksums right again, with
// the naive code: a reader must not trust what it finds even then.
//
// Thread safety: pure.
#ifndef ALPHEUS_TESTS_FUZZ_MUTATIONS_H_
#define ALPHEUS_TESTS_FUZZ_MUTATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/image_program.h"

namespace alpheus::testing {

enum class MutationTarget {
  kAnything,
  kSuperline,
  kEpochTable,
  kWatermark,
};

// Applies mutations from `input` to image->bytes until the input is used up or
// `mutations_max` are done.
void Mutate(FuzzInput& input, MutationTarget target, int mutations_max,
            TinyImage* image);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_MUTATIONS_H_
