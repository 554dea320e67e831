// SPDX-License-Identifier: Apache-2.0
// protobuf_fields: the two kinds of fields that the messages of a peer have
// which the benchmark sends and reads: numbers (varint) and bytes.
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

// The last value of that field; a field that is not there is 0 or empty, as
// the format has it.
// Errors: DataLoss: no such message; InvalidArgument: the field is of the other
// kind.
absl::StatusOr<uint64_t> NumberField(std::string_view message, uint32_t field);
absl::StatusOr<std::string_view> BytesField(std::string_view message,
                                            uint32_t field);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_PROTOBUF_FIELDS_H_
