// SPDX-License-Identifier: Apache-2.0
// service_record: format of the payloads that the service appends for its
// clients.
//
// Idea: a payload is an envelope of 32 bytes and a body. The envelope names the
// client and the sequence of its request, so that whoever reads the log knows
// which requests are in it (client_table.h). The log's own checksums cover
// both, so the envelope has none.
//
// Persistence: the bytes below are on media, little-endian; the golden test of
// tests/api/service/record/service_record_test.cc fixes them.
//
//   0..2    magic "AS"
//   2       version: 1
//   3       kind
//   4..8    tag, which readers may filter by; kTable and kKeys: 0
//   8..24   client: epoch and LSN of the record that began it; kOpen,
//           kOpenByKey, kTable and kKeys: 0
//   24..32  sequence of the request; of the same kinds: 0
//   32..    body: kAppend the client's bytes; kBatch the number of payloads,
//           their lengths (4 bytes each) and their bytes; kOpenByKey the key,
//           16 bytes; kTable 48 bytes for each client; kKeys 32 bytes for each
//           client; else empty
//
// One client of a kTable:
//
//   0..16   client, as above
//   16..24  its last sequence
//   24..32  epoch of the record of that sequence
//   32..40  LSN of it
//   40      1 if the client has ended, else 0
//   41..48  0
//
// One client of a kKeys:
//
//   0..16   client, as above
//   16..32  its key
//
// Thread safety: pure functions.
// References: docs/formats/service.md.
#ifndef ALPHEUS_API_SERVICE_RECORD_SERVICE_RECORD_H_
#define ALPHEUS_API_SERVICE_RECORD_SERVICE_RECORD_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus::service {

// On media, never renumber.
enum class ServiceRecordKind : uint8_t {
  kAppend = 1,
  kBatch = 2,      // several payloads, all or none
  kOpen = 3,       // a client begins, with sequence 0
  kClose = 4,      // a client ends; the sequence is its last
  kTable = 5,      // clients whose own records may be cleaned
  kOpenByKey = 6,  // as kOpen, and the client may ask again by this key
  kKeys = 7,       // keys of clients whose own records may be cleaned
};

inline constexpr size_t kEnvelopeBytes = 32;
inline constexpr size_t kTableEntryBytes = 48;
inline constexpr size_t kKeyBytes = 16;
inline constexpr size_t kKeyEntryBytes = 32;
// A body counts its payloads with 32 bits; more than this fit into no ring.
inline constexpr size_t kBatchMax = size_t{1} << 20;

// Place of a record. An LSN says something only with the epoch of its record
// (P-E26).
struct Place {
  Epoch epoch;
  Lsn lsn;

  auto operator<=>(const Place&) const = default;
};

// Names a client by the place of the record that began it. So no other client
// ever has the same name.
struct ClientId {
  Place opened;

  auto operator<=>(const ClientId&) const = default;
  // Returns true for a name that no client has.
  bool is_none() const { return opened.epoch == Epoch(); }
  // Epoch and LSN, such as 3/42.
  std::string ToString() const;
};

// Bytes that a client has drawn by lot to begin, so that it may ask for its
// name again when the answer is lost.
using ClientKey = std::array<std::byte, kKeyBytes>;

struct Envelope {
  ServiceRecordKind kind = ServiceRecordKind::kAppend;
  uint32_t tag = 0;
  ClientId client = {};
  uint64_t sequence = 0;

  bool operator==(const Envelope&) const = default;
};

struct ServiceRecord {
  Envelope envelope;
  std::span<const std::byte> body;
};

// The last request of a client that the log has.
struct TableEntry {
  ClientId client;
  uint64_t sequence = 0;
  Place place;
  bool is_closed = false;

  bool operator==(const TableEntry&) const = default;
};

// The key by which a client has begun.
struct KeyEntry {
  ClientId client;
  ClientKey key;

  bool operator==(const KeyEntry&) const = default;
};

void EncodeEnvelope(const Envelope& envelope,
                    std::span<std::byte, kEnvelopeBytes> out);

// Decodes a payload; the body is a part of it. Errors: FailedPrecondition (no
// record of the service: the log is used for something else); Unimplemented
// (version or kind of a later service); DataLoss (a record that no service
// writes).
absl::StatusOr<ServiceRecord> DecodeServiceRecord(
    std::span<const std::byte> payload);

// Returns the head of a batch's body: all but the bytes of the payloads, which
// follow in their order. Requires: 1 to kBatchMax payloads of less than 4 GiB.
std::vector<std::byte> EncodeBatchHead(
    std::span<const std::span<const std::byte>> payloads);
// Returns the payloads of a batch, which are parts of its body. Errors:
// DataLoss.
absl::StatusOr<std::vector<std::span<const std::byte>>> DecodeBatch(
    std::span<const std::byte> body);

std::vector<std::byte> EncodeTable(std::span<const TableEntry> entries);
// Errors: DataLoss.
absl::StatusOr<std::vector<TableEntry>> DecodeTable(
    std::span<const std::byte> body);

std::vector<std::byte> EncodeKeys(std::span<const KeyEntry> entries);
// Errors: DataLoss.
absl::StatusOr<std::vector<KeyEntry>> DecodeKeys(
    std::span<const std::byte> body);

// Returns one line for people.
std::string DescribeServiceRecord(const ServiceRecord& record);

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_RECORD_SERVICE_RECORD_H_
