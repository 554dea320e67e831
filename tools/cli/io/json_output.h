// SPDX-License-Identifier: Apache-2.0
// json_output: JSON as the commands print it: one object per line, keys in the
// order in which they were set.
#ifndef ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_
#define ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_

#include <string>

#include "nlohmann/json.hpp"

namespace alpheus::cli {

using Json = nlohmann::ordered_json;

// Returns one line. Bytes that are not UTF-8, as in a file name, become U+FFFD;
// nothing throws.
std::string ToLine(const Json& json);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_
