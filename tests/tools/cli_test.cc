// SPDX-License-Identifier: Apache-2.0
// Runs the real `alpheus` and looks at what it prints, what it returns and
// what it leaves in the region. Every refusal must leave the region as it was.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/random.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/format/superline.h"
#include "nlohmann/json.hpp"
#include "tests/testing/temp_directory.h"
#include "tools/demo/child_process.h"

namespace alpheus {
namespace {

using ::alpheus::demo::ChildProcess;
using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::alpheus::testing::ReadFile;
using ::alpheus::testing::WriteFile;
using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

// tools/cli/exit_status.h, written out: scripts rely on the numbers.
constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kDataLoss = 3;

Program AlpheusProgram(const Arguments& arguments) {
  Program program;
  program.argv = {ALPHEUS_BINARY};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  return program;
}

ProgramResult RunAny(const Program& program, const std::string& input = "") {
  absl::StatusOr<ProgramResult> result = demo::RunProgram(program, input);
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status();
  return {};
}

ProgramResult RunAlpheus(const Arguments& arguments,
                         const std::string& input = "") {
  return RunAny(AlpheusProgram(arguments), input);
}

// With a shell, for redirections: "$0" is the program.
ProgramResult RunInShell(const std::string& script) {
  Program program;
  program.argv = {"/bin/sh", "-c", script, ALPHEUS_BINARY};
  return RunAny(program);
}

std::string RunWell(const Arguments& arguments, const std::string& input = "") {
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

class CliTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const {
    return directory_.File(name);
  }

  // A new region; the smallest ones make the fastest tests.
  std::string Format(const std::string& size = "128KiB") {
    RunWell({"format", "--file", region_, "--size", size});
    return region_;
  }

  // A region that was closed cleanly, with these records.
  std::string FormatWith(const std::vector<std::string>& records) {
    Format();
    RunWell({"append", "--file", region_, "--framing", "len32"},
            FrameLen32(records));
    return region_;
  }

  std::string CatLen32() {
    return RunWell({"cat", "--file", region_, "--framing", "len32"});
  }

  // What nobody but a writer may change, which notes its last record in the
  // watermarks when it is idle.
  std::vector<std::byte> RegionBytes() {
    std::vector<std::byte> bytes = ReadFile(region_);
    if (has_writer_) {
      std::fill(bytes.begin() + kWatermarkOffset, bytes.begin() + kTableOffset,
                std::byte{0});
    }
    return bytes;
  }

  // The command fails with this status, says why, and changes no byte.
  void ExpectRefused(const Arguments& arguments, int exit_status,
                     const std::string& message = "",
                     const std::string& input = "") {
    const auto before = RegionBytes();
    const ProgramResult result = RunAlpheus(arguments, input);
    EXPECT_EQ(result.end.exit_status, exit_status) << absl::StrCat(
        arguments[0], ": ", result.end.ToString(), ": ", result.error);
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_NE(result.error, "");
    EXPECT_TRUE(RegionBytes() == before)
        << arguments[0] << " changed the region";
  }

  // Every command but salvage refuses this region.
  void ExpectRefusedByOpening(int exit_status,
                              const std::string& message = "") {
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

  // Salvage too: nothing of it can be used. No output is left behind.
  void ExpectRefusedByAll(int exit_status, const std::string& message = "") {
    ExpectRefusedByOpening(exit_status, message);
    const std::string out = File("salvaged");
    ExpectRefused({"salvage", region_, out}, exit_status, message);
    EXPECT_FALSE(std::filesystem::exists(out));
  }

  void FlipBit(uint64_t offset, int bit) {
    auto bytes = ReadFile(region_);
    bytes[offset] ^= static_cast<std::byte>(1 << bit);
    WriteFile(region_, bytes);
  }

  // Where the headers are, by LSN from 1 on.
  std::vector<uint64_t> FindOffsets() {
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

  const testing::TempDirectory directory_;
  const std::string region_ = directory_.File("region");
  bool has_writer_ = false;  // a live one of this test's
};

// --- round trips -----------------------------------------------------------

// Goal: the rules of lines framing: an empty line is a record, the last line
// needs no newline, '\r' stays.
TEST_F(CliTest, LinesComeBackInOrder) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}, "one\n\ntwo\r\n\n\nlast"),
            "6\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n\ntwo\r\n\n\nlast\n");
}

TEST_F(CliTest, NoInputAppendsNothing) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}), "0\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "");
}

// Method: every length up to three lines of the medium, then the 16-byte and
// 64-byte boundaries further up, with all byte values.
TEST_F(CliTest, BinaryRecordsOfAllLengthsComeBack) {
  Random random(1);
  std::vector<std::string> records;
  for (size_t bytes = 0; bytes <= 192; ++bytes) {
    records.push_back(DrawBytes(&random, bytes));
  }
  for (const size_t boundary : {256, 1024, 4096, 16384}) {
    for (const size_t bytes :
         {boundary - 16, boundary - 1, boundary, boundary + 1, boundary + 16}) {
      records.push_back(DrawBytes(&random, bytes));
    }
  }
  Format("1MiB");
  RunWell({"append", "--file", region_, "--framing", "len32"},
          FrameLen32(records));
  EXPECT_TRUE(CatLen32() == FrameLen32(records));
}

