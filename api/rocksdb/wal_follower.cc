// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/wal_follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/wal_record.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

// Cleaned again while it is read from the head: how often that is tried.
constexpr int kRestartsMax = 10;
// Below this no log is read anew for its size (E4).
constexpr uint64_t kBytesMin = 32 << 20;

}  // namespace

// What is read anew is shown when it has been read.
absl::Status WalFollower::Refresh() {
  const MutexLock lock(mutex_);
  std::shared_ptr<Generation> generation = generation_;
  bool is_anew =
      generation->bytes > 2 * std::max(generation->first_bytes, kBytesMin);
  for (int i = 0; i < kRestartsMax; ++i) {
    if (is_anew) {
      generation = std::make_shared<Generation>();
      ++restarts_;
    }
    absl::Status read = ReadInto(*generation);
    if (read.ok()) generation_ = generation;
    if (!absl::IsOutOfRange(read)) return read;
    is_anew = true;
  }
  return absl::UnavailableError(absl::StrCat(
      "the log is cleaned faster than it can be read, ", kRestartsMax,
      " times in a row. Nothing was changed; try again, or use a larger log"));
}

absl::Status WalFollower::ReadInto(Generation& generation) {
  const bool is_first = generation.next == Lsn(0);
  absl::Status read =
      source_->Read(generation.next,
                    [&generation](Lsn lsn, std::span<const std::byte> payload) {
                      return Apply(generation, lsn, payload);
                    });
  if (is_first) generation.first_bytes = generation.bytes;
  Trim(generation);
  return read;
}

absl::Status WalFollower::Apply(Generation& generation, Lsn lsn,
                                std::span<const std::byte> payload) {
  std::vector<std::byte> copy(payload.begin(), payload.end());
  ALPHEUS_ASSIGN_OR_RETURN(const WalRecord record, DecodeWalRecord(copy));
  // The position is for those who clean.
  ALPHEUS_RETURN_IF_ERROR(generation.index.Apply(lsn, 0, record));
  generation.bytes += copy.size();
  generation.records.emplace_back(lsn, std::move(copy));  // where it was
  generation.next = lsn + 1;
  return absl::OkStatus();
}

void WalFollower::Trim(Generation& generation) {
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

WalFollower::Followed WalFollower::Find(const std::string& name) const {
  const MutexLock lock(mutex_);
  return {generation_, generation_->index.Find(name)};
}

WalFollower::Followed WalFollower::Latest(const Followed& followed) const {
  const MutexLock lock(mutex_);
  std::shared_ptr<WalFile> file =
      generation_->index.FindById(followed.file->id());
  return file == nullptr ? followed : Followed{generation_, std::move(file)};
}

std::vector<std::string> WalFollower::List(const std::string& directory) const {
  const MutexLock lock(mutex_);
  return generation_->index.List(directory);
}

int WalFollower::restarts() const {
  const MutexLock lock(mutex_);
  return restarts_;
}

}  // namespace alpheus
