// SPDX-License-Identifier: Apache-2.0
// golden_region: the files of tests/golden that must be read for ever, and what
// is read from them.
#ifndef ALPHEUS_TESTS_GOLDEN_GOLDEN_REGION_H_
#define ALPHEUS_TESTS_GOLDEN_GOLDEN_REGION_H_

#include <cstddef>
#include <string>
#include <vector>

namespace alpheus::testing {

// Returns the path of a golden region: region_v and this name.
std::string GoldenPath(const std::string& name);

// Returns the records of a region as "lsn epoch state payload".
std::vector<std::string> ReadGoldenRecords(const std::string& path);

// Compares what the calls of today wrote with the golden region. With
// ALPHEUS_WRITE_GOLDEN=1 it writes the file instead: for a new format version
// only.
void ExpectGoldenBytes(const std::string& path,
                       const std::vector<std::byte>& written);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_GOLDEN_GOLDEN_REGION_H_
