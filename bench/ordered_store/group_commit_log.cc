// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/group_commit_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/local/line_stores.h"
#include "log/base/bytes.h"
#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench::ordered_store {
namespace {

struct GroupHeader {
  uint64_t first;     // place
  uint64_t count;     // of changes; 0: none follows
  uint64_t bytes;     // behind the header
  uint64_t checksum;  // of the fields above and those bytes
};

struct EntryHeader {
  uint64_t place;
  uint64_t bytes;
};

uint32_t ChecksumOf(const GroupHeader& header) {
  return Crc32c(kCrcStart, std::as_bytes(std::span(&header, 1))
                               .first(offsetof(GroupHeader, checksum)));
}

uint64_t Padded(uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

template <class T>
T Load(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

GroupCommitLog::GroupCommitLog(std::span<std::byte> memory, uint64_t group,
                               int workers)
    : memory_(memory), group_(group), buffers_(workers), sealed_(workers) {}

std::string GroupCommitLog::name() const {
  return absl::StrCat("query-fresh-group", group_);
}

absl::StatusOr<uint64_t> GroupCommitLog::Write(
    int worker, std::span<const std::byte> change) {
  Buffer& buffer = buffers_[worker];
  const std::lock_guard<std::mutex> lock(buffer.mutex);
  // Only an order of places is asked for; the buffer's mutex orders the rest.
  const uint64_t place = next_.fetch_add(1, std::memory_order_relaxed);
  const EntryHeader header{place, change.size()};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  buffer.bytes.insert(buffer.bytes.end(), bytes.begin(), bytes.end());
  buffer.bytes.insert(buffer.bytes.end(), change.begin(), change.end());
  return place;
}

absl::Status GroupCommitLog::Commit(int /*worker*/, uint64_t place) {
  const uint64_t durable = this->durable();
  if (place < durable + group_) return absl::OkStatus();
  if (place < durable + 2 * group_) {
    // Somebody is sealing: the next group is not full yet.
    const std::unique_lock<std::mutex> lock(sealing_, std::try_to_lock);
    return lock.owns_lock() ? Seal() : absl::OkStatus();
  }
  const std::lock_guard<std::mutex> lock(sealing_);
  return place < this->durable() + group_ ? absl::OkStatus() : Seal();
}

absl::Status GroupCommitLog::CommitAll() {
  const std::lock_guard<std::mutex> lock(sealing_);
  return Seal();
}

// Requires: the caller has `sealing_`.
absl::Status GroupCommitLog::Seal() {
  for (Buffer& buffer : buffers_) buffer.mutex.lock();
  const uint64_t end = next_.load(std::memory_order_relaxed);
  uint64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.bytes.size();
  const uint64_t first = durable() + 1;
  // Full: the changes stay in their buffers, for whoever comes when there is
  // room again.
  const bool fits = Padded(sizeof(GroupHeader) + bytes) + sizeof(GroupHeader) <=
                    memory_.size() - end_;
  if (fits) {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      std::swap(sealed_[i], buffers_[i].bytes);
    }
  }
  for (Buffer& buffer : buffers_) buffer.mutex.unlock();
  if (!fits)
    return absl::ResourceExhaustedError("the group commit log is full");
  if (first == end) return absl::OkStatus();
  return StoreGroup(first, end, bytes);
}

absl::Status GroupCommitLog::StoreGroup(uint64_t first, uint64_t end,
                                        uint64_t bytes) {
  GroupHeader header{first, end - first, bytes, 0};
  uint32_t checksum = ChecksumOf(header);
  std::byte* to = memory_.data() + end_ + sizeof(header);
  for (std::vector<std::byte>& part : sealed_) {
    checksum = Crc32c(checksum, part);
    CopyAndFlush(to, part.data(), part.size());
    to += part.size();
    part.clear();  // keeps its memory
  }
  header.checksum = checksum;
  CopyAndFlush(memory_.data() + end_,
               reinterpret_cast<const std::byte*>(&header), sizeof(header));
  Fence();
  end_ += Padded(sizeof(header) + bytes);
  // Whoever sees it may tell a client.
  durable_.store(end - 1, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status GroupCommitLog::Reclaim() {
  const std::lock_guard<std::mutex> lock(sealing_);
  end_ = 0;
  return absl::OkStatus();
}

uint64_t GroupCommitLog::Replay(std::span<const std::byte> memory,
                                const Visit& visit) {
  uint64_t offset = 0;
  uint64_t next = 0;  // 0: any
  uint64_t count = 0;
  while (memory.size() - offset >= sizeof(GroupHeader)) {
    const auto header = Load<GroupHeader>(memory.data() + offset);
    const uint64_t room = memory.size() - offset - sizeof(header);
    if (header.count == 0 || header.bytes > room) break;
    if (next != 0 && header.first != next) break;
    const auto body = memory.subspan(offset + sizeof(header), header.bytes);
    if (Crc32c(ChecksumOf(header), body) != header.checksum) break;
    // Each worker's entries rise; the group's order is that of their places.
    std::vector<std::span<const std::byte>> changes(header.count);
    for (uint64_t at = 0; at < body.size();) {
      const auto entry = Load<EntryHeader>(body.data() + at);
      changes[entry.place - header.first] =
          body.subspan(at + sizeof(entry), entry.bytes);
      at += sizeof(entry) + entry.bytes;
    }
    for (const auto change : changes) visit(change);
    count += header.count;
    next = header.first + header.count;
    offset += Padded(sizeof(header) + header.bytes);
  }
  return count;
}

}  // namespace alpheus::bench::ordered_store
