// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/shared_buffer_log.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "bench/harness/line_stores.h"
#include "log/base/check.h"
#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench::ordered_store {
namespace {

struct RecordHeader {
  uint64_t place;     // 0: none
  uint64_t checksum;  // of the place and the change
};

uint64_t RecordBytes(uint64_t change_bytes) {
  return sizeof(RecordHeader) + (change_bytes + 7) / 8 * 8;
}

uint64_t ChecksumOf(uint64_t place, std::span<const std::byte> change) {
  return Crc32c(Crc32c(kCrcStart, std::as_bytes(std::span(&place, 1))), change);
}

}  // namespace

SharedBufferLog::SharedBufferLog(std::span<std::byte> memory,
                                 const Shape& shape)
    : memory_(memory),
      group_(shape.group),
      change_bytes_(shape.change_bytes),
      record_bytes_(RecordBytes(shape.change_bytes)),
      rooms_(2 * shape.group + static_cast<uint64_t>(shape.workers)),
      buffer_(rooms_ * record_bytes_),
      filling_(shape.workers) {
  ALPHEUS_CHECK(memory.size() >= buffer_.size(),
                "waiting records fit in a lap");
}

std::string SharedBufferLog::name() const {
  return absl::StrCat("query-fresh-group", group_);
}

absl::StatusOr<uint64_t> SharedBufferLog::Write(
    int worker, std::span<const std::byte> change) {
  const uint64_t place = Reserve(worker);
  Fill(worker, place, change);
  return place;
}

uint64_t SharedBufferLog::Reserve(int worker) {
  // Release: a thread that sees this value sees everything that the worker
  // filled before, as with the value that it overwrites.
  filling_[worker].from.store(next_.load(std::memory_order_relaxed),
                              std::memory_order_release);
  // SBL1. Release: a thread that reads a later next place sees the store above,
  // too.
  const uint64_t place = next_.fetch_add(1, std::memory_order_acq_rel);
  // Acquire: the thread that made the last content of this room durable has
  // read it.
  ALPHEUS_CHECK(place <= durable() + rooms_, "SBL3 (shared_buffer_log.h)");
  return place;
}

void SharedBufferLog::Fill(int worker, uint64_t place,
                           std::span<const std::byte> change) {
  ALPHEUS_CHECK(change.size() == change_bytes_, "all changes have one size");
  const RecordHeader header{place, ChecksumOf(place, change)};
  std::byte* const room = RoomOf(place);
  std::memcpy(room, &header, sizeof(header));
  std::memcpy(room + sizeof(header), change.data(), change.size());
  filling_[worker].from.store(kNothing, std::memory_order_release);
}

absl::Status SharedBufferLog::Commit(int /*worker*/, uint64_t place) {
  while (place >= durable() + group_) {
    const bool is_next_full = place >= durable() + 2 * group_;
    std::unique_lock<std::mutex> lock(flushing_, std::defer_lock);
    if (is_next_full) {
      lock.lock();
    } else if (!lock.try_lock()) {
      break;  // somebody is flushing: the next group is not full yet
    }
    if (place < durable() + group_) break;
    const absl::Status flushed = Flush();
    if (!flushed.ok() || !is_next_full) return flushed;
    lock.unlock();
    // Somebody may be filling a place of the first group, and need the core.
    if (place >= durable() + 2 * group_) std::this_thread::yield();
  }
  return absl::OkStatus();
}

absl::Status SharedBufferLog::CommitAll() {
  const std::lock_guard<std::mutex> lock(flushing_);
  return Flush();
}

// The last place up to which all are filled.
uint64_t SharedBufferLog::FilledPlace() const {
  // In this order: SBL1.
  uint64_t next = next_.load(std::memory_order_acquire);
  for (const Filling& filling : filling_) {
    next = std::min(next, filling.from.load(std::memory_order_acquire));
  }
  return next - 1;
}

// Requires: the caller has `flushing_`.
absl::Status SharedBufferLog::Flush() {
  uint64_t place = durable() + 1;
  const uint64_t last = FilledPlace();
  if (last < place) return absl::OkStatus();
  const uint64_t bytes = (last - place + 1) * record_bytes_;
  if (bytes > memory_.size() - end_) {
    return absl::ResourceExhaustedError("the shared buffer's log is full");
  }
  while (place <= last) {
    // Up to the end of the buffer, then from its start.
    const uint64_t count = std::min(last - place + 1, rooms_ - place % rooms_);
    CopyAndFlush(memory_.data() + end_, RoomOf(place), count * record_bytes_);
    end_ += count * record_bytes_;
    place += count;
  }
  Fence();
  // A thread that sees it may notify a client.
  durable_.store(last, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status SharedBufferLog::Reclaim() {
  const std::lock_guard<std::mutex> lock(flushing_);
  end_ = 0;
  return absl::OkStatus();
}

uint64_t SharedBufferLog::Replay(std::span<const std::byte> memory,
                                 uint64_t change_bytes, const Visit& visit) {
  const uint64_t record_bytes = RecordBytes(change_bytes);
  uint64_t count = 0;
  uint64_t next = 0;  // 0: any
  for (; memory.size() >= record_bytes; memory = memory.subspan(record_bytes)) {
    RecordHeader header{};
    std::memcpy(&header, memory.data(), sizeof(header));
    const auto change = memory.subspan(sizeof(header), change_bytes);
    if (header.place == 0 || (next != 0 && header.place != next)) break;
    if (header.checksum != ChecksumOf(header.place, change)) break;
    visit(change);
    next = header.place + 1;
    ++count;
  }
  return count;
}

}  // namespace alpheus::bench::ordered_store
