// SPDX-License-Identifier: Apache-2.0
// store_record: format of the payloads in the log of a store.
//
// Idea: a payload is a header of 16 bytes and what it counts. A record is
// written whole or not at all, so all objects of one record become visible
// together: that is how several keys are put at once, and how one fence serves
// many clients.
//
// Persistence: the bytes below are on media, little-endian; the golden test of
// tests/api/store/record/store_record_test.cc fixes them.
//
//   0..2    magic "AO"
//   2       version: 1
//   3       kind
//   4..8    count of what follows: kObjects the objects; kTime 0
//   8..16   log time, in ns since 1970: no reader was shown a later one before
//           the next such record (P-O12, P-E27)
//   16..    kObjects: objects, one behind the other (object.h)
//
// Thread safety: pure functions.
// References: docs/formats/store.md.
#ifndef ALPHEUS_API_STORE_RECORD_STORE_RECORD_H_
#define ALPHEUS_API_STORE_RECORD_STORE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/record/object.h"

namespace alpheus::store {

// On media, never renumber.
enum class StoreRecordKind : uint8_t {
  kObjects = 1,
  kTime = 2,  // says nothing but its log time
};

inline constexpr size_t kStoreRecordHeaderBytes = 16;

struct StoreRecordHeader {
  StoreRecordKind kind = StoreRecordKind::kObjects;
  uint32_t count = 0;
  int64_t time_ns = 0;  // log time

  bool operator==(const StoreRecordHeader&) const = default;
};

void EncodeStoreRecordHeader(const StoreRecordHeader& header,
                             std::span<std::byte, kStoreRecordHeaderBytes> out);

// Decodes a payload's header. Errors: FailedPrecondition (no record of a store:
// the log is used for something else); Unimplemented (version or kind of a
// later store); DataLoss (a record that no store writes).
absl::StatusOr<StoreRecordHeader> DecodeStoreRecordHeader(
    std::span<const std::byte> payload);

// Calls `visit` for each object of a payload of kind kObjects, in order, with
// the object's offset in the payload. Errors: DataLoss; that of `visit`, which
// ends it.
absl::Status ForEachObject(
    std::span<const std::byte> payload, uint32_t count,
    absl::FunctionRef<absl::Status(size_t offset, const DecodedObject& object)>
        visit);

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_RECORD_STORE_RECORD_H_
