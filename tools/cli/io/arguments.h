// SPDX-License-Identifier: Apache-2.0
// arguments: options that several commands share, and how their values are
// read.
#ifndef ALPHEUS_TOOLS_CLI_IO_ARGUMENTS_H_
#define ALPHEUS_TOOLS_CLI_IO_ARGUMENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace alpheus::cli {

// Appending threads.
inline constexpr int kThreadsMax = 256;
// Records between two forces: the exposure cap is at least twice the frequency
// (protocol P-A3.1), and the log takes at most 2^20.
inline constexpr uint32_t kFrequencyMax = uint32_t{1} << 19;

// A number of bytes: decimal digits, then nothing or B, or one of KiB, MiB,
// GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000).
// Errors: InvalidArgument (also: 2^63 or more).
absl::StatusOr<uint64_t> ParseSize(const std::string& text);

void AddFileOption(CLI::App* command, std::string* file);
void AddFramingOption(CLI::App* command, std::string* framing);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_ARGUMENTS_H_
