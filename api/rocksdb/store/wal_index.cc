// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace alpheus::wal {
namespace {

std::string TextOf(std::span<const std::byte> body) {
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}

absl::Status Broken(Lsn lsn, const WalRecord& record, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("LSN ", lsn.value, ": ", DescribeWalRecord(record), ": ",
                   why, ". Take what is left with `alpheus salvage`"));
}

// Decodes id and generation.
bool TakeVouch(const std::string& id, const std::string& generation,
               WalVouch& vouch) {
  vouch.id = id;
  return absl::SimpleAtoi(generation, &vouch.generation);
}

}  // namespace

std::string DirectoryOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return name.substr(0, slash == std::string::npos ? 0 : slash);
}

std::string BaseNameOf(const std::string& name) {
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

std::string EncodeWalHome(const WalHome& home) {
  return home.wal_directory + '\0' + home.database;
}

std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch) {
  return EncodeWalHome(home) + '\0' + vouch.id + '\0' +
         std::to_string(vouch.generation);
}

std::string EncodeWalHome(const WalHome& home, const WalVouch& vouch,
                          const WalLeft& left) {
  return EncodeWalHome(home, vouch) + '\0' + left.database + '\0' +
         left.vouch.id + '\0' + std::to_string(left.vouch.generation);
}

absl::Status WalIndex::Apply(Lsn lsn, uint64_t position,
                             const WalRecord& record) {
  const uint64_t id = record.header.file;
  absl::Status applied;
  if (record.header.kind == WalRecordKind::kHome) {
    applied = ApplyHome(record);
    home_lsn_ = lsn;
  } else if (record.header.kind == WalRecordKind::kCreate) {
    return ApplyCreate(lsn, position, record,
                       std::make_shared<WalFile>(record.header.seconds));
  } else if (const auto found = by_id_.find(id); found != by_id_.end()) {
    applied = ApplyTo(*found->second.file, lsn, record);
  } else if (first_created_ != 0 && id >= first_created_) {
    applied = absl::DataLossError("no record made the file that it names");
  }
  if (!applied.ok()) return Broken(lsn, record, applied.message());
  const bool is_home = record.header.kind == WalRecordKind::kHome;
  next_id_ = std::max(next_id_, is_home ? id : id + 1);
  return absl::OkStatus();
}

absl::Status WalIndex::ApplyHome(const WalRecord& record) {
  const std::vector<std::string> parts =
      absl::StrSplit(TextOf(record.body), '\0');
  const uint8_t version = record.header.version;
  WalVouch vouch;
  WalLeft left;
  if (version == kWalVersion) {
    if (parts.size() != 2) return absl::DataLossError("not two directories");
  } else if (version == kWalVouchingVersion) {
    if (parts.size() != 4 || parts[2].empty() ||
        !TakeVouch(parts[2], parts[3], vouch)) {
      return absl::DataLossError("not two directories and a vouch");
    }
  } else {
    if (parts.size() != 7 || parts[4].empty() ||
        !TakeVouch(parts[2], parts[3], vouch) ||
        !TakeVouch(parts[5], parts[6], left.vouch)) {
      return absl::DataLossError(
          "not two directories and a vouch, and what a take-over left");
    }
    left.database = parts[4];
  }
  vouch_ = std::move(vouch);
  left_ = std::move(left);
  home_ = {parts[0], parts[1]};
  return absl::OkStatus();
}

absl::Status WalIndex::ApplyCreate(Lsn lsn, uint64_t position,
                                   const WalRecord& record,
                                   std::shared_ptr<WalFile> file) {
  const uint64_t id = record.header.file;
  if (id < next_id_)
    return Broken(lsn, record, "the number of its file was given before");
  if (first_created_ == 0) first_created_ = id;
  file->SetRecorded(id, lsn, position);
  by_id_[id].file = std::move(file);
  Rename(id, TextOf(record.body));
  next_id_ = id + 1;
  return absl::OkStatus();
}

