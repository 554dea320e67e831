// SPDX-License-Identifier: Apache-2.0
// wal_mender: makes of the records that are left of a log of WAL files, in LSN
// order, records that a store opens.
//
// Idea: an opening refuses a log in which a record is missing: it can't know
// what that was. Who salvages knows that something is lost, and wants the rest.
// RocksDB has a rule of its own for bytes that are lost in a WAL file, its
// wal_recovery_mode. So the lost bytes of a file become as many bytes that
// RocksDB takes for a damaged record, and what follows them stays where it was.
//
// Invariants:
//   WME1. A run of records that a store wrote, whole, comes out as it is, but
//         for remains of removed files (WIX2, wal_index.h).
//   WME2. What comes out WalIndex::Apply takes.
//   WME3. Of what went in, only data and names of a file are left out whose
//         making is lost: nothing says what it was called.
// Thread safety: one thread at a time.
// References: docs/use/rocksdb.md#damage.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_MENDER_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_MENDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "api/rocksdb/store/wal_record.h"

namespace alpheus {

// `bytes` from `offset` of a WAL file on, which RocksDB's reader takes for a
// damaged record, in whatever block they lie.
std::vector<std::byte> DamagedWalBytes(uint64_t offset, size_t bytes);

class WalMender {
 public:
  // The payload of a record, valid during the call.
  using Emit = std::function<absl::Status(std::span<const std::byte> payload)>;

  struct Tally {
    uint64_t filled_bytes = 0;    // lost, of files that are there
    uint64_t dropped_bytes = 0;   // of files whose making is not there
    std::set<uint64_t> nameless;  // their ids: lost, or remains
  };

  // Errors: whatever `emit` returns. A record that is none of the plugin's
  // comes out as it is.
  absl::Status Take(std::span<const std::byte> payload, const Emit& emit);

  const Tally& tally() const { return tally_; }
  // The first record was one of the plugin's.
  bool is_of_the_plugin() const { return is_of_the_plugin_; }

 private:
  absl::Status TakeOf(uint64_t* size, const WalRecord& record,
                      std::span<const std::byte> payload, const Emit& emit);
  absl::Status Fill(uint64_t id, uint64_t* size, uint64_t until,
                    const Emit& emit);
  void Drop(const WalRecord& record);

  std::map<uint64_t, uint64_t> sizes_;  // by id, of files that were made
  std::set<uint64_t> removed_;
  uint64_t next_id_ = 1;
  bool has_begun_ = false;
  bool is_of_the_plugin_ = false;
  Tally tally_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_MENDER_H_
