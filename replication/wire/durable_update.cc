// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/durable_update.h"

#include <cstdint>

namespace alpheus::replication {
namespace {

constexpr uint64_t kDurableMagic = 0x3172756455504841;  // "AHPUdur1"

}  // namespace

void EncodeDurableUpdate(const DurableUpdate& update,
                         std::span<std::byte, kDurableUpdateBytes> into) {
  EncodeWords<4>({kDurableMagic, update.epoch.value, update.session.value,
                  update.durable_lsn.value},
                 into);
}

std::optional<DurableUpdate> DecodeDurableUpdate(
    std::span<const std::byte> bytes) {
  const auto words = DecodeWords<4>(kDurableMagic, bytes);
  if (!words) return std::nullopt;
  return DurableUpdate{Epoch(words->at(1)), SessionId(words->at(2)),
                       Lsn(words->at(3))};
}

}  // namespace alpheus::replication
