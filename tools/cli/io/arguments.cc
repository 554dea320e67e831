// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/arguments.h"

#include <array>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {
namespace {

constexpr char kDigits[] = "0123456789";

struct Unit {
  const char* name;
  uint64_t bytes;
};

constexpr std::array<Unit, 10> kUnits = {{
    {"", 1},
    {"B", 1},
    {"KiB", uint64_t{1} << 10},
    {"MiB", uint64_t{1} << 20},
    {"GiB", uint64_t{1} << 30},
    {"TiB", uint64_t{1} << 40},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
}};

// 0 for an unknown unit.
uint64_t BytesOfUnit(const std::string& name) {
  for (const Unit& unit : kUnits) {
    if (name == unit.name) return unit.bytes;
  }
  return 0;
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  const size_t digits = text.find_first_not_of(kDigits);
  const uint64_t unit =
      digits == std::string::npos ? 1 : BytesOfUnit(text.substr(digits));
  uint64_t number = 0;
  if (unit == 0 || !absl::SimpleAtoi(text.substr(0, digits), &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("size '", text,
                     "': must be a whole number of bytes, or a number followed "
                     "by KiB, MiB, GiB, TiB, KB, MB, GB or TB, as in 64MiB"));
  }
  if (number >
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / unit) {
    return absl::InvalidArgumentError(
        absl::StrCat("size '", text, "': no file can be that large"));
  }
  return number * unit;
}

void AddFileOption(CLI::App* command, std::string* file) {
  AddOption(command, "--file", file, "Region file or DAX device of the log")
      .Required();
}

void AddFramingOption(CLI::App* command, std::string* framing) {
  AddOption(command, "--framing", framing,
            "How records are separated: 'lines' (each ends with a newline) or "
            "'len32' (4-byte little-endian length, then payload; needed if "
            "records may contain newlines)")
      .OneOf({"lines", "len32"})
      .ShowDefault();
}

}  // namespace alpheus::cli
