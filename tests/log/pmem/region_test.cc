// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/pmem/file_error.h"
#include "log/pmem/shadow_persistence.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Code = absl::StatusCode;

class RegionTest : public ::testing::Test {
 protected:
  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("region");
};

TEST_F(RegionTest, CreatedFileIsZeroedAndFullyAllocated) {
  const auto region = Region::Create(path_, 1 << 20);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->bytes().size(), 1u << 20);
  EXPECT_TRUE(region->writable());
  for (const std::byte b : region->bytes()) ASSERT_EQ(b, std::byte{0});
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 1 << 20) << "RG2 (region.h)";
}

TEST_F(RegionTest, ExistingFileIsNeverOverwritten) {
  testing::WriteFile(path_, std::vector<std::byte>(10, std::byte{5}));
  EXPECT_EQ(Region::Create(path_, 4096).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(testing::ReadFile(path_), std::vector<std::byte>(10, std::byte{5}));
}

TEST_F(RegionTest, FullFileSystemLeavesNoFileBehind) {
  const auto refused = Region::Create(path_, size_t{1} << 60);
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted)
      << refused.status();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RegionTest, SecondWriterIsRefusedUntilTheFirstIsGone) {
  {
    const auto first = Region::Create(path_, 1 << 16);
    ASSERT_TRUE(first.ok());
    const auto second = Region::OpenForWriting(path_);
    EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()),
                AllOf(HasSubstr(path_), HasSubstr("Close that one first"),
                      HasSubstr("alpheus cat"), Not(HasSubstr("LogReader"))));
  }
  EXPECT_TRUE(Region::OpenForWriting(path_).ok());
}

TEST_F(RegionTest, ReaderTakesNoLockAndSeesTheWriter) {
  auto writer = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(writer.ok());
  const auto reader = Region::OpenForReading(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->HasWriter());
  writer->bytes()[5] = std::byte{9};
  EXPECT_EQ(reader->bytes()[5], std::byte{9});
  {
    const Region gone = *std::move(writer);
  }
  EXPECT_FALSE(reader->HasWriter());
  EXPECT_TRUE(Region::OpenForWriting(path_).ok());
}

// A process that detached its region may go on writing: others have the file
// then.
TEST_F(RegionTest, WhatIsWrittenToADetachedRegionIsInNoFile) {
  auto given_up = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(given_up.ok());
  const std::span<std::byte> bytes = given_up->bytes();
  bytes[5] = std::byte{1};
  bytes[5000] = std::byte{2};
  ASSERT_TRUE(given_up->Detach().ok());
  ASSERT_TRUE(given_up->Detach().ok());
  const auto next = Region::OpenForWriting(path_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(given_up->bytes().data(), bytes.data());
  EXPECT_EQ(bytes[5], std::byte{1});
  bytes[5] = std::byte{9};
  EXPECT_EQ(bytes[5], std::byte{9});
  EXPECT_EQ(next->bytes()[5], std::byte{1});
  EXPECT_EQ(next->bytes()[5000], std::byte{2});
}

// Goal: RG3. The file gets what is flushed, and nothing once it is given up.
TEST_F(RegionTest, LandedRegionWritesToItsFileByFlushesOnly) {
  Region region = *Region::Create(path_, 1 << 16);
  region.bytes()[70] = std::byte{1};
  region.UseShadow(*Region::Anonymous(1 << 16));
  ASSERT_TRUE(region.is_shadowed());
  EXPECT_TRUE(region.writable());
  EXPECT_EQ(region.bytes().size(), size_t{1} << 16);
  EXPECT_EQ(region.bytes()[70], std::byte{1});
  const auto reader = Region::OpenForReading(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->HasWriter());
  ShadowPersistence pmem(region.bytes(), std::make_unique<PmemShadowedMedium>(
                                             region.medium_bytes(),
                                             LibpmemPersistence::Options()));
  std::byte* const at = region.bytes().data() + 70;
  *at = std::byte{2};
  EXPECT_EQ(reader->bytes()[70], std::byte{1});
  EXPECT_TRUE(Persist(pmem, at, 1));
  EXPECT_EQ(reader->bytes()[70], std::byte{2});
  Region moved = std::move(region);
  EXPECT_EQ(moved.bytes().data() + 70, at);
  ASSERT_TRUE(moved.Detach().ok());
  EXPECT_EQ(*at, std::byte{2});
  *at = std::byte{3};
  EXPECT_TRUE(Persist(pmem, at, 1));
  EXPECT_EQ(reader->bytes()[70], std::byte{2});
  EXPECT_TRUE(Region::OpenForWriting(path_).ok());
}

TEST_F(RegionTest, ReaderNeedsNoWriteRight) {
  ASSERT_TRUE(Region::Create(path_, 1 << 16).ok());
  ASSERT_EQ(chmod(path_.c_str(), S_IRUSR), 0);
  EXPECT_TRUE(Region::OpenForReading(path_).ok());
}

// A reader's path is wrong; it wants no new log.
TEST_F(RegionTest, MissingFileHasARemedyForWhoeverOpensIt) {
  EXPECT_THAT(std::string(Region::OpenForWriting(path_).status().message()),
              AllOf(HasSubstr("Is the path right?"),
                    HasSubstr("`alpheus format --file "),
                    HasSubstr(" --size SIZE` makes a new log")));
  EXPECT_THAT(std::string(Region::OpenForReading(path_).status().message()),
              AllOf(HasSubstr("Is the path right?"), Not(HasSubstr("format"))));
}

TEST_F(RegionTest, ErrorsNameTheRightThatIsMissing) {
  const auto said = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), Code::kPermissionDenied);
    return std::string(status.message());
  };
  EXPECT_THAT(said(FileError("f", "open", EACCES)),
              HasSubstr("right to read and write it"));
  EXPECT_THAT(said(ReadFileError("f", "open", EACCES)),
              HasSubstr("right to read it"));
  // A remedy for what is not there would be another one.
  EXPECT_THAT(
      said(OtherFileError("f", EACCES, "Make one")),
      AllOf(HasSubstr("the right to read it"), Not(HasSubstr("Make one"))));
  EXPECT_THAT(said(FileError("f", "open", EROFS)),
              HasSubstr("Mount its file system for writing"));
}

