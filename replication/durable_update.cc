// SPDX-License-Identifier: Apache-2.0
#include "replication/durable_update.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace alpheus {
namespace {

constexpr uint64_t kDurableMagic = 0x3172756455504841;  // "AHPUdur1"
using DurableWords =
    std::array<uint64_t, kDurableUpdateBytes / sizeof(uint64_t)>;
static_assert(std::endian::native == std::endian::little);

}  // namespace

void EncodeDurableUpdate(const DurableUpdate& update,
                         std::span<std::byte, kDurableUpdateBytes> into) {
  const DurableWords words = {kDurableMagic, update.epoch.value,
                              update.session.value, update.durable_lsn.value};
  std::memcpy(into.data(), words.data(), kDurableUpdateBytes);
}

std::optional<DurableUpdate> DecodeDurableUpdate(
    std::span<const std::byte> bytes) {
  DurableWords words;
  if (bytes.size() != kDurableUpdateBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kDurableUpdateBytes);
  if (words[0] != kDurableMagic) return std::nullopt;
  return DurableUpdate{Epoch(words[1]), SessionId(words[2]), Lsn(words[3])};
}

}  // namespace alpheus
