// SPDX-License-Identifier: Apache-2.0
// A node whose disk is too small for a new log.
//
// The disk is a small file system in memory that only this node sees: it is
// mounted in a namespace of the node's process, and goes with it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/pmem/file_descriptor.h"
#include "tests/process/cluster_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMountScript[] =
    "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";

std::vector<std::string> SmallDisk(const std::string& directory) {
  return {"/usr/bin/unshare", "--user", "--map-root-user", "--mount",
          "/bin/sh",          "-c",     kMountScript,      directory};
}

class FullDiskTest : public ClusterTest {
 protected:
  // A file of node 3, by a path that leads into its own file system.
  std::string FileOfNode3(const std::string& name) const {
    return absl::StrCat("/proc/", cluster_->pid(3), "/root",
                        cluster_->node_directory(3), "/", name);
  }
  // Leaves no room on the disk of node 3.
  void Fill() {
    const FileDescriptor file(
        open(FileOfNode3("filler").c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_GE(file.get(), 0) << std::strerror(errno);
    const std::vector<char> page(4096);
    while (write(file.get(), page.data(), page.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC) << std::strerror(errno);
  }

  void SetUp() override {
    Program trial;
    trial.argv = SmallDisk(directory_.path());
    trial.argv.emplace_back("/bin/true");
    const auto result = demo::RunProgram(trial);
    if (!result.ok() || result->end.exit_status != 0) {
      GTEST_SKIP() << "skipped because no file system can be mounted here: "
                   << (result.ok() ? result->error
                                   : std::string(result.status().message()));
    }
    demo::ClusterOptions options = ThreeNodes(directory_.path());
    options.wrappers = {{3, SmallDisk(directory_.File("node-3"))}};
    ASSERT_NO_FATAL_FAILURE(StartCluster(options));
  }
};

TEST_F(FullDiskTest, LogThatDoesNotFitOneNodeIsRefusedAndASmallerOneFits) {
  const ProgramResult result =
      Run("format", {"--log", "large", "--size", "4MiB"});
  EXPECT_NE(result.end.exit_status, kGood);
  EXPECT_THAT(result.error, HasSubstr("No space"));
  EXPECT_THAT(result.error, HasSubstr("node 3"));
  Format("small", "256KiB");
  Append(1, CountLines(10), "small");
  EXPECT_EQ(Cat("small"), CountLines(10));
  for (int node = 1; node <= 3; ++node) EXPECT_TRUE(IsServed(node, "small"));
}

// A file that could not be made must not be taken for a replica later.
TEST_F(FullDiskTest, NodeStartsAgainAfterItsDiskWasFull) {
  Run("format", {"--log", "large", "--size", "4MiB"});
  cluster_->Kill(3);
  const absl::Status started = cluster_->Start(3);
  ASSERT_TRUE(started.ok()) << started;
  Format("small", "256KiB");
  Append(3, CountLines(10), "small");
  EXPECT_EQ(Cat("small"), CountLines(10));
}

// ND7, P-D4: the file with the mark finds no room beside the one with records.
TEST_F(FullDiskTest, RecordsOfADeletedLogGoOnceThereIsRoomForTheMark) {
  Format("main", "256KiB");
  Append(1, CountLines(10));
  Fill();
  const std::string replica = FileOfNode3("main.alpheus");
  const uint64_t bytes = std::filesystem::file_size(replica);
  const ProgramResult deleted = Run("delete-log", {"--log", "main", "--yes"});
  EXPECT_EQ(deleted.end.exit_status, kGood) << deleted.error;
  EXPECT_THAT(deleted.error, HasSubstr("not from node 3"));
  EXPECT_EQ(std::filesystem::file_size(replica), bytes);
  const Deadline deadline = InPatience();
  const auto await = [&](const std::function<bool()>& is_so) {
    while (!is_so()) {
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()))
          << cluster_->Story();
      std::this_thread::yield();
    }
  };
  await([&] {
    cluster_->Listen();
    return absl::StrContains(cluster_->Story(), "No space left on device");
  });
  // Nothing is lost, and nobody opens the log meanwhile.
  EXPECT_EQ(std::filesystem::file_size(replica), bytes);
  EXPECT_NE(
      Run("append", {"--log", "main", "--node", "1"}, "one\n").end.exit_status,
      kGood);
  ASSERT_TRUE(std::filesystem::remove(FileOfNode3("filler")));
  await([&] { return std::filesystem::file_size(replica) < bytes; });
  const ProgramResult again = Run("delete-log", {"--log", "main", "--yes"});
  EXPECT_EQ(again.end.exit_status, kGood) << again.error;
  EXPECT_THAT(again.error, Not(HasSubstr("not from")));
}

}  // namespace
}  // namespace alpheus::testing
