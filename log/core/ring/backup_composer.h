// SPDX-License-Identifier: Apache-2.0
// backup_composer: makes a region that keeps a log's durable records, and is no
// replica of it.
//
// Idea: a backup has the log's format, so whatever reads a region reads it. Its
// records have the log's id, their epochs, LSNs and payloads. All else is its
// own: places, nonces and so checksums. Records come one after the other, and
// each leaves as bytes of the new region at once. So the composer keeps one
// record at a time, however large the log is, and never sees the log's ring.
//
// Invariants:
//   BKC1. The region has an unbroken run of LSNs from the head to the end that
//         was named. An LSN that no record was given for is ABORTED: the log
//         had given it up, or its record was cleaned.
//   BKC2. No byte of a record is valid in a replica, nor one of a replica's
//         here: the nonces are drawn for this region alone. They also tell
//         nothing of the log's nonces, which are secret (P-H14).
//   BKC3. The region is nobody's replica: it is of node 0 and of no cluster,
//         and its configuration does not name its incarnation (IsBackup). It
//         opens no epoch, as a member or by itself.
//   BKC4. Damage of any byte that counts is found: the region is closed
//         cleanly, and each header and the watermark prove all records.
//   BKC5. The superline is composed last. Bytes that are cut off before it are
//         no region.
// Thread safety: one thread.
// References: docs/formats/log.md#backup.
#ifndef ALPHEUS_LOG_CORE_RING_BACKUP_COMPOSER_H_
#define ALPHEUS_LOG_CORE_RING_BACKUP_COMPOSER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/format/superline.h"
#include "log/format/watermark.h"

namespace alpheus {

// Returns whether a region is a backup (BKC3).
bool IsBackup(const Superline& superline);

// An epoch of the log, and the first LSN that it owns.
struct EpochStart {
  Epoch epoch;
  Lsn start_lsn;
};

// The log that is backed up, and which part of it.
struct BackupSubject {
  Uuid log_id;
  uint64_t ring_capacity = 0;  // bytes; the backup has a ring of this size
  Lsn head_lsn{1};
  Lsn end_lsn;  // last durable LSN; head_lsn - 1: no record
  // Epochs of the log, oldest first. Those that own none of its records, and
  // are not the last one by end_lsn + 1, are left out.
  std::vector<EpochStart> epochs;
};

class BackupComposer {
 public:
  // Takes bytes of the region at `offset` from its start. They are valid during
  // the call. Bytes that are never given are zero. An error ends the composing.
  using Sink = absl::FunctionRef<absl::Status(
      uint64_t offset, std::span<const std::byte> bytes)>;

  // Errors: InvalidArgument (a ring, an LSN or epochs that no log has).
  static absl::StatusOr<BackupComposer> Begin(BackupSubject subject,
                                              RandomSource& random);

  uint64_t region_bytes() const { return layout_.region_bytes; }
  const BackupSubject& subject() const { return subject_; }
  // Returns the LSN of the next record.
  Lsn next_lsn() const { return at_.lsn; }

  // Adds a record; LSNs before it that were not added are ABORTED. Errors:
  // InvalidArgument (an LSN that was added, or is after the end; an epoch that
  // does not own it; a ring that is too small for it); those of the sink.
  absl::Status Add(Lsn lsn, Epoch epoch, std::span<const std::byte> payload,
                   Sink sink);
  // Adds what is left, last of all the superline. Errors: as Add.
  absl::Status Finish(Sink sink);

 private:
  BackupComposer(BackupSubject subject, const Layout& layout)
      : subject_(std::move(subject)), layout_(layout) {}

  // Enters the epochs that own the next LSN.
  void EnterEpochs();
  absl::Status AbortUntil(Lsn lsn, Sink sink);
  absl::Status Put(RecordType type, std::span<const std::byte> payload,
                   Sink sink);
  Superline MakeSuperline() const;

  BackupSubject subject_;
  Layout layout_;
  std::vector<uint64_t> nonces_;  // nonces_[i] is of subject_.epochs[i]
  uint64_t member_incarnation_ = 0;
  uint64_t incarnation_ = 0;

  RingOffset head_offset_;
  LogPosition at_;       // of the next record
  WatermarkPlace last_;  // of the record before it
  EpochTable table_;     // epochs that were entered
  std::vector<std::byte> record_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_BACKUP_COMPOSER_H_
