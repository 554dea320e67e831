// SPDX-License-Identifier: Apache-2.0
#include "replication/resend.h"

#include <array>
#include <bit>
#include <cstring>

namespace alpheus {
namespace {

constexpr uint64_t kRequestMagic = 0x3171657255504841;  // "AHPUreq1"
constexpr uint64_t kResentMagic = 0x3174657255504841;   // "AHPUret1"
using RequestWords =
    std::array<uint64_t, kResendRequestBytes / sizeof(uint64_t)>;
using ResentWords = std::array<uint64_t, kResentBytes / sizeof(uint64_t)>;
static_assert(std::endian::native == std::endian::little);

}  // namespace

void EncodeResendRequest(const ResendRequest& request,
                         std::span<std::byte, kResendRequestBytes> into) {
  const RequestWords words = {kRequestMagic, request.epoch.value,
                              request.session.value, request.offset.value,
                              request.bytes};
  std::memcpy(into.data(), words.data(), kResendRequestBytes);
}

void EncodeResent(const Resent& resent,
                  std::span<std::byte, kResentBytes> into) {
  const ResentWords words = {kResentMagic, resent.epoch.value,
                             resent.session.value, resent.offset.value};
  std::memcpy(into.data(), words.data(), kResentBytes);
}

std::optional<ResendRequest> DecodeResendRequest(
    std::span<const std::byte> bytes) {
  RequestWords words;
  if (bytes.size() != kResendRequestBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kResendRequestBytes);
  if (words[0] != kRequestMagic) return std::nullopt;
  return ResendRequest{Epoch(words[1]), SessionId(words[2]),
                       RingOffset(words[3]), words[4]};
}

std::optional<Resent> DecodeResent(std::span<const std::byte> bytes) {
  ResentWords words;
  if (bytes.size() != kResentBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kResentBytes);
  if (words[0] != kResentMagic) return std::nullopt;
  return Resent{Epoch(words[1]), SessionId(words[2]), RingOffset(words[3])};
}

}  // namespace alpheus
