// SPDX-License-Identifier: Apache-2.0
// raw_socket: TCP as bare as it gets, for the floor: one send for a message,
// one receive for what has come, waiting as asked.
//
// The floor has sockets of its own, instead of those of replication/fabric/tcp,
// so that no change there can move what it is measured against.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_RAW_SOCKET_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_RAW_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

class RawSocket {
 public:
  RawSocket() = default;
  explicit RawSocket(int fd) : fd_(fd) {}
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~RawSocket();

  int fd() const { return fd_; }

  // On a port of 127.0.0.1 that the kernel chooses, with SO_REUSEADDR.
  // Errors: Unavailable.
  static absl::StatusOr<RawSocket> Listen();
  absl::StatusOr<uint16_t> Port() const;
  absl::StatusOr<RawSocket> Accept() const;
  static absl::StatusOr<RawSocket> Connect(uint16_t port);

  // All of it, in one call unless the kernel's buffer is full.
  absl::Status Send(std::span<const std::byte> bytes) const;
  // What is there, without waiting; 0: nothing.
  // Errors: OutOfRange (the other end has closed), Unavailable.
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) const;

 private:
  int fd_ = -1;
};

// Until one of them may have something: at once if `waiting` is kSpin.
// `fds[n]` below 0 are left out. Requires: at most kSocketsMax.
inline constexpr size_t kSocketsMax = 8;
void WaitForAny(std::span<const int> fds, Waiting waiting);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_RAW_SOCKET_H_
