// SPDX-License-Identifier: Apache-2.0
// region_state: reads the fixed part of a region without changing a byte.
//
// Idea: superline, epoch table and watermark are read once, checked against
// each other and passed on as values. Openings, readers and inspecting tools
// all start from here. Damage that one good copy makes up for is listed, not
// hidden.
//
// Invariants:
//   RGS1. An LSN that the watermarks prove lies in the ring that starts at the
//         head, even while a writer wraps around meanwhile. Reason: the
//         watermarks are read before the superline; the head only grows, and is
//         persisted before the bytes that it frees are reused (P-L4). In the
//         other order a reader that paused in between would look for records
//         beyond the ring, and report them lost.
//   RGS2. Every record before proven_place(), and the one there, was written or
//         read by this log, and persisted. So the log does not end before it,
//         and a scan may begin there. Later damage before it is found when the
//         record is read, or by a scrub (P-A3.7).
// Thread safety: pure; a region that is being written may be read in the middle
// of an update, see ReadSharedRegionState.
// References: protocol P-A2, P-S1 to P-S5; docs/formats/log.md.
#ifndef ALPHEUS_LOG_CORE_RING_REGION_STATE_H_
#define ALPHEUS_LOG_CORE_RING_REGION_STATE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "log/core/read/record_cursor.h"
#include "log/core/read/scan.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/format/watermark.h"
#include "log/pmem/file_view.h"

namespace alpheus {

// Bounds within which no sum of LSNs or offsets overflows; a region beyond them
// is not read. No log gets there (2^60 records at a hundred million a second
// take 365 years).
inline constexpr uint64_t kLsnMax = uint64_t{1} << 60;
inline constexpr uint64_t kOffsetMax = uint64_t{1} << 62;
inline constexpr uint64_t kNumberMax = uint64_t{1} << 62;  // epochs and seqs

struct RegionState {
  Superline superline;
  CellState superline_cell;
  EpochTable table;
  CellState table_cell;
  int table_copy = 0;  // copy named by the superline
  WatermarkPair watermarks;

  bool closed_cleanly = false;

  // Copies and lines that can't be read although an equal one can, one sentence
  // each; opening the log rewrites them. In a cleanly closed log this is
  // damage; after a crash it may be an interrupted update.
  std::vector<std::string> single_faults;

  LogPosition head() const {
    return {superline.head_lsn, superline.head_offset, superline.head_chain};
  }
  // Returns the highest LSN proven persisted by watermark or installed epoch:
  // an epoch opens only after its recovered records are persisted.
  Lsn ProvenLsn() const;
  // Returns the place that the latest watermark names. Returns the head if that
  // is later, or if the watermark names no place that can be in this ring
  // (RGS2).
  LogPosition proven_place() const;
};

enum class ReadingMode {
  kExact,
  // Accepts a missing watermark, and an epoch table of another number. The
  // result is evidence, not a log that may be opened.
  kSalvage,
};

// `name` (the file) is for messages. Errors, each with offset and remedy:
//   DataLoss       no superline copy can be read (zeros, ones, random bytes,
//                  not a region at all), the geometry does not fit the file
//                  (truncated), no epoch table or no watermark can be read, or
//                  their values contradict each other
//   Unimplemented  another format version
// If the region is being written, an error can mean that an update was in
// progress: use ReadSharedRegionState.
absl::StatusOr<RegionState> ReadRegionState(
    std::span<std::byte> region, const std::string& name,
    ReadingMode mode = ReadingMode::kExact);

// Reads a region that others may be writing; `has_writer` tells whether a
// writer has it open. Repeats a failed read until it failed with no writer
// before and after it (P-S5), or often enough. Errors: also Unavailable (it is
// being formatted).
absl::StatusOr<RegionState> ReadSharedRegionState(
    std::span<std::byte> region, const std::string& name, ReadingMode mode,
    absl::FunctionRef<bool()> has_writer);

// Returns a scan of all that the ring may hold. `file` is the region's file, or
// none.
ScanInput ScanInputOf(std::span<std::byte> region, const RegionState& state,
                      FileView file = {});

// Bytes between the head and the proven place that an opening reads all the
// same: a small log is checked as a whole each time.
inline constexpr uint64_t kReadWholeBytesMax = uint64_t{4} << 20;

// Returns the scan of an opening: it begins at the proven place if more than
// `read_whole_bytes_max` lie before it, and searches for later records up to
// the ceiling. Requires: no process writes the region.
ScanInput OpeningScanOf(std::span<std::byte> region, const RegionState& state,
                        FileView file = {},
                        uint64_t read_whole_bytes_max = kReadWholeBytesMax);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_REGION_STATE_H_
