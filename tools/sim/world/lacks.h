// SPDX-License-Identifier: Apache-2.0
// lacks: records that a storage fault took from a medium.
//
// Thread safety: values.
#ifndef ALPHEUS_TOOLS_SIM_WORLD_LACKS_H_
#define ALPHEUS_TOOLS_SIM_WORLD_LACKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "log/base/ids.h"

namespace alpheus::sim {

struct Lack {
  bool is_proven = false;  // the medium proves that it had the record
  Epoch epoch = {};
  size_t at = 0;                      // bytes from the region's start
  std::vector<std::byte> bytes = {};  // header and payload as they were

  bool operator==(const Lack&) const = default;
};
using Lacks = std::map<uint64_t, Lack>;  // by LSN

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_WORLD_LACKS_H_
