// SPDX-License-Identifier: Apache-2.0
// object: format of one version of a key in a record of the store's log.
//
// Idea: a record holds many objects (store_record.h), and the index names each
// by its place, so that a reader fetches one object alone. The log's checksums
// cover records. A reader that takes bytes from another host's memory has only
// what is here: it compares key and lap, and checks the sum if there is one.
//
// Persistence: the bytes below are on media, little-endian; the golden test of
// tests/api/store/record/object_test.cc fixes them.
//
//   0..2    bytes of the key, 1 to 65,535
//   2       flags: 1 deleted, 2 expires, 4 copied, 8 has a request, 16 has a
//   sum 3       lap: low 8 bits of the number of the ring's lap in which it
//   lies 4..8    bytes of the value; deleted: 0 8..     in this order, each if
//   its flag says so:
//             8 bytes   expires: log time from which it is expired, in ns
//             8 bytes   copied: version of the object that was copied
//             16 bytes  has a request: client, and sequence of its request
//             8 bytes   has a sum: CRC-32C of all bytes but these 8, then zeros
//   then    key, value, and zeros up to a multiple of 8
//
// Invariants:
//   OBJ1. Decoding reads no byte outside of what it is given, and takes nothing
//         that encoding does not write.
//   OBJ2. A sum tells of a change to any byte of its object.
// Thread safety: pure functions.
// References: docs/formats/store.md.
#ifndef ALPHEUS_API_STORE_RECORD_OBJECT_H_
#define ALPHEUS_API_STORE_RECORD_OBJECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::store {

inline constexpr size_t kObjectHeaderBytes = 8;
// Unit of sizes and places of objects.
inline constexpr size_t kObjectUnitBytes = 8;
inline constexpr size_t kKeyBytesMax = 65'535;

// Names the request that wrote an object, so that a repeated one is known
// (P-O10).
struct RequestId {
  uint64_t client = 0;
  uint64_t sequence = 0;

  bool operator==(const RequestId&) const = default;
};

// One version of a key. Key and value belong to the caller.
struct Object {
  std::span<const std::byte> key = {};
  std::span<const std::byte> value = {};
  bool is_deleted = false;
  uint8_t lap = 0;
  std::optional<int64_t> expires_ns = {};       // log time
  std::optional<uint64_t> copied_version = {};  // version of the original
  std::optional<RequestId> request = {};
  bool has_sum = false;
};

// Returns the encoded size, a multiple of kObjectUnitBytes.
size_t EncodedBytes(const Object& object);

// Encodes the object. Reads its key and its value once: what they are summed by
// is what was written (P-E18). Requires: out has EncodedBytes(object); the key
// has 1 to kKeyBytesMax bytes; the value is empty if it is deleted, and has
// less than 2^32 bytes.
void EncodeObject(const Object& object, std::span<std::byte> out);

// An object and the bytes that it takes.
struct DecodedObject {
  Object object;
  size_t encoded_bytes = 0;
};

// Decodes the object at the front of `bytes`; key and value lie there. Does not
// check the sum. Errors: DataLoss (nothing that was encoded, or it is cut off).
absl::StatusOr<DecodedObject> DecodeObject(std::span<const std::byte> bytes);

// Checks the sum of one whole encoded object. Requires: DecodeObject took it,
// and says that it has one. Errors: DataLoss.
absl::Status CheckSum(std::span<const std::byte> encoded);

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_RECORD_OBJECT_H_
