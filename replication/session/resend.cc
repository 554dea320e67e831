// SPDX-License-Identifier: Apache-2.0
#include "replication/session/resend.h"

#include <cstdint>

namespace alpheus::replication {
namespace {

constexpr uint64_t kRequestMagic = 0x3171657255504841;  // "AHPUreq1"
constexpr uint64_t kResentMagic = 0x3174657255504841;   // "AHPUret1"

}  // namespace

void EncodeResendRequest(const ResendRequest& request,
                         std::span<std::byte, kResendRequestBytes> into) {
  EncodeWords<5>({kRequestMagic, request.epoch.value, request.session.value,
                  request.offset.value, request.bytes},
                 into);
}

void EncodeResent(const Resent& resent,
                  std::span<std::byte, kResentBytes> into) {
  EncodeWords<4>({kResentMagic, resent.epoch.value, resent.session.value,
                  resent.offset.value},
                 into);
}

std::optional<ResendRequest> DecodeResendRequest(
    std::span<const std::byte> bytes) {
  const auto words = DecodeWords<5>(kRequestMagic, bytes);
  if (!words) return std::nullopt;
  return ResendRequest{Epoch(words->at(1)), SessionId(words->at(2)),
                       RingOffset(words->at(3)), words->at(4)};
}

std::optional<Resent> DecodeResent(std::span<const std::byte> bytes) {
  const auto words = DecodeWords<4>(kResentMagic, bytes);
  if (!words) return std::nullopt;
  return Resent{Epoch(words->at(1)), SessionId(words->at(2)),
                RingOffset(words->at(3))};
}

}  // namespace alpheus::replication
