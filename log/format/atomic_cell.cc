// SPDX-License-Identifier: Apache-2.0
#include "log/format/atomic_cell.h"

#include "log/base/mix.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

constexpr size_t kCheckedHeaderBytes = offsetof(CellHeader, crc);

uint32_t CellSeed(const CellPlace& place, int index) {
  return static_cast<uint32_t>(
      Mix(Mix(place.magic, place.owner), static_cast<uint64_t>(index) + 1));
}

uint32_t CellChecksum(const CellPlace& place, int index,
                      const CellHeader& header,
                      std::span<const std::byte> content) {
  const uint32_t crc =
      Crc32c(CellSeed(place, index),
             std::as_bytes(std::span(&header, 1)).first<kCheckedHeaderBytes>());
  return Crc32c(crc, content);
}

}  // namespace

CellCopy ReadCellCopy(const CellPlace& place, int index) {
  CellCopy copy;
  CellHeader header;
  std::memcpy(&header, place.copies[index], sizeof(header));
  // The length is used before its checksum is verified, so the layout's size of
  // a copy bounds it.
  if (header.magic != place.magic || header.seq == 0 ||
      header.content_bytes > place.capacity_bytes - kCellHeaderBytes) {
    return copy;
  }
  const std::byte* content = place.copies[index] + kCellHeaderBytes;
  copy.content.assign(content, content + header.content_bytes);
  if (CellChecksum(place, index, header, copy.content) != header.crc) {
    copy.content.clear();
    return copy;
  }
  copy.valid = true;
  copy.seq = header.seq;
  return copy;
}

CellState ReadCell(const CellPlace& place) {
  CellState state;
  for (int index = 0; index < 2; ++index) {
    state.copies[index] = ReadCellCopy(place, index);
    const CellCopy& copy = state.copies[index];
    if (!copy.valid) continue;
    if (!state.newest || copy.seq > state.copies[*state.newest].seq) {
      state.newest = index;
    }
  }
  return state;
}

std::vector<std::byte> EncodeCellCopy(const CellPlace& place, int index,
                                      uint64_t seq,
                                      std::span<const std::byte> content) {
  CellHeader header{};
  header.magic = place.magic;
  header.seq = seq;
  header.content_bytes = static_cast<uint32_t>(content.size());
  header.crc = CellChecksum(place, index, header, content);
  std::vector<std::byte> bytes(kCellHeaderBytes + content.size());
  std::memcpy(bytes.data(), &header, kCellHeaderBytes);
  if (!content.empty()) {
    std::memcpy(bytes.data() + kCellHeaderBytes, content.data(),
                content.size());
  }
  return bytes;
}

}  // namespace alpheus
