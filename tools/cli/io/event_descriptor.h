// SPDX-License-Identifier: Apache-2.0
// event_descriptor: a descriptor that becomes readable when something happened,
// for a thread that waits for input.
//
// Thread safety: Set by any thread; the rest by one.
#ifndef ALPHEUS_TOOLS_CLI_IO_EVENT_DESCRIPTOR_H_
#define ALPHEUS_TOOLS_CLI_IO_EVENT_DESCRIPTOR_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "log/base/check.h"

namespace alpheus::cli {

class EventDescriptor {
 public:
  EventDescriptor() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ALPHEUS_CHECK(fd_ >= 0, "an event must wake the thread that waits");
  }
  ~EventDescriptor() { (void)close(fd_); }
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  int fd() const { return fd_; }
  void Set() const {
    const uint64_t one = 1;
    // Fails only when it is full, which is as readable as can be.
    (void)!write(fd_, &one, sizeof(one));
  }
  // Makes it unreadable until the next Set.
  void Clear() const {
    uint64_t count = 0;
    (void)!read(fd_, &count, sizeof(count));
  }

 private:
  const int fd_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_EVENT_DESCRIPTOR_H_
