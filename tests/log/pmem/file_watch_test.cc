// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
namespace fs = std::filesystem;

constexpr size_t kWatchedBytes = 10'000;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    testing::WriteFile(path_, std::vector<std::byte>(kWatchedBytes));
    fd_ = FileDescriptor(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    watch_ = FileWatch(path_, fd_.get(), kWatchedBytes);
  }
  void ExpectFound(Code code, const std::string& message) {
    const absl::Status found = watch_.Check();
    EXPECT_EQ(found.code(), code) << found;
    EXPECT_THAT(std::string(found.message()),
                AllOf(HasSubstr(path_), HasSubstr(message)));
  }

  int FolderOfTheTest() const { return folder_.get(); }

  testing::TempDirectory directory_;
  const FileDescriptor folder_{
      open(directory_.path().c_str(), O_DIRECTORY | O_CLOEXEC)};
  const std::string path_ = directory_.File("watched");
  FileDescriptor fd_{-1};
  FileWatch watch_;
};

TEST_F(FileWatchTest, WholeFileIsNoNews) {
  EXPECT_TRUE(watch_.Check().ok());
  testing::WriteFile(directory_.File("other"), {});
  ASSERT_EQ(ftruncate(fd_.get(), 2 * kWatchedBytes), 0);
  EXPECT_TRUE(watch_.Check().ok()) << "it may be longer";
  fs::create_hard_link(path_, directory_.File("second name"));
  EXPECT_TRUE(watch_.Check().ok());
}

TEST_F(FileWatchTest, RemovedFileIsFound) {
  fs::remove(path_);
  ExpectFound(Code::kNotFound, "removed");
}

TEST_F(FileWatchTest, RenamedFileIsFoundUntilItIsBack) {
  fs::rename(path_, directory_.File("aside"));
  ExpectFound(Code::kNotFound, "renamed");
  fs::rename(directory_.File("aside"), path_);
  EXPECT_TRUE(watch_.Check().ok());
}

TEST_F(FileWatchTest, ReplacedFileIsFoundWhateverItHolds) {
  const std::string other = directory_.File("other");
  fs::copy_file(path_, other);
  fs::rename(other, path_);
  ExpectFound(Code::kDataLoss, "another file");
}

// A link to the file, as a backup may make, does not hide it.
TEST_F(FileWatchTest, ReplacedFileWithASecondNameIsFound) {
  fs::create_hard_link(path_, directory_.File("second name"));
  fs::remove(path_);
  ExpectFound(Code::kNotFound, "removed");
  fs::copy_file(directory_.File("second name"), path_);
  ExpectFound(Code::kDataLoss, "another file");
}

TEST_F(FileWatchTest, TruncatedFileIsFound) {
  ASSERT_EQ(truncate(path_.c_str(), kWatchedBytes - 1), 0);
  ExpectFound(Code::kDataLoss, "truncated to 9999 of 10000 bytes");
}

TEST_F(FileWatchTest, RemovedFolderIsFound) {
  const std::string folder = directory_.File("folder");
  fs::create_directory(folder);
  fs::rename(path_, folder + "/file");
  watch_ = FileWatch(folder + "/file", fd_.get(), kWatchedBytes);
  ASSERT_TRUE(watch_.Check().ok());
  fs::remove_all(folder);
  EXPECT_EQ(watch_.Check().code(), Code::kNotFound);
}

// The next process opens the file that has the path now.
TEST_F(FileWatchTest, RenamedFolderIsFoundUntilItIsBack) {
  const std::string above = directory_.File("above");
  const std::string folder = above + "/folder";
  fs::create_directories(folder);
  fs::rename(path_, folder + "/file");
  watch_ = FileWatch(folder + "/file", fd_.get(), kWatchedBytes);
  for (const std::string& moved : {folder, above}) {
    const std::string aside = directory_.File("aside");
    fs::rename(moved, aside);
    EXPECT_EQ(watch_.Check().code(), Code::kNotFound);
    testing::WriteFile(moved, {});
    EXPECT_EQ(watch_.Check().code(), Code::kNotFound) << "no folder now";
    fs::remove(moved);
    fs::copy(aside, moved, fs::copy_options::recursive);
    EXPECT_EQ(watch_.Check().code(), Code::kDataLoss) << "an older copy";
    fs::remove_all(moved);
    fs::create_directory_symlink(aside, moved);
    EXPECT_TRUE(watch_.Check().ok()) << "the same file by another way";
    fs::remove(moved);
    fs::rename(aside, moved);
    EXPECT_TRUE(watch_.Check().ok());
  }
}

