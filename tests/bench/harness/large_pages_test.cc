// SPDX-License-Identifier: Apache-2.0
// The mount of a benchmark: in a child, as name spaces stay with a process.
#include "bench/harness/large_pages.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench {
namespace {

// The exit status of a child.
enum Found : int { kAsItMust = 0, kOtherwise = 1, kNotMountable = 2 };

bool IsMountedLarge(const std::string& folder) {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    if (line.find(" " + folder + " ") != std::string::npos &&
        line.find("huge=always") != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(LargePagesTest, FolderIsEmptyForThisProcessAlone) {
  const testing::TempDirectory folder;
  const std::string file = folder.File("here");
  std::ofstream(file) << "before";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!MountLargePages(folder.path()).ok()) _exit(kNotMountable);
    const bool is_hidden = !std::filesystem::exists(file);
    std::ofstream(file) << "inside";
    _exit(is_hidden && IsMountedLarge(folder.path()) ? kAsItMust : kOtherwise);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  std::string text;
  std::ifstream(file) >> text;
  EXPECT_EQ(text, "before");
  EXPECT_FALSE(IsMountedLarge(folder.path()));
  if (WEXITSTATUS(status) == kNotMountable) {
    GTEST_SKIP() << "skipped because this user may not mount, or this kernel "
                    "has no large pages for tmpfs";
  }
  EXPECT_EQ(WEXITSTATUS(status), kAsItMust);
}

TEST(LargePagesTest, FolderOnNoTmpfsIsLeftAlone) {
  EXPECT_TRUE(absl::IsFailedPrecondition(MountLargePages("/proc")));
  EXPECT_TRUE(absl::IsUnavailable(MountLargePages("/nowhere")));
}

}  // namespace
}  // namespace alpheus::bench
