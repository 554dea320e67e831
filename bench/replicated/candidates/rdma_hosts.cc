// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/rdma_hosts.h"

#include <cstdlib>

#include "absl/strings/str_split.h"

namespace alpheus::bench::replicated {

std::vector<std::string> RdmaHosts() {
  const char* const text = std::getenv("ALPHEUS_VERBS_ADDRESSES");
  if (text == nullptr) return {};
  return absl::StrSplit(text, ',', absl::SkipEmpty());
}

}  // namespace alpheus::bench::replicated
