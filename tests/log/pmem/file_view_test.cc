// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "log/pmem/region.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using testing::TempDirectory;

constexpr size_t kBytes = 1 << 20;

class FileViewTest : public ::testing::Test {
 protected:
  Region Create() {
    auto region = Region::Create(directory_.File("region"), kBytes);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }

  TempDirectory directory_;
  std::array<std::byte, 64> line_{};
};

TEST_F(FileViewTest, ReadsWhatTheMappingShows) {
  const Region region = Create();
  for (const size_t offset : {size_t{0}, size_t{4095}, kBytes - 64}) {
    region.bytes()[offset] = std::byte{0x5a};
    ASSERT_TRUE(region.file().Read(offset, line_)) << offset;
    EXPECT_EQ(line_[0], std::byte{0x5a}) << offset;
  }
}

TEST_F(FileViewTest, ReaderOfTheFileReadsItToo) {
  const Region region = Create();
  region.bytes()[100] = std::byte{7};
  const auto reader = Region::OpenForReading(region.path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(reader->file().Read(100, line_));
  EXPECT_EQ(line_[0], std::byte{7});
}

TEST_F(FileViewTest, WithoutAFileItSaysNo) {
  const FileView none;
  EXPECT_FALSE(none.Read(0, line_));
  EXPECT_EQ(none.SkipUnwritten(64, kBytes), 64u);
}

TEST_F(FileViewTest, MemoryIsNoFile) {
  const auto region = Region::Anonymous(kBytes);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_FALSE(region->file().Read(0, line_));
}

// A landed region is in memory; its file may be behind.
TEST_F(FileViewTest, LandedRegionIsNoFile) {
  Region region = Create();
  region.UseShadow(*Region::Anonymous(kBytes));
  EXPECT_FALSE(region.file().Read(0, line_));
}

TEST_F(FileViewTest, EndOfTheFileIsANo) {
  const Region region = Create();
  EXPECT_FALSE(region.file().Read(kBytes - 32, line_));
  EXPECT_FALSE(region.file().Read(kBytes, line_));
}

// A pipe can be read, but not at an offset.
TEST_F(FileViewTest, OtherErrorsAreANo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileView view(ends[0]);
  EXPECT_FALSE(view.Read(0, line_));
  EXPECT_EQ(view.SkipUnwritten(64, kBytes), 64u);
  close(ends[0]);
  close(ends[1]);
}

// Nothing that is not zero is ever passed over, whatever the file system knows
// of holes.
TEST_F(FileViewTest, WhatIsPassedOverIsZero) {
  const std::string path = directory_.File("sparse");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  const size_t written = kBytes / 2 + 100;
  ASSERT_EQ(pwrite(fd, "x", 1, written), 1);
  const FileView view(fd);
  const uint64_t skipped = view.SkipUnwritten(0, kBytes);
  EXPECT_LE(skipped, written);
  std::vector<std::byte> before(skipped);
  ASSERT_TRUE(view.Read(0, before));
  EXPECT_EQ(before, std::vector<std::byte>(skipped));
  EXPECT_EQ(view.SkipUnwritten(written, kBytes), written);
  EXPECT_LE(view.SkipUnwritten(0, 4096), 4096u);
  close(fd);
}

}  // namespace
}  // namespace alpheus
