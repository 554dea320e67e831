// SPDX-License-Identifier: Apache-2.0
// Paths that can never be right, formats that are cut off or run at once, and
// media that are taken for what they are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/pmem/region.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class CliFilesTest : public CliTest {
 protected:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
};

// Scripts try exit status 4 again.
TEST_F(CliFilesTest, PathThatCanNeverBeRightIsBadUsage) {
  Format();
  const std::string loop = File("loop");
  fs::create_symlink("loop", loop);
  const std::string pipe = File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR), 0);
  for (const std::string& path : {File(std::string(300, 'x')), region_ + "/x",
                                  loop, loop + "/x", pipe, directory_.path()}) {
    for (const char* const command : {"cat", "append", "inspect", "verify"}) {
      const ProgramResult result = RunAlpheus({command, "--file", path});
      EXPECT_EQ(result.end.exit_status, kUsage)
          << command << " " << path << ": " << result.error;
      EXPECT_THAT(result.error, HasSubstr(path));
    }
  }
  for (const std::string& path :
       {File(std::string(300, 'x')), region_ + "/x", loop + "/x"}) {
    const ProgramResult result =
        RunAlpheus({"format", "--file", path, "--size", "1MiB"});
    EXPECT_EQ(result.end.exit_status, kUsage) << path << ": " << result.error;
  }
}

TEST_F(CliFilesTest, ReaderOfAMissingFileIsAskedForThePath) {
  const std::string path = File("nosuch");
  for (const Arguments& command :
       std::vector<Arguments>{{"cat", "--file", path},
                              {"inspect", "--file", path},
                              {"verify", "--file", path},
                              {"cleanup", "--file", path, "--all"},
                              {"salvage", path, File("salvaged")},
                              {"export-wal", path, File("wal")}}) {
    const ProgramResult result = RunAlpheus(command);
    EXPECT_EQ(result.end.exit_status, kFailed) << command[0];
    EXPECT_THAT(result.error, AllOf(HasSubstr(path), HasSubstr("path right?"),
                                    Not(HasSubstr("alpheus format"))))
        << command[0];
  }
  const ProgramResult writer = RunAlpheus({"append", "--file", path});
  EXPECT_THAT(writer.error, HasSubstr("alpheus format --file"));
}

TEST_F(CliFilesTest, ClusterFileThatCanNeverBeRightIsBadUsage) {
  Format();
  fs::create_symlink("loop", File("loop"));
  for (const std::string& path : {File(std::string(300, 'x')), region_ + "/x",
                                  File("loop"), directory_.path()}) {
    const ProgramResult result = RunAlpheus({"cat", "--cluster", path});
    EXPECT_EQ(result.end.exit_status, kUsage) << path << ": " << result.error;
  }
}

TEST_F(CliFilesTest, FormatIntoAMissingFolderNamesTheFolder) {
  const ProgramResult result =
      RunAlpheus({"format", "--file", File("nowhere/x"), "--size", "1MiB"});
  EXPECT_EQ(result.end.exit_status, kFailed);
  EXPECT_THAT(result.error, AllOf(HasSubstr(File("nowhere") + ". Make it"),
                                  Not(HasSubstr("alpheus format"))));
}

// The limit ends the process in the middle, by SIGXFSZ or by an error.
TEST_F(CliFilesTest, FormatThatIsCutOffLeavesNothing) {
  const ProgramResult cut = RunInShell(absl::StrCat(
      "ulimit -f 64; exec \"$0\" format --size 1MiB --file ", region_));
  EXPECT_NE(cut.end.exit_status, kGood);
  EXPECT_TRUE(Names().empty());
  Format("1MiB");
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1\n");
}

