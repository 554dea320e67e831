// SPDX-License-Identifier: Apache-2.0
#include "log/format/sealed.h"

#include <cstring>

#include "log/base/mix.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

uint32_t HeaderCrc(uint64_t seed, const SealedHeader& header) {
  return Crc32c(static_cast<uint32_t>(seed),
                std::as_bytes(std::span(&header, 1))
                    .first<offsetof(SealedHeader, header_crc)>());
}

uint64_t SeedOf(uint64_t identity) { return Mix(kSealedMagic, identity); }

uint32_t DataCrc(uint64_t seed, std::span<const std::byte> data) {
  return Crc32c(static_cast<uint32_t>(seed >> 32), data);
}

}  // namespace

SealedHeader Seal(uint64_t identity, std::span<const std::byte> data) {
  const uint64_t seed = SeedOf(identity);
  SealedHeader header{};
  header.magic = kSealedMagic;
  header.data_bytes = data.size();
  header.data_crc = DataCrc(seed, data);
  header.header_crc = HeaderCrc(seed, header);
  return header;
}

std::optional<std::vector<std::byte>> Unseal(uint64_t identity,
                                             std::span<const std::byte> place) {
  if (place.size() < kSealedHeaderBytes) return std::nullopt;
  const uint64_t seed = SeedOf(identity);
  SealedHeader header;
  std::memcpy(&header, place.data(), sizeof(header));
  if (header.magic != kSealedMagic ||
      header.header_crc != HeaderCrc(seed, header) ||
      header.data_bytes > place.size() - kSealedHeaderBytes) {
    return std::nullopt;
  }
  const std::span<const std::byte> data =
      place.subspan(kSealedHeaderBytes, header.data_bytes);
  std::vector<std::byte> copy(data.begin(), data.end());
  if (DataCrc(seed, copy) != header.data_crc) return std::nullopt;
  return copy;
}

}  // namespace alpheus
