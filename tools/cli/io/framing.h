// SPDX-License-Identifier: Apache-2.0
// framing: where a record begins and ends in a stream of bytes.
//
// lines: a record is what stands before each '\n'; a last line without one
// counts, an empty line is a record of length zero, '\r' is kept. Reading back
// what was written this way gives the same bytes, but for records that contain
// '\n' themselves.
// len32: four bytes, little-endian, give the length; the payload follows. Holds
// any record.
//
// Thread safety: one thread per reader; functions are pure.
#ifndef ALPHEUS_TOOLS_CLI_IO_FRAMING_H_
#define ALPHEUS_TOOLS_CLI_IO_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/cli/io/standard_streams.h"

namespace alpheus::cli {

enum class Framing { kLines, kLen32 };

inline constexpr size_t kLen32Bytes = 4;

// "lines" or "len32". Errors: InvalidArgument.
absl::StatusOr<Framing> ParseFraming(const std::string& name);

// Takes records out of a stream, one by one.
class FrameReader {
 public:
  virtual ~FrameReader() = default;

  // Puts the next record into *record; false at the end of input.
  // Errors, each with record index and byte position: OutOfRange (longer than
  // the limit, or the input ends inside the record); as Input.
  virtual absl::StatusOr<bool> Next(std::string* record) = 0;
};

// `input` must outlive the reader. No record longer than `record_bytes_max` is
// ever held in memory.
std::unique_ptr<FrameReader> MakeFrameReader(Framing framing, Input* input,
                                             size_t record_bytes_max);

// Writes one record. Requires: payload.size() < 2^32 for len32.
absl::Status WriteFrame(Framing framing, std::string_view payload,
                        Output* output);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_FRAMING_H_