// The largest record fills half the ring (protocol A1).
TEST_F(CliTest, LargestRecordComesBack) {
  Format();
  const json region = json::parse(
      RunWell({"inspect", "--file", region_, "--json"}), nullptr, false);
  Random random(2);
  const std::string record = DrawBytes(
      &random, PayloadBytesMax(region["ring_capacity"].get<uint64_t>()));
  RunWell({"append", "--file", region_, "--framing", "len32"},
          FrameLen32({record}));
  EXPECT_TRUE(CatLen32() == FrameLen32({record}));
}

TEST_F(CliTest, AppendsGoOnWhereTheLastOneEnded) {
  Format();
  EXPECT_EQ(RunWell({"append", "--file", region_}, "a\nb\n"), "2\n");
  EXPECT_EQ(RunWell({"append", "--file", region_}, "c\n"), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "a\nb\nc\n");
}

// --- threads, frequency, acknowledgements ----------------------------------

std::vector<std::string> CountTo(int count) {
  std::vector<std::string> records;
  for (int i = 0; i < count; ++i) records.push_back(absl::StrCat(i));
  return records;
}

// Records i with the same i mod threads stand in their order; all are there.
void ExpectOrderPerThread(const std::vector<std::string>& records, int count,
                          int threads) {
  EXPECT_EQ(records.size(), static_cast<size_t>(count));
  std::vector<int> next(threads);
  for (int t = 0; t < threads; ++t) next[t] = t;
  for (const std::string& record : records) {
    const int i = std::stoi(record);
    EXPECT_EQ(i, next[i % threads]);
    next[i % threads] = i + threads;
  }
}

TEST_F(CliTest, EachThreadKeepsItsOrder) {
  Format("1MiB");
  constexpr int kCount = 3000;
  for (const int threads : {2, 4, 7}) {
    RunWell({"append", "--file", region_, "--threads", absl::StrCat(threads)},
            JoinLines(CountTo(kCount)));
    ExpectOrderPerThread(SplitLines(RunWell({"cat", "--file", region_})),
                         kCount, threads);
    RunWell({"cleanup", "--file", region_, "--all"});
  }
}

// Each acknowledgement names the LSN under which the record is found; with a
// force frequency they come later, but all come.
TEST_F(CliTest, AcknowledgementsNameRecordsAndLsns) {
  constexpr int kCount = 500;
  for (const std::string frequency : {"1", "7"}) {
    Format("1MiB");
    auto acks = SplitLines(RunWell({"append", "--file", region_, "--threads",
                                    "3", "--ack", "--frequency", frequency},
                                   JoinLines(CountTo(kCount))));
    EXPECT_EQ(acks.back(), absl::StrCat("durable ", kCount));
    acks.pop_back();
    const auto records = SplitLines(RunWell({"cat", "--file", region_}));
    ASSERT_EQ(acks.size(), records.size());
    for (const std::string& ack : acks) {
      const std::vector<std::string> parts = absl::StrSplit(ack, ' ');
      ASSERT_EQ(parts.size(), 3u);
      EXPECT_EQ(records[std::stoul(parts[0]) - 1], parts[1]);
      EXPECT_EQ(std::stoul(parts[1]) % 3, std::stoul(parts[2]));
    }
    std::filesystem::remove(region_);
  }
}

// --- usage -----------------------------------------------------------------

TEST_F(CliTest, BadUsageIsRefused) {
  FormatWith({"record"});
  const std::vector<Arguments> bad = {
      {},
      {"frobnicate"},
      {"append"},
      {"append", "--file"},
      {"append", "--file", region_, "--frequency", "0"},
      {"append", "--file", region_, "--frequency", "x"},
      {"append", "--file", region_, "--threads", "0"},
      {"append", "--file", region_, "--threads", "-1"},
      {"append", "--file", region_, "--threads", "257"},
      {"append", "--file", region_, "--framing", "csv"},
      {"append", "--file", region_, "extra"},
      {"cat", "--file", region_, "--no-such-option"},
      {"cleanup", "--file", region_},
      {"cleanup", "--file", region_, "--all", "--through", "1"},
      {"cleanup", "--file", region_, "--all", ""},
      {"cleanup", "", "--all", "--no-such-option"},
      {"cleanup", "--file", region_, "--lsn", "0"},
      {"cleanup", "--file", region_, "--through", "0"},
      {"cleanup", "--file", region_, "--lsn", "-1"},
      {"salvage", region_},
      {"format", "--file", File("new"), "--size", "12 furlongs"},
      {"format", "--file", File("new"), "--size", "-1"},
      {"format", "--file", File("new"), "--size", ""},
      {"format", "--file", File("new"), "--size", "99999999999TiB"},
      {"format", "--file", File("new"), "--size", "107KiB"},
      {"format", "--file", File("new"), "--size", "0"}};
  const auto before = ReadFile(region_);
  for (const Arguments& arguments : bad) {
    const ProgramResult result = RunAlpheus(arguments, "a record\n");
    EXPECT_EQ(result.end.exit_status, kUsage)
        << ::testing::PrintToString(arguments) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.error, "");
  }
  EXPECT_TRUE(ReadFile(region_) == before);
  EXPECT_FALSE(std::filesystem::exists(File("new")));
}

TEST_F(CliTest, UnknownCommandIsNamed) {
  EXPECT_THAT(RunAlpheus({"frobnicate"}).error, HasSubstr("'frobnicate'"));
}

