// SPDX-License-Identifier: Apache-2.0
#include "replication/head_update.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace alpheus {
namespace {

constexpr uint64_t kHeadMagic = 0x3164616853555048;  // "HPUShad1"
using HeadWords = std::array<uint64_t, kHeadUpdateBytes / sizeof(uint64_t)>;
static_assert(std::endian::native == std::endian::little);

}  // namespace

void EncodeHeadUpdate(const HeadUpdate& update,
                      std::span<std::byte, kHeadUpdateBytes> into) {
  const HeadWords words = {kHeadMagic,
                           update.epoch.value,
                           update.session.value,
                           update.head.lsn.value,
                           update.head.offset.value,
                           update.head.chain};
  std::memcpy(into.data(), words.data(), kHeadUpdateBytes);
}

std::optional<HeadUpdate> DecodeHeadUpdate(std::span<const std::byte> bytes) {
  HeadWords words;
  if (bytes.size() != kHeadUpdateBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kHeadUpdateBytes);
  if (words[0] != kHeadMagic) return std::nullopt;
  return HeadUpdate{Epoch(words[1]),
                    SessionId(words[2]),
                    {Lsn(words[3]), RingOffset(words[4]), words[5]}};
}

}  // namespace alpheus
