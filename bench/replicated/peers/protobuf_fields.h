// SPDX-License-Identifier: Apache-2.0
// protobuf_fields: encodes and decodes the two kinds of fields that the peers'
// messages here have: numbers (varint) and bytes.
//
// Idea: three messages of a few fields need no generated code.
//
// Thread safety: all concurrently.
// References: https://protobuf.dev/programming-guides/encoding/
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_PROTOBUF_FIELDS_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_PROTOBUF_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

// Appends field `field` with these bytes. Requires: field in [1, 15].
void AppendBytesField(uint32_t field, std::string_view bytes,
                      std::string* message);

// Appends field `field` with this number. Requires: field in [1, 15].
void AppendNumberField(uint32_t field, uint64_t number, std::string* message);

// Return the last value of that field; a missing field is 0 or empty, as in the
// format.
// Errors: DataLoss: no such message; InvalidArgument: the field is of the other
// kind.
absl::StatusOr<uint64_t> NumberField(std::string_view message, uint32_t field);
absl::StatusOr<std::string_view> BytesField(std::string_view message,
                                            uint32_t field);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_PROTOBUF_FIELDS_H_
