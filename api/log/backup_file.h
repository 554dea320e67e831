// SPDX-License-Identifier: Apache-2.0
// backup_file: a backup on its way into a file.
//
// Idea: the file has no name while it is made (new_file.h), and gets it only
// once every record was read back from it, as `alpheus cat` would. So a backup
// that was cut off, or went wrong, leaves nothing behind.
//
// Invariants:
//   BKF1. The name leads to a whole backup, or to what was there before. It
//         gets the backup after all bytes are on the disk, and is durable when
//         Publish returns OK.
//   BKF2. Only a backup is replaced, and only if the caller says so: never a
//         replica or another log, nor any other file.
//   BKF3. A backup has been read back before it is published: each LSN, with
//         its epoch and its bytes.
// Thread safety: one thread.
#ifndef ALPHEUS_API_LOG_BACKUP_FILE_H_
#define ALPHEUS_API_LOG_BACKUP_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/ring/backup_composer.h"
#include "log/pmem/new_file.h"

namespace alpheus {

class BackupFile {
 public:
  // Begins a backup that will be `path`. `replaces`: a backup of that name is
  // replaced. Errors: AlreadyExists (the path is taken; with `replaces`: by
  // something that is no backup); as NewFileError.
  static absl::StatusOr<BackupFile> Create(const std::string& path,
                                           bool replaces);

  // Begins with what is backed up. Called once, first. Errors: as
  // BackupComposer::Begin; ResourceExhausted (no room).
  absl::Status Begin(BackupSubject subject, RandomSource& random);
  // Adds a record, as BackupComposer::Add. Errors: also those of writing
  // (ResourceExhausted: the disk is full).
  absl::Status Add(Lsn lsn, Epoch epoch, std::span<const std::byte> payload);
  // Adds what is left, reads everything back, and gives the file its name.
  // Errors: as Add; DataLoss (it does not read as it was written: the disk is
  // faulty); AlreadyExists (the path was taken meanwhile).
  absl::Status Publish();

  // Returns how many records were added.
  uint64_t records() const { return tally_.records; }
  uint64_t payload_bytes() const { return tally_.payload_bytes; }

 private:
  // The records that were added, or read back.
  struct Tally {
    uint64_t records = 0;
    uint64_t payload_bytes = 0;
    uint32_t crc = 0;  // of all records, with their LSNs and epochs

    void Count(Lsn lsn, Epoch epoch, std::span<const std::byte> payload);
    bool operator==(const Tally&) const = default;
  };

  BackupFile(std::string path, NewFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Write(uint64_t offset, std::span<const std::byte> bytes);
  absl::Status ReadBack() const;

  std::string path_;
  NewFile file_;
  std::optional<BackupComposer> composer_;
  Tally tally_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_BACKUP_FILE_H_
