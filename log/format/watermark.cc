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
  f.offset = watermark.place.offset.value;
  f.chain = watermark.place.chain;
  f.magic = kWatermarkMagic;
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
  if (f.magic != kWatermarkMagic || f.crc != LineChecksum(log_id, line, f)) {
    return std::nullopt;
  }
  return Watermark{Epoch(f.epoch), Lsn(f.lsn), {RingOffset(f.offset), f.chain}};
}

const Watermark* WatermarkPair::Latest(Epoch epoch) const {
  const Watermark* latest = nullptr;
  for (const auto& line : lines) {
    if (!line || line->epoch != epoch) continue;
    if (latest == nullptr || line->lsn > latest->lsn) latest = &*line;
  }
  return latest;
}

Lsn WatermarkPair::Proven(Epoch epoch) const {
  const Watermark* const latest = Latest(epoch);
  return latest == nullptr ? Lsn(0) : latest->lsn;
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
