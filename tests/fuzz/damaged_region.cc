// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/damaged_region.h"

#include "tests/fuzz/compare.h"
#include "tests/fuzz/image_program.h"
#include "tests/fuzz/line_buffer.h"

namespace alpheus::testing {

void FuzzDamagedRegion(FuzzInput& input, MutationTarget target) {
  TinyImage image;
  image.bytes = PlainImage().bytes;
  Mutate(input, target, /*mutations_max=*/6, &image);
  ExpectSameRegion(LineBuffer(image.bytes).bytes());
}

}  // namespace alpheus::testing
