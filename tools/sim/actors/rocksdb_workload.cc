// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/rocksdb_workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

constexpr size_t kGroupMax = 4;  // writers

}  // namespace

RocksDbApplication::RocksDbApplication(PrimaryProcess& primary,
                                       RocksDbFiles& files)
    : primary_(primary),
      world_(primary.world()),
      files_(files),
      has_two_queues_(OneIn(2)),
      is_flushed_by_hand_(OneIn(3)),
      keeps_recovered_(OneIn(2)),
      // Small enough that a ring holds several files and wraps a few times in a
      // run.
      memtable_bytes_max_(world_.options().ring_capacity / (16 << Draw(3))),
      log_write_(world_.threads()) {}

uint64_t RocksDbApplication::Draw(uint64_t below) {
  return world_.random().Below(below);
}

void RocksDbApplication::Pause() {
  const auto most = static_cast<uint64_t>(world_.options().think_ns_max);
  const auto ns = static_cast<int64_t>(Draw(2 * most + 1));
  world_.threads().SleepUntil(world_.now() +
                              (primary_.is_filling() ? ns / 8 : ns));
}

void RocksDbApplication::RunThread(int thread) {
  const bool is_alone = world_.options().clients == 1;
  while (!primary_.is_closing()) {
    Pause();
    if (primary_.is_closing()) break;
    if (!is_opened_) {
      OpenOnce();
      continue;
    }
    if (thread != 0 || is_alone) Write();
    if (thread == 0 && (!is_alone || is_full_ || OneIn(6))) FlushMemtables();
  }
  // A database that is closed in order writes its buffer.
  if (thread == 0 && is_opened_ && !primary_.has_failed()) {
    FlushWal(/*wants_sync=*/OneIn(2));
  }
}

void RocksDbApplication::OpenOnce() {
  if (is_opening_) return;
  is_opening_ = true;
  Open();
  is_opening_ = false;
}

// Recovered data is in the memtable now, and on tables soon.
void RocksDbApplication::Open() {
  if (!files_.has_home() && !files_.SetHome()) return;
  std::vector<RocksDbFiles::FilePtr> recovered = files_.List();
  if (active_.file == nullptr) active_.file = files_.Create();
  std::erase(recovered, active_.file);
  if (keeps_recovered_ && active_.file != nullptr) {
    for (RocksDbFiles::FilePtr& file : recovered) {
      closed_.push_back({std::move(file)});
    }
    is_opened_ = true;
    return;
  }
  // Until then a full ring has no room for a new file.
  std::ranges::reverse(recovered);
  while (!recovered.empty()) {
    const RocksDbFiles::FilePtr oldest = std::move(recovered.back());
    recovered.pop_back();
    if (!files_.Remove(oldest)) return;
  }
  is_opened_ = active_.file != nullptr;
}

void RocksDbApplication::Write() {
  Writer writer{.bytes = 1 + Draw(world_.options().payload_bytes_max),
                .wants_sync = OneIn(3)};
  Queue& queue = queues_[has_two_queues_ ? Draw(2) : 0];
  queue.push_back(&writer);
  while (!writer.is_done && queue.front() != &writer) {
    world_.threads().WaitFor(&queue, Deadline());
  }
  if (!writer.is_done) Lead(queue);
  if (is_flushed_by_hand_ && OneIn(4)) FlushWal(/*wants_sync=*/OneIn(2));
}

// Requires: the caller is the first of the queue.
void RocksDbApplication::Lead(Queue& queue) {
  const bool wants_sync = queue.front()->wants_sync;
  const size_t most = std::min(queue.size(), 1 + Draw(kGroupMax));
  size_t count = 0;
  uint64_t bytes = 0;
  while (count < most && (wants_sync || !queue[count]->wants_sync)) {
    bytes += queue[count++]->bytes;
  }
  WriteGroup(bytes, wants_sync);
  for (; count != 0; --count) {
    queue.front()->is_done = true;
    queue.pop_front();
  }
  world_.threads().Wake(&queue);
}

