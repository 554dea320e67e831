// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/follow/wal_follower.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/store/wal_record.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

// Number of readings from the head, if the log is cleaned meanwhile.
constexpr int kRestartsMax = 10;
// Size below which no log is read again (WFR4).
constexpr uint64_t kBytesMin = 32 << 20;

}  // namespace

absl::Status WalFollower::Refresh() {
  bool may_shrink = false;
  {
    const MutexLock lock(mutex_);
    may_shrink = std::ranges::all_of(
        views_, [](const auto& view) { return view.second.is_broken; });
  }
  return ContinueReading(may_shrink);
}

absl::Status WalFollower::Begin(const void* reader) {
  {
    const MutexLock lock(mutex_);
    views_.erase(reader);
    LetGo();
  }
  ALPHEUS_RETURN_IF_ERROR(ContinueReading(/*may_shrink=*/true));
  const MutexLock lock(mutex_);
  views_[reader].kept = generation_->index.Keep();
  LetGo();  // names that were lost meanwhile
  return absl::OkStatus();
}

// A generation that is read again is shown when it is complete, and not before
// it holds what was already shown (WFR2).
absl::Status WalFollower::ContinueReading(bool may_shrink) {
  const MutexLock reading(reading_);
  std::shared_ptr<Generation> shown;
  {
    const MutexLock lock(mutex_);
    shown = generation_;
  }
  std::shared_ptr<Generation> generation =
      rereading_ == nullptr ? shown : rereading_;
  bool is_reread = may_shrink && rereading_ == nullptr &&
                   shown->bytes > 2 * std::max(shown->first_bytes, kBytesMin);
  for (int i = 0; i < kRestartsMax; ++i) {
    if (is_reread) {
      generation = rereading_ = std::make_shared<Generation>();
      const MutexLock lock(mutex_);
      ++restarts_;
    }
    absl::Status read = ReadInto(*generation);
    if (read.ok() && generation->next < shown->next) {
      return absl::UnavailableError(absl::StrCat(
          "the nodes in reach know the log only up to LSN ",
          generation->next.value - 1, ", but LSN ", shown->next.value - 1,
          " was read before. Nothing was changed; try again"));
    }
    if (read.ok()) {
      const MutexLock lock(mutex_);
      Show(generation);
      rereading_.reset();
    }
    if (!absl::IsOutOfRange(read)) return read;
    is_reread = true;
  }
  return absl::UnavailableError(absl::StrCat(
      "the log is cleaned faster than it can be read, ", kRestartsMax,
      " times in a row. Nothing was changed; try again, or use a larger log"));
}

void WalFollower::Show(std::shared_ptr<Generation> generation) {
  if (generation_ == generation) return;
  generation->number = generation_->number + 1;
  generation_ = std::move(generation);
  for (auto& [reader, view] : views_) view.is_broken = true;
}

void WalFollower::LetGo() {
  uint64_t kept = std::numeric_limits<uint64_t>::max();
  for (const auto& [reader, view] : views_) {
    if (!view.is_broken) kept = std::min(kept, view.kept);
  }
  generation_->index.LetGoBefore(kept);
}

absl::Status WalFollower::ReadInto(Generation& generation) {
  const absl::StatusOr<Lsn> next = source_->Read(
      generation.next,
      [this, &generation](Lsn lsn, std::span<const std::byte> payload) {
        return Apply(generation, lsn, payload);
      });
  {
    const MutexLock lock(mutex_);
    if (next.ok()) generation.next = std::max(generation.next, *next);
    if (next.ok() && !generation.is_whole) {
      generation.first_bytes = generation.bytes;
      generation.is_whole = true;
    }
  }
  Trim(generation);
  return next.status();
}

absl::Status WalFollower::Apply(Generation& generation, Lsn lsn,
                                std::span<const std::byte> payload) {
  std::vector<std::byte> copy(payload.begin(), payload.end());
  ALPHEUS_ASSIGN_OR_RETURN(const WalRecord record, DecodeWalRecord(copy));
  const MutexLock lock(mutex_);
  // Position 0: only a store that cleans needs it.
  ALPHEUS_RETURN_IF_ERROR(generation.index.Apply(lsn, 0, record));
  generation.bytes += copy.size();
  generation.records.emplace_back(lsn, std::move(copy));  // moves no byte
  generation.next = lsn + 1;
  return absl::OkStatus();
}

void WalFollower::Trim(Generation& generation) {
  const MutexLock lock(mutex_);
  auto& records = generation.records;
  const std::shared_ptr<WalFile> oldest = generation.index.Oldest();
  const Lsn first = oldest == nullptr ? generation.next : oldest->first_lsn();
  while (!records.empty() && records.front().first < first) {
    generation.bytes -= records.front().second.size();
    records.pop_front();
  }
}

WalHome WalFollower::home() const {
  const MutexLock lock(mutex_);
  return generation_->index.home();
}

WalVouch WalFollower::vouch() const {
  const MutexLock lock(mutex_);
  return generation_->index.vouch();
}

WalFollower::Followed WalFollower::Find(const std::string& name) const {
  const MutexLock lock(mutex_);
  return {generation_, generation_->index.Find(name), generation_->number};
}

WalFollower::Followed WalFollower::Latest(const Followed& followed) const {
  const MutexLock lock(mutex_);
  std::shared_ptr<WalFile> file =
      generation_->index.FindById(followed.file->id());
  if (file == nullptr) return followed;
  return {generation_, std::move(file), generation_->number};
}

// If the next generation is shown, the file was listed before it, and was not
// longer then. With one in between it may have been.
bool WalFollower::MayHaveGrown(const Followed& followed) const {
  const MutexLock lock(mutex_);
  if (generation_->number <= followed.generation + 1) return false;
  const MutexLock file_lock(followed.file->mutex);
  return !followed.file->is_removed();
}

std::vector<std::string> WalFollower::List(const std::string& directory) const {
  const MutexLock lock(mutex_);
  return generation_->index.List(directory);
}

absl::StatusOr<std::vector<std::string>> WalFollower::List(
    const void* reader, const std::string& directory) {
  const MutexLock lock(mutex_);
  if (directory.empty()) {
    const uint64_t lists = ++lists_;
    std::erase_if(views_, [lists](const auto& view) {
      return view.second.listed != 0 && view.second.listed + kListsMax <= lists;
    });
    LetGo();
  }
  const auto found = views_.find(reader);
  if (found == views_.end()) return generation_->index.List(directory);
  ReaderView& view = found->second;
  if (directory.empty()) {
    if (view.listed == 0) view.listed = lists_;
    // RocksDB may ignore an error and list once more, so the view stays broken.
    if (view.is_broken) {
      return absl::UnavailableError(
          "the log was cleaned before it was read, so it is unknown which "
          "writes the tables lack. Nothing was changed; try again");
    }
  }
  return generation_->index.List(directory, view.kept);
}

int WalFollower::restarts() const {
  const MutexLock lock(mutex_);
  return restarts_;
}

absl::StatusOr<size_t> OpenFollowed::Read(uint64_t offset,
                                          std::span<std::byte> out) {
  const MutexLock lock(mutex_);
  latest_ = follower_->Latest(latest_);
  const size_t copied = latest_.file->Read(offset, out);
  if (copied < out.size() && follower_->MayHaveGrown(latest_)) {
    return absl::UnavailableError(
        "the log was read again while the WAL file was open; the log no longer "
        "has this file, so the end of the file is unknown. Nothing was "
        "changed; try again");
  }
  return copied;
}

}  // namespace alpheus::wal