TEST_F(CliTest, HelpIsNoError) {
  EXPECT_THAT(RunWell({"--help"}), HasSubstr("Exit status"));
  for (const std::string command :
       {"format", "append", "cat", "inspect", "verify", "cleanup", "salvage"}) {
    EXPECT_THAT(RunWell({command, "--help"}), HasSubstr("Usage"));
  }
}

TEST_F(CliTest, SizesAreTakenInEveryUnit) {
  const std::vector<std::pair<std::string, uint64_t>> sizes = {
      {"131072", 131072}, {"131072B", 131072}, {"128KiB", 131072},
      {"128KB", 128000},  {"1MiB", 1 << 20},   {"1MB", 1'000'000}};
  for (const auto& [text, bytes] : sizes) {
    Format(text);
    const auto size = std::filesystem::file_size(region_);
    EXPECT_LE(size, bytes) << text;
    EXPECT_GT(size + 4096, bytes) << text;
    std::filesystem::remove(region_);
  }
}

TEST_F(CliTest, FormatPrintsTheIdentityOfTheLog) {
  std::string id = RunWell({"format", "--file", region_, "--size", "1MiB"});
  ASSERT_EQ(id.size(), 33u);
  id.pop_back();
  const json region = json::parse(
      RunWell({"inspect", "--file", region_, "--json"}), nullptr, false);
  EXPECT_EQ(region["log_id"], id);
}

TEST_F(CliTest, FormatRefusesAFileThatExists) {
  FormatWith({"record"});
  ExpectRefused({"format", "--file", region_, "--size", "1MiB"}, kFailed,
                "exists");
}

TEST_F(CliTest, MissingFileIsNamed) {
  for (const std::string command : {"append", "cat", "inspect", "verify"}) {
    const ProgramResult result = RunAlpheus({command, "--file", File("none")});
    EXPECT_EQ(result.end.exit_status, kFailed);
    EXPECT_THAT(result.error, HasSubstr(File("none")));
    EXPECT_THAT(result.error, HasSubstr("alpheus format"));
  }
  EXPECT_FALSE(std::filesystem::exists(File("none")));
}

// Standard error is for messages; a pipe is no terminal, so there is no
// progress either.
TEST_F(CliTest, SuccessIsSilentOnStandardError) {
  FormatWith(CountTo(100));
  for (const Arguments& command :
       std::vector<Arguments>{{"append", "--file", region_},
                              {"cat", "--file", region_},
                              {"verify", "--file", region_},
                              {"inspect", "--file", region_},
                              {"cleanup", "--file", region_, "--all"}}) {
    EXPECT_EQ(RunAlpheus(command, "x\n").error, "") << command[0];
  }
}

// --- input -----------------------------------------------------------------

// Everything before the cut is appended and durable; the message gives the
// position at which the input ends.
TEST_F(CliTest, Len32InputThatIsCutOffIsReported) {
  const std::string whole = FrameLen32({"first", "second"});
  const std::string next = FrameLen32({"third"});
  for (size_t cut = 1; cut < next.size(); ++cut) {
    Format();
    const ProgramResult result =
        RunAlpheus({"append", "--file", region_, "--framing", "len32"},
                   whole + next.substr(0, cut));
    EXPECT_EQ(result.end.exit_status, kFailed);
    EXPECT_THAT(result.error,
                HasSubstr(absl::StrCat("ends at byte ", whole.size() + cut)));
    EXPECT_THAT(result.error, HasSubstr("record 2"));
    EXPECT_EQ(result.output, "2\n");
    EXPECT_EQ(CatLen32(), whole);
    std::filesystem::remove(region_);
  }
}

