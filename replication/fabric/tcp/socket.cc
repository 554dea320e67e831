// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/check.h"
#include "replication/fabric/socket_address.h"

namespace alpheus::fabric::tcp {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;

// Returns milliseconds as epoll takes them; -1 stays.
int RoundToMillis(int64_t nanos) {
  if (nanos < 0) return -1;
  const int64_t millis = (nanos + kNanosPerMilli - 1) / kNanosPerMilli;
  return static_cast<int>(std::min<int64_t>(millis, 1 << 30));
}

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

Descriptor MakeSocket(int family) {
  return Descriptor(
      socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void SetOption(const Descriptor& socket, int level, int option) {
  const int on = 1;
  // Without this option the adapter is slower, or its port taken for a minute
  // longer.
  (void)setsockopt(socket.get(), level, option, &on, sizeof(on));
}

absl::Status SystemError(std::string_view what, std::string_view address) {
  const int error = errno;
  const std::string message =
      absl::StrCat(View(what), " ", View(address), ": ", std::strerror(error));
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(
        message,
        ". Another process has that address, perhaps this program started "
        "twice: end it, or give this one another address"));
  }
  return absl::UnavailableError(message);
}

absl::Status BindingError(std::string_view address) {
  const int error = errno;
  absl::Status failed = SystemError("binding to", address);
  if (error != EADDRNOTAVAIL) return failed;
  return absl::Status(
      failed.code(),
      absl::StrCat(failed.message(),
                   ". No interface of this machine has that address (`ip "
                   "address` lists those that have one): correct it, or wait "
                   "until the network is up"));
}

// Outcome of a failed accept4. A failure of one connection ends only that one.
AcceptOutcome OutcomeOfFailedAccept() {
  const bool is_exhausted =
      errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  return is_exhausted ? AcceptOutcome::kExhausted : AcceptOutcome::kNothing;
}

IoResult Outcome(ssize_t moved) {
  if (moved > 0) return {IoOutcome::kSome, static_cast<size_t>(moved)};
  const bool later = moved < 0 && (errno == EAGAIN || errno == EINTR);
  return {later ? IoOutcome::kNothing : IoOutcome::kClosed, 0};
}

}  // namespace

Descriptor::~Descriptor() {
  // A failure leaves nothing to do; last bytes were sent before, by lingering.
  if (fd_ >= 0) (void)close(fd_);
}

IoResult SendSome(const Descriptor& socket, std::span<iovec> from) {
  msghdr message{};
  message.msg_iov = from.data();
  message.msg_iovlen = from.size();
  return Outcome(sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

IoResult ReceiveSome(const Descriptor& socket, std::span<std::byte> into) {
  return Outcome(recv(socket.get(), into.data(), into.size(), MSG_DONTWAIT));
}

void EndSending(const Descriptor& socket) {
  // Fails only if the connection is broken, which is an end, too.
  (void)shutdown(socket.get(), SHUT_WR);
}

absl::Status CheckAddress(std::string_view address) {
  return ParseSocketAddress(address).status();
}

absl::Status CheckIsOfThisMachine(std::string_view address) {
  absl::StatusOr<SocketAddress> parsed = ParseSocketAddress(address);
  if (!parsed.ok()) return parsed.status();
  std::optional<SocketAddress> host = MakeSocketAddress(HostOf(address), 0);
  const Descriptor socket = MakeSocket(parsed->storage.ss_family);
  if (!host || !socket.is_open()) return SystemError("socket for", address);
  const int on = 1;
  // Without it the kernel would choose a port and take it.
  if (setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
                 sizeof(on)) != 0) {
    return absl::OkStatus();
  }
  if (bind(socket.get(), host->get(), host->bytes) == 0) {
    return absl::OkStatus();
  }
  return BindingError(address);
}

absl::StatusOr<Listener> ListenOn(std::string_view address) {
  absl::StatusOr<SocketAddress> parsed = ParseSocketAddress(address);
  if (!parsed.ok()) return parsed.status();
  Listener listener{MakeSocket(parsed->storage.ss_family), ""};
  if (!listener.socket.is_open()) return SystemError("socket for", address);
  SetOption(listener.socket, SOL_SOCKET, SO_REUSEADDR);
  if (bind(listener.socket.get(), parsed->get(), parsed->bytes) != 0) {
    return BindingError(address);
  }
  if (listen(listener.socket.get(), SOMAXCONN) != 0) {
    return SystemError("listening on", address);
  }
  parsed->bytes = sizeof(parsed->storage);
  if (getsockname(listener.socket.get(), parsed->get(), &parsed->bytes) != 0) {
    return SystemError("name of", address);
  }
  listener.address = FormatSocketAddress(*parsed);
  return listener;
}

absl::StatusOr<Descriptor> StartConnect(std::string_view address,
                                        std::string_view source) {
  absl::StatusOr<SocketAddress> parsed = ParseSocketAddress(address);
  if (!parsed.ok()) return parsed.status();
  Descriptor socket = MakeSocket(parsed->storage.ss_family);
  if (!socket.is_open()) return SystemError("socket to", address);
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY);
  if (!source.empty()) {
    std::optional<SocketAddress> from = MakeSocketAddress(source, 0);
    if (!from) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", View(source),
                       "\" is not the number of a host to connect from"));
    }
    if (bind(socket.get(), from->get(), from->bytes) != 0) {
      return SystemError("connecting from", source);
    }
  }
  // A failure at once is reported like a later one: by HasConnected.
  if (connect(socket.get(), parsed->get(), parsed->bytes) != 0 &&
      errno != EINPROGRESS) {
    return SystemError("connecting to", address);
  }
  return socket;
}

