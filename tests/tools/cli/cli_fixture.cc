// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/cli/cli_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "alpheus/log_reader.h"
#include "log/format/layout.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {

using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;
using ::testing::HasSubstr;

namespace {

Program ProgramAt(const std::string& path, const Arguments& arguments) {
  Program program;
  program.argv = {path};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  return program;
}

ProgramResult RunAny(const Program& program, const std::string& input) {
  absl::StatusOr<ProgramResult> result =
      demo::RunProgram(program, input, kPatienceNanos);
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status();
  return {};
}

}  // namespace

Program AlpheusProgram(const Arguments& arguments) {
  return ProgramAt(ALPHEUS_BINARY, arguments);
}

ProgramResult RunProgramAt(const std::string& path,
                           const Arguments& arguments) {
  return RunAny(ProgramAt(path, arguments), /*input=*/"");
}

ProgramResult RunAlpheus(const Arguments& arguments, const std::string& input) {
  return RunAny(AlpheusProgram(arguments), input);
}

ProgramResult RunInShell(const std::string& script) {
  Program program;
  program.argv = {"/bin/sh", "-c", script, ALPHEUS_BINARY};
  return RunAny(program, /*input=*/"");
}

std::string RunWell(const Arguments& arguments, const std::string& input) {
  const ProgramResult result = RunAlpheus(arguments, input);
  EXPECT_EQ(result.end.exit_status, kGood)
      << result.end.ToString() << ": " << result.error;
  return result.output;
}

std::string FrameLen32(const std::vector<std::string>& records) {
  std::string framed;
  for (const std::string& record : records) {
    for (int shift = 0; shift < 32; shift += 8) {
      framed.push_back(static_cast<char>(record.size() >> shift));
    }
    framed += record;
  }
  return framed;
}

std::string JoinLines(const std::vector<std::string>& records) {
  std::string lines;
  for (const std::string& record : records)
    absl::StrAppend(&lines, record, "\n");
  return lines;
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "") << "the last line must end";
  lines.pop_back();
  return lines;
}

std::vector<json> ParseLines(const std::string& text) {
  std::vector<json> objects;
  for (const std::string& line : SplitLines(text)) {
    objects.push_back(json::parse(line, nullptr, false));
    EXPECT_TRUE(objects.back().is_object()) << line;
  }
  return objects;
}

std::string DrawBytes(Random* random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random->Next());
  return text;
}

std::vector<std::string> CountTo(int count) {
  std::vector<std::string> records;
  for (int i = 0; i < count; ++i) records.push_back(absl::StrCat(i));
  return records;
}

std::vector<std::string> MakeShapes() {
  Random random(4);
  std::vector<std::string> records;
  for (const size_t bytes : {5, 0, 16, 17, 80, 200, 0, 3}) {
    records.push_back(DrawBytes(&random, bytes));
  }
  return records;
}

std::string CliTest::Format(const std::string& size) {
  RunWell({"format", "--file", region_, "--size", size});
  return region_;
}

std::string CliTest::FormatWith(const std::vector<std::string>& records) {
  Format();
  RunWell({"append", "--file", region_, "--framing", "len32"},
          FrameLen32(records));
  return region_;
}

std::string CliTest::CatLen32() {
  return RunWell({"cat", "--file", region_, "--framing", "len32"});
}

std::vector<std::byte> CliTest::RegionBytes() {
  std::vector<std::byte> bytes = ReadFile(region_);
  if (has_writer_) {
    std::fill(bytes.begin() + kWatermarkOffset, bytes.begin() + kTableOffset,
              std::byte{0});
  }
  return bytes;
}

void CliTest::ExpectRefused(const Arguments& arguments, int exit_status,
                            const std::string& message,
                            const std::string& input) {
  const auto before = RegionBytes();
  const ProgramResult result = RunAlpheus(arguments, input);
  EXPECT_EQ(result.end.exit_status, exit_status) << absl::StrCat(
      arguments[0], ": ", result.end.ToString(), ": ", result.error);
  EXPECT_THAT(result.error, HasSubstr(message));
  EXPECT_NE(result.error, "");
  EXPECT_TRUE(RegionBytes() == before) << arguments[0] << " changed the region";
}

void CliTest::ExpectRefusedByOpening(int exit_status,
                                     const std::string& message) {
  const std::vector<Arguments> commands = {
      {"append", "--file", region_},
      {"cat", "--file", region_},
      {"inspect", "--file", region_},
      {"verify", "--file", region_},
      {"verify", "--file", region_, "--json"},
      {"cleanup", "--file", region_, "--all"},
      {"cleanup", "--file", region_, "--through", "1"}};
  for (const Arguments& command : commands) {
    ExpectRefused(command, exit_status, message, "a record\n");
  }
}

void CliTest::ExpectRefusedByAll(int exit_status, const std::string& message) {
  ExpectRefusedByOpening(exit_status, message);
  const std::string out = File("salvaged");
  ExpectRefused({"salvage", region_, out}, exit_status, message);
  EXPECT_FALSE(std::filesystem::exists(out));
}

json CliTest::Inspect() {
  return json::parse(RunWell({"inspect", "--file", region_, "--json"}), nullptr,
                     false);
}

void CliTest::FlipBit(uint64_t offset, int bit) {
  auto bytes = ReadFile(region_);
  bytes[offset] ^= static_cast<std::byte>(1 << bit);
  WriteFile(region_, bytes);
}

std::vector<uint64_t> CliTest::FindOffsets() {
  std::vector<uint64_t> offsets;
  const auto reader = LogReader::Open(region_);
  EXPECT_TRUE(reader.ok()) << reader.status();
  const absl::Status read = (*reader)->ForEach([&](const ReaderRecord& r) {
    offsets.push_back(r.offset);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  return offsets;
}

}  // namespace alpheus::testing
