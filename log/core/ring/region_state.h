// SPDX-License-Identifier: Apache-2.0
// region_state: what a region says of itself, read without changing a byte.
//
// Idea: superline, epoch table and watermark are read once, checked against
// each other and handed on as values; opening an epoch, readers and the
// inspecting tools all start from here. Damage that one good copy makes up for
// is listed, not hidden.
//
// Invariants:
//   RGS1. What the watermarks prove lies in the ring that the head begins, also
//         beside a writer that goes round it meanwhile: they are read before
//         the superline, whose head only grows, and a head is persisted before
//         what it frees is used again (P-L4). The other way round a reader that
//         stood still in between would look for records beyond the ring, and
//         call them lost.
//
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

// Bounds within which no sum of LSNs or offsets overflows; a region that names
// more is not read. No log gets there (2^60 records at a hundred million a
// second take 365 years).
inline constexpr uint64_t kLsnMax = uint64_t{1} << 60;
inline constexpr uint64_t kOffsetMax = uint64_t{1} << 62;
inline constexpr uint64_t kNumberMax = uint64_t{1} << 62;  // epochs and seqs

struct RegionState {
  Superline superline;
  CellState superline_cell;
  EpochTable table;
  CellState table_cell;
  int table_copy = 0;  // the copy that the superline names
  WatermarkPair watermarks;

  bool closed_cleanly = false;

  // Copies and lines that can't be read although an equal one can, one
  // sentence each; opening the log writes them anew. In a log that was closed
  // cleanly this is damage; after a crash it may be an interrupted update.
  std::vector<std::string> single_faults;

  LogPosition head() const {
    return {superline.head_lsn, superline.head_offset, superline.head_chain};
  }
  // Highest LSN that watermark and installed epoch prove persisted: what an
  // epoch recovered was persisted before it opened.
  Lsn ProvenLsn() const;
};

enum class ReadingMode {
  kExact,
  // Makes do with less: no watermark, an epoch table of another number. What
  // is read then is evidence, not a log that may be opened.
  kSalvage,
};

// `name` (the file) is for messages. Errors, each with offset and remedy:
//   DataLoss       no superline copy can be read (zeros, ones, random bytes,
//                  not a region at all), the geometry does not fit the file
//                  (truncated), no epoch table or no watermark can be read, or
//                  what they say contradicts itself
//   Unimplemented  another format version
// On a region that is written meanwhile, an error can mean an update was under
// way: ReadSharedRegionState.
absl::StatusOr<RegionState> ReadRegionState(
    std::span<std::byte> region, const std::string& name,
    ReadingMode mode = ReadingMode::kExact);

// The same of a region that others may write meanwhile: `has_writer` says
// whether one has it open. What fails is read again until it failed where
// nobody had it open before and after (P-S5), or often enough. Errors: also
// Unavailable (it is being formatted).
absl::StatusOr<RegionState> ReadSharedRegionState(
    std::span<std::byte> region, const std::string& name, ReadingMode mode,
    absl::FunctionRef<bool()> has_writer);

// `file` is that of the region, or none.
ScanInput ScanInputOf(std::span<std::byte> region, const RegionState& state,
                      FileView file = {});

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_REGION_STATE_H_
