// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/wake_up.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace alpheus::fabric::verbs {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

absl::Status SetNonBlocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "descriptor ", descriptor, ": fcntl: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

WakeUp::WakeUp() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeUp::~WakeUp() {
  if (is_open()) (void)close(descriptor_);
}

void WakeUp::Wake() const {
  const uint64_t one = 1;
  // Fails only if the counter is full, which wakes, too.
  (void)!write(descriptor_, &one, sizeof(one));
}

void WakeUp::Clear() const {
  uint64_t count = 0;
  (void)!read(descriptor_, &count, sizeof(count));
}

void WakeUp::Wait(const std::array<int, 3>& others, int64_t timeout_ns) const {
  std::array<pollfd, 4> watched = {{{others[0], POLLIN, 0},
                                    {others[1], POLLIN, 0},
                                    {others[2], POLLIN, 0},
                                    {descriptor_, POLLIN, 0}}};
  const timespec timeout = {timeout_ns / kNanosPerSecond,
                            timeout_ns % kNanosPerSecond};
  // Returns early if a signal interrupts it: the caller looks again.
  (void)ppoll(watched.data(), watched.size(),
              timeout_ns < 0 ? nullptr : &timeout, nullptr);
}

}  // namespace alpheus::fabric::verbs
