// SPDX-License-Identifier: Apache-2.0
// check: assertions that stay on in release builds.
//
// Used for broken invariants, and for failures that can't be propagated without
// losing data; never for errors of normal operation (absl::Status). The text
// names the invariant: ALPHEUS_CHECK(a <= b, "RL1 (ring_log.h)").
#ifndef ALPHEUS_LOG_BASE_CHECK_H_
#define ALPHEUS_LOG_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace alpheus::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line,
                                     const char* condition,
                                     const char* invariant) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition,
               invariant);
  std::abort();
}

}  // namespace alpheus::internal

#define ALPHEUS_CHECK(condition, invariant)                               \
  (__builtin_expect(static_cast<bool>(condition), 1)                      \
       ? static_cast<void>(0)                                             \
       : ::alpheus::internal::CheckFailed(__FILE__, __LINE__, #condition, \
                                          invariant))

#endif  // ALPHEUS_LOG_BASE_CHECK_H_
