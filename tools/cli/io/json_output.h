// SPDX-License-Identifier: Apache-2.0
// json_output: JSON as the commands print it: one object per line, keys in the
// order in which they were set.
#ifndef ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_
#define ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_

#include <string>

#include "nlohmann/json.hpp"

namespace alpheus::cli {

using Json = nlohmann::ordered_json;

// A file name need not be UTF-8: what is not becomes U+FFFD, and nothing
// throws.
std::string ToLine(const Json& json);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_JSON_OUTPUT_H_