// A process that may not follow the path any more says nothing of it; another
// root has other paths.
TEST_F(FileWatchTest, PathThatCantBeFollowedAnyMoreIsAskedOfTheFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "skipped: only root has other roots";
  EXPECT_EXIT(
      {
        fs::create_directory(directory_.File("root"));
        if (chroot(directory_.File("root").c_str()) != 0) std::_Exit(2);
        if (!watch_.Check().ok()) std::_Exit(3);
        if (unlinkat(FolderOfTheTest(), "watched", 0) != 0) std::_Exit(4);
        std::_Exit(watch_.Check().code() == Code::kNotFound ? 0 : 5);
      },
      ::testing::ExitedWithCode(0), "");
}

// Its pages are other ones, and zeros, whatever is written there now.
TEST_F(FileWatchTest, HoleIsFoundAndSoIsAFileThatWasCutAndMadeLongerAgain) {
  constexpr size_t kBytes = 1 << 20;
  ASSERT_EQ(posix_fallocate(fd_.get(), 0, kBytes), 0);
  watch_ = FileWatch(path_, fd_.get(), kBytes);
  EXPECT_TRUE(watch_.Check().ok());
  ASSERT_EQ(fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      1 << 16, 1 << 16),
            0);
  ExpectFound(Code::kDataLoss, "hole");
  ASSERT_EQ(posix_fallocate(fd_.get(), 0, kBytes), 0);
  EXPECT_TRUE(watch_.Check().ok());
  ASSERT_EQ(ftruncate(fd_.get(), 0), 0);
  ASSERT_EQ(ftruncate(fd_.get(), kBytes), 0);
  ExpectFound(Code::kDataLoss, "extended again");
}

TEST_F(FileWatchTest, HolesOfBeforeAreNoNews) {
  ASSERT_EQ(ftruncate(fd_.get(), 1 << 20), 0);
  watch_ = FileWatch(path_, fd_.get(), 1 << 20);
  EXPECT_TRUE(watch_.Check().ok());
}

// The process may change its working directory, as daemons do.
TEST_F(FileWatchTest, RelativePathIsOfTheWorkingDirectoryOfItsTime) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  watch_ = FileWatch("watched", fd_.get(), kWatchedBytes);
  fs::current_path(before);
  EXPECT_TRUE(watch_.Check().ok());
  fs::remove(path_);
  EXPECT_EQ(watch_.Check().code(), Code::kNotFound);
}

TEST_F(FileWatchTest, LinkThatLeadsElsewhereNowIsFound) {
  const std::string link = directory_.File("link");
  fs::create_symlink("watched", link);
  watch_ = FileWatch(link, fd_.get(), kWatchedBytes);
  EXPECT_TRUE(watch_.Check().ok());
  fs::remove(link);
  testing::WriteFile(directory_.File("other"),
                     std::vector<std::byte>(kWatchedBytes));
  fs::create_symlink("other", link);
  EXPECT_EQ(watch_.Check().code(), Code::kDataLoss);
}

// A path that never led to the file says nothing of it, for any reason.
TEST_F(FileWatchTest, PathThatNeverLedToTheFileIsNotWatched) {
  watch_ = FileWatch(directory_.File("other"), fd_.get(), kWatchedBytes);
  EXPECT_TRUE(watch_.Check().ok());
  ASSERT_EQ(truncate(path_.c_str(), 1), 0);
  EXPECT_EQ(watch_.Check().code(), Code::kDataLoss);
  ASSERT_EQ(posix_fallocate(fd_.get(), 0, kWatchedBytes), 0);
  fs::remove(path_);
  EXPECT_EQ(watch_.Check().code(), Code::kNotFound);
}

TEST_F(FileWatchTest, NothingIsWatchedByDefaultOrOfADevice) {
  EXPECT_TRUE(FileWatch().Check().ok());
  EXPECT_FALSE(FileWatch().is_watching());
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(FileWatch("/dev/null", null.get(), kWatchedBytes).Check().ok());
}

}  // namespace
}  // namespace alpheus
