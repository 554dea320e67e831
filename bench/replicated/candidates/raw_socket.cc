// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/raw_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "bench/replicated/candidates/system_error.h"

namespace alpheus::bench::replicated {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

absl::Status DisableDelay(int fd) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
    return SystemError("setsockopt(TCP_NODELAY)");
  }
  return absl::OkStatus();
}

}  // namespace

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<RawSocket> RawSocket::Listen() {
  RawSocket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener.fd_ < 0) return SystemError("socket");
  const int on = 1;
  if (setsockopt(listener.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) !=
      0) {
    return SystemError("setsockopt(SO_REUSEADDR)");
  }
  const sockaddr_in address = Loopback(0);
  if (bind(listener.fd_, reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    return SystemError("bind");
  }
  if (listen(listener.fd_, 1) != 0) return SystemError("listen");
  return listener;
}

absl::StatusOr<uint16_t> RawSocket::Port() const {
  sockaddr_in address{};
  socklen_t bytes = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return SystemError("getsockname");
  }
  return ntohs(address.sin_port);
}

absl::StatusOr<RawSocket> RawSocket::Accept() const {
  RawSocket accepted(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  if (accepted.fd_ < 0) return SystemError("accept4");
  absl::Status status = DisableDelay(accepted.fd_);
  if (!status.ok()) return status;
  return accepted;
}

absl::StatusOr<RawSocket> RawSocket::Connect(uint16_t port) {
  RawSocket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made.fd_ < 0) return SystemError("socket");
  const sockaddr_in address = Loopback(port);
  if (connect(made.fd_, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return SystemError("connect");
  }
  absl::Status status = DisableDelay(made.fd_);
  if (!status.ok()) return status;
  return made;
}

absl::Status RawSocket::Send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return SystemError("send");
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> RawSocket::Receive(std::span<std::byte> into) const {
  const ssize_t got = recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got < 0) return SystemError("recv");
  return absl::OutOfRangeError("the other end has closed its socket");
}

void WaitForAny(std::span<const int> fds, Waiting waiting) {
  if (waiting == Waiting::kSpin) {
    sched_yield();
    return;
  }
  std::array<pollfd, kSocketsMax> polled{};
  for (size_t i = 0; i < fds.size(); ++i) {
    polled[i] = {.fd = fds[i], .events = POLLIN, .revents = 0};
  }
  // Its result does not matter: the sockets are looked at next.
  (void)poll(polled.data(), fds.size(), -1);
}

}  // namespace alpheus::bench::replicated