// It may be a log in use: nobody is told to be rid of it.
TEST_F(RegionTest, FileThatIsThereIsNotToBeRemoved) {
  testing::WriteFile(path_, {std::byte{1}});
  const absl::Status refused = Region::Create(path_, 4096).status();
  EXPECT_EQ(refused.code(), Code::kAlreadyExists) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("Name another file"), Not(HasSubstr("emove"))));
}

TEST_F(RegionTest, MissingEmptyAndOddFilesAreRefusedByName) {
  EXPECT_EQ(Region::OpenForWriting(path_).status().code(), Code::kNotFound);
  EXPECT_EQ(Region::OpenForReading(path_).status().code(), Code::kNotFound);
  testing::WriteFile(path_, {});
  EXPECT_EQ(Region::OpenForWriting(path_).status().code(), Code::kDataLoss);
  EXPECT_EQ(Region::OpenForReading(path_).status().code(), Code::kDataLoss);
  EXPECT_FALSE(Region::OpenForWriting(directory_.path()).ok());
  EXPECT_FALSE(Region::OpenForReading(directory_.path()).ok());
  EXPECT_FALSE(Region::OpenForReading("/dev/null").ok());
  EXPECT_EQ(Region::Create(path_ + "2", 0).status().code(),
            Code::kInvalidArgument);
  EXPECT_FALSE(Region::Create(path_ + "/no/such/directory", 4096).ok());
}

// --- Content -----------------------------------------------------------------

// Regions that begin with a letter: 'n' for new, else somebody uses it.
RegionUse UseByFirstByte(std::span<std::byte> bytes, bool /*is_device*/) {
  if (bytes.front() == std::byte{0}) return RegionUse::kNothing;
  return bytes.front() == std::byte{'n'} ? RegionUse::kUnopened
                                         : RegionUse::kUsed;
}

absl::Status WriteLetter(Region& region) {
  region.bytes().front() = std::byte{'n'};
  return absl::OkStatus();
}

RegionContent Letter() { return {WriteLetter, UseByFirstByte}; }

TEST_F(RegionTest, ContentIsThereWheneverTheNameIs) {
  const auto write = [this](Region& region) {
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_EQ(region.path(), path_);
    return WriteLetter(region);
  };
  const auto region = Region::Create(path_, 1 << 16, {write, UseByFirstByte});
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(testing::ReadFile(path_).front(), std::byte{'n'});
  EXPECT_EQ(Region::OpenForWriting(path_).status().code(),
            Code::kFailedPrecondition)
      << "RG1";
}

