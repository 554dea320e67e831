// SPDX-License-Identifier: Apache-2.0
// Region, integrity and atomicity of the C interface, over
// alpheus/persistent_region.h, integrity.h and atomicity.h.
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/alpheus.h"
#include "alpheus/atomicity.h"
#include "alpheus/integrity.h"
#include "alpheus/persistent_region.h"
#include "api/c/result.h"

using alpheus::PersistentRegion;
using alpheus::c::CheckData;
using alpheus::c::Return;
using alpheus::c::ReturnNull;
using alpheus::c::ReturnOk;

struct alpheus_region {
  PersistentRegion region;
};

namespace {

// Larger than any memory; below it no sum of headers and padding overflows.
constexpr size_t kDataBytesMax = std::numeric_limits<size_t>::max() / 4;

std::span<const std::byte> BytesOf(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

alpheus_code ReturnRegion(absl::StatusOr<PersistentRegion> opened,
                          alpheus_region** region, alpheus_error* error) {
  if (!opened.ok()) return Return(opened.status(), error);
  *region = new alpheus_region{*std::move(opened)};
  return ReturnOk(error);
}

// Copies the result into the caller's buffer.
absl::Status CopyOut(const char* function, std::span<const std::byte> from,
                     void* buffer, size_t buffer_bytes, size_t* size) {
  *size = from.size();
  if (from.size() > buffer_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        function, ": ", from.size(), " bytes do not fit a buffer of ",
        buffer_bytes, "; call it again with a larger one"));
  }
  if (!from.empty()) std::memcpy(buffer, from.data(), from.size());
  return absl::OkStatus();
}

alpheus_code ReturnData(const char* function,
                        const absl::StatusOr<std::vector<std::byte>>& data,
                        void* buffer, size_t buffer_bytes, size_t* size,
                        alpheus_error* error) {
  if (!data.ok()) return Return(data.status(), error);
  return Return(CopyOut(function, *data, buffer, buffer_bytes, size), error);
}

alpheus::AtomicPlace PlaceOf(const alpheus_place& place) {
  return {place.offset, place.bytes_max, place.identity};
}

}  // namespace

extern "C" {

alpheus_code alpheus_region_create(const char* path, size_t bytes,
                                   alpheus_region** region,
                                   alpheus_error* error) noexcept {
  if (region == nullptr) {
    return ReturnNull("alpheus_region_create", "region", error);
  }
  *region = nullptr;
  if (path == nullptr) {
    return ReturnNull("alpheus_region_create", "path", error);
  }
  return ReturnRegion(PersistentRegion::Create(path, bytes), region, error);
}

alpheus_code alpheus_region_open(const char* path, alpheus_region** region,
                                 alpheus_error* error) noexcept {
  if (region == nullptr) {
    return ReturnNull("alpheus_region_open", "region", error);
  }
  *region = nullptr;
  if (path == nullptr) return ReturnNull("alpheus_region_open", "path", error);
  return ReturnRegion(PersistentRegion::Open(path), region, error);
}

alpheus_code alpheus_region_open_anonymous(size_t bytes,
                                           alpheus_region** region,
                                           alpheus_error* error) noexcept {
  if (region == nullptr) {
    return ReturnNull("alpheus_region_open_anonymous", "region", error);
  }
  *region = nullptr;
  return ReturnRegion(PersistentRegion::Anonymous(bytes), region, error);
}

void alpheus_region_free(alpheus_region* region) noexcept { delete region; }

void* alpheus_region_data(alpheus_region* region) noexcept {
  return region == nullptr ? nullptr : region->region.bytes().data();
}

size_t alpheus_region_bytes(const alpheus_region* region) noexcept {
  return region == nullptr ? 0 : region->region.bytes().size();
}

alpheus_code alpheus_region_persist(alpheus_region* region, size_t offset,
                                    size_t bytes,
                                    alpheus_error* error) noexcept {
  if (region == nullptr) {
    return ReturnNull("alpheus_region_persist", "region", error);
  }
  return Return(region->region.Persist(offset, bytes), error);
}

size_t alpheus_reliable_bytes(size_t data_bytes) noexcept {
  return data_bytes > kDataBytesMax ? 0 : alpheus::ReliableBytes(data_bytes);
}

alpheus_code alpheus_reliable_write(alpheus_region* region, size_t offset,
                                    uint64_t identity, const void* data,
                                    size_t size,
                                    alpheus_error* error) noexcept {
  if (region == nullptr) {
    return ReturnNull("alpheus_reliable_write", "region", error);
  }
  const auto checked = CheckData("alpheus_reliable_write", data, size);
  if (!checked.ok()) return Return(checked, error);
  if (size > kDataBytesMax) {
    return Return(
        absl::OutOfRangeError(absl::StrCat("alpheus_reliable_write: ", size,
                                           " bytes fit no region")),
        error);
  }
  return Return(alpheus::ReliableWrite(region->region, offset, identity,
                                       BytesOf(data, size)),
                error);
}

alpheus_code alpheus_reliable_read(const alpheus_region* region, size_t offset,
                                   uint64_t identity, void* buffer,
                                   size_t buffer_bytes, size_t* size,
                                   alpheus_error* error) noexcept {
  constexpr const char* kName = "alpheus_reliable_read";
  if (region == nullptr) return ReturnNull(kName, "region", error);
  if (size == nullptr) return ReturnNull(kName, "size", error);
  const auto checked = CheckData(kName, buffer, buffer_bytes);
  if (!checked.ok()) return Return(checked, error);
  return ReturnData(kName,
                    alpheus::ReliableRead(region->region, offset, identity),
                    buffer, buffer_bytes, size, error);
}

size_t alpheus_atomic_bytes(size_t bytes_max) noexcept {
  return bytes_max > kDataBytesMax ? 0 : alpheus::AtomicBytes(bytes_max);
}

alpheus_code alpheus_atomic_write(alpheus_region* region,
                                  const alpheus_place* place, const void* data,
                                  size_t size, alpheus_error* error) noexcept {
  constexpr const char* kName = "alpheus_atomic_write";
  if (region == nullptr) return ReturnNull(kName, "region", error);
  if (place == nullptr) return ReturnNull(kName, "place", error);
  const auto checked = CheckData(kName, data, size);
  if (!checked.ok()) return Return(checked, error);
  return Return(alpheus::AtomicWrite(region->region, PlaceOf(*place),
                                     BytesOf(data, size)),
                error);
}

alpheus_code alpheus_atomic_read(const alpheus_region* region,
                                 const alpheus_place* place, void* buffer,
                                 size_t buffer_bytes, size_t* size,
                                 alpheus_error* error) noexcept {
  constexpr const char* kName = "alpheus_atomic_read";
  if (region == nullptr) return ReturnNull(kName, "region", error);
  if (place == nullptr) return ReturnNull(kName, "place", error);
  if (size == nullptr) return ReturnNull(kName, "size", error);
  const auto checked = CheckData(kName, buffer, buffer_bytes);
  if (!checked.ok()) return Return(checked, error);
  return ReturnData(kName, alpheus::AtomicRead(region->region, PlaceOf(*place)),
                    buffer, buffer_bytes, size, error);
}

}  // extern "C"
