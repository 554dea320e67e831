// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/floor_processes.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <list>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/candidate.h"
#include "alpheus/options.h"
#include "api/node/node.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/own_process.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::RawSocket;
using replicated::Waiting;

namespace {

constexpr std::array<std::byte, kFloorMessageBytes> kAnswer{};

// Yields the core so many times since something came, then sleeps.
class YieldingWait {
 public:
  explicit YieldingWait(uint32_t turns) : turns_(turns) {}

  void NoteActivity() { idle_turns_ = 0; }
  // `timeout_ms`: of a sleep; -1: there is no end.
  void Wait(const std::vector<int>& sockets, int timeout_ms) {
    std::vector<pollfd> polled;
    for (const int socket : sockets) {
      polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
    }
    const bool yields = idle_turns_ < turns_;
    if (yields) {
      ++idle_turns_;
      sched_yield();
    }
    // Its result does not matter: the sockets are looked at next.
    poll(polled.data(), polled.size(), yields ? 0 : timeout_ms);
  }

 private:
  const uint32_t turns_;
  uint32_t idle_turns_ = 0;
};

size_t BytesOf(FloorWord word) {
  return word == FloorWord::kRecord ? kPayloadBytes : kFloorMessageBytes;
}

// Receives whole messages, one after the other.
class Receiver {
 public:
  // Returns the bytes that came; 0: none. Errors: as RawSocket::Receive.
  absl::StatusOr<size_t> Receive(const RawSocket& socket) {
    std::array<std::byte, kPayloadBytes> some;
    ALPHEUS_ASSIGN_OR_RETURN(const size_t count, socket.Receive(some));
    bytes_.insert(bytes_.end(), some.begin(),
                  some.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  // Takes the next message that is whole.
  bool Take(FloorWord* word) {
    if (bytes_.empty()) return false;
    *word = static_cast<FloorWord>(bytes_.front());
    const size_t count = BytesOf(*word);
    if (bytes_.size() < count) return false;
    bytes_.erase(bytes_.begin(),
                 bytes_.begin() + static_cast<std::ptrdiff_t>(count));
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

class FloorNode {
 public:
  explicit FloorNode(RawSocket listener)
      : listener_(std::move(listener)), wait_(NodeOptions().yield_turns) {}

  // Returns when it can't accept any more.
  absl::Status Serve() {
    for (;;) {
      wait_.Wait(Sockets(), TimeoutMs());
      ALPHEUS_RETURN_IF_ERROR(AcceptNext());
      for (auto peer = peers_.begin(); peer != peers_.end();) {
        const auto next = std::next(peer);
        if (!Listen(*peer).ok()) {
          has_primary_ &= !peer->is_primary;
          peers_.erase(peer);
        }
        peer = next;
      }
      if (!IsPrimaryHeard()) AnswerHearers();
    }
  }

 private:
  struct Peer {
    RawSocket socket;
    Receiver received = {};
    bool is_primary = false;
    bool hears = false;
  };

  std::vector<int> Sockets() const {
    std::vector<int> sockets = {listener_.fd()};
    for (const Peer& peer : peers_) sockets.push_back(peer.socket.fd());
    return sockets;
  }

  int64_t SilentAt() const {
    return heard_at_ + CandidateOptions().silence_ms * kNanosPerMs;
  }
  bool IsPrimaryHeard() const {
    return has_primary_ && NowNanos() < SilentAt();
  }
  int TimeoutMs() const {
    if (!has_primary_) return -1;
    const int64_t left = std::max<int64_t>(SilentAt() - NowNanos(), 0);
    return static_cast<int>((left + kNanosPerMs - 1) / kNanosPerMs);
  }

  absl::Status AcceptNext() {
    pollfd listener{.fd = listener_.fd(), .events = POLLIN, .revents = 0};
    if (poll(&listener, 1, 0) <= 0) return absl::OkStatus();
    ALPHEUS_ASSIGN_OR_RETURN(RawSocket accepted, listener_.Accept());
    peers_.push_back({.socket = std::move(accepted)});
    wait_.NoteActivity();
    return absl::OkStatus();
  }

  // Errors: the connection has ended.
  absl::Status Listen(Peer& peer) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t count,
                             peer.received.Receive(peer.socket));
    if (count == 0) return absl::OkStatus();
    wait_.NoteActivity();
    FloorWord word{};
    while (peer.received.Take(&word)) {
      ALPHEUS_RETURN_IF_ERROR(Handle(peer, word));
    }
    return absl::OkStatus();
  }

  absl::Status Handle(Peer& peer, FloorWord word) {
    if (word == FloorWord::kHear) {
      peer.hears = true;
      return absl::OkStatus();
    }
    if (word == FloorWord::kRecord) {
      has_primary_ = peer.is_primary = true;
      heard_at_ = NowNanos();
    }
    if (word == FloorWord::kDrain) PassOn(word);
    return peer.socket.Send(kAnswer);
  }

  void PassOn(FloorWord word) const {
    for (const Peer& peer : peers_) {
      // If it has ended there is nobody to be told.
      if (peer.is_primary) SendWord(peer.socket, word).IgnoreError();
    }
  }

  void AnswerHearers() {
    for (Peer& peer : peers_) {
      if (!std::exchange(peer.hears, false)) continue;
      // Its end is seen in the next turn.
      peer.socket.Send(kAnswer).IgnoreError();
    }
  }

  const RawSocket listener_;
  YieldingWait wait_;
  std::list<Peer> peers_;
  bool has_primary_ = false;
  int64_t heard_at_ = 0;
};

class FloorPrimary {
 public:
  explicit FloorPrimary(std::vector<RawSocket> nodes)
      : nodes_(std::move(nodes)),
        received_(nodes_.size()),
        wait_(ReplicationOptions().yields) {}

  // Returns once it is drained.
  absl::Status Work() {
    std::array<std::byte, kPayloadBytes> record{};
    record.front() = static_cast<std::byte>(FloorWord::kRecord);
    for (;;) {
      for (const RawSocket& node : nodes_) {
        ALPHEUS_RETURN_IF_ERROR(node.Send(record));
      }
      ++sent_;
      ALPHEUS_ASSIGN_OR_RETURN(const bool is_drained, AwaitFirstAck());
      if (is_drained) return absl::OkStatus();
    }
  }

 private:
  // Waits until a node has answered all that was sent. Returns true if it is
  // drained.
  absl::StatusOr<bool> AwaitFirstAck() {
    std::vector<int> sockets;
    for (const RawSocket& node : nodes_) sockets.push_back(node.fd());
    for (bool is_acked = false; !is_acked;) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        ALPHEUS_ASSIGN_OR_RETURN(const bool is_drained, Listen(i));
        if (is_drained) return true;
        is_acked |= acks_[i] == sent_;
      }
      if (!is_acked) wait_.Wait(sockets, -1);
    }
    return false;
  }

