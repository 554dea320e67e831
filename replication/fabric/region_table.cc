// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/region_table.h"

#include "absl/strings/str_cat.h"

namespace alpheus::fabric {
namespace {

constexpr uint64_t kAtomicBytes = 8;

bool Allows(RemoteAccess granted, RemoteAccess needed) {
  const auto needed_bits = static_cast<uint32_t>(needed);
  return (static_cast<uint32_t>(granted) & needed_bits) == needed_bits;
}

// No sum here can overflow: a peer chooses offset and length.
bool LiesInside(uint64_t offset, uint64_t bytes, uint64_t region_bytes) {
  return offset <= region_bytes && bytes <= region_bytes - offset;
}

absl::Status Denied(RemoteAddress address, uint64_t bytes, const char* why) {
  return absl::PermissionDeniedError(absl::StrCat(
      "region table: remote access to ", bytes, " bytes at offset ",
      address.offset, " under key ", absl::Hex(address.key.value), ": ", why));
}

}  // namespace

absl::StatusOr<RegionKey> RegionTable::Register(std::span<std::byte> bytes,
                                                RemoteAccess access) {
  if (bytes.empty()) {
    return absl::InvalidArgumentError(
        "region table: register: the region has no bytes; give at least 1");
  }
  const auto start = reinterpret_cast<uintptr_t>(bytes.data());
  if (access == RemoteAccess::kAll && start % kAtomicBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "region table: register for atomics: the region starts ",
        start % kAtomicBytes, " bytes after a multiple of 8; align it"));
  }
  const RegionKey key = keys_.Next();
  regions_[key] = {bytes, access};
  return key;
}

absl::Status RegionTable::Deregister(RegionKey key) {
  if (regions_.erase(key) == 0) {
    return absl::NotFoundError(
        absl::StrCat("region table: deregister: key ", absl::Hex(key.value),
                     " was deregistered before, or is another fabric's"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<std::byte>> RegionTable::Find(
    RemoteAddress address, uint64_t bytes, RemoteAccess needed) const {
  if (bytes == 0) return std::span<std::byte>();
  const auto found = regions_.find(address.key);
  if (found == regions_.end()) {
    return Denied(address, bytes, "the key was deregistered, or never issued");
  }
  const Region& region = found->second;
  if (!LiesInside(address.offset, bytes, region.bytes.size())) {
    return Denied(
        address, bytes,
        absl::StrCat("the region has ", region.bytes.size(), " bytes").c_str());
  }
  if (!Allows(region.access, needed)) {
    return Denied(
        address, bytes,
        absl::StrCat("access ", static_cast<uint32_t>(needed), " needed, ",
                     static_cast<uint32_t>(region.access), " granted")
            .c_str());
  }
  return std::span<std::byte>(region.bytes.data() + address.offset, bytes);
}

absl::Status RegionTable::CheckLocal(const LocalBytes& local) const {
  if (local.bytes.empty()) return absl::OkStatus();
  const auto found = regions_.find(local.key);
  if (found == regions_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("region table: own bytes: key ",
                     absl::Hex(local.key.value), " is not registered"));
  }
  const std::span<std::byte> region = found->second.bytes;
  const auto start = reinterpret_cast<uintptr_t>(region.data());
  const auto first = reinterpret_cast<uintptr_t>(local.bytes.data());
  if (first < start ||
      !LiesInside(first - start, local.bytes.size(), region.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("region table: own bytes: ", local.bytes.size(),
                     " bytes do not lie inside the ", region.size(),
                     " bytes of key ", absl::Hex(local.key.value)));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::fabric