// A record that can never fit is refused before any of it is stored (lines
// that never end included); what came before stays.
TEST_F(CliTest, RecordLargerThanHalfTheRingIsRefused) {
  const std::string large(64 << 10, 'x');
  Format();
  const ProgramResult lines = RunAlpheus({"append", "--file", region_},
                                         "before\n" + large + "\nafter\n");
  EXPECT_EQ(lines.end.exit_status, kFailed);
  EXPECT_THAT(lines.error, HasSubstr("record 1 at byte 7"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "before\n");

  const ProgramResult len32 =
      RunAlpheus({"append", "--file", region_, "--framing", "len32"},
                 FrameLen32({"second"}) + "\xff\xff\xff\xff");
  EXPECT_EQ(len32.end.exit_status, kFailed);
  EXPECT_THAT(len32.error, HasSubstr("4294967295"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "before\nsecond\n");
}

// A full ring is an error that names the remedy; nothing that was
// acknowledged is given up for it.
TEST_F(CliTest, FullRingIsReportedAndLosesNothing) {
  Format();
  const std::string line(1000, 'x');
  const ProgramResult full =
      RunAlpheus({"append", "--file", region_, "--ack"},
                 JoinLines(std::vector<std::string>(50, line)));
  EXPECT_EQ(full.end.exit_status, kFailed);
  EXPECT_THAT(full.error, HasSubstr("no room"));
  const auto acks = SplitLines(full.output);
  EXPECT_GT(acks.size(), 10u);
  EXPECT_LT(acks.size(), 50u);
  EXPECT_EQ(SplitLines(RunWell({"cat", "--file", region_})).size(),
            acks.size() - 1);  // the last line is the durable LSN
  RunWell({"cleanup", "--file", region_, "--all"});
  RunWell({"append", "--file", region_}, line);
}

// --- writers and readers ---------------------------------------------------

// A writer that holds the region: `append --ack`, waiting for more input.
class BlockedWriter {
 public:
  explicit BlockedWriter(const std::string& region)
      : child_(ChildProcess::Start(
                   AlpheusProgram({"append", "--file", region, "--ack"}))
                   .value()) {
    EXPECT_EQ(write(child_.input().get(), "held\n", 5), 5);
    // The acknowledgement proves that the region is open.
    std::string said;
    while (said.find('\n') == std::string::npos) {
      pollfd output = {child_.output().get(), POLLIN, 0};
      EXPECT_EQ(poll(&output, 1, -1), 1);
      if (!demo::ReadSome(output.fd, &said)) break;
    }
    EXPECT_THAT(said, HasSubstr(" 0 0\n"));
  }

  int Finish() {
    child_.input().Close();
    return child_.Wait().exit_status;
  }
  void Kill() {
    child_.Kill();
    EXPECT_EQ(child_.Wait().signal, SIGKILL);
  }

 private:
  ChildProcess child_;
};

TEST_F(CliTest, SecondWriterIsRefused) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  has_writer_ = true;
  for (const Arguments& command :
       std::vector<Arguments>{{"append", "--file", region_},
                              {"cleanup", "--file", region_, "--all"},
                              {"cleanup", "--file", region_, "--lsn", "1"},
                              {"cleanup", "--file", region_, "--through", "1"},
                              {"salvage", region_, File("salvaged")}}) {
    ExpectRefused(command, kFailed, "writer", "x\n");
  }
  EXPECT_FALSE(std::filesystem::exists(File("salvaged")));
  EXPECT_EQ(writer.Finish(), kGood);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\n");
}

TEST_F(CliTest, ReadersWorkBesideAWriter) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  EXPECT_THAT(RunWell({"cat", "--file", region_}), HasSubstr("one\n"));
  EXPECT_THAT(RunWell({"inspect", "--file", region_, "--json"}),
              HasSubstr("\"has_writer\":true"));
  RunWell({"verify", "--file", region_});
  EXPECT_EQ(writer.Finish(), kGood);
}

// Appends numbers and cleans what is old, until told to stop: the ring is
// reused every few hundred records, below the feet of all readers.
void AppendAndReclaim(Log* log, const std::atomic<bool>* stop) {
  constexpr uint64_t kKept = 50;
  for (uint64_t i = 1; !stop->load(); ++i) {
    const absl::StatusOr<Lsn> lsn = log->Append(absl::StrCat(i));
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    if (i % kKept != 0 || i <= kKept) continue;
    const absl::Status cleaned = log->CleanupThrough(*lsn - kKept);
    ASSERT_TRUE(cleaned.ok()) << cleaned;
  }
}

TEST_F(CliTest, ReadersSurviveAWriterThatReusesTheRing) {
  Format();
  auto log = Log::Open({.path = region_});
  ASSERT_TRUE(log.ok()) << log.status();
  std::atomic<bool> stop{false};
  std::thread writer(AppendAndReclaim, log->get(), &stop);
  for (int i = 0; i < 20; ++i) {
    uint64_t last = 0;
    for (const std::string& line :
         SplitLines(RunWell({"cat", "--file", region_}))) {
      EXPECT_GT(std::stoull(line), last);
      last = std::stoull(line);
    }
    RunWell({"verify", "--file", region_});
    RunWell({"inspect", "--file", region_});
  }
  stop = true;
  writer.join();
}

TEST_F(CliTest, KilledWriterLeavesNoLockAndLosesNothing) {
  FormatWith({"one"});
  BlockedWriter writer(region_);
  writer.Kill();
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\n");
  RunWell({"append", "--file", region_}, "two\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\nheld\ntwo\n");
  RunWell({"verify", "--file", region_});
}

// Leaves a log as a crash does: LSN 1 acknowledged, LSN 2 reserved and never
// completed, LSN 3 completed.
void CrashWithOpenReservation(const std::string& region) {
  const pid_t pid = fork();
  if (pid == 0) {
    LogOptions options;
    options.path = region;
    auto log = Log::Open(options);
    if (!log.ok() || !(*log)->Append("one").ok()) _exit(1);
    auto open = (*log)->Reserve(3);
    auto completed = (*log)->Reserve(5);
    if (!(*log)->Complete(*std::move(completed)).ok()) _exit(1);
    _exit(open.ok() ? 0 : 1);  // no destructor runs
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
}

// A torn tail is not damage: readers end before it, opening says what is cut.
TEST_F(CliTest, TornTailIsCutAndReported) {
  Format();
  CrashWithOpenReservation(region_);
  const json verdict = json::parse(
      RunWell({"verify", "--file", region_, "--json"}), nullptr, false);
  EXPECT_EQ(verdict["verdict"], "torn");
  EXPECT_EQ(verdict["cut_records"], 1);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n");
  RunWell({"salvage", region_, File("salvaged")});

  const ProgramResult opened =
      RunAlpheus({"append", "--file", region_}, "two\n");
  EXPECT_EQ(opened.end.exit_status, kGood);
  EXPECT_THAT(opened.error, HasSubstr("LSN 2"));
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\n");
}

// --- damage ----------------------------------------------------------------

TEST_F(CliTest, FilesThatAreNoRegionAreRefused) {
  Random random(3);
  std::vector<std::byte> noise(256 << 10);
  for (std::byte& b : noise) b = static_cast<std::byte>(random.Next());
  for (const auto& bytes :
       {std::vector<std::byte>(256 << 10, std::byte{0}),
        std::vector<std::byte>(256 << 10, std::byte{0xff}), noise,
        std::vector<std::byte>(), std::vector<std::byte>(1),
        std::vector<std::byte>(4096, std::byte{0x55})}) {
    WriteFile(region_, bytes);
    ExpectRefusedByAll(kDataLoss, region_);
  }
}

TEST_F(CliTest, TruncatedRegionIsRefused) {
  FormatWith({"one", "two"});
  const auto whole = ReadFile(region_);
  for (const size_t bytes : {whole.size() - 1, whole.size() - 4096,
                             whole.size() / 2, size_t{8192}, size_t{100}}) {
    WriteFile(region_,
              {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)});
    ExpectRefusedByOpening(kDataLoss, "truncated");
  }
}