bool RocksDbApplication::WriteGroup(uint64_t bytes, bool wants_sync) {
  {
    const FiberLock lock(log_write_);
    if (memtable_bytes_ >= memtable_bytes_max_ && !SwitchWal()) return false;
    // A database that could not write continues only once it has.
    if (active_.buffered != 0 && !is_flushed_by_hand_ &&
        !WriteBuffer(active_)) {
      return false;
    }
    world_.checkers().wal_files.Accepted(primary_.number(), active_.file->id(),
                                         bytes);
    active_.buffered += bytes;
    memtable_bytes_ += bytes;
    if ((!is_flushed_by_hand_ || wants_sync) && !WriteBuffer(active_)) {
      return false;
    }
  }
  return !wants_sync || SyncWals();
}

// Requires: the caller has `log_write_`.
bool RocksDbApplication::WriteBuffer(Wal& wal) {
  wal.buffered -= files_.Append(*wal.file, wal.buffered);
  is_full_ = wal.buffered != 0;
  return !is_full_;
}

// The older ones first, as RocksDB does; here one sync is enough, as all files
// are in one log.
bool RocksDbApplication::SyncWals() {
  std::vector<RocksDbFiles::FilePtr> files;
  for (const Wal& wal : closed_) files.push_back(wal.file);
  files.push_back(active_.file);
  return std::ranges::all_of(files, [this](const RocksDbFiles::FilePtr& file) {
    return files_.Sync(*file);
  });
}

bool RocksDbApplication::FlushWal(bool wants_sync) {
  {
    const FiberLock lock(log_write_);
    if (!WriteBuffer(active_)) return false;
  }
  return !wants_sync || SyncWals();
}

bool RocksDbApplication::MakeNextFile() {
  if (next_ == nullptr) next_ = files_.Create();
  return next_ != nullptr;
}

// Requires: the caller has `log_write_`.
bool RocksDbApplication::SwitchWal() {
  if (!MakeNextFile()) return false;
  // The canary of a database that does not wait for that.
  const bool is_early = world_.options().canary == Canary::kEarlySwitch;
  if (!is_early && active_.buffered != 0 && !WriteBuffer(active_)) return false;
  closed_.push_back(active_);
  active_ = {.file = std::move(next_)};
  next_ = nullptr;
  memtable_bytes_ = 0;
  return true;
}

// A background job, except in databases with one thread.
void RocksDbApplication::FlushMemtables() {
  if (primary_.is_filling()) return;
  size_t count = 0;
  {
    const FiberLock lock(log_write_);
    if (closed_.empty() || is_full_ || OneIn(8)) {
      if (memtable_bytes_ == 0 && closed_.empty()) return;
      // Its data goes into the tables, so that what the old one's buffer could
      // not write is not missed.
      if (!SwitchWal() && (!is_full_ || closed_.empty())) {
        if (is_full_) BeginAgain();
        return;
      }
    }
    count = closed_.size();
  }
  if (OneIn(2)) {
    // More than one column family: the tables must not be newer than the WAL.
    for (size_t i = 0; i < count; ++i) {
      const RocksDbFiles::FilePtr file = closed_[i].file;
      if (!files_.Sync(*file)) return;
    }
  }
  Pause();  // writes tables
  for (; count != 0; --count) {
    if (primary_.is_closing() || !files_.Remove(closed_.front().file)) return;
    closed_.pop_front();
  }
  is_full_ = false;
}

// The file that takes data fills the ring, and its buffer can't be written:
// while nobody writes, all goes into tables, and the file away.
// Requires: the caller has `log_write_`; closed_.empty().
void RocksDbApplication::BeginAgain() {
  Pause();  // writes tables
  is_opened_ = false;
  if (primary_.is_closing() || !files_.Remove(active_.file)) return;
  active_ = {.file = std::exchange(next_, nullptr)};
  memtable_bytes_ = 0;
  is_full_ = false;
}

}  // namespace alpheus::sim
