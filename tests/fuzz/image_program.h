// SPDX-License-Identifier: Apache-2.0
// image_program: a tiny log, written by the production writer as the input
// says, and the bytes that it leaves.
//
// Idea: the input is a list of operations (append, abort, leave open, clean,
// close and reopen, die and reopen), so a corpus of such inputs stays good
// when the format changes. Half-way images are kept: mutations copy from them
// what a lost or misdirected write would leave.
//
// Invariants:
//   IMP1. The image is one that killing the process may leave: it opens, with
//         at least every record that was acknowledged and not cleaned.
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_FUZZ_IMAGE_PROGRAM_H_
#define ALPHEUS_TESTS_FUZZ_IMAGE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace alpheus::testing {

struct TinyImage {
  std::vector<std::byte> bytes;
  // The same region earlier, one image after each opening.
  std::vector<std::vector<std::byte>> earlier;
  uint64_t durable_lsn = 0;  // every record up to it was acknowledged
};

// Takes the operations from `input`.
TinyImage RunImageProgram(FuzzInput& input);

// A region that was formatted, opened twice, written and closed; always the
// same.
const TinyImage& PlainImage();

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_IMAGE_PROGRAM_H_
