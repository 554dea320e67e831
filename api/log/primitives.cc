// SPDX-License-Identifier: Apache-2.0
// The public primitives: region, integrity and atomicity over the medium.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/atomicity.h"
#include "alpheus/integrity.h"
#include "alpheus/persistent_region.h"
#include "api/log/persistent_region_impl.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/sealed.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"

namespace alpheus {
namespace {

constexpr uint64_t kUserCellMagic = 0x4c4c'4543'5041u;  // "APCELL"

size_t CellCopyBytes(size_t bytes_max) {
  return RoundUp(kCellHeaderBytes + bytes_max, kPageBytes);
}

absl::StatusOr<CellPlace> CellPlaceOf(std::span<std::byte> region,
                                      const AtomicPlace& place) {
  if (place.offset % kPageBytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cell at offset ", place.offset,
                     ": must be a multiple of ", kPageBytes));
  }
  // Bounded first, so that no sum overflows.
  ALPHEUS_RETURN_IF_ERROR(
      CheckRangeOfRegion(place.offset, place.bytes_max, region.size()));
  const size_t copy_bytes = CellCopyBytes(place.bytes_max);
  ALPHEUS_RETURN_IF_ERROR(
      CheckRangeOfRegion(place.offset, 2 * copy_bytes, region.size()));
  CellPlace cell;
  cell.copies = {region.data() + place.offset,
                 region.data() + place.offset + copy_bytes};
  cell.capacity_bytes = copy_bytes;
  cell.magic = kUserCellMagic;
  cell.owner = place.identity;
  return cell;
}

// Reading a cell changes nothing; the place type is shared with writing.
std::span<std::byte> Mutable(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::StatusOr<PersistentRegion> PersistentRegion::Create(
    const std::string& path, size_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::Create(path, bytes));
  return PersistentRegion(std::make_unique<Impl>(std::move(region)));
}

absl::StatusOr<PersistentRegion> PersistentRegion::Open(
    const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::OpenForWriting(path));
  PersistentRegion opened(std::make_unique<Impl>(std::move(region)));
  // A killed process may have left bytes that are only visible. AtomicWrite
  // would overwrite the copy on media and keep the other: persist all first.
  ALPHEUS_RETURN_IF_ERROR(opened.Persist(0, opened.bytes().size()));
  return opened;
}

absl::StatusOr<PersistentRegion> PersistentRegion::Anonymous(size_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::Anonymous(bytes));
  return PersistentRegion(std::make_unique<Impl>(std::move(region)));
}

PersistentRegion::PersistentRegion(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
PersistentRegion::PersistentRegion(PersistentRegion&&) noexcept = default;
PersistentRegion& PersistentRegion::operator=(PersistentRegion&&) noexcept =
    default;
PersistentRegion::~PersistentRegion() = default;

std::span<std::byte> PersistentRegion::bytes() { return impl_->bytes(); }
std::span<const std::byte> PersistentRegion::bytes() const {
  return impl_->bytes();
}
absl::Status PersistentRegion::Persist(size_t offset, size_t size) {
  return impl_->Persist(offset, size);
}

size_t ReliableBytes(size_t data_bytes) {
  return kSealedHeaderBytes + data_bytes;
}

absl::Status ReliableWrite(PersistentRegion& region, size_t offset,
                           uint64_t identity, std::span<const std::byte> data) {
  ALPHEUS_RETURN_IF_ERROR(CheckRangeOfRegion(offset, ReliableBytes(data.size()),
                                             region.bytes().size()));
  const SealedHeader header = Seal(identity, data);
  std::byte* to = region.bytes().data() + offset;
  std::memcpy(to, &header, sizeof(header));
  if (!data.empty()) {
    std::memcpy(to + sizeof(header), data.data(), data.size());
  }
  return region.Persist(offset, ReliableBytes(data.size()));
}

absl::StatusOr<std::vector<std::byte>> ReliableRead(
    const PersistentRegion& region, size_t offset, uint64_t identity) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckRangeOfRegion(offset, kSealedHeaderBytes, region.bytes().size()));
  std::optional<std::vector<std::byte>> data =
      Unseal(identity, region.bytes().subspan(offset));
  if (data) return *std::move(data);
  return absl::DataLossError(absl::StrCat("no sealed bytes of identity ",
                                          identity, " at offset ", offset,
                                          ": torn, damaged or never written"));
}

size_t AtomicBytes(size_t bytes_max) { return 2 * CellCopyBytes(bytes_max); }

absl::Status AtomicWrite(PersistentRegion& region, const AtomicPlace& place,
                         std::span<const std::byte> value) {
  ALPHEUS_ASSIGN_OR_RETURN(const CellPlace cell,
                           CellPlaceOf(region.bytes(), place));
  if (value.size() > place.bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "value of ", value.size(), " bytes for a cell of ", place.bytes_max));
  }
  const CellState state = ReadCell(cell);
  const uint64_t seq = state.newest ? state.copies[*state.newest].seq + 1 : 1;
  return region.impl_->WithBackend([&](auto& pmem) {
    return WriteCell(pmem, cell, state.newest, seq, value) ? absl::OkStatus()
                                                           : pmem.Error();
  });
}

absl::StatusOr<std::vector<std::byte>> AtomicRead(
    const PersistentRegion& region, const AtomicPlace& place) {
  ALPHEUS_ASSIGN_OR_RETURN(const CellPlace cell,
                           CellPlaceOf(Mutable(region.bytes()), place));
  CellState state = ReadCell(cell);
  if (state.newest) return std::move(state.copies[*state.newest].content);
  const std::span<const std::byte> all(cell.copies[0], 2 * cell.capacity_bytes);
  if (std::all_of(all.begin(), all.end(),
                  [](std::byte b) { return b == std::byte{0}; })) {
    return absl::NotFoundError(
        absl::StrCat("cell at offset ", place.offset, ": never written"));
  }
  return absl::DataLossError(absl::StrCat("cell of identity ", place.identity,
                                          " at offset ", place.offset,
                                          ": neither copy can be read"));
}

}  // namespace alpheus
