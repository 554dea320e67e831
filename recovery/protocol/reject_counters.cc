// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/reject_counters.h"

#include <numeric>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::recovery {
namespace {

constexpr char kPayload[] = "alpheus/refusal";

constexpr std::array<std::string_view, kRejectReasonCount> kRejectReasonNames =
    {"malformed message",
     "other protocol version",
     "other cluster",
     "unknown log",
     "no room",
     "no key here",
     "no proof",
     "wrong key",
     "too slow",
     "out of turn",
     "older configuration",
     "stale epoch"};
static_assert(static_cast<size_t>(RejectReason::kStaleEpoch) + 1 ==
              kRejectReasonCount);

// Returns the host, without the port.
std::string HostOf(std::string_view peer) {
  return std::string(peer.substr(0, peer.rfind(':')));
}

}  // namespace

std::string_view RejectReasonName(RejectReason reason) {
  return kRejectReasonNames[static_cast<size_t>(reason)];
}

absl::Status Rejection(RejectReason reason, absl::Status status) {
  ALPHEUS_CHECK(!status.ok(), "a rejection needs a reason");
  const std::string number = absl::StrCat(static_cast<uint32_t>(reason));
  status.SetPayload(kPayload, absl::Cord(absl::string_view(number)));
  return status;
}

std::optional<RejectReason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  uint32_t reason = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &reason)) {
    return std::nullopt;
  }
  return static_cast<RejectReason>(reason);
}

bool RejectCounters::Note(std::string_view peer, RejectReason reason) {
  ++counts_[static_cast<size_t>(reason)];
  if (reported_.size() >= kPeersReported) return false;
  return reported_.emplace(HostOf(peer), reason).second;
}

uint64_t RejectCounters::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

}  // namespace alpheus::recovery
