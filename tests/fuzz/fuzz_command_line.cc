// SPDX-License-Identifier: Apache-2.0
// Fuzzes what users type and pipe into `alpheus`: its command line, that of
// `alpheus-sim` (behind the word "sim"), sizes, and the framing of records on
// standard input.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/fuzz/captured_output.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/exit_status.h"
#include "tools/cli/io/framing.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/sim/run/sim_arguments.h"

namespace alpheus::testing {
namespace {

using cli::Framing;

// ---- The command line

// Words that the parser knows, and values on the edge of what it takes.
constexpr std::array<const char*, 81> kWords = {"format",
                                                "append",
                                                "cat",
                                                "inspect",
                                                "verify",
                                                "cleanup",
                                                "salvage",
                                                "--file",
                                                "--size",
                                                "--framing",
                                                "--threads",
                                                "--frequency",
                                                "--ack",
                                                "--json",
                                                "--through",
                                                "--all",
                                                "--in",
                                                "--out",
                                                "--help",
                                                "-h",
                                                "--",
                                                "-",
                                                "",
                                                "=",
                                                "--file=",
                                                "lines",
                                                "len32",
                                                "0",
                                                "1",
                                                "-1",
                                                "010",
                                                "0x10",
                                                "257",
                                                "524288",
                                                "524289",
                                                "64MiB",
                                                "1GB",
                                                "1TiB",
                                                "8EiB",
                                                "1e3",
                                                "nan",
                                                "+1",
                                                " 1",
                                                "9223372036854775807",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "wal",
                                                "--config",
                                                "sim",
                                                "--seed",
                                                "--seeds",
                                                "1-2",
                                                "2-1",
                                                "--minutes",
                                                "0.5",
                                                "--nodes",
                                                "3",
                                                "--write-quorum",
                                                "--clients",
                                                "--payload",
                                                "--workload",
                                                "mixed",
                                                "--faults",
                                                "none",
                                                "power-cut",
                                                "power-cut,rival",
                                                "--without",
                                                "0-3,7",
                                                "3-0",
                                                "--beyond-budget",
                                                "--platform",
                                                "dmp,infiniband",
                                                "--no-breaks",
                                                "--no-yields",
                                                "--canary",
                                                "lost-fences",
                                                "--jobs",
                                                "--no-shrink",
                                                "--keep-going",
                                                "--trace",
                                                "--commit"};

std::string MakeText(FuzzInput& input, size_t bytes_max) {
  const auto raw = input.Take(input.Below(bytes_max + 1));
  return {raw.begin(), raw.end()};
}

std::vector<std::string> MakeArguments(FuzzInput& input) {
  std::vector<std::string> arguments;
  while (!input.empty() && arguments.size() < 12) {
    const uint8_t choice = input.Byte();
    std::string word =
        choice < 192 ? kWords[choice % kWords.size()] : MakeText(input, 20);
    if (choice % 64 == 63) word += MakeText(input, 8);
    arguments.push_back(std::move(word));
  }
  return arguments;
}

// How the parser of `alpheus` ends; nothing if the words name a command. The
// command is not run: it would write files of any name.
std::optional<cli::ExitStatus> ParseAlpheus(
    const std::vector<std::string>& arguments, std::ostream& output,
    std::ostream& error) {
  const auto parsed = cli::ParseCommandLine(arguments, output, error);
  if (const auto* chosen = std::get_if<cli::Command>(&parsed)) {
    ExpectTrue(*chosen != nullptr, "a command line names a command");
    return std::nullopt;
  }
  return std::get<cli::ExitStatus>(parsed);
}

// The same of `alpheus-sim`; what the options come to is computed, too.
std::optional<cli::ExitStatus> ParseSimulator(
    const std::vector<std::string>& arguments, std::ostream& output,
    std::ostream& error) {
  cli::Parser parser("", "alpheus-sim");
  sim::SimArguments chosen;
  sim::AddSimOptions(parser.app(), &chosen);
  const auto end = parser.Parse(arguments, output, error);
  if (end) return end;
  const auto seeds = sim::SeedsOf(chosen, 1);
  ExpectTrue(seeds.ok() ? seeds->first <= seeds->last
                        : absl::IsInvalidArgument(seeds.status()),
             "seeds are in order, or refused as bad usage");
  const auto fixed = sim::FixedOf(chosen);
  ExpectTrue(fixed.ok() || absl::IsInvalidArgument(fixed.status()),
             "bad options are bad usage");
  return std::nullopt;
}

void FuzzArguments(FuzzInput& input) {
  std::vector<std::string> arguments = MakeArguments(input);
  std::ostringstream output;
  std::ostringstream error;
  std::optional<cli::ExitStatus> end;
  if (!arguments.empty() && arguments.front() == "sim") {
    arguments.erase(arguments.begin());
    end = ParseSimulator(arguments, output, error);
  } else {
    end = ParseAlpheus(arguments, output, error);
  }
  if (!end) {
    ExpectTrue(output.str().empty() && error.str().empty(),
               "a good command line is passed over in silence");
    return;
  }
  const bool is_help = *end == cli::ExitStatus::kGood;
  ExpectTrue(is_help || *end == cli::ExitStatus::kUsage,
             "the parser ends with help or bad usage");
  ExpectTrue(output.str().empty() != is_help, "help is output");
  ExpectTrue(error.str().empty() == is_help, "refusals are told");
}

// ---- Sizes

// Digits, then a unit; nothing above 2^63 - 1.
std::optional<uint64_t> NaiveSize(const std::string& text) {
  size_t digits = 0;
  long double number = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    number = number * 10 + (text[digits++] - '0');
  }
  if (digits == 0) return std::nullopt;
  const std::string unit = text.substr(digits);
  long double factor = 1;
  const std::string_view prefixes = "KMGT";
  const size_t power =
      unit.empty() ? std::string_view::npos : prefixes.find(unit[0]);
  if (power != std::string_view::npos) {
    const std::string rest = unit.substr(1);
    if (rest != "B" && rest != "iB") return std::nullopt;
    for (size_t i = 0; i <= power; ++i) factor *= rest == "B" ? 1000 : 1024;
  } else if (!unit.empty() && unit != "B") {
    return std::nullopt;
  }
  // 64 bits of mantissa: exact as far as it matters.
  const long double bytes = number * factor;
  if (bytes > static_cast<long double>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

void FuzzSize(FuzzInput& input) {
  std::string text;
  if (input.Flag()) {
    text = MakeText(input, 24);
  } else {
    constexpr std::array<const char*, 12> kUnits = {
        "", "B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB", "kB", " "};
    text = std::to_string(input.Near(1000)) + kUnits[input.Below(12)];
  }
  const auto size = cli::ParseSize(text);
  const std::optional<uint64_t> expected = NaiveSize(text);
  ExpectSame("size is taken", size.ok(), expected.has_value());
  if (expected) ExpectSame("size", *size, *expected);
  ExpectTrue(size.ok() || absl::IsInvalidArgument(size.status()),
             "a bad size is bad usage");
}

// ---- Framing

struct Records {
  std::vector<std::string> records;
  bool ends_well = true;
};

Records NaiveLines(const std::string& stream, size_t bytes_max) {
  Records result;
  size_t at = 0;
  while (at < stream.size()) {
    const size_t newline = std::min(stream.find('\n', at), stream.size());
    if (newline - at > bytes_max) {
      result.ends_well = false;
      return result;
    }
    result.records.push_back(stream.substr(at, newline - at));
    at = newline + 1;
  }
  return result;
}

Records NaiveLen32(const std::string& stream, size_t bytes_max) {
  Records result;
  size_t at = 0;
  while (at < stream.size()) {
    uint64_t length = 0;
    if (stream.size() - at >= 4) {
      for (size_t i = 0; i < 4; ++i) {
        length |= uint64_t{static_cast<uint8_t>(stream[at + i])} << (8 * i);
      }
    }
    if (stream.size() - at < 4 || length > bytes_max ||
        stream.size() - at - 4 < length) {
      result.ends_well = false;
      return result;
    }
    result.records.push_back(stream.substr(at + 4, length));
    at += 4 + length;
  }
  return result;
}

// Puts the stream into a pipe that gives it back in the same pieces.
int PipeInPieces(const std::string& stream, size_t piece_bytes) {
  std::array<int, 2> ends{};
  // O_DIRECT: one read takes one write, at most.
  ExpectTrue(pipe2(ends.data(), O_DIRECT | O_CLOEXEC) == 0, "a pipe is there");
  for (size_t at = 0; at < stream.size(); at += piece_bytes) {
    const size_t bytes = std::min(piece_bytes, stream.size() - at);
    ExpectTrue(write(ends[1], stream.data() + at, bytes) ==
                   static_cast<ssize_t>(bytes),
               "a pipe takes what is written");
  }
  close(ends[1]);
  return ends[0];
}

void ExpectRewritten(Framing framing, const Records& expected,
                     const std::string& stream) {
  static MemoryFile* const file = new MemoryFile;
  file->Set("");
  cli::Output output(file->fd());
  for (const std::string& record : expected.records) {
    ExpectTrue(cli::WriteFrame(framing, record, &output).ok(), "frame");
  }
  ExpectTrue(output.Flush().ok(), "flush");
  const std::string written = file->Take();
  // A last line without its end gets one.
  ExpectTrue(written == stream || written == stream + "\n",
             "writing gives what was read");
}

void FuzzFraming(FuzzInput& input) {
  const Framing framing = input.Flag() ? Framing::kLines : Framing::kLen32;
  const size_t bytes_max = input.Byte();
  // Few enough for the pipe's slots.
  const size_t piece_bytes = 1 + input.Below(64);
  const auto raw = input.Take(std::min<size_t>(piece_bytes * 15, 512));
  const std::string stream(raw.begin(), raw.end());
  const Records expected = framing == Framing::kLines
                               ? NaiveLines(stream, bytes_max)
                               : NaiveLen32(stream, bytes_max);
  const int fd = PipeInPieces(stream, piece_bytes);
  {
    cli::Input source(fd);
    const std::unique_ptr<cli::FrameReader> reader =
        cli::MakeFrameReader(framing, &source, bytes_max);
    std::string record;
    for (const std::string& wanted : expected.records) {
      const auto found = reader->Next(&record);
      ExpectTrue(found.ok() && *found, "a record is there");
      ExpectTrue(record == wanted, "a record is as it was sent");
    }
    const auto end = reader->Next(&record);
    ExpectSame("input ends well", end.ok(), expected.ends_well);
    ExpectTrue(end.ok() ? !*end : absl::IsOutOfRange(end.status()),
               "nothing follows");
    if (end.ok()) ExpectSame("position", source.position(), stream.size());
  }
  close(fd);
  if (expected.ends_well) ExpectRewritten(framing, expected, stream);
}

void FuzzOne(FuzzInput& input) {
  switch (input.Below(4)) {
    case 0:
    case 1:
      FuzzFraming(input);
      break;
    case 2:
      FuzzSize(input);
      break;
    default:
      FuzzArguments(input);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
