// SPDX-License-Identifier: Apache-2.0
// system_error: what a system call that failed is told as.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_ERROR_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_ERROR_H_

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace alpheus::bench::replicated {

// Unavailable, with the reason that errno names.
inline absl::Status SystemError(const char* call) {
  return absl::UnavailableError(
      absl::StrCat(call, " failed: ", std::strerror(errno)));
}

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_ERROR_H_