// Older versions left such files when they were killed.
TEST_F(CliFilesTest, FormatTakesAFileOfZeros) {
  for (const size_t bytes : {size_t{0}, size_t{5'000}, size_t{1} << 20}) {
    WriteFile(region_, std::vector<std::byte>(bytes));
    ExpectRefused({"append", "--file", region_}, kDataLoss);
    Format();
    EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1\n");
    fs::remove(region_);
  }
}

// Goal: a log is never overwritten, not even one that can't be read.
TEST_F(CliFilesTest, FormatNeverTakesWhatMayBeALog) {
  FormatWith({"one", "two"});
  const std::vector<std::byte> whole = ReadFile(region_);
  const auto expect_refused = [&](std::vector<std::byte> bytes) {
    WriteFile(region_, bytes);
    ExpectRefused({"format", "--file", region_, "--size", "128KiB"}, kFailed,
                  "exists");
  };
  expect_refused(whole);
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 4096},
                                   {4096, 8192},
                                   {0, 8192},
                                   {0, 16384}}) {
    std::vector<std::byte> wiped = whole;
    std::fill(wiped.begin() + static_cast<std::ptrdiff_t>(begin),
              wiped.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
    expect_refused(wiped);
  }
  expect_refused(std::vector<std::byte>(10, std::byte{'x'}));
  expect_refused({whole.begin(), whole.begin() + 20'000});
}

// One of them makes it, and what it made is whole.
TEST_F(CliFilesTest, FormatsAtOnceMakeOneLog) {
  std::vector<ProgramResult> results(6);
  std::vector<std::thread> threads;
  for (ProgramResult& result : results) {
    threads.emplace_back([&] {
      result = RunAlpheus({"format", "--file", region_, "--size", "4MiB"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto made = std::ranges::count_if(results, [](const auto& result) {
    return result.end.exit_status == kGood;
  });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(Names(), std::vector<std::string>{"region"});
  EXPECT_EQ(RunWell({"append", "--file", region_}, "x\n"), "1\n");
}

// --- Full disks
// ----------------------------------------------------------------

// A copy with holes, on a file system without room for them.
constexpr char kSparseScript[] = R"(
set -e
mount -t tmpfs -o size=1m none "$2"
cp --sparse=always "$1" "$2/wal"
dd if=/dev/zero of="$2/filler" bs=4k 2>/dev/null || true
"$0" cat --file "$2/wal"
set +e
echo more | "$0" append --file "$2/wal"
status=$?
rm "$2/filler"
echo more | "$0" append --file "$2/wal" || exit 99
exit $status
)";

TEST_F(CliFilesTest, CopyWithHolesOnAFullDiskIsNotOpenedAndEndsByNoSignal) {
  Format("512KiB");
  RunWell({"append", "--file", region_}, "record\n");
  const std::string mounted = File("mounted");
  fs::create_directory(mounted);
  Program program;
  program.argv = {"/usr/bin/unshare", "--user",  "--map-root-user",
                  "--mount",          "/bin/sh", "-c"};
  Program trial = program;
  trial.argv.push_back("mount -t tmpfs none " + mounted);
  const auto mounts = demo::RunProgram(trial);
  if (!mounts.ok() || mounts->end.exit_status != 0) {
    GTEST_SKIP() << "skipped because no file system can be mounted here";
  }
  program.argv.insert(
      program.argv.end(),
      {kSparseScript, AlpheusProgram({}).argv.front(), region_, mounted});
  const auto result = demo::RunProgram(program);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end.exit_status, kFailed) << result->error;
  EXPECT_THAT(result->error, HasSubstr("has holes"));
  EXPECT_EQ(result->output, "record\n2\n") << result->error;
}

// --- PMEM_IS_PMEM_FORCE
// --------------------------------------------------------

ProgramResult AppendForced(const std::string& path) {
  RunWell({"format", "--file", path, "--size", "128KiB"});
  Program program = AlpheusProgram({"append", "--file", path});
  program.environment = {"PMEM_IS_PMEM_FORCE=1"};
  return *demo::RunProgram(program);
}

TEST_F(CliFilesTest, ForcedPersistentMemoryOnADiskIsWarnedOf) {
  const std::string path =
      absl::StrCat(fs::current_path().string(), "/forced_",
                   fs::path(directory_.path()).filename().string());
  const ProgramResult result = AppendForced(path);
  const bool is_file =
      Region::OpenForWriting(path)->medium() == RegionMedium::kFile;
  const bool is_memory = !is_file || path.starts_with("/dev/shm");
  fs::remove(path);
  if (is_memory) GTEST_SKIP() << "skipped because " << path << " is memory";
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  EXPECT_THAT(result.error, AllOf(HasSubstr("PMEM_IS_PMEM_FORCE"),
                                  HasSubstr("msync is switched off")));
}

TEST_F(CliFilesTest, ForcedPersistentMemoryInMemoryIsNoNews) {
  if (!region_.starts_with("/dev/shm")) {
    GTEST_SKIP() << "skipped because " << region_ << " is not in memory";
  }
  const ProgramResult result = AppendForced(region_);
  EXPECT_EQ(result.end.exit_status, kGood);
  EXPECT_THAT(result.error, Not(HasSubstr("PMEM_IS_PMEM_FORCE")));
}

}  // namespace
}  // namespace alpheus::testing
