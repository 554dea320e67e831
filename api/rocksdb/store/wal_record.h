// SPDX-License-Identifier: Apache-2.0
// wal_record: format of the payloads that the RocksDB plugin writes.
//
// Idea: a WAL file is a stream: the records of the log that carry its id, in
// LSN order. Each payload is a header of 32 bytes and a body; the log's own
// checksums cover both, so the header has none.
//
// Persistence: the bytes below are on media, little-endian; the golden test of
// tests/api/rocksdb/store/wal_record_test.cc fixes them.
//
//   0..4    magic "AWAL"
//   4       version: 1; of a kHome that vouches, 2; of one that was taken over,
//           3
//   5       kind
//   6..8    0
//   8..16   id of the file; kHome: the next id to be given
//   16..24  kData: where its bytes begin in the file; kTruncate: the new size;
//           else 0
//   24..32  seconds since 1970, of kCreate, kTruncate and kRename; else 0
//   32..    body: kData the bytes; kCreate and kRename the name; kHome the two
//           directories, in version 2 also the vouch's id and generation, and
//           in version 3 also the directory that the last take-over
//           left, and id and generation of the vouch at that time, with a 0
//           byte between each two; else empty
//
// References: docs/use/rocksdb.md#the-records-of-the-plugin-version-3.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_RECORD_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace alpheus::wal {

// On media, never renumber.
enum class WalRecordKind : uint8_t {
  kHome = 1,      // the database that owns the log
  kCreate = 2,    // an empty file; replaces one of that name
  kData = 3,      // bytes at the end of a file
  kTruncate = 4,  // a file becomes shorter
  kRename = 5,    // replaces one of the new name
  kRemove = 6,
};

inline constexpr size_t kWalHeaderBytes = 32;

// Version in byte 4, on media.
inline constexpr uint8_t kWalVersion = 1;
// Version of a kHome with a vouch, which an older plugin must not ignore.
inline constexpr uint8_t kWalVouchingVersion = 2;
// Version of a kHome with the directory that a take-over left, which it must
// not ignore either.
inline constexpr uint8_t kWalTakenOverVersion = 3;

struct WalHeader {
  WalRecordKind kind = WalRecordKind::kData;
  uint8_t version = kWalVersion;
  uint64_t file = 0;
  uint64_t offset = 0;
  uint64_t seconds = 0;
};

struct WalRecord {
  WalHeader header;
  std::span<const std::byte> body;
};

void EncodeWalHeader(const WalHeader& header,
                     std::span<std::byte, kWalHeaderBytes> out);

// Decodes a payload. Errors: FailedPrecondition (no record of this plugin: the
// log is used for something else); Unimplemented (version or kind of a later
// plugin); DataLoss (a record that no plugin writes).
absl::StatusOr<WalRecord> DecodeWalRecord(std::span<const std::byte> payload);

// Returns one line for people.
std::string DescribeWalRecord(const WalRecord& record);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_RECORD_H_
