// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/connections/acceptor.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::rpc {
namespace {

using fabric::tcp::AcceptOutcome;
using fabric::tcp::Poller;

constexpr uint64_t kListenerTag = Poller::kWakeTag + 1;
// How long nothing is accepted where descriptors have run out.
constexpr int64_t kExhaustedRestNs = 100 * kNanosPerMs;
// Ended connections are looked for so often at most, and at least.
constexpr int64_t kLookEveryNs = 100 * kNanosPerMs;
constexpr int64_t kLookAtLeastEveryNs = 10'000 * kNanosPerMs;
// Closed connections are told of so often at most.
constexpr int64_t kSayEveryNs = 60'000 * kNanosPerMs;

// Returns the socket of a descriptor; nothing if it has none.
std::optional<ino_t> SocketOf(int descriptor) {
  struct stat found{};
  if (fstat(descriptor, &found) != 0 || !S_ISSOCK(found.st_mode)) {
    return std::nullopt;
  }
  return found.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(
    const std::string& address, const ConnectionLimitOptions& limits, Say say,
    const Clock& clock) {
  ALPHEUS_ASSIGN_OR_RETURN(fabric::tcp::Listener listener,
                           fabric::tcp::ListenOn(address));
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(listener), limits, std::move(say), clock));
}

Acceptor::Acceptor(fabric::tcp::Listener listener,
                   const ConnectionLimitOptions& limits, Say say,
                   const Clock& clock)
    : listener_(std::move(listener)),
      say_(std::move(say)),
      clock_(clock),
      limits_(limits) {}

Acceptor::~Acceptor() {
  is_over_.store(true, std::memory_order_release);
  poller_.Wake();
  thread_.Join();
}

absl::Status Acceptor::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  ALPHEUS_RETURN_IF_ERROR(poller_.Add(listener_.socket, kListenerTag,
                                      /*in=*/true, /*out=*/false));
  return thread_.Start([this] { Run(); });
}

void Acceptor::Run() {
  while (!is_over_.load(std::memory_order_acquire)) Turn();
}

void Acceptor::Turn() {
  const int64_t now_ns = clock_.NowNanos();
  const int64_t rest_ns =
      std::max(limits_.RestNanos(now_ns), not_before_ns_ - now_ns);
  SetListens(rest_ns <= 0);
  std::array<Poller::Ready, 1> ready;
  const size_t count =
      poller_.Wait(rest_ns > 0 ? rest_ns : kLookAtLeastEveryNs, ready).count;
  if (count > 0 && rest_ns <= 0) AcceptNext(clock_.NowNanos());
  if (clock_.NowNanos() - looked_ns_ >= kLookAtLeastEveryNs) {
    LookForEnded(clock_.NowNanos());
  }
  open_.store(limits_.open(), std::memory_order_relaxed);
}

void Acceptor::AcceptNext(int64_t now_ns) {
  fabric::tcp::Accepted accepted = AcceptOne(listener_.socket);
  if (accepted.outcome == AcceptOutcome::kNothing) return;
  if (accepted.outcome == AcceptOutcome::kExhausted) {
    not_before_ns_ = now_ns + kExhaustedRestNs;  // ACP2
    Tell(
        "clients wait: descriptors or memory have run out. Raise the limit of "
        "open files (ulimit -n)",
        now_ns);
    return;
  }
  limits_.Come();
  const absl::Status entered = Enter(accepted.peer, now_ns);
  if (!entered.ok()) {
    const uint64_t refused = refused_.fetch_add(1) + 1;
    Tell(absl::StrCat(entered.message(), ". Closed since the start: ", refused),
         now_ns);
    return;
  }
  const int descriptor = accepted.socket.Release();
  connections_.push_back(
      {descriptor, SocketOf(descriptor).value_or(0), std::move(accepted.peer)});
  hand_over_(descriptor);
}

absl::Status Acceptor::Enter(const std::string& peer, int64_t now_ns) {
  const absl::Status entered = limits_.Enter(peer);
  if (entered.ok() || now_ns - looked_ns_ < kLookEveryNs) return entered;
  LookForEnded(now_ns);
  return limits_.Enter(peer);
}

void Acceptor::LookForEnded(int64_t now_ns) {
  looked_ns_ = now_ns;
  std::erase_if(connections_, [this](const Connection& connection) {
    const bool has_ended = SocketOf(connection.descriptor) != connection.socket;
    if (has_ended) limits_.Leave(connection.peer);
    return has_ended;
  });
}

void Acceptor::Tell(const std::string& sentence, int64_t now_ns) {
  if (!say_ || now_ns < quiet_until_ns_) return;
  quiet_until_ns_ = now_ns + kSayEveryNs;
  say_(sentence);
}

void Acceptor::SetListens(bool listens) {
  if (std::exchange(listens_, listens) == listens) return;
  poller_.Change(listener_.socket, kListenerTag, /*in=*/listens,
                 /*out=*/false);
}

}  // namespace alpheus::rpc