absl::Status WalIndex::ApplyTo(WalFile& file, Lsn lsn,
                               const WalRecord& record) {
  const WalHeader& header = record.header;
  if (header.kind == WalRecordKind::kRename) {
    file.Touch(header.seconds);
    Rename(file.id(), TextOf(record.body));
    return absl::OkStatus();
  }
  if (header.kind == WalRecordKind::kRemove) {
    Forget(file.id());
    return absl::OkStatus();
  }
  const MutexLock lock(file.mutex);
  if (header.kind == WalRecordKind::kTruncate) {
    if (header.offset > file.size()) {
      return absl::DataLossError(
          absl::StrCat("the file has ", file.size(), " bytes"));
    }
    file.Truncate(lsn, header.offset, header.seconds);
    return absl::OkStatus();
  }
  if (header.offset != file.size()) {
    return absl::DataLossError(absl::StrCat("the file ends at ", file.size(),
                                            ", and it would leave a hole"));
  }
  // Recovered records are durable.
  file.Extend(lsn, record.body, /*is_durable=*/true);
  return absl::OkStatus();
}

void WalIndex::Rename(uint64_t id, const std::string& name) {
  Named& named = by_id_.at(id);
  KeepLost(named);
  by_name_.erase(named.name);
  if (const auto replaced = by_name_.find(name); replaced != by_name_.end()) {
    Forget(replaced->second);
  }
  named.name = name;
  by_name_[name] = id;
}

void WalIndex::Forget(uint64_t id) {
  const auto found = by_id_.find(id);
  KeepLost(found->second);
  by_name_.erase(found->second.name);
  found->second.file->SetRemoved(true);
  removed_.emplace_back(found->second.file);
  by_id_.erase(found);
}

void WalIndex::KeepLost(const Named& lost) {
  if (keeps_ && !lost.name.empty()) kept_.push_back(lost);
}

uint64_t WalIndex::Keep() {
  keeps_ = true;
  return let_go_ + kept_.size();
}

void WalIndex::LetGoBefore(uint64_t kept) {
  for (; !kept_.empty() && let_go_ < kept; ++let_go_) kept_.pop_front();
}

std::shared_ptr<WalFile> WalIndex::Find(const std::string& name) const {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    return by_id_.at(found->second).file;
  }
  const auto kept = std::ranges::find(kept_.rbegin(), kept_.rend(), name,
                                      &Named::name);  // the newest
  return kept == kept_.rend() ? nullptr : kept->file;
}

std::shared_ptr<WalFile> WalIndex::FindById(uint64_t id) const {
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    return found->second.file;
  }
  const auto kept = std::ranges::find(
      kept_, id, [](const Named& lost) { return lost.file->id(); });
  return kept == kept_.end() ? nullptr : kept->file;
}

std::vector<std::string> WalIndex::List(const std::string& directory,
                                        uint64_t since) const {
  std::vector<std::string> names;
  for (const auto& [id, named] : by_id_) {
    if (DirectoryOf(named.name) == directory) {
      names.push_back(BaseNameOf(named.name));
    }
  }
  const uint64_t skipped = since - std::min(since, let_go_);
  for (uint64_t i = skipped; i < kept_.size(); ++i) {
    const Named& lost = kept_[i];
    std::string name = BaseNameOf(lost.name);
    if (DirectoryOf(lost.name) == directory &&
        std::ranges::find(names, name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::shared_ptr<WalFile> WalIndex::Oldest() {
  std::shared_ptr<WalFile> oldest;
  if (!by_id_.empty()) oldest = by_id_.begin()->second.file;
  std::erase_if(removed_, [](const auto& file) { return file.expired(); });
  for (const std::weak_ptr<WalFile>& weak : removed_) {
    std::shared_ptr<WalFile> file = weak.lock();
    if (file != nullptr && (oldest == nullptr || file->id() < oldest->id())) {
      oldest = std::move(file);
    }
  }
  return oldest;
}

}  // namespace alpheus::wal
