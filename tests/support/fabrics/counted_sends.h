// SPDX-License-Identifier: Apache-2.0
// counted_sends: how often the calling thread has asked the kernel to send as
// much as a large payload. Smaller ones do not count: when a fabric answers, or
// tells that it is alive, depends on the time.
//
// Idea: the linker hands sendmsg, of the program and of the libraries linked
// into it, to a counting one (--wrap=sendmsg, tests/CMakeLists.txt).
//
// Thread safety: all concurrently; each thread has a count of its own.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTED_SENDS_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTED_SENDS_H_

#include <cstddef>

namespace alpheus::testing {

inline constexpr size_t kCountedBytesMin = 1024;

int SendsOfThisThread();

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTED_SENDS_H_
