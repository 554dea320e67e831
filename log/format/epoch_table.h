// SPDX-License-Identifier: Apache-2.0
// epoch_table: maps each LSN to the epoch that owns it, and holds the nonces
// that seed checksums.
//
// Idea: opening an epoch is one table entry, not a ring record, so that a full
// ring can always be opened. A record is accepted only if its epoch owns its
// LSN. So the divergent tail of an earlier epoch becomes invalid without a byte
// of it being overwritten (P-H13).
//
// Invariants:
//   ET1. Entries are sorted: epochs strictly increase, start LSNs never
//        decrease.
//   ET2. owner(lsn) = the newest entry with start_lsn <= lsn.
//   ET3. Entries that own no live record are dropped when an epoch opens.
// Thread safety: a value.
// References: protocol P-A2, P-H13; docs/formats/log.md#epoch-table.
#ifndef ALPHEUS_LOG_FORMAT_EPOCH_TABLE_H_
#define ALPHEUS_LOG_FORMAT_EPOCH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/record.h"

namespace alpheus {

inline constexpr uint64_t kEpochTableMagic = 0x454c424154485041u;  // "APHTABLE"
inline constexpr uint64_t kEpochTableCapacity = 1024;  // entries, by default

struct EpochEntry {
  Epoch epoch;
  uint64_t nonce = 0;
  Lsn start_lsn;             // first LSN that the epoch owns
  RingOffset start_offset;   // place of its first record or PAD
  uint64_t start_chain = 0;  // chain value before start_lsn

  bool operator==(const EpochEntry&) const = default;
};

// Entry on media; the entries follow one another.
struct EpochEntryFormat {
  uint64_t epoch;         // 0..8
  uint64_t nonce;         // 8..16
  uint64_t start_lsn;     // 16..24
  uint64_t start_offset;  // 24..32
  uint64_t start_chain;   // 32..40
};
static_assert(sizeof(EpochEntryFormat) == 40);
static_assert(offsetof(EpochEntryFormat, epoch) == 0);
static_assert(offsetof(EpochEntryFormat, nonce) == 8);
static_assert(offsetof(EpochEntryFormat, start_lsn) == 16);
static_assert(offsetof(EpochEntryFormat, start_offset) == 24);
static_assert(offsetof(EpochEntryFormat, start_chain) == 32);

class EpochTable {
 public:
  EpochTable() = default;

  // Decodes a table. `log_id` seeds the keys. Errors: DataLoss (size; entries
  // that break ET1).
  static absl::StatusOr<EpochTable> Decode(Uuid log_id,
                                           std::span<const std::byte> content);
  static EpochTable Empty(Uuid log_id);
  std::vector<std::byte> Encode() const;

  const std::vector<EpochEntry>& entries() const { return entries_; }

  // Compares log and entries; equal ones have equal keys.
  bool operator==(const EpochTable& other) const {
    return log_id_ == other.log_id_ && entries_ == other.entries_;
  }

  // Returns the entry that owns `lsn`, or nullptr: no epoch was open for it
  // yet.
  const EpochEntry* Owner(Lsn lsn) const;

  // Returns the LSN after the last one that the entry owns. Requires: as KeyOf.
  Lsn EndOf(const EpochEntry* entry) const {
    const auto* next = entry + 1;
    return next == entries_.data() + entries_.size()
               ? Lsn(std::numeric_limits<uint64_t>::max())
               : next->start_lsn;
  }

  // Returns the entry's key. Requires: `entry` came from this table.
  const EpochKey& KeyOf(const EpochEntry* entry) const;

  // Returns this table with `next` added and without the entries that own
  // nothing from `head_lsn` on (ET3). Requires: next keeps ET1.
  EpochTable With(const EpochEntry& next, Lsn head_lsn) const;

 private:
  void Add(const EpochEntry& entry);

  Uuid log_id_;
  std::vector<EpochEntry> entries_;
  std::vector<EpochKey> keys_;  // keys_[i] belongs to entries_[i]
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_EPOCH_TABLE_H_