TEST_F(RegionTest, ContentThatCanNotBeWrittenLeavesNoFile) {
  const auto write = [](Region&) { return absl::UnavailableError("no"); };
  const auto region = Region::Create(path_, 1 << 16, {write, UseByFirstByte});
  EXPECT_EQ(region.status(), absl::UnavailableError("no"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// A process that was killed left a file without content, of any length.
TEST_F(RegionTest, FileThatHoldsNothingIsMadeAgainInItsPlace) {
  for (const size_t left : {0, 100, 1 << 15, 1 << 17}) {
    testing::WriteFile(path_, std::vector<std::byte>(left));
    const std::string link = directory_.File("link");
    std::filesystem::create_hard_link(path_, link);
    const auto region = Region::Create(path_, 1 << 16, Letter());
    ASSERT_TRUE(region.ok()) << left << ": " << region.status();
    EXPECT_EQ(region->bytes().size(), size_t{1} << 16);
    EXPECT_EQ(testing::ReadFile(link).front(), std::byte{'n'});
    EXPECT_EQ(testing::ReadFile(link).size(), size_t{1} << 16);
    std::filesystem::remove(link);
    std::filesystem::remove(path_);
  }
}

TEST_F(RegionTest, FileThatHoldsAnythingIsLeftAlone) {
  for (const char letter : {'n', 'x'}) {
    const std::vector<std::byte> theirs(1 << 16, std::byte(letter));
    testing::WriteFile(path_, theirs);
    EXPECT_EQ(Region::Create(path_, 1 << 15, Letter()).status().code(),
              Code::kAlreadyExists);
    EXPECT_EQ(testing::ReadFile(path_), theirs);
  }
}

TEST_F(RegionTest, FileThatSomebodyWritesIsLeftAloneThoughItHoldsNothing) {
  const auto theirs = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_EQ(Region::Create(path_, 1 << 15, Letter()).status().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(theirs->bytes().size(), std::filesystem::file_size(path_));
}

TEST_F(RegionTest, FolderIsLeftAlone) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Region::Create(path_, 1 << 15, Letter()).status().code(),
            Code::kAlreadyExists);
}

// --- Paths -------------------------------------------------------------------

TEST_F(RegionTest, PathThatCanNeverBeRightIsNoOutage) {
  testing::WriteFile(path_, std::vector<std::byte>(10));
  const std::string loop = directory_.File("loop");
  std::filesystem::create_symlink("loop", loop);
  const std::string pipe = directory_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR), 0);
  for (const std::string& path :
       {directory_.File(std::string(300, 'x')), path_ + "/x", loop, pipe,
        directory_.path(), path_ + "/", std::string(5000, 'x')}) {
    EXPECT_EQ(Region::OpenForReading(path).status().code(),
              Code::kInvalidArgument)
        << path << ": " << Region::OpenForReading(path).status();
    EXPECT_EQ(Region::OpenForWriting(path).status().code(),
              Code::kInvalidArgument)
        << path << ": " << Region::OpenForWriting(path).status();
  }
  for (const std::string& path :
       {directory_.File(std::string(300, 'x')), path_ + "/x", loop + "/x"}) {
    EXPECT_EQ(Region::Create(path, 1 << 16).status().code(),
              Code::kInvalidArgument)
        << path << ": " << Region::Create(path, 1 << 16).status();
  }
}

TEST_F(RegionTest, MissingFolderIsNamedWhereAFileIsToBeMade) {
  const absl::Status status =
      Region::Create(directory_.File("nowhere/x"), 1 << 16).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("there is no folder"), Not(HasSubstr("alpheus format"))));
}

// --- Holes and files that change under a region
// -------------------------------

// RG2.
TEST_F(RegionTest, HolesOfACopyAreAllocatedWhenItIsOpened) {
  testing::WriteFile(path_, {});
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  ASSERT_TRUE(Region::OpenForReading(path_).ok());
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 1 << 20) << "a reader changes nothing";
  ASSERT_TRUE(Region::OpenForWriting(path_).ok());
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 1 << 20);
  EXPECT_EQ(info.st_size, 1 << 20);
}

TEST_F(RegionTest, RemovedFileRaisesTheAlarm) {
  const auto region = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(region.ok());
  region->CheckFile();
  EXPECT_FALSE(region->alarm()->is_raised());
  std::filesystem::remove(path_);
  region->CheckFile();
  EXPECT_TRUE(region->alarm()->is_raised());
  EXPECT_EQ(region->alarm()->status().code(), Code::kNotFound);
  EXPECT_EQ(region->alarm()->MediumError().code(), Code::kUnavailable);
}

// RG4. The access and the check both find it; the check says more.
TEST_F(RegionTest, TruncatedFileRaisesTheAlarmAndEndsNothing) {
  auto region = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(region.ok());
  const Region moved = *std::move(region);
  ASSERT_EQ(truncate(path_.c_str(), 100), 0);
  moved.bytes()[1 << 15] = std::byte{1};
  EXPECT_EQ(moved.alarm()->status().code(), Code::kUnavailable);
  moved.CheckFile();
  EXPECT_EQ(moved.alarm()->status().code(), Code::kDataLoss);
}

TEST_F(RegionTest, ReaderOfATruncatedFileReadsZerosAndIsTold) {
  ASSERT_TRUE(Region::Create(path_, 1 << 16).ok());
  const auto reader = Region::OpenForReading(path_);
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(truncate(path_.c_str(), 100), 0);
  EXPECT_EQ(reader->bytes()[1 << 15], std::byte{0});
  EXPECT_TRUE(reader->alarm()->is_raised());
}

TEST_F(RegionTest, DetachedRegionIsNotWatched) {
  auto region = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(region.ok());
  ASSERT_TRUE(region->Detach().ok());
  std::filesystem::remove(path_);
  region->CheckFile();
  EXPECT_FALSE(region->alarm()->is_raised());
}

TEST_F(RegionTest, AnonymousMemoryIsZeroed) {
  const auto region = Region::Anonymous(1 << 16);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(region->medium(), RegionMedium::kAnonymous);
  EXPECT_EQ(region->bytes()[100], std::byte{0});
  region->CheckFile();
  EXPECT_FALSE(region->alarm()->is_raised());
}

}  // namespace
}  // namespace alpheus