// Both superline copies as a later version would write them: their checksums
// hold, so this is no damage.
void RaiseFormatVersion(std::vector<std::byte>* region) {
  const CellPlace place = SuperlinePlace(*region);
  for (int copy = 0; copy < 2; ++copy) {
    CellCopy found = ReadCellCopy(place, copy);
    ASSERT_TRUE(found.valid);
    SuperlineFormat superline;
    std::memcpy(&superline, found.content.data(), sizeof(superline));
    superline.format_version = kFormatVersion + 1;
    std::memcpy(found.content.data(), &superline, sizeof(superline));
    const auto bytes = EncodeCellCopy(place, copy, found.seq, found.content);
    std::copy(bytes.begin(), bytes.end(), place.copies[copy]);
  }
}

TEST_F(CliTest, LaterFormatVersionIsRefusedByName) {
  FormatWith({"record"});
  auto bytes = ReadFile(region_);
  ASSERT_NO_FATAL_FAILURE(RaiseFormatVersion(&bytes));
  WriteFile(region_, bytes);
  ExpectRefusedByAll(kFailed, "version 2");
}

// Records of different shapes: empty, one line, several lines.
std::vector<std::string> MakeShapes() {
  Random random(4);
  std::vector<std::string> records;
  for (const size_t bytes : {5, 0, 16, 17, 80, 200, 0, 3}) {
    records.push_back(DrawBytes(&random, bytes));
  }
  return records;
}

// In a log that was closed cleanly every bit of every record counts: reading
// stops right before the damage, says 3, and opening is refused (C6).
TEST_F(CliTest, FlippedBitInAnyRecordIsDataLoss) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  const auto whole = ReadFile(region_);
  Random random(5);
  for (size_t i = 0; i < records.size(); ++i) {
    std::vector<uint64_t> places = {0, 7, 8, 16, 24, 28, 30, 31, 32, 36, 39};
    for (size_t at = 0; at < records[i].size(); at += 13) {
      places.push_back(kRecordHeaderBytes + at);
    }
    if (!records[i].empty()) {
      places.push_back(kRecordHeaderBytes + records[i].size() - 1);
    }
    const std::string before = FrameLen32(
        {records.begin(), records.begin() + static_cast<ptrdiff_t>(i)});
    for (const uint64_t place : places) {
      FlipBit(offsets[i] + place, static_cast<int>(random.Below(8)));
      SCOPED_TRACE(absl::StrCat("LSN ", i + 1, ", byte ", place));
      const ProgramResult cat =
          RunAlpheus({"cat", "--file", region_, "--framing", "len32"});
      EXPECT_EQ(cat.end.exit_status, kDataLoss);
      EXPECT_TRUE(cat.output == before);
      EXPECT_THAT(cat.error, HasSubstr(absl::StrCat("LSN ", i + 1, " ")));
      ExpectRefused({"verify", "--file", region_}, kDataLoss);
      ExpectRefused({"append", "--file", region_}, kDataLoss, "", "x\n");
      WriteFile(region_, whole);
    }
  }
}

// The word that marks a record as cleaned lies outside the header's checksum:
// a flipped bit in it is no mark (F3, record.h).
TEST_F(CliTest, FlippedBitInTheCleanedWordCleansNothing) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  for (int bit = 0; bit < 64; bit += 9) {
    FlipBit(offsets[2] + offsetof(RecordHeader, cleaned) + bit / 8, bit % 8);
    EXPECT_TRUE(CatLen32() == FrameLen32(records));
  }
}

// One copy of superline, epoch table or watermark: all records are read, but
// after a clean close it is damage all the same; opening for writing heals it.
TEST_F(CliTest, DamagedCopyIsReportedAndHealedByOpening) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  const json region = json::parse(
      RunWell({"inspect", "--file", region_, "--json"}), nullptr, false);
  const uint64_t second_table =
      (kTableOffset + region["ring_offset"].get<uint64_t>()) / 2;
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{30}, uint64_t{200}, kSuperlineCopyBytes + 8,
        kWatermarkOffset + 9, kWatermarkOffset + 4096 + 60, kTableOffset + 24,
        second_table + 30}) {
    SCOPED_TRACE(offset);
    FlipBit(offset, 3);
    const ProgramResult cat =
        RunAlpheus({"cat", "--file", region_, "--framing", "len32"});
    EXPECT_EQ(cat.end.exit_status, kDataLoss);
    EXPECT_TRUE(cat.output == FrameLen32(records));
    ExpectRefused({"verify", "--file", region_}, kDataLoss);
    const ProgramResult opened = RunAlpheus({"append", "--file", region_});
    EXPECT_EQ(opened.end.exit_status, kGood) << opened.error;
    EXPECT_NE(opened.error, "") << "a repair must be told";
    RunWell({"verify", "--file", region_});
    EXPECT_TRUE(CatLen32() == FrameLen32(records));
    WriteFile(region_, whole);
  }
}

