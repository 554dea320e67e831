// SPDX-License-Identifier: Apache-2.0
// log_reader: reads a log without owning it, also while it is being written.
//
// Idea: a reader takes no lock, opens no epoch and changes no byte. While a
// writer has the log open, the reader shows persisted records only. It copies
// each before checking it, so that bytes that change meanwhile are noticed and
// never shown. Without a writer it shows what opening the log would recover.
//
// A region may be one of several replicas of a log. Alone it can't tell what
// the log holds: records beyond its end may be durable, and its last ones may
// be on no other replica. See cluster_reader.h.
//
// Invariants:
//   LR1. A record is shown as durable only if W replicas had persisted it.
//        W = 1: the watermark and the start of the epoch prove that (WMK1,
//        watermark.h).
//        W > 1: they prove only what was persisted here. A backup stores its
//        watermark after its own ack, even if no other replica has the records.
//        An opening may have ended after it installed its epoch here alone.
//        Then only the durable LSN in a header counts (P-A1: its writer knew
//        it), and the head, since every record before it was durable (P-L10).
//   LR2. While a writer has the log open, only records that were persisted here
//        are shown; without one, every whole record up to the end of the scan.
//        Records that are not proven durable are shown as completed. A log with
//        W = 1 and a writer shows none of these.
//   LR3. A pass begins at the head. It may begin at the end of this reader's
//        earlier pass if the next record still goes there: the head has not
//        passed that place, and no writer has come since. (With several
//        replicas an opening may have put other records there.)
//   LR4. A pass reports a missing record, or an empty log, only if the log is
//        as it was when the pass began: no writer came to a log that had none,
//        and none opened another epoch. Otherwise the pass is repeated; once
//        records were shown, an error asks the caller to repeat it.
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
  kCompleted,  // whole, but not proven to be durable
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

// Description that a region holds of itself; of a live log, at one moment.
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
  bool is_backup = false;  // a copy of a log's records, and no replica
  std::vector<EpochInfo> epochs;
  Lsn head_lsn;
  uint64_t head_offset = 0;  // monotone: modulo ring_capacity is the place
  // Highest LSN that the watermark line proves persisted in this region.
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
  uint64_t tail_offset = 0;  // monotone, after it
  Lsn proven_lsn;            // proven to be persisted in this region
  Lsn durable_lsn;           // proven by this region to be on W replicas
  Lsn named_durable_lsn;     // durable_lsn as proven by headers alone
  uint64_t data_records = 0;
  uint64_t cleaned_records = 0;
  uint64_t aborted_records = 0;
  uint64_t damaged_pads = 0;
  uint64_t payload_bytes = 0;
  uint64_t cut_records = 0;  // completed after the first bad one
};

class LogReader {
 public:
  // Opens the log in `path` for reading.
  // Errors: NotFound; PermissionDenied; InvalidArgument (path); DataLoss,
  // Unimplemented as Log::Open; Unavailable (also of a region that is being
  // formatted).
  static absl::StatusOr<std::unique_ptr<LogReader>> Open(
      const std::string& path);
  // Opens a region that Open refuses: truncated, without watermark, or with an
  // epoch table of another number. One superline copy and one epoch table must
  // be readable. For ForEachSalvageable.
  // Errors: NotFound; PermissionDenied; InvalidArgument (path); DataLoss,
  // Unimplemented; Unavailable.
  static absl::StatusOr<std::unique_ptr<LogReader>> OpenForSalvage(
      const std::string& path);
  ~LogReader();

  // Returns the state at the last pass, or at opening.
  const RegionInfo& info() const;

  // Calls `visit` with each record in LSN order from the head, cleaned and
  // aborted ones included.
  // Errors: DataLoss (a record is damaged: all before it were delivered; or
  // single copies of a cleanly closed log are damaged: all records were
  // delivered); OutOfRange (a live writer reclaimed the next record, or a
  // writer opened the log meanwhile: read again); Unavailable (the region is
  // being formatted); any error of `visit`, which ends the iteration.
  absl::Status ForEach(
      const std::function<absl::Status(const ReaderRecord&)>& visit);

  // Like ForEach, but starts at `from`, an LSN or 0 for the head. To follow a
  // log that is being written, pass the LSN after the last one shown. With one
  // replica such a pass starts where the last one ended (LR3).
  // Errors: also OutOfRange if `from` was cleaned; info() names the head.
  absl::Status ForEachFrom(
      Lsn from, const std::function<absl::Status(const ReaderRecord&)>& visit);

  // Like ForEach, but continues after damage at the next readable record. Calls
  // `lost` with each gap: its first LSN, and the first LSN after it, 0 if
  // nothing follows.
  // Errors: FailedPrecondition (a writer has the log open); any error of
  // `visit`.
  absl::Status ForEachSalvageable(
      const std::function<absl::Status(const ReaderRecord&)>& visit,
      const std::function<void(Lsn first, Lsn after)>& lost);

  // Verifies every record and copy. `progress` is called now and then with the
  // fraction done, 0 to 1.
  VerifyReport Verify(const std::function<void(double)>& progress = {});

 private:
  friend class ClusterReader;
  class Impl;
  explicit LogReader(std::unique_ptr<Impl> impl);
  // Makes a reader of an image of a region that nobody writes.
  static absl::StatusOr<std::unique_ptr<LogReader>> OpenImage(Region image);

  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_LOG_READER_H_
