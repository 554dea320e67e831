// SPDX-License-Identifier: Apache-2.0
#include "quorum/arithmetic/promise.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"

namespace alpheus::quorum {
namespace {

constexpr char kPayloadUrl[] = "alpheus/refusing-promise";

// Laid out as in memory: a status does not leave its process. Messages send the
// promise in their own format.
struct PromisePayload {
  uint64_t epoch;        // 0..8
  uint64_t node;         // 8..16
  uint64_t incarnation;  // 16..24
};
static_assert(std::is_trivially_copyable_v<PromisePayload>);
static_assert(sizeof(PromisePayload) == 24);

std::string Describe(const Promise& promise) {
  return absl::StrCat("epoch ", promise.epoch.value, " of node ",
                      promise.primary.node.value, ", process ",
                      absl::Hex(promise.primary.incarnation));
}

absl::Status Refusal(const Promise& current, const Promise& request) {
  absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      "promise refused: asked for ", Describe(request), "; promised is ",
      Describe(current), ". Step down, or open again with an epoch above it"));
  const PromisePayload payload{current.epoch.value, current.primary.node.value,
                               current.primary.incarnation};
  char bytes[sizeof(payload)];
  std::memcpy(bytes, &payload, sizeof(payload));
  status.SetPayload(kPayloadUrl,
                    absl::Cord(absl::string_view(bytes, sizeof(bytes))));
  return status;
}

}  // namespace

PromiseVerdict JudgePromise(const Promise& current, const Promise& request) {
  ALPHEUS_CHECK(request.epoch.value > 0, "epoch 0 is promised to nobody");
  if (request.epoch > current.epoch) return PromiseVerdict::kNew;
  if (request.epoch < current.epoch) return PromiseVerdict::kRefused;
  return current.primary == request.primary ? PromiseVerdict::kAgain
                                            : PromiseVerdict::kRefused;
}

absl::StatusOr<PromiseVerdict> AnswerPromise(const Promise& current,
                                             const Promise& request) {
  if (request.epoch.value == 0 || request.primary.incarnation == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "promise refused: asked for ", Describe(request),
        ", but epochs and incarnations are above 0. This request is damaged "
        "or made by another program"));
  }
  const PromiseVerdict verdict = JudgePromise(current, request);
  if (verdict == PromiseVerdict::kRefused) return Refusal(current, request);
  return verdict;
}

std::optional<Promise> RefusingPromise(const absl::Status& status) {
  const absl::optional<absl::Cord> cord = status.GetPayload(kPayloadUrl);
  if (!cord.has_value() || cord->size() != sizeof(PromisePayload)) return {};
  const std::string bytes(*cord);
  PromisePayload payload{};
  std::memcpy(&payload, bytes.data(), sizeof(payload));
  return Promise{Epoch(payload.epoch),
                 {NodeId(payload.node), payload.incarnation}};
}

std::string DescribeOpening(const Promise& promise) {
  return absl::StrCat("node ", promise.primary.node.value, ", process ",
                      absl::Hex(promise.primary.incarnation), ", opens epoch ",
                      promise.epoch.value);
}

bool MayWrite(const Promise& current, const Promise& session) {
  return session == current && session.epoch.value > 0;
}

Promise PromiseOf(const Superline& superline) {
  return {superline.promised_epoch,
          {superline.promised_node, superline.promised_incarnation}};
}

void SetPromise(const Promise& promise, Superline& superline) {
  ALPHEUS_CHECK(promise == PromiseOf(superline) ||
                    promise.epoch > superline.promised_epoch,
                "PRO1, PRO2 (promise.h)");
  superline.promised_epoch = promise.epoch;
  superline.promised_node = promise.primary.node;
  superline.promised_incarnation = promise.primary.incarnation;
}

}  // namespace alpheus::quorum