TEST_F(CliTest, BothCopiesDamagedAreRefused) {
  FormatWith({"record"});
  const auto whole = ReadFile(region_);
  const json region = json::parse(
      RunWell({"inspect", "--file", region_, "--json"}), nullptr, false);
  const uint64_t second_table =
      (kTableOffset + region["ring_offset"].get<uint64_t>()) / 2;
  for (const auto& [first, second] : std::vector<std::pair<uint64_t, uint64_t>>{
           {30, kSuperlineCopyBytes + 30},
           {kWatermarkOffset, kWatermarkOffset + 4096},
           {kTableOffset + 30, second_table + 30}}) {
    FlipBit(first, 0);
    FlipBit(second, 0);
    ExpectRefusedByOpening(kDataLoss, region_);
    WriteFile(region_, whole);
  }
}

TEST_F(CliTest, VerifyGivesJsonForWhatItCannotRead) {
  WriteFile(region_, std::vector<std::byte>(256 << 10));
  const ProgramResult result =
      RunAlpheus({"verify", "--file", region_, "--json"});
  EXPECT_EQ(result.end.exit_status, kDataLoss);
  const auto objects = ParseLines(result.output);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["verdict"], "unreadable");
  EXPECT_EQ(objects[0]["status"], "DATA_LOSS");
}

TEST_F(CliTest, InspectShowsADamagedLogAndSaysDataLoss) {
  FormatWith({"one", "two"});
  FlipBit(FindOffsets()[0] + kRecordHeaderBytes, 0);
  const ProgramResult result =
      RunAlpheus({"inspect", "--file", region_, "--json"});
  EXPECT_EQ(result.end.exit_status, kDataLoss);
  const auto objects = ParseLines(result.output);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["records"]["verdict"], "corrupt");
  EXPECT_EQ(objects[0]["log_epoch"], 1);
}

// --- salvage ---------------------------------------------------------------

class SalvageTest : public CliTest {
 protected:
  std::string CatSalvaged() {
    return RunWell({"cat", "--file", out_, "--framing", "len32"});
  }

  const std::string out_ = File("salvaged");
};

TEST_F(SalvageTest, UndamagedRegionIsCopiedWhole) {
  const auto records = MakeShapes();
  FormatWith(records);
  EXPECT_EQ(RunWell({"salvage", region_, out_}),
            absl::StrCat(records.size(), "\n"));
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  EXPECT_EQ(std::filesystem::file_size(out_),
            std::filesystem::file_size(region_));
  RunWell({"verify", "--file", out_});
}

// Method: each record in turn, damaged in its header and in its payload.
TEST_F(SalvageTest, AllButTheDamagedRecordAreSaved) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto offsets = FindOffsets();
  const auto whole = ReadFile(region_);
  for (size_t i = 0; i < records.size(); ++i) {
    for (const uint64_t place : {uint64_t{0}, kRecordHeaderBytes}) {
      if (place == kRecordHeaderBytes && records[i].empty()) continue;
      SCOPED_TRACE(absl::StrCat("LSN ", i + 1, ", byte ", place));
      FlipBit(offsets[i] + place, 1);
      ExpectRefused({"salvage", region_, out_}, kDataLoss,
                    absl::StrCat("lost: LSN ", i + 1));
      auto rest = records;
      rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_TRUE(CatSalvaged() == FrameLen32(rest));
      std::filesystem::remove(out_);
      WriteFile(region_, whole);
    }
  }
}

// Where both watermarks are bad, or the file is cut short, nothing says where
// the log ended: what is there is saved, and the status tells of the doubt.
TEST_F(SalvageTest, RegionWithoutKnownEndIsSavedWithDoubt) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  FlipBit(kWatermarkOffset, 0);
  FlipBit(kWatermarkOffset + kPageBytes, 0);
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "may be missing");
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  std::filesystem::remove(out_);

  WriteFile(region_, {whole.begin(), whole.end() - 1});
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "truncated");
  EXPECT_TRUE(CatSalvaged() == FrameLen32(records));
  EXPECT_EQ(std::filesystem::file_size(out_), whole.size());
}

// Method: the file ends in the middle of record 6.
TEST_F(SalvageTest, RecordsBeforeTheCutAreSaved) {
  const auto records = MakeShapes();
  FormatWith(records);
  const auto whole = ReadFile(region_);
  const auto cut = static_cast<ptrdiff_t>(FindOffsets()[5] + 100);
  WriteFile(region_, {whole.begin(), whole.begin() + cut});
  ExpectRefused({"salvage", region_, out_}, kDataLoss, "lost: LSN 6");
  EXPECT_TRUE(CatSalvaged() ==
              FrameLen32({records.begin(), records.begin() + 5}));
}

