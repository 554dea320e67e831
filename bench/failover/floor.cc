// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/floor.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/failover/floor_processes.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::OwnProcess;
using replicated::RawSocket;

namespace {

struct Node {
  OwnProcess process;
  uint16_t port = 0;
};

absl::StatusOr<Node> StartNode() {
  ALPHEUS_ASSIGN_OR_RETURN(OwnProcess process,
                           OwnProcess::Start({kFloorNodeKind}));
  uint32_t port = 0;
  if (!absl::SimpleAtoi(process.said(), &port) || port > UINT16_MAX) {
    return absl::UnavailableError(
        absl::StrCat("floor: \"", process.said(), "\" is no port"));
  }
  return Node{std::move(process), static_cast<uint16_t>(port)};
}

absl::Status RoundTrip(const RawSocket& socket) {
  ALPHEUS_RETURN_IF_ERROR(SendWord(socket, FloorWord::kEcho));
  return AwaitAnswer(socket);
}

class FloorContestant final : public Contestant {
 public:
  std::string name() const override { return kFloorName; }
  int TriesMax(const absl::Status& ended) const override {
    return absl::IsAborted(ended) ? kVoidTriesMax : 1;
  }

  absl::StatusOr<Parts> Run(Fault fault, uint64_t /*log_mib*/) override {
    ALPHEUS_ASSIGN_OR_RETURN(const Node own, StartNode());
    ALPHEUS_ASSIGN_OR_RETURN(const Node other, StartNode());
    ALPHEUS_ASSIGN_OR_RETURN(
        const OwnProcess primary,
        OwnProcess::Start({kFloorPrimaryKind, absl::StrCat(own.port),
                           absl::StrCat(other.port)}));
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket hears, JoinFloorNode(own.port));
    std::this_thread::sleep_for(LoadTime());
    ALPHEUS_RETURN_IF_ERROR(SendWord(hears, FloorWord::kHear));
    ALPHEUS_RETURN_IF_ERROR(CheckIsHeard(own, hears));
    const int64_t begin = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(Lose(fault, primary, own));
    ALPHEUS_RETURN_IF_ERROR(AwaitAnswer(hears));
    return TakeOver(other, begin);
  }

 private:
  // As FOV1 of alpheus/fail_over.h.
  static absl::Status CheckIsHeard(const Node& node, const RawSocket& hears) {
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket asks, JoinFloorNode(node.port));
    std::array<std::byte, kFloorMessageBytes> answer{};
    ALPHEUS_ASSIGN_OR_RETURN(const size_t early, hears.Receive(answer));
    if (early == 0) return absl::OkStatus();
    return absl::AbortedError("floor: the primary was silent before the fault");
  }

  static absl::Status Lose(Fault fault, const OwnProcess& primary,
                           const Node& node) {
    switch (fault) {
      case Fault::kKill:
        primary.Signal(SIGKILL);
        return absl::OkStatus();
      case Fault::kStop:
      case Fault::kCut:
        primary.Signal(SIGSTOP);
        return absl::OkStatus();
      case Fault::kDrain:
        return Drain(node);
    }
    return absl::InvalidArgumentError("no such fault");
  }

  static absl::Status Drain(const Node& node) {
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket word, JoinFloorNode(node.port));
    ALPHEUS_RETURN_IF_ERROR(SendWord(word, FloorWord::kDrain));
    return AwaitAnswer(word);
  }

  static absl::StatusOr<Parts> TakeOver(const Node& other, int64_t begin) {
    Parts parts;
    int64_t last = begin;
    const auto until_now = [&](const char* part) {
      const int64_t now = NowNanos();
      parts[part] = MillisBetween(last, now);
      last = now;
    };
    {
      ALPHEUS_ASSIGN_OR_RETURN(const RawSocket question,
                               JoinFloorNode(other.port));
      ALPHEUS_RETURN_IF_ERROR(RoundTrip(question));
    }
    until_now("detection");
    ALPHEUS_ASSIGN_OR_RETURN(const RawSocket opening,
                             JoinFloorNode(other.port));
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
};

}  // namespace

std::unique_ptr<Contestant> Floor() {
  return std::make_unique<FloorContestant>();
}

}  // namespace alpheus::bench::failover
