// SPDX-License-Identifier: Apache-2.0
#include "replication/ack.h"

#include <array>
#include <bit>
#include <cstring>

namespace alpheus {
namespace {

constexpr uint64_t kAckMagic = 0x316b636153555048;  // "HPUSack1"
using AckWords = std::array<uint64_t, kAckBytes / sizeof(uint64_t)>;
static_assert(std::endian::native == std::endian::little);

}  // namespace

void EncodeAck(const Ack& ack, std::span<std::byte, kAckBytes> into) {
  const AckWords words = {kAckMagic, ack.epoch.value, ack.session.value,
                          ack.persisted_lsn.value, ack.batches};
  std::memcpy(into.data(), words.data(), kAckBytes);
}

std::optional<Ack> DecodeAck(std::span<const std::byte> bytes) {
  AckWords words;
  if (bytes.size() != kAckBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kAckBytes);
  if (words[0] != kAckMagic) return std::nullopt;
  return Ack{Epoch(words[1]), SessionId(words[2]), Lsn(words[3]), words[4]};
}

}  // namespace alpheus
