// SPDX-License-Identifier: Apache-2.0
// file_hole: a file that loses all its bytes in one step.
#ifndef ALPHEUS_TESTS_TESTING_FILE_HOLE_H_
#define ALPHEUS_TESTS_TESTING_FILE_HOLE_H_

#include <string>

namespace alpheus::testing {

// All of the file becomes a hole; it stays as long as it was.
void MakeHole(const std::string& path);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_FILE_HOLE_H_
