// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fabrics/counted_sends.h"

#include <sys/socket.h>

#include <cstddef>

namespace alpheus::testing {
namespace {

thread_local int sends = 0;

}  // namespace

int SendsOfThisThread() { return sends; }

}  // namespace alpheus::testing

// The linker's names: __wrap_ is called in place of, __real_ is, the call.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  size_t bytes = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    bytes += message->msg_iov[i].iov_len;
  }
  if (bytes >= alpheus::testing::kCountedBytesMin) ++alpheus::testing::sends;
  return __real_sendmsg(fd, message, flags);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
