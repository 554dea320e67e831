// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/json_output.h"

namespace alpheus::cli {

std::string ToLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace alpheus::cli
