// SPDX-License-Identifier: Apache-2.0
// socket: the adapter's only door to TCP and epoll of the kernel.
//
// All sockets are non-blocking and without Nagle's delay. Addresses are
// numeric, "127.0.0.1:7000" or "[::1]:7000": asking for names would block.
//
// Thread safety: Poller::Wait and Poller::Wake concurrently with everything;
// the rest one thread at a time.
// References: epoll(7), eventfd(2), tcp(7).
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::fabric::tcp {

// Owns a file descriptor; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  // Returns the descriptor, which is the caller's now.
  int Release() { return std::exchange(fd_, -1); }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class IoOutcome {
  kSome,     // bytes were moved
  kNothing,  // none now; the socket will become ready
  kClosed,   // by the peer, or broken
};
struct IoResult {
  IoOutcome outcome = IoOutcome::kNothing;
  size_t bytes = 0;
};

IoResult SendSome(const Descriptor& socket, std::span<iovec> from);
IoResult ReceiveSome(const Descriptor& socket, std::span<std::byte> into);
// Ends sending; the peer sees the end of the stream.
void EndSending(const Descriptor& socket);

// Errors: InvalidArgument.
absl::Status CheckAddress(std::string_view address);

// Checks that the host is one of this machine's, as ListenOn does. Takes no
// port, so that it works while another process listens there. OK where the
// kernel does not tell. Errors: InvalidArgument (not an address), Unavailable.
absl::Status CheckIsOfThisMachine(std::string_view address);

struct Listener {
  Descriptor socket;
  std::string address;  // with the port that it got
};
// Listens. Errors: InvalidArgument (not an address), AlreadyExists (in use),
// Unavailable.
absl::StatusOr<Listener> ListenOn(std::string_view address);

// Starts to connect from `source` (a host without port; empty: any). The socket
// becomes writable when the outcome is known. Errors: InvalidArgument (not an
// address), Unavailable.
absl::StatusOr<Descriptor> StartConnect(std::string_view address,
                                        std::string_view source);
// Returns true if the connect has succeeded.
bool HasConnected(const Descriptor& socket);

enum class AcceptOutcome {
  kSome,
  kNothing,    // no peer waits
  kExhausted,  // descriptors or memory have run out; peers keep waiting
};
struct Accepted {
  AcceptOutcome outcome = AcceptOutcome::kNothing;
  Descriptor socket;
  std::string peer;
};
Accepted AcceptOne(const Descriptor& listener);

// Reports which sockets are ready, level-triggered. A poller that could not be
// made has no sockets; its waits are short and find nothing.
class Poller {
 public:
  struct Ready {
    uint64_t tag = 0;
    bool in = false;  // also: closed or broken
    bool out = false;
  };
  // The tag of Wake, which Wait never reports.
  static constexpr uint64_t kWakeTag = 0;

  Poller();
  // Returns OK if it could be made. Errors: Unavailable.
  const absl::Status& status() const { return status_; }

  // Adds a socket. Errors: Unavailable (the kernel watches no more, or not
  // that).
  absl::Status Add(const Descriptor& socket, uint64_t tag, bool in, bool out);
  // Changes what is watched. Requires: it was added.
  void Change(const Descriptor& socket, uint64_t tag, bool in, bool out);
  // Watches the socket no more. Requires: it was added.
  void Remove(const Descriptor& socket);

  struct Waited {
    size_t count = 0;       // how many of `ready` were filled
    bool is_woken = false;  // by Wake
  };
  // Waits. `timeout_ns` -1: forever. More than a millisecond is rounded up to
  // whole ones.
  Waited Wait(int64_t timeout_ns, std::span<Ready> ready);

  // Makes Wait return, now or when it is called next, until ClearWake.
  void Wake();
  void ClearWake();

 private:
  bool Control(int what, const Descriptor& socket, uint64_t tag, bool in,
               bool out);

  Descriptor epoll_;
  Descriptor wake_;
  absl::Status status_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_SOCKET_H_
