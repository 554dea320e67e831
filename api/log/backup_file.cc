// SPDX-License-Identifier: Apache-2.0
#include "api/log/backup_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/checksum.h"
#include "log/format/layout.h"
#include "log/pmem/file_error.h"

namespace alpheus {
namespace {

// Nobody writes a backup.
constexpr mode_t kBackupMode = 0440;

// The remains of a killed backup under the working name are a backup, or have
// no superline yet (BKC5).
RegionUse UseOfRemains(std::span<std::byte> region, bool /*is_device*/) {
  if (region.size() < kTableOffset) return RegionUse::kUsed;
  const CellState cell = ReadCell(SuperlinePlace(region));
  if (!cell.newest) return RegionUse::kUnopened;
  const absl::StatusOr<Superline> superline =
      DecodeSuperline(cell.copies[static_cast<size_t>(*cell.newest)].content);
  return superline.ok() && IsBackup(*superline) ? RegionUse::kUnopened
                                                : RegionUse::kUsed;
}

absl::Status CheckIsBackup(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<LogReader>> reader =
      LogReader::Open(path);
  if (reader.ok() && (*reader)->info().is_backup) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      path,
      ": is there, and is no backup that can be read. Only a backup is "
      "replaced. Name another file, or move this one away. Nothing was "
      "changed"));
}

bool Exists(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<BackupFile> BackupFile::Create(const std::string& path,
                                              bool replaces) {
  if (replaces && Exists(path)) {
    ALPHEUS_RETURN_IF_ERROR(CheckIsBackup(path));
    ALPHEUS_ASSIGN_OR_RETURN(NewFile file,
                             NewFile::OpenToReplace(path, UseOfRemains));
    return BackupFile(path, std::move(file));
  }
  ALPHEUS_ASSIGN_OR_RETURN(NewFile file, NewFile::Open(path, UseOfRemains));
  return BackupFile(path, std::move(file));
}

absl::Status BackupFile::Begin(BackupSubject subject, RandomSource& random) {
  ALPHEUS_ASSIGN_OR_RETURN(composer_,
                           BackupComposer::Begin(std::move(subject), random));
  if (ftruncate(file_.fd(), static_cast<off_t>(composer_->region_bytes())) !=
      0) {
    return NewFileError(path_, "ftruncate", errno);
  }
  return absl::OkStatus();
}

absl::Status BackupFile::Write(uint64_t offset,
                               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_.fd(), bytes.data(), bytes.size(),
                                   static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return NewFileError(path_, "pwrite", errno);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status BackupFile::Add(Lsn lsn, Epoch epoch,
                             std::span<const std::byte> payload) {
  ALPHEUS_RETURN_IF_ERROR(
      composer_->Add(lsn, epoch, payload,
                     [this](uint64_t offset, std::span<const std::byte> bytes) {
                       return Write(offset, bytes);
                     }));
  tally_.Count(lsn, epoch, payload);
  return absl::OkStatus();
}

absl::Status BackupFile::Publish() {
  ALPHEUS_RETURN_IF_ERROR(composer_->Finish(
      [this](uint64_t offset, std::span<const std::byte> bytes) {
        return Write(offset, bytes);
      }));
  // First: what is read back is then on the disk, as far as the kernel knows.
  if (fsync(file_.fd()) != 0) return NewFileError(path_, "fsync", errno);
  ALPHEUS_RETURN_IF_ERROR(ReadBack());
  if (fchmod(file_.fd(), kBackupMode) != 0) {
    return NewFileError(path_, "fchmod", errno);
  }
  return file_.Publish();
}

absl::Status BackupFile::ReadBack() const {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(file_.open_path()));
  const BackupSubject& subject = composer_->subject();
  Tally read;
  Lsn next = subject.head_lsn;
  const absl::Status visited = reader->ForEach([&](const ReaderRecord& record) {
    next = record.lsn + 1;
    if (record.state == RecordState::kDurable) {
      read.Count(record.lsn, record.epoch, record.payload);
    }
    return absl::OkStatus();
  });
  if (visited.ok() && read == tally_ && next == subject.end_lsn + 1) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(path_, ": does not read as it was written: ", read.records,
                   " records up to LSN ", next.value - 1, ", of ",
                   tally_.records, " up to LSN ", subject.end_lsn.value,
                   visited.ok() ? "" : absl::StrCat(". ", visited.message()),
                   ". Is the disk faulty? No file was left"));
}

void BackupFile::Tally::Count(Lsn lsn, Epoch epoch,
                              std::span<const std::byte> payload) {
  ++records;
  payload_bytes += payload.size();
  crc = static_cast<uint32_t>(
      Crc32cWord(Crc32cWord(crc, lsn.value), epoch.value));
  crc = Crc32c(crc, payload);
}

}  // namespace alpheus
