// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/ack.h"

#include <cstdint>

namespace alpheus::replication {
namespace {

constexpr uint64_t kAckMagic = 0x316b636153555048;  // "HPUSack1"

}  // namespace

void EncodeAck(const Ack& ack, std::span<std::byte, kAckBytes> into) {
  EncodeWords<5>({kAckMagic, ack.epoch.value, ack.session.value,
                  ack.persisted_lsn.value, ack.batches},
                 into);
}

std::optional<Ack> DecodeAck(std::span<const std::byte> bytes) {
  const auto words = DecodeWords<5>(kAckMagic, bytes);
  if (!words) return std::nullopt;
  return Ack{Epoch(words->at(1)), SessionId(words->at(2)), Lsn(words->at(3)),
             words->at(4)};
}

}  // namespace alpheus::replication
