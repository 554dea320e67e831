// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/floor.h"

#include <poll.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "alpheus/candidate.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::OwnProcess;
using replicated::RawSocket;
using replicated::Waiting;

namespace {

constexpr size_t kMessageBytes = 64;

struct EchoServer {
  OwnProcess process;
  uint16_t port = 0;
};

absl::StatusOr<EchoServer> StartEchoServer() {
  ALPHEUS_ASSIGN_OR_RETURN(OwnProcess process, OwnProcess::Start({kEchoKind}));
  uint32_t port = 0;
  if (!absl::SimpleAtoi(process.said(), &port) || port > UINT16_MAX) {
    return absl::UnavailableError(
        absl::StrCat("floor: \"", process.said(), "\" is no port"));
  }
  return EchoServer{std::move(process), static_cast<uint16_t>(port)};
}

absl::Status RoundTrip(const RawSocket& socket) {
  const std::array<std::byte, kMessageBytes> message{};
  ALPHEUS_RETURN_IF_ERROR(socket.Send(message));
  std::array<std::byte, kMessageBytes> answer{};
  const int fd = socket.fd();
  for (size_t got = 0; got < answer.size();) {
    replicated::WaitForAny(std::span(&fd, 1), Waiting::kBlock);
    ALPHEUS_ASSIGN_OR_RETURN(const size_t more,
                             socket.Receive(std::span(answer).subspan(got)));
    got += more;
  }
  return absl::OkStatus();
}

// Waits until the connection ends, or is reset.
void AwaitEnd(const RawSocket& socket) {
  const int fd = socket.fd();
  std::array<std::byte, kMessageBytes> ignored{};
  for (;;) {
    replicated::WaitForAny(std::span(&fd, 1), Waiting::kBlock);
    if (!socket.Receive(ignored).ok()) return;
  }
}

// Waits for the silence, as long as nothing comes.
void AwaitSilence(const RawSocket& socket) {
  pollfd waited{.fd = socket.fd(), .events = POLLIN, .revents = 0};
  poll(&waited, 1, static_cast<int>(CandidateOptions().silence_ms));
}

class FloorContestant final : public Contestant {
 public:
  std::string name() const override { return kFloorName; }

  absl::StatusOr<Parts> Run(Fault fault, uint64_t /*log_mib*/) override {
    ALPHEUS_ASSIGN_OR_RETURN(const EchoServer primary, StartEchoServer());
    ALPHEUS_ASSIGN_OR_RETURN(const EchoServer node, StartEchoServer());
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket watched,
                             RawSocket::Connect(primary.port));
    ALPHEUS_RETURN_IF_ERROR(RoundTrip(watched));
    std::this_thread::sleep_for(LoadTime());
    Parts parts;
    const int64_t begin = NowNanos();
    int64_t last = begin;
    const auto until_now = [&](const char* part) {
      const int64_t now = NowNanos();
      parts[part] = MillisBetween(last, now);
      last = now;
    };
    ALPHEUS_RETURN_IF_ERROR(Lose(fault, primary, watched));
    {
      ALPHEUS_ASSIGN_OR_RETURN(const RawSocket question,
                               RawSocket::Connect(node.port));
      ALPHEUS_RETURN_IF_ERROR(RoundTrip(question));
    }
    until_now("detection");
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket opening,
                             RawSocket::Connect(node.port));
    ALPHEUS_RETURN_IF_ERROR(RoundTrip(opening));
    ALPHEUS_RETURN_IF_ERROR(RoundTrip(opening));
    until_now("promises");
    ALPHEUS_RETURN_IF_ERROR(RoundTrip(opening));
    until_now("repair");
    ALPHEUS_RETURN_IF_ERROR(RoundTrip(opening));
    until_now("open");
    parts["total"] = MillisBetween(begin, last);
    return parts;
  }

 private:
  // Returns when the loss is known.
  static absl::Status Lose(Fault fault, const EchoServer& primary,
                           const RawSocket& watched) {
    switch (fault) {
      case Fault::kKill:
        primary.process.Signal(SIGKILL);
        AwaitEnd(watched);
        return absl::OkStatus();
      case Fault::kStop:
      case Fault::kCut:
        primary.process.Signal(SIGSTOP);
        AwaitSilence(watched);
        return absl::OkStatus();
      case Fault::kDrain:
        return RoundTrip(watched);
    }
    return absl::InvalidArgumentError("no such fault");
  }
};

}  // namespace

std::unique_ptr<Contestant> Floor() {
  return std::make_unique<FloorContestant>();
}

// Connections are few and last as long as their process, or the turn.
absl::Status ServeEcho() {
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  replicated::Say(absl::StrCat(port));
  std::vector<RawSocket> sockets;
  std::array<std::byte, kMessageBytes> message{};
  for (;;) {
    std::vector<pollfd> waited = {
        {.fd = listener.fd(), .events = POLLIN, .revents = 0}};
    for (const RawSocket& socket : sockets) {
      waited.push_back({.fd = socket.fd(), .events = POLLIN, .revents = 0});
    }
    if (poll(waited.data(), waited.size(), -1) < 0) continue;
    for (size_t i = waited.size() - 1; i > 0; --i) {
      if (waited[i].revents == 0) continue;
      const absl::StatusOr<size_t> got = sockets[i - 1].Receive(message);
      const absl::Status sent =
          got.ok() ? sockets[i - 1].Send(std::span(message).first(*got))
                   : got.status();
      if (!sent.ok())
        sockets.erase(sockets.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (waited[0].revents != 0) {
      ALPHEUS_ASSIGN_OR_RETURN(RawSocket accepted, listener.Accept());
      sockets.push_back(std::move(accepted));
    }
  }
}

}  // namespace alpheus::bench::failover