TEST_F(SalvageTest, RegionWithoutSuperlineOrEpochTableIsRefused) {
  FormatWith({"record"});
  const auto whole = ReadFile(region_);
  for (const size_t bytes :
       {size_t{100}, size_t{5000}, size_t{kTableOffset + 10}}) {
    WriteFile(region_,
              {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes)});
    ExpectRefused({"salvage", region_, out_}, kDataLoss);
    EXPECT_FALSE(std::filesystem::exists(out_)) << bytes;
  }
}

TEST_F(SalvageTest, CleanedRecordsAreLeftOut) {
  FormatWith({"one", "two", "three"});
  RunWell({"cleanup", "--file", region_, "--lsn", "2"});
  RunWell({"salvage", region_, out_});
  EXPECT_TRUE(CatSalvaged() == FrameLen32({"one", "three"}));
}

// A ring that is full to the brim and wraps fits the new one, too.
TEST_F(SalvageTest, FullRingFits) {
  Format();
  const std::string line(500, 'x');
  const std::string many = JoinLines(std::vector<std::string>(100, line));
  RunWell({"append", "--file", region_},
          JoinLines(std::vector<std::string>(20, line)));
  RunWell({"cleanup", "--file", region_, "--all"});
  EXPECT_EQ(RunAlpheus({"append", "--file", region_}, many).end.exit_status,
            kFailed);
  RunWell({"salvage", region_, out_});
  EXPECT_EQ(RunWell({"cat", "--file", out_}),
            RunWell({"cat", "--file", region_}));
}

TEST_F(SalvageTest, SameFileIsRefusedUnderAnyName) {
  FormatWith({"record"});
  std::filesystem::create_symlink(region_, File("symlink"));
  std::filesystem::create_hard_link(region_, File("hardlink"));
  const std::string directory = directory_.path();
  const std::string roundabout =
      absl::StrCat("..", directory.substr(directory.rfind('/')), "/region");
  for (const std::string& name : {std::string("region"), std::string("symlink"),
                                  std::string("hardlink"), roundabout}) {
    ExpectRefused({"salvage", region_, File(name)}, kUsage, "in place");
  }
}

TEST_F(SalvageTest, ExistingOutputIsRefused) {
  FormatWith({"record"});
  WriteFile(out_, std::vector<std::byte>(10));
  ExpectRefused({"salvage", region_, out_}, kFailed, "exists");
  EXPECT_EQ(std::filesystem::file_size(out_), 10u);
  std::filesystem::create_symlink(File("nowhere"), File("dangling"));
  ExpectRefused({"salvage", region_, File("dangling")}, kFailed, "exists");
  EXPECT_FALSE(std::filesystem::exists(File("nowhere")));
}

// --- cleanup ---------------------------------------------------------------

TEST_F(CliTest, CleanedRecordsAreNotShown) {
  FormatWith({"one", "two", "three", "four"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--lsn", "3"}), "1\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\nfour\n");
  std::vector<std::string> states;
  for (const json& record :
       ParseLines(RunWell({"cat", "--file", region_, "--json"}))) {
    states.push_back(record["state"]);
  }
  EXPECT_THAT(states, ElementsAre("durable", "durable", "cleaned", "durable"));
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--lsn", "2", "1"}), "4\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "four\n");
}

TEST_F(CliTest, CleanupThroughCleansThePrefix) {
  FormatWith({"one", "two", "three"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--through", "2"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "three\n");
  // Cleaned already: that is what was asked for.
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--through", "1"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "three\n");
}

TEST_F(CliTest, CleanupAllCleansEverythingAndLsnsGoOn) {
  FormatWith({"one", "two"});
  EXPECT_EQ(RunWell({"cleanup", "--file", region_, "--all"}), "3\n");
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "");
  EXPECT_EQ(RunWell({"append", "--file", region_}, "three\n"), "3\n");
}

TEST_F(CliTest, CleanupOfUnknownOrCleanedLsnIsRefused) {
  FormatWith({"one", "two", "three"});
  RunWell({"cleanup", "--file", region_, "--lsn", "1"});
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "4"}, kFailed,
                "never given");
  ExpectRefused({"cleanup", "--file", region_, "--through", "4"}, kFailed,
                "never given");
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "18446744073709551615"},
                kFailed, "never given");
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "1"}, kFailed,
                "cleaned already");
  // One bad LSN of several: none is cleaned.
  ExpectRefused({"cleanup", "--file", region_, "--lsn", "2", "4"}, kFailed,
                "never given");
}

