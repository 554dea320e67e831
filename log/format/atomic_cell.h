// SPDX-License-Identifier: Apache-2.0
// atomic_cell: the atomicity primitive: bytes at a fixed place that are
// replaced as a whole or not at all.
//
// Idea: Arcadia's listing 2 without its index word: two copies on pages of
// their own, each with a sequence number and a checksum that covers the copy's
// index. An update writes one copy, persists it, writes the other, persists it,
// and only then is acknowledged. When nothing is being written both copies are
// equal, so that losing one never brings back an older value (P-S1, P-S2).
//
// Invariants:
//   ACL1. At every instant at least one copy is valid.
//   ACL2. A value that Write acknowledged is found again while one copy is
//         good.
//   ACL3. Sequence numbers only grow; the valid copy with the larger one holds.
//   ACL4. The only good copy is never overwritten: an update first writes the
//         copy that is damaged or older.
// Persistence: crash states of an update from s to s+1:
//   {s,s} -> {torn,s} -> {s+1,s} -> {s+1,torn} -> {s+1,s+1}: read as s, s, s+1,
//   s+1, s+1. Reading repairs nothing; Repair() makes both copies equal.
// Thread safety: one writer. Readers of a live cell may see it in the middle of
// an update and must then read again (P-S5).
// References: Arcadia §3 listing 2; docs/formats/log.md#cell.
#ifndef ALPHEUS_LOG_FORMAT_ATOMIC_CELL_H_
#define ALPHEUS_LOG_FORMAT_ATOMIC_CELL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// First bytes of each copy on media.
struct CellHeader {
  uint64_t magic;          // 0..8    says what the cell holds
  uint64_t seq;            // 8..16   1 for the first value
  uint32_t content_bytes;  // 16..20  after this header
  uint32_t crc;            // 20..24  over bytes 0..20 and the content
};
inline constexpr size_t kCellHeaderBytes = 24;
static_assert(sizeof(CellHeader) == kCellHeaderBytes);
static_assert(offsetof(CellHeader, magic) == 0);
static_assert(offsetof(CellHeader, seq) == 8);
static_assert(offsetof(CellHeader, content_bytes) == 16);
static_assert(offsetof(CellHeader, crc) == 20);

// Place of a cell and identity of its content.
struct CellPlace {
  std::array<std::byte*, 2> copies{};  // page-aligned, capacity_bytes each
  size_t capacity_bytes = 0;           // size of a copy, header included
  uint64_t magic = 0;
  uint64_t owner = 0;  // mixed into the checksum's seed (identity of the log)
};

struct CellCopy {
  bool valid = false;
  uint64_t seq = 0;
  std::vector<std::byte> content;

  bool operator==(const CellCopy&) const = default;
};

// Reads one copy as it is on media; invalid when torn or damaged. Copies the
// content before checking it, so that a racing update can't slip in between.
CellCopy ReadCellCopy(const CellPlace& place, int index);

// Both copies. `newest` is the index of the one that holds, if any.
struct CellState {
  std::array<CellCopy, 2> copies;
  std::optional<int> newest;

  bool copies_agree() const { return newest && copies[0] == copies[1]; }
};
CellState ReadCell(const CellPlace& place);

// Returns the whole copy for the medium, checksum included.
std::vector<std::byte> EncodeCellCopy(const CellPlace& place, int index,
                                      uint64_t seq,
                                      std::span<const std::byte> content);

// Writes one copy and persists it. Returns false if it is unknown what is
// persistent.
template <Persistence P>
[[nodiscard]] bool WriteCellCopy(P& pmem, const CellPlace& place, int index,
                                 uint64_t seq,
                                 std::span<const std::byte> content) {
  const std::vector<std::byte> bytes =
      EncodeCellCopy(place, index, seq, content);
  ALPHEUS_CHECK(bytes.size() <= place.capacity_bytes,
                "a cell's content fits its copies (layout.h)");
  pmem.Copy(place.copies[index], bytes.data(), bytes.size());
  return Persist(pmem, place.copies[index], bytes.size());
}

// Replaces the value by `content` with number `seq`, starting with the copy
// that is not `newest` (ACL4). On true both copies are persisted.
// Requires: seq larger than the newest copy's.
// Ensures: the copy that is written second was on the medium before, also if it
// was read from a shadow (shadow_persistence.h).
template <Persistence P>
[[nodiscard]] bool WriteCell(P& pmem, const CellPlace& place,
                             std::optional<int> newest, uint64_t seq,
                             std::span<const std::byte> content) {
  const int first = newest == 0 ? 1 : 0;
  // Repairs the other copy on the medium first, since it was read from the
  // shadow if there is one.
  if (!RepairOnMedium(pmem, place.copies[1 - first], place.capacity_bytes)
           .ok()) {
    return false;
  }
  return WriteCellCopy(pmem, place, first, seq, content) &&
         WriteCellCopy(pmem, place, 1 - first, seq, content);
}

// Persists again each copy that differs on the medium under a shadow. Returns
// true if one did. Requires: no thread writes the cell.
template <Persistence P>
absl::StatusOr<bool> RepairCellOnMedium(P& pmem, const CellPlace& place) {
  bool is_repaired = false;
  for (std::byte* const copy : place.copies) {
    const absl::StatusOr<bool> repaired =
        RepairOnMedium(pmem, copy, place.capacity_bytes);
    if (!repaired.ok()) return repaired;
    is_repaired |= *repaired;
  }
  return is_repaired;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_ATOMIC_CELL_H_