  absl::StatusOr<bool> Listen(size_t i) {
    ALPHEUS_ASSIGN_OR_RETURN(const size_t count,
                             received_[i].Receive(nodes_[i]));
    if (count != 0) wait_.NoteActivity();
    FloorWord word{};
    while (received_[i].Take(&word)) {
      if (word == FloorWord::kDrain) return true;
      ++acks_[i];
    }
    return false;
  }

  const std::vector<RawSocket> nodes_;
  std::vector<Receiver> received_;
  std::vector<uint64_t> acks_ = std::vector<uint64_t>(nodes_.size());
  uint64_t sent_ = 0;
  YieldingWait wait_;
};

}  // namespace

absl::StatusOr<RawSocket> JoinFloorNode(uint16_t port) {
  ALPHEUS_ASSIGN_OR_RETURN(RawSocket socket, RawSocket::Connect(port));
  ALPHEUS_RETURN_IF_ERROR(SendWord(socket, FloorWord::kEcho));
  ALPHEUS_RETURN_IF_ERROR(AwaitAnswer(socket));
  return socket;
}

absl::Status SendWord(const RawSocket& socket, FloorWord word) {
  std::array<std::byte, kFloorMessageBytes> message{};
  message.front() = static_cast<std::byte>(word);
  return socket.Send(message);
}

absl::Status AwaitAnswer(const RawSocket& socket) {
  const int fd = socket.fd();
  std::array<std::byte, kFloorMessageBytes> answer{};
  for (size_t got = 0; got < answer.size();) {
    replicated::WaitForAny(std::span(&fd, 1), Waiting::kBlock);
    ALPHEUS_ASSIGN_OR_RETURN(const size_t more,
                             socket.Receive(std::span(answer).subspan(got)));
    got += more;
  }
  return absl::OkStatus();
}

absl::Status ServeFloorNode() {
  ALPHEUS_ASSIGN_OR_RETURN(RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  replicated::Say(absl::StrCat(port));
  return FloorNode(std::move(listener)).Serve();
}

absl::Status ServeFloorPrimary(const std::vector<uint16_t>& ports) {
  std::vector<RawSocket> nodes;
  for (const uint16_t port : ports) {
    ALPHEUS_ASSIGN_OR_RETURN(RawSocket node, JoinFloorNode(port));
    nodes.push_back(std::move(node));
  }
  replicated::Say("it works");
  return FloorPrimary(std::move(nodes)).Work();
}

}  // namespace alpheus::bench::failover
