// SPDX-License-Identifier: Apache-2.0
// wal_repairer: turns the records left of a damaged log of WAL files, in LSN
// order, into records that a store opens.
//
// Idea: an opening refuses a log in which a record is missing: it can't know
// the content. A user who salvages knows that something is lost, and wants the
// rest. RocksDB has a rule for lost bytes in a WAL file, its wal_recovery_mode.
// So lost bytes of a file become as many bytes that RocksDB takes for a damaged
// record, and the following bytes keep their place.
//
// Invariants:
//   WME1. A whole run of records that a store wrote comes out unchanged, except
//         for remains of removed files (WIX2, wal_index.h).
//   WME2. WalIndex::Apply accepts the output.
//   WME3. The only input left out is data and names of files whose kCreate is
//         lost: their names are unknown.
// Thread safety: one thread at a time.
// References: docs/use/rocksdb.md#damage.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_REPAIRER_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_REPAIRER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "api/rocksdb/store/wal_record.h"

namespace alpheus::wal {

// Returns `bytes` bytes for offset `offset` of a WAL file that RocksDB's reader
// takes for a damaged record, in whatever block they lie.
std::vector<std::byte> DamagedWalBytes(uint64_t offset, size_t bytes);

class WalRepairer {
 public:
  // Called with the payload of a record, valid during the call.
  using Emit = std::function<absl::Status(std::span<const std::byte> payload)>;

  struct Tally {
    uint64_t filled_bytes = 0;    // lost bytes of existing files
    uint64_t dropped_bytes = 0;   // bytes of files without kCreate
    std::set<uint64_t> nameless;  // their ids: lost, or remains
  };

  // Repairs the next record. One that is not the plugin's comes out unchanged.
  // Errors: any error of `emit`.
  absl::Status Repair(std::span<const std::byte> payload, const Emit& emit);

  const Tally& tally() const { return tally_; }
  // Returns whether the first record was one of the plugin's.
  bool is_of_the_plugin() const { return is_of_the_plugin_; }

 private:
  absl::Status RepairIn(uint64_t* size, const WalRecord& record,
                        std::span<const std::byte> payload, const Emit& emit);
  absl::Status Fill(uint64_t id, uint64_t* size, uint64_t until,
                    const Emit& emit);
  void Drop(const WalRecord& record);

  std::map<uint64_t, uint64_t> sizes_;  // by id, of files with kCreate
  std::set<uint64_t> removed_;
  uint64_t next_id_ = 1;
  bool has_begun_ = false;
  bool is_of_the_plugin_ = false;
  Tally tally_;
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_REPAIRER_H_
