// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/registered_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replication/fabric/verbs/native_operations.h"

namespace alpheus::fabric::verbs {
namespace {

constexpr uintptr_t kPageBytes = 4096;

bool IsReadable(RemoteAccess access) {
  return (static_cast<uint32_t>(access) &
          static_cast<uint32_t>(RemoteAccess::kRead)) != 0;
}

// Never IBV_ACCESS_RELAXED_ORDERING (1). Writes by peers require writes by the
// adapter, and so do own reads.
unsigned FlagsOf(RemoteAccess access) {
  const auto bits = static_cast<uint32_t>(access);
  unsigned flags = IBV_ACCESS_LOCAL_WRITE;
  if (IsReadable(access)) flags |= IBV_ACCESS_REMOTE_READ;
  if ((bits & static_cast<uint32_t>(RemoteAccess::kWrite)) != 0) {
    flags |= IBV_ACCESS_REMOTE_WRITE;
  }
  if (access == RemoteAccess::kAll) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

absl::Status CheckRegion(std::span<std::byte> bytes, RemoteAccess access) {
  if (bytes.empty() || bytes.size() > kRegionBytesMax - kPageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a region of ", bytes.size(), " bytes; 1 to ",
                     kRegionBytesMax - kPageBytes, " can be registered"));
  }
  const auto place = reinterpret_cast<uintptr_t>(bytes.data());
  if (access == RemoteAccess::kAll && place % sizeof(uint64_t) != 0) {
    return absl::InvalidArgumentError(
        "a region for atomics that does not begin on a multiple of 8");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RegionKey> RegisteredMemory::Register(std::span<std::byte> bytes,
                                                     RemoteAccess access) {
  if (absl::Status status = CheckRegion(bytes, access); !status.ok()) {
    return status;
  }
  RegionKeyParts parts;
  parts.tag = tags_.Next();
  parts.in_page = static_cast<uint32_t>(
      reinterpret_cast<uintptr_t>(bytes.data()) % kPageBytes);
  const auto try_with = [&](unsigned more) {
    return MemoryRegion(ibv_reg_mr_iova(domain_, bytes.data(), bytes.size(),
                                        parts.address(),
                                        FlagsOf(access) | more));
  };
  MemoryRegion handle;
  if (native_flush_ && IsReadable(access)) {
    handle = try_with(kFlushAccess);
    parts.grants_flush = handle != nullptr;
  }
  if (!handle) handle = try_with(0);
  // A file on a DAX file system can't be pinned, but can be paged on demand.
  if (!handle && pages_on_demand_) handle = try_with(IBV_ACCESS_ON_DEMAND);
  if (!handle) {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat(
        "the adapter refuses to register ", bytes.size(),
        " bytes: ", std::strerror(error),
        error == EOPNOTSUPP
            ? ". A file on a DAX file system can't be registered without "
              "on-demand paging; use a device-DAX, or receive into memory"
            : ". Raise the limit of locked memory (ulimit -l)"));
  }
  parts.rkey = handle->rkey;
  const RegionKey key = MakeRegionKey(parts);
  const ibv_sge name = {parts.address(), 0, handle->lkey};
  regions_.emplace(key, Region{std::move(handle), bytes, name});
  return key;
}

absl::Status RegisteredMemory::Deregister(RegionKey key) {
  const auto found = regions_.find(key);
  if (found == regions_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no region is registered under key ", key.value));
  }
  // Only destruction is a fence, so that a refusal must be noticed.
  ibv_mr* const region = found->second.handle.release();
  const int error = ibv_dereg_mr(region);
  const bool is_gone = error == EIO && news_ != nullptr && news_->IsGone();
  if (error != 0 && !is_gone) {
    found->second.handle.reset(region);
    return absl::UnavailableError(
        absl::StrCat("the adapter keeps the region under key ", key.value, ": ",
                     std::strerror(error), "; peers may still write there"));
  }
  known_ = {};
  regions_.erase(found);
  return absl::OkStatus();
}

const RegisteredMemory::Region* RegisteredMemory::Find(RegionKey key) const {
  for (size_t i = 0; i < known_.size(); ++i) {
    if (known_[i].key != key) continue;
    const Region* const region = known_[i].region;
    // A region that is asked for often moves to the front.
    if (i > 1) std::swap(known_[i], known_[i - 1]);
    return region;
  }
  const auto found = regions_.find(key);
  if (found == regions_.end()) return nullptr;
  std::ranges::copy_backward(std::span(known_).first(known_.size() - 1),
                             known_.end());
  known_.front() = {key, &found->second};
  return &found->second;
}

bool RegisteredMemory::TryName(const LocalBytes& local, ibv_sge* name) const {
  if (local.bytes.empty()) {
    *name = {};
    return true;
  }
  const Region* const region = Find(local.key);
  if (region == nullptr) return false;
  // An address before the region wraps, and is far past its end, too.
  const auto at = reinterpret_cast<uintptr_t>(local.bytes.data()) -
                  reinterpret_cast<uintptr_t>(region->bytes.data());
  if (at > region->bytes.size() ||
      local.bytes.size() > region->bytes.size() - at) {
    return false;
  }
  *name = {region->name.addr + at, static_cast<uint32_t>(local.bytes.size()),
           region->name.lkey};
  return true;
}

absl::StatusOr<ibv_sge> RegisteredMemory::Name(const LocalBytes& local) const {
  ibv_sge name;
  if (TryName(local, &name)) return name;
  const Region* const region = Find(local.key);
  if (region == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "own bytes under key ", local.key.value, ", which is not registered"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      local.bytes.size(), " own bytes lie outside the ", region->bytes.size(),
      " bytes that are registered under key ", local.key.value));
}

}  // namespace alpheus::fabric::verbs