// Makes the epoch table full: a live record for each opening (A2).
void FillEpochTable(const std::string& region) {
  LogOptions options;
  options.path = region;
  for (uint64_t i = 0; i < kEpochTableCapacity; ++i) {
    auto log = Log::Open(options);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append("x").ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
}

TEST_F(CliTest, CleanupIsTheWayOutOfAFullEpochTable) {
  Format("256KiB");
  ASSERT_NO_FATAL_FAILURE(FillEpochTable(region_));
  const auto full = ReadFile(region_);
  ExpectRefused({"append", "--file", region_}, kFailed, "cleanup", "x\n");
  RunWell({"cleanup", "--file", region_, "--through", "10"});
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1025\n");
  WriteFile(region_, full);
  RunWell({"cleanup", "--file", region_, "--all"});
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1025\n");
}

// --- standard streams ------------------------------------------------------

// Descriptor 1 is free when the region is opened: it must not get it.
TEST_F(CliTest, ClosedStandardOutputIsAnErrorAndHarmsNothing) {
  FormatWith({"one", "two"});
  const auto before = ReadFile(region_);
  for (const std::string command : {"cat", "inspect", "verify"}) {
    const ProgramResult result = RunInShell(
        absl::StrCat("\"$0\" ", command, " --file ", region_, " >&-"));
    EXPECT_EQ(result.end.exit_status, kFailed) << command;
    EXPECT_THAT(result.error, HasSubstr("standard output"));
    EXPECT_TRUE(ReadFile(region_) == before) << command;
  }
  const ProgramResult append = RunInShell(
      absl::StrCat("echo three | \"$0\" append --file ", region_, " >&-"));
  EXPECT_EQ(append.end.exit_status, kFailed);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\ntwo\nthree\n");
}

TEST_F(CliTest, AllStreamsClosedHarmNothing) {
  FormatWith({"one"});
  const auto before = ReadFile(region_);
  EXPECT_EQ(
      RunInShell(absl::StrCat("\"$0\" cat --file ", region_, " <&- >&- 2>&-"))
          .end.exit_status,
      kFailed);
  EXPECT_TRUE(ReadFile(region_) == before);
  EXPECT_EQ(RunInShell(absl::StrCat("\"$0\" append --file ", region_, " <&-"))
                .end.exit_status,
            kFailed);
  EXPECT_EQ(RunWell({"cat", "--file", region_}), "one\n");
}

TEST_F(CliTest, FullStandardOutputIsAnError) {
  FormatWith({"one"});
  for (const std::string command : {"cat", "inspect", "verify", "append"}) {
    const ProgramResult result = RunInShell(absl::StrCat(
        "\"$0\" ", command, " --file ", region_, " </dev/null >/dev/full"));
    EXPECT_EQ(result.end.exit_status, kFailed) << command;
    EXPECT_THAT(result.error, HasSubstr("No space left"));
  }
}

// The reader of a pipe goes away: an error with a message, no signal.
TEST_F(CliTest, ReaderThatGoesAwayIsAnError) {
  Format("1MiB");
  RunWell({"append", "--file", region_},
          JoinLines(std::vector<std::string>(300, std::string(1000, 'x'))));
  auto child = ChildProcess::Start(AlpheusProgram({"cat", "--file", region_}));
  ASSERT_TRUE(child.ok());
  child->output().Close();
  std::string error;
  pollfd stream = {child->error().get(), POLLIN, 0};
  while (poll(&stream, 1, -1) == 1 && demo::ReadSome(stream.fd, &error)) {
  }
  EXPECT_THAT(error, HasSubstr("reader"));
  const demo::ProcessEnd end = child->Wait();
  EXPECT_EQ(end.exit_status, kFailed) << end.ToString();
}

// --- full file systems -----------------------------------------------------

// Beyond what any file system takes, so that no space is used up on the way.
TEST_F(CliTest, RegionLargerThanTheFileSystemIsRefused) {
  const ProgramResult result = RunAlpheus(
      {"format", "--file", region_, "--size", "9000000000000000000"});
  EXPECT_EQ(result.end.exit_status, kFailed) << result.error;
  EXPECT_FALSE(std::filesystem::exists(region_));
}

// A file system of 1 MiB. Not available: `why_not` says so.
class SmallFileSystem {
 public:
  explicit SmallFileSystem(const std::string& path) : path_(path) {
    std::filesystem::create_directory(path_);
    mounted_ = mount("alpheus", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted_) why_not_ = std::strerror(errno);
  }
  ~SmallFileSystem() {
    if (mounted_) umount(path_.c_str());
  }
  bool is_mounted() const { return mounted_; }
  const std::string& why_not() const { return why_not_; }

 private:
  const std::string path_;
  bool mounted_ = false;
  std::string why_not_;
};

TEST_F(CliTest, FullFileSystemIsMetWhenFormattingNotLater) {
  SmallFileSystem small(File("small"));
  if (!small.is_mounted()) {
    GTEST_SKIP() << "skipped because tmpfs can't be mounted here: "
                 << small.why_not();
  }
  const ProgramResult large =
      RunAlpheus({"format", "--file", File("small/large"), "--size", "2MiB"});
  EXPECT_EQ(large.end.exit_status, kFailed);
  EXPECT_THAT(large.error, HasSubstr("No space left"));
  EXPECT_FALSE(std::filesystem::exists(File("small/large")));

  // All of the region's blocks are taken now: a file system that fills up
  // later does it no harm (R2, region.h).
  const std::string fitting = File("small/fitting");
  RunWell({"format", "--file", fitting, "--size", "512KiB"});
  RunInShell(
      absl::StrCat("head -c 2000000 /dev/zero >", File("small/rest"), " # $0"));
  const std::string lines =
      JoinLines(std::vector<std::string>(300, std::string(900, 'x')));
  RunWell({"append", "--file", fitting}, lines);
  EXPECT_EQ(RunWell({"cat", "--file", fitting}), lines);
  EXPECT_EQ(RunAlpheus({"salvage", fitting, File("small/out")}).end.exit_status,
            kFailed);
  EXPECT_FALSE(std::filesystem::exists(File("small/out")));
}

}  // namespace
}  // namespace alpheus
