// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/head_update.h"

#include <cstdint>

namespace alpheus::replication {
namespace {

constexpr uint64_t kHeadMagic = 0x3164616853555048;  // "HPUShad1"

}  // namespace

void EncodeHeadUpdate(const HeadUpdate& update,
                      std::span<std::byte, kHeadUpdateBytes> into) {
  EncodeWords<6>(
      {kHeadMagic, update.epoch.value, update.session.value,
       update.head.lsn.value, update.head.offset.value, update.head.chain},
      into);
}

std::optional<HeadUpdate> DecodeHeadUpdate(std::span<const std::byte> bytes) {
  const auto words = DecodeWords<6>(kHeadMagic, bytes);
  if (!words) return std::nullopt;
  return HeadUpdate{
      Epoch(words->at(1)),
      SessionId(words->at(2)),
      {Lsn(words->at(3)), RingOffset(words->at(4)), words->at(5)}};
}

}  // namespace alpheus::replication