bool HasConnected(const Descriptor& socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
         error == 0;
}

Accepted AcceptOne(const Descriptor& listener) {
  SocketAddress peer;
  peer.bytes = sizeof(peer.storage);
  Accepted accepted{AcceptOutcome::kSome,
                    Descriptor(accept4(listener.get(), peer.get(), &peer.bytes,
                                       SOCK_NONBLOCK | SOCK_CLOEXEC)),
                    ""};
  if (!accepted.socket.is_open()) {
    accepted.outcome = OutcomeOfFailedAccept();
    return accepted;
  }
  SetOption(accepted.socket, IPPROTO_TCP, TCP_NODELAY);
  accepted.peer = FormatSocketAddress(peer);
  return accepted;
}

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (epoll_.is_open() && wake_.is_open() &&
      Control(EPOLL_CTL_ADD, wake_, kWakeTag, /*in=*/true, /*out=*/false)) {
    return;
  }
  status_ = absl::UnavailableError(absl::StrCat(
      "adapter: an epoll and an eventfd are needed: ", std::strerror(errno),
      ". Raise the limit of open files (ulimit -n) and start again"));
  epoll_ = Descriptor();
}

absl::Status Poller::Add(const Descriptor& socket, uint64_t tag, bool in,
                         bool out) {
  if (!status_.ok()) return status_;
  if (Control(EPOLL_CTL_ADD, socket, tag, in, out)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "watching a socket by epoll: ", std::strerror(errno),
      "; see /proc/sys/fs/epoll/max_user_watches and the memory that is left"));
}

void Poller::Change(const Descriptor& socket, uint64_t tag, bool in, bool out) {
  // Needs no kernel memory that the socket has not had since Add.
  ALPHEUS_CHECK(Control(EPOLL_CTL_MOD, socket, tag, in, out),
                "every socket of the adapter is watched");
}

void Poller::Remove(const Descriptor& socket) {
  ALPHEUS_CHECK(Control(EPOLL_CTL_DEL, socket, /*tag=*/0, /*in=*/false,
                        /*out=*/false),
                "every socket of the adapter is watched");
}

bool Poller::Control(int what, const Descriptor& socket, uint64_t tag, bool in,
                     bool out) {
  epoll_event event{};
  event.events =
      (in ? uint32_t{EPOLLIN} : 0U) | (out ? uint32_t{EPOLLOUT} : 0U);
  event.data.u64 = tag;
  return epoll_ctl(epoll_.get(), what, socket.get(), &event) == 0;
}

Poller::Waited Poller::Wait(int64_t timeout_ns, std::span<Ready> ready) {
  const int timeout_ms = RoundToMillis(timeout_ns);
  if (!status_.ok()) {
    // Nothing can arrive, and no Wake is heard: so it looks this often.
    constexpr int kDeafMs = 10;
    const bool is_short = timeout_ms >= 0 && timeout_ms < kDeafMs;
    (void)poll(nullptr, 0, is_short ? timeout_ms : kDeafMs);
    return {};
  }
  std::array<epoll_event, 64> events;
  const int capacity =
      static_cast<int>(std::min(events.size(), ready.size() + 1));
  const bool is_short = timeout_ns > 0 && timeout_ns < kNanosPerMilli;
  int got = -1;
  if (is_short) {
    const timespec timeout = {.tv_sec = 0, .tv_nsec = timeout_ns};
    got = epoll_pwait2(epoll_.get(), events.data(), capacity, &timeout,
                       /*sigmask=*/nullptr);
  }
  // Kernels before 5.11 do not know epoll_pwait2.
  if (!is_short || (got < 0 && errno == ENOSYS)) {
    got = epoll_wait(epoll_.get(), events.data(), capacity, timeout_ms);
  }
  Waited waited;
  for (int i = 0; i < got; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u64 == kWakeTag) {
      waited.is_woken = true;
      continue;
    }
    if (waited.count == ready.size()) continue;  // reported again
    ready[waited.count++] = {.tag = event.data.u64,
                             .in = (event.events & ~uint32_t{EPOLLOUT}) != 0,
                             .out = (event.events & EPOLLOUT) != 0};
  }
  return waited;
}

void Poller::Wake() {
  const uint64_t one = 1;
  // Fails only when it is full of wakes already.
  (void)!write(wake_.get(), &one, sizeof(one));
}

void Poller::ClearWake() {
  uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof(count));  // an empty one is fine
}

}  // namespace alpheus::fabric::tcp
