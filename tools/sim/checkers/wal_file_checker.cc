// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/wal_file_checker.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {
namespace {

// 0: of none.
OperationId OperationOf(const History::Shown& record) {
  OperationId operation = 0;
  if (record.aborted || record.cleaned ||
      record.payload.size() < sizeof(operation)) {
    return 0;
  }
  std::memcpy(&operation, record.payload.data(), sizeof(operation));
  return operation;
}

}  // namespace

std::string WalFileChecker::Name(const FileId& file) {
  return absl::StrCat("file ", file.id, " of primary ", file.writer);
}

void WalFileChecker::Violate(const char* invariant, const std::string& what) {
  oracle_.Violate(invariant,
                  absl::StrCat("primary ", judged_, " opens: ", what));
}

WalFileChecker::FileId WalFileChecker::Known(PrimaryNumber primary,
                                             uint64_t id) const {
  const auto files = known_.find(primary);
  if (files == known_.end()) return {};  // after a violation
  const auto file = files->second.find(id);
  return file == files->second.end() ? FileId() : file->second.file;
}

void WalFileChecker::Creates(PrimaryNumber primary, uint64_t id,
                             OperationId operation) {
  const FileId file{primary, id};
  files_[file];
  known_[primary][id] = {file, 0};
  records_[operation] = {Change::kCreate, file};
}

void WalFileChecker::Writes(PrimaryNumber primary, uint64_t id,
                            OperationId operation, uint64_t offset,
                            uint64_t bytes) {
  records_[operation] = {Change::kData, Known(primary, id), offset, bytes};
}

void WalFileChecker::Removes(PrimaryNumber primary, uint64_t id) {
  File& file = files_[Known(primary, id)];
  file.remover = primary;
  file.removal = ++removals_;
}

void WalFileChecker::RemovesBy(PrimaryNumber primary, uint64_t id,
                               OperationId operation) {
  records_[operation] = {Change::kRemove, Known(primary, id)};
}

void WalFileChecker::Accepted(PrimaryNumber primary, uint64_t id,
                              uint64_t bytes) {
  files_[Known(primary, id)].accepted += bytes;
}

void WalFileChecker::Synced(PrimaryNumber primary, uint64_t id, uint64_t size) {
  uint64_t& synced = files_[Known(primary, id)].synced;
  synced = std::max(synced, size);
}

void WalFileChecker::Opens(PrimaryNumber primary) {
  std::map<FileId, uint64_t>& before = synced_before_[primary];
  before.clear();
  for (const auto& [id, file] : files_) {
    if (file.synced != 0) before[id] = file.synced;
  }
}

bool WalFileChecker::Apply(const Record& record, FoundFiles& found) {
  const uint64_t id = record.file.id;
  if (record.change == Change::kCreate) {
    found[id] = {record.file, 0};
    return true;
  }
  const auto at = found.find(id);
  // Rest of a file whose beginning was cleaned: JudgeOrder and JudgeSynced
  // check whether it may be gone.
  if (at == found.end()) return true;
  if (at->second.file != record.file) {
    Violate("WST2", absl::StrCat("data of ", Name(record.file), " in ",
                                 Name(at->second.file)));
    return false;
  }
  if (record.change == Change::kRemove) {
    found.erase(at);
    return true;
  }
  if (record.offset != at->second.size) {
    Violate("WST2",
            absl::StrCat(Name(record.file), " ends at ", at->second.size,
                         ", and goes on at ", record.offset));
    return false;
  }
  at->second.size += record.bytes;
  return true;
}

void WalFileChecker::Opened(PrimaryNumber primary,
                            std::span<const History::Shown> records,
                            const std::map<uint64_t, uint64_t>& index) {
  judged_ = primary;
  FoundFiles found;
  for (const History::Shown& shown : records) {
    const auto record = records_.find(OperationOf(shown));
    if (record == records_.end()) continue;  // nothing of a file
    if (!Apply(record->second, found)) return;
  }
  std::map<uint64_t, uint64_t> sizes;
  for (const auto& [id, file] : found) sizes[id] = file.size;
  if (sizes != index) {
    Violate("WST2", absl::StrCat("there are ", sizes.size(),
                                 " files, and the plugin finds ", index.size(),
                                 ", or others, or of other sizes"));
  }
  JudgeSynced(primary, found);
  JudgeOrder(found);
  JudgeRemovals(primary, found);
  known_[primary] = std::move(found);
}

void WalFileChecker::JudgeSynced(PrimaryNumber primary,
                                 const FoundFiles& found) {
  for (const auto& [file, synced] : synced_before_[primary]) {
    if (files_[file].remover != 0) continue;
    const auto at = found.find(file.id);
    if (at == found.end() || at->second.file != file) {
      Violate("WST1", absl::StrCat(Name(file), " is gone, of which ", synced,
                                   " bytes were synced"));
    } else if (at->second.size < synced) {
      Violate("WST1",
              absl::StrCat(Name(file), " has ", at->second.size,
                           " bytes, of which ", synced, " were synced"));
    }
  }
}

void WalFileChecker::JudgeOrder(const FoundFiles& found) {
  for (const auto& [newest_id, newest] : std::views::reverse(found)) {
    if (newest.size == 0) continue;
    const PrimaryNumber writer = newest.file.writer;
    for (const auto& [id, known] : known_[writer]) {
      if (id >= newest_id) break;
      const File& file = files_[known.file];
      if (file.remover != 0) continue;
      const uint64_t all =
          known.file.writer == writer ? file.accepted : known.size;
      const auto at = found.find(id);
      const bool is_there = at != found.end() && at->second.file == known.file;
      if (is_there && at->second.size == all) continue;
      Violate(
          "WST2",
          absl::StrCat(Name(newest.file), " has data, and the older ",
                       Name(known.file), " has ",
                       is_there ? at->second.size : 0, " of ", all, " bytes"));
      return;
    }
    return;
  }
}

void WalFileChecker::JudgeRemovals(PrimaryNumber primary,
                                   const FoundFiles& found) {
  const std::map<FileId, uint64_t>& synced = synced_before_[primary];
  for (const auto& [id, there] : found) {
    const File& file = files_[there.file];
    if (file.remover == 0) continue;
    for (const auto& [other_id, other] : known_[file.remover]) {
      const File& later = files_[other.file];
      const auto at = found.find(other_id);
      const bool is_there = at != found.end() && at->second.file == other.file;
      // One that was never synced may be gone without having been removed.
      if (is_there || later.remover != file.remover ||
          later.removal <= file.removal || !synced.contains(other.file)) {
        continue;
      }
      Violate("WST2", absl::StrCat(Name(there.file), " is there, and ",
                                   Name(other.file),
                                   ", which was removed later, is not"));
      return;
    }
  }
}

}  // namespace alpheus::sim
