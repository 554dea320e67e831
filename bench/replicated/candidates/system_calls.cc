// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/system_calls.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace alpheus::bench::replicated {
namespace {

// Order: counts; nothing else is read by them.
std::atomic<uint64_t> sends{0};
std::atomic<uint64_t> receives{0};
std::atomic<uint64_t> waits{0};
std::atomic<uint64_t> yields{0};

void Count(std::atomic<uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

SystemCalls CountSystemCalls() {
  return {.sends = sends.load(std::memory_order_relaxed),
          .receives = receives.load(std::memory_order_relaxed),
          .waits = waits.load(std::memory_order_relaxed),
          .yields = yields.load(std::memory_order_relaxed)};
}

}  // namespace alpheus::bench::replicated

namespace counted = alpheus::bench::replicated;

// The linker's names: __wrap_ is called in place of, __real_ is, the call.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

ssize_t __real_send(int fd, const void* bytes, size_t count, int flags);
ssize_t __wrap_send(int fd, const void* bytes, size_t count, int flags) {
  counted::Count(counted::sends);
  return __real_send(fd, bytes, count, flags);
}

ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  counted::Count(counted::sends);
  return __real_sendmsg(fd, message, flags);
}

ssize_t __real_recv(int fd, void* into, size_t count, int flags);
ssize_t __wrap_recv(int fd, void* into, size_t count, int flags) {
  counted::Count(counted::receives);
  return __real_recv(fd, into, count, flags);
}

int __real_poll(pollfd* fds, nfds_t count, int timeout_ms);
int __wrap_poll(pollfd* fds, nfds_t count, int timeout_ms) {
  counted::Count(counted::waits);
  return __real_poll(fds, count, timeout_ms);
}

int __real_epoll_wait(int fd, epoll_event* events, int count, int timeout_ms);
int __wrap_epoll_wait(int fd, epoll_event* events, int count, int timeout_ms) {
  counted::Count(counted::waits);
  return __real_epoll_wait(fd, events, count, timeout_ms);
}

int __real_epoll_pwait2(int fd, epoll_event* events, int count,
                        const timespec* timeout, const sigset_t* mask);
int __wrap_epoll_pwait2(int fd, epoll_event* events, int count,
                        const timespec* timeout, const sigset_t* mask) {
  counted::Count(counted::waits);
  return __real_epoll_pwait2(fd, events, count, timeout, mask);
}

int __real_sched_yield();
int __wrap_sched_yield() {
  counted::Count(counted::yields);
  return __real_sched_yield();
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
