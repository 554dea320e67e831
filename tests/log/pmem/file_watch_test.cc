// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/temp_directory.h"

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

  testing::TempDirectory directory_;
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

// A folder may be moved with all that is in it.
TEST_F(FileWatchTest, RenamedFolderIsNoNews) {
  const std::string folder = directory_.File("folder");
  fs::create_directory(folder);
  fs::rename(path_, folder + "/file");
  watch_ = FileWatch(folder + "/file", fd_.get(), kWatchedBytes);
  fs::rename(folder, directory_.File("elsewhere"));
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
  testing::WriteFile(directory_.File("other"), std::vector<std::byte>(kWatchedBytes));
  fs::create_symlink("other", link);
  EXPECT_EQ(watch_.Check().code(), Code::kDataLoss);
}

// Whatever the reason, a path that never led to the file says nothing of it.
TEST_F(FileWatchTest, PathThatNeverLedToTheFileIsNotWatched) {
  watch_ = FileWatch(directory_.File("other"), fd_.get(), kWatchedBytes);
  EXPECT_TRUE(watch_.Check().ok());
  ASSERT_EQ(truncate(path_.c_str(), 1), 0);
  EXPECT_EQ(watch_.Check().code(), Code::kDataLoss);
  ASSERT_EQ(truncate(path_.c_str(), kWatchedBytes), 0);
  fs::remove(path_);
  EXPECT_EQ(watch_.Check().code(), Code::kNotFound);
}

TEST_F(FileWatchTest, NothingIsWatchedByDefaultOrOfADevice) {
  EXPECT_TRUE(FileWatch().Check().ok());
  const FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(FileWatch("/dev/null", null.get(), kWatchedBytes).Check().ok());
}

}  // namespace
}  // namespace alpheus
