// SPDX-License-Identifier: Apache-2.0
#include "log/format/watermark.h"

#include <cstring>
#include <span>

#include "log/base/mix.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

uint32_t LineSeed(Uuid log_id, int line) {
  return static_cast<uint32_t>(
      Mix(Mix(log_id.high, log_id.low), static_cast<uint64_t>(line) + 1));
}

uint32_t LineChecksum(Uuid log_id, int line, const WatermarkFormat& f) {
  return Crc32c(
      LineSeed(log_id, line),
      std::as_bytes(std::span(&f, 1)).first<offsetof(WatermarkFormat, crc)>());
}

}  // namespace

WatermarkFormat EncodeWatermark(Uuid log_id, int line, Watermark watermark) {
  WatermarkFormat f{};
  f.epoch = watermark.epoch.value;
  f.lsn = watermark.lsn.value;
  f.magic = watermark.place ? kWatermarkMagic : kPlacelessMarkMagic;
  if (watermark.place) {
    f.offset = watermark.place->offset.value;
    f.chain = watermark.place->chain;
  }
  f.crc = LineChecksum(log_id, line, f);
  return f;
}

WatermarkEncoder::WatermarkEncoder(Uuid log_id, int line, Epoch epoch)
    : epoch_(epoch.value),
      crc_of_epoch_(Crc32cWord(LineSeed(log_id, line), epoch.value)) {}

std::optional<Watermark> DecodeWatermark(Uuid log_id, int line,
                                         const std::byte* address) {
  WatermarkFormat f;
  std::memcpy(&f, address, sizeof(f));
  const bool has_place = f.magic == kWatermarkMagic;
  if (!has_place && f.magic != kPlacelessMarkMagic) return std::nullopt;
  if (f.crc != LineChecksum(log_id, line, f)) return std::nullopt;
  Watermark watermark{Epoch(f.epoch), Lsn(f.lsn)};
  if (has_place) watermark.place = {RingOffset(f.offset), f.chain};
  return watermark;
}

Lsn WatermarkPair::Proven(Epoch epoch) const {
  Lsn proven;
  for (const auto& line : lines) {
    if (line && line->epoch == epoch && line->lsn > proven) proven = line->lsn;
  }
  return proven;
}

const Watermark* WatermarkPair::Placed(Epoch epoch) const {
  const Watermark* placed = nullptr;
  for (const auto& line : lines) {
    if (!line || line->epoch != epoch || !line->place) continue;
    if (placed == nullptr || line->lsn > placed->lsn) placed = &*line;
  }
  return placed;
}

int WatermarkPair::NextLine(Epoch epoch) const {
  for (int i = 0; i < 2; ++i) {
    if (!lines[i]) return i;
  }
  for (int i = 0; i < 2; ++i) {
    if (lines[i]->epoch != epoch) return i;
  }
  return lines[0]->lsn <= lines[1]->lsn ? 0 : 1;
}

}  // namespace alpheus
