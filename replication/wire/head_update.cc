// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/head_update.h"

#include <cstdint>

namespace alpheus::replication {
namespace {

constexpr uint64_t kHeadMagic = 0x3264616853555048;  // "HPUShad2"

}  // namespace

void EncodeHeadUpdate(const HeadUpdate& update,
                      std::span<std::byte, kHeadUpdateBytes> into) {
  const LogPosition& head = update.bounds.head;
  EncodeWords<7>(
      {kHeadMagic, update.epoch.value, update.session.value, head.lsn.value,
       head.offset.value, head.chain, update.bounds.ceiling.value},
      into);
}

std::optional<HeadUpdate> DecodeHeadUpdate(std::span<const std::byte> bytes) {
  const auto words = DecodeWords<7>(kHeadMagic, bytes);
  if (!words) return std::nullopt;
  return HeadUpdate{
      Epoch(words->at(1)),
      SessionId(words->at(2)),
      {{Lsn(words->at(3)), RingOffset(words->at(4)), words->at(5)},
       RingOffset(words->at(6))}};
}

}  // namespace alpheus::replication
