// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "log/pmem/landing_persistence.h"
#include "tests/testing/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;
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
  EXPECT_GE(info.st_blocks * 512, 1 << 20) << "R2 (region.h)";
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
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(path_));
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

// Who had it may go on writing: others have the file then.
TEST_F(RegionTest, WhatIsWrittenToAGivenUpRegionIsInNoFile) {
  auto given_up = Region::Create(path_, 1 << 16);
  ASSERT_TRUE(given_up.ok());
  const std::span<std::byte> bytes = given_up->bytes();
  bytes[5] = std::byte{1};
  bytes[5000] = std::byte{2};
  ASSERT_TRUE(given_up->GiveUp().ok());
  ASSERT_TRUE(given_up->GiveUp().ok());
  const auto next = Region::OpenForWriting(path_);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(given_up->bytes().data(), bytes.data());
  EXPECT_EQ(bytes[5], std::byte{1});
  bytes[5] = std::byte{9};
  EXPECT_EQ(bytes[5], std::byte{9});
  EXPECT_EQ(next->bytes()[5], std::byte{1});
  EXPECT_EQ(next->bytes()[5000], std::byte{2});
}

// Goal: R3. The file gets what is flushed, and nothing once it is given up.
TEST_F(RegionTest, LandedRegionWritesToItsFileByFlushesOnly) {
  Region region = *Region::Create(path_, 1 << 16);
  region.bytes()[70] = std::byte{1};
  region.LandIn(*Region::Anonymous(1 << 16));
  ASSERT_TRUE(region.is_landed());
  EXPECT_TRUE(region.writable());
  EXPECT_EQ(region.bytes().size(), size_t{1} << 16);
  EXPECT_EQ(region.bytes()[70], std::byte{1});
  const auto reader = Region::OpenForReading(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->HasWriter());
  LandingPersistence pmem(region.bytes(), std::make_unique<PmemLandingMedium>(
                                              region.medium_bytes(),
                                              LibpmemPersistence::Options()));
  std::byte* const at = region.bytes().data() + 70;
  *at = std::byte{2};
  EXPECT_EQ(reader->bytes()[70], std::byte{1});
  EXPECT_TRUE(Persist(pmem, at, 1));
  EXPECT_EQ(reader->bytes()[70], std::byte{2});
  Region moved = std::move(region);
  EXPECT_EQ(moved.bytes().data() + 70, at);
  ASSERT_TRUE(moved.GiveUp().ok());
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

TEST_F(RegionTest, AnonymousMemoryIsZeroed) {
  const auto region = Region::Anonymous(1 << 16);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(region->medium(), RegionMedium::kAnonymous);
  EXPECT_EQ(region->bytes()[100], std::byte{0});
}

}  // namespace
}  // namespace alpheus
