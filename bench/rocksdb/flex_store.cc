// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/flex_store.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/harness/line_stores.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

uint64_t LoadNumber(const std::byte* on_media) {
  uint64_t number = 0;
  std::memcpy(&number, on_media, sizeof(number));
  return number;
}

}  // namespace

absl::Status FlexStore::Format(const std::string& path, uint64_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(const Region region, Region::Create(path, bytes));
  if (region.medium() != RegionMedium::kPersistentMemory) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": libpmem does not take it for persistent memory; name a folder on "
        "tmpfs or DAX by --dir"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FlexStore>> FlexStore::Open(
    const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::OpenForWriting(path));
  return std::unique_ptr<FlexStore>(new FlexStore(std::move(region)));
}

FlexStore::FlexStore(Region region) : region_(std::move(region)) {
  const std::span<std::byte> bytes = region_.bytes();
  const size_t slot_bytes = bytes.size() / kSlots / kLineBytes * kLineBytes;
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < kSlots; ++i) {
    const std::span<std::byte> all = bytes.subspan(i * slot_bytes, slot_bytes);
    const Slot slot{all.data(), all.subspan(kLineBytes)};
    const uint64_t number = LoadNumber(slot.number_on_media);
    if (number == 0) {
      free_.push_back(slot);
    } else {
      files_[number] = {slot, std::make_shared<FlexLog>(slot.memory)};
    }
  }
}

std::shared_ptr<FlexLog> FlexStore::Find(uint64_t number) const {
  const MutexLock lock(mutex_);
  const auto found = files_.find(number);
  return found == files_.end() ? nullptr : found->second.second;
}

std::vector<uint64_t> FlexStore::List() const {
  const MutexLock lock(mutex_);
  std::vector<uint64_t> numbers;
  for (const auto& [number, file] : files_) numbers.push_back(number);
  return numbers;
}

absl::StatusOr<std::shared_ptr<FlexLog>> FlexStore::Create(uint64_t number) {
  Remove(number);
  const MutexLock lock(mutex_);
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", kSlots, " slots of the region hold WAL files"));
  }
  const Slot slot = free_.back();
  free_.pop_back();
  const auto file = std::make_shared<FlexLog>(slot.memory);
  file->Clear();
  PersistNumber(slot, number);
  files_[number] = {slot, file};
  return file;
}

bool FlexStore::Remove(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto found = files_.find(number);
  if (found == files_.end()) return false;
  PersistNumber(found->second.first, 0);
  free_.push_back(found->second.first);
  files_.erase(found);
  return true;
}

bool FlexStore::Append(FlexLog& file, std::span<const std::byte> bytes) {
  if (!file.HasRoom(bytes.size())) return false;
  file.StorePayload(bytes);
  Fence();
  file.PersistTail();
  return true;
}

void FlexStore::PersistNumber(const Slot& slot, uint64_t number) {
  auto& word = *reinterpret_cast<uint64_t*>(slot.number_on_media);
  // As the tail: whoever opens the region sees all of it or nothing.
  std::atomic_ref(word).store(number, std::memory_order_release);
  FlushRange(slot.number_on_media, sizeof(number));
  Fence();
}

}  // namespace alpheus::bench::wal
