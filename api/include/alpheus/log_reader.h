// SPDX-License-Identifier: Apache-2.0
// log_reader: reads a log without owning it: live beside its writer, or dead.
//
// Idea: a reader takes no lock, opens no epoch and changes no byte. Beside a
// live writer it shows persisted records only, copying each before checking it,
// so that bytes which change under it are noticed and never shown. Of a log
// without writer it shows what opening it would recover.
//
// A region may also be one of several replicas of a log. It alone can't tell
// what the log holds: records beyond its end may be durable, and its last ones
// may be on no other replica. See cluster_reader.h.
//
// Invariants:
//   LR1. A record is shown as durable only if W replicas had persisted it. With
//        W = 1 watermark and epoch start prove that (WMK1, watermark.h). With a
//        larger W they only say what was persisted here: a backup stores its
//        watermark after its own ack, whoever else has acknowledged, and an
//        opening may have died after it had installed its epoch here. Then only
//        what a header names counts (P-A1: its writer knew it durable), and the
//        head, behind which everything was (P-L10).
//   LR2. Beside a writer nothing is shown but what was persisted here; without
//        one, whatever is whole up to where the scan ends. What of that is not
//        proven durable is shown as completed: beside a writer of a log with
//        W = 1 there is nothing of that kind.
//   LR3. A pass begins at the head, or behind what an earlier pass of this
//        reader showed if that is still where the next record goes: no head has
//        passed it, and no writer has come since (of several replicas an
//        opening may have put other records there).
//   LR4. What a pass finds missing, and that there is nothing at all, is said
//        only if the log is still as it was when the pass began: no writer came
//        to a log that had none, and none opened another epoch. Else it is read
//        again, or, once records were shown, whoever asked is told to.
//
// Thread safety: one thread per reader; any number of readers.
// References: protocol P-A1, P-A3.5, P-A4.5, P-A7.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_LOG_READER_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_LOG_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus {

class Region;

enum class RecordState {
  kDurable,    // proven to be on W replicas (LR1)
  kCompleted,  // whole, but nothing here proves that it is
  kCleaned,
  kAborted,
};

// "durable", "completed", "cleaned" or "aborted".
const char* RecordStateName(RecordState state);

struct ReaderRecord {
  Lsn lsn;
  Epoch epoch;
  RecordState state = RecordState::kDurable;
  uint64_t offset = 0;  // of its header, bytes from the start of the region
  std::span<const std::byte>
      payload;  // valid during the call; empty if aborted
};

struct EpochInfo {
  Epoch epoch;
  Lsn start_lsn;
};

// What a region says of itself; of a live log, at one moment.
struct RegionInfo {
  std::string path;
  uint32_t format_version = 0;
  bool has_writer = false;
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
  uint64_t incarnation = 0;
  uint64_t configuration_id = 0;
  uint32_t replica_count = 0;  // N
  uint32_t write_quorum = 0;   // W
  uint64_t region_bytes = 0;
  uint64_t ring_offset = 0;    // bytes from the start of the region
  uint64_t ring_capacity = 0;  // bytes
  Epoch promised_epoch;
  Epoch log_epoch;
  bool repairing = false;
  bool closed_cleanly = false;
  std::vector<EpochInfo> epochs;
  Lsn head_lsn;
  uint64_t head_offset = 0;  // monotone: modulo ring_capacity is the place
  // Persisted in this region: what the watermark line proves.
  Lsn watermark_lsn;
  // Copies and lines that can't be read while an equal one can.
  std::vector<std::string> single_faults;
};

// Result of a pass over everything.
struct VerifyReport {
  // OK; DataLoss with LSN, offset and remedy; OutOfRange as ForEach.
  absl::Status status;
  // "complete", "torn" or "corrupt".
  std::string verdict;
  Lsn end_lsn;               // last readable LSN in unbroken order
  uint64_t tail_offset = 0;  // monotone, behind it
  Lsn proven_lsn;            // persisted in this region for certain
  Lsn durable_lsn;           // on W replicas for certain, as far as it tells
  Lsn named_durable_lsn;     // the same, but only by what headers say
  uint64_t data_records = 0;
  uint64_t cleaned_records = 0;
  uint64_t aborted_records = 0;
  uint64_t damaged_pads = 0;
  uint64_t payload_bytes = 0;
  uint64_t cut_records = 0;  // completed behind the first bad one
};

class LogReader {
 public:
  // Errors: NotFound; DataLoss, Unimplemented as Log::Open; Unavailable (also
  // of a region that is being formatted).
  static absl::StatusOr<std::unique_ptr<LogReader>> Open(
      const std::string& path);
  // Reads what Open refuses: truncated files, regions without watermark or with
  // an epoch table of another number, as long as one superline copy and one
  // epoch table can be read. For ForEachSalvageable.
  // Errors: NotFound; DataLoss, Unimplemented; Unavailable.
  static absl::StatusOr<std::unique_ptr<LogReader>> OpenForSalvage(
      const std::string& path);
  ~LogReader();

  // As of the last pass, or of opening.
  const RegionInfo& info() const;

  // Calls `visit` with each record in LSN order from the head, cleaned and
  // aborted ones included.
  // Errors: DataLoss after the last record before the damage was delivered, or
  // for damaged single copies of a log that was closed cleanly after all were;
  // OutOfRange (a live writer reclaimed the record that was to be read next, or
  // one opened the log meanwhile: read again); Unavailable (the region is being
  // formatted); whatever `visit` returns, which ends the iteration.
  absl::Status ForEach(
      const std::function<absl::Status(const ReaderRecord&)>& visit);

  // Like ForEach, but calls `visit` with nothing before `from`, an LSN or 0 for
  // the head. A reader that follows a log beside its writer passes `from`
  // behind what it was shown, and reads what came since then: of a log with one
  // replica such a pass goes on where the last one ended (LR3).
  // Errors: also OutOfRange if `from` was cleaned; info() names the head.
  absl::Status ForEachFrom(
      Lsn from, const std::function<absl::Status(const ReaderRecord&)>& visit);

  // Like ForEach, but goes on behind damage at the next record that can be
  // read; `lost` is told each gap (first LSN that is missing, first LSN behind
  // it; equal to 0 if nothing follows).
  // Errors: FailedPrecondition (a writer has the log open); whatever `visit`
  // returns.
  absl::Status ForEachSalvageable(
      const std::function<absl::Status(const ReaderRecord&)>& visit,
      const std::function<void(Lsn first, Lsn behind)>& lost);

  // Verifies every record and copy. `progress` is called now and then with the
  // fraction done, 0 to 1.
  VerifyReport Verify(const std::function<void(double)>& progress = {});

 private:
  friend class ClusterReader;
  class Impl;
  explicit LogReader(std::unique_ptr<Impl> impl);
  // Of an image of a region that nobody writes.
  static absl::StatusOr<std::unique_ptr<LogReader>> OpenImage(Region image);

  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_READER_H_
