// SPDX-License-Identifier: Apache-2.0
// Files that an operator wrote. Their kinds are tested where they are used.
#include "log/pmem/config_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "log/base/bytes.h"
#include "log/pmem/file_descriptor.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ConfigFileKind kSecret = {.name = "secret file",
                                    .bytes_max = 8,
                                    .readers = ReadableBy::kOwner,
                                    .if_missing = "Look under the stone",
                                    .if_exposed = "think of another one"};
constexpr ConfigFileKind kOpen = {
    .name = "open file", .bytes_max = 8, .readers = ReadableBy::kAnyone};

class ConfigFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode) {
    const auto bytes = AsBytes(text);
    testing::WriteFile(path_, {bytes.begin(), bytes.end()});
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return path_;
  }

  const testing::TempDirectory directory_;
  const std::string path_ = directory_.File("file");
};

TEST_F(ConfigFileTest, HasAtMostTheBytesOfItsKind) {
  for (const char* text : {"", "a", "12345678"}) {
    const auto read = ReadConfigFile(Write(text, 0600), kSecret);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
  }
  const absl::Status larger =
      ReadConfigFile(Write("123456789", 0600), kSecret).status();
  EXPECT_TRUE(absl::IsInvalidArgument(larger)) << larger;
  EXPECT_EQ(
      std::string(larger.message()),
      "secret file " + path_ + " has more than 8 bytes. Name another file");
}

TEST_F(ConfigFileTest, StampTellsAFileThatWasReplacedOrWritten) {
  EXPECT_EQ(StampOf(path_), ConfigFileStamp());
  Write("text", 0644);
  const ConfigFileStamp first = StampOf(path_);
  EXPECT_NE(first, ConfigFileStamp());
  EXPECT_EQ(StampOf(path_), first);
  EXPECT_EQ(first.bytes, 4);
  Write("longer", 0644);
  const ConfigFileStamp written = StampOf(path_);
  EXPECT_NE(written, first);
  // A file of the same length and time in its place.
  const std::string other = path_ + ".new";
  testing::WriteFile(other, testing::ReadFile(path_));
  const timespec times[2] = {
      {written.written_ns / 1'000'000'000, written.written_ns % 1'000'000'000},
      {written.written_ns / 1'000'000'000, written.written_ns % 1'000'000'000}};
  ASSERT_EQ(utimensat(AT_FDCWD, other.c_str(), times, 0), 0);
  ASSERT_EQ(rename(other.c_str(), path_.c_str()), 0);
  const ConfigFileStamp replaced = StampOf(path_);
  EXPECT_EQ(replaced.written_ns, written.written_ns);
  EXPECT_NE(replaced, written);
}

TEST_F(ConfigFileTest, SecretIsForItsOwnerAlone) {
  for (mode_t others = 0; others < 0100; ++others) {
    Write("text", 0600 | others);
    EXPECT_TRUE(ReadConfigFile(path_, kOpen).ok()) << others;
    const absl::Status read = ReadConfigFile(path_, kSecret).status();
    EXPECT_EQ(read.ok(), others == 0) << others;
    if (others == 0) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
    EXPECT_THAT(std::string(read.message()), Not(HasSubstr("text")));
  }
  EXPECT_EQ(
      std::string(
          ReadConfigFile(Write("text", 0640), kSecret).status().message()),
      "secret file " + path_ +
          " has mode 640: other users than its owner may use it, expected 600 "
          "or 400. If nobody has read it, `chmod 600 " +
          path_ + "`; else think of another one");
}

TEST_F(ConfigFileTest, MissingOneIsNamedWithWhatHelps) {
  for (const auto& [kind, remedy] : {std::pair(kSecret, "Look under the stone"),
                                     std::pair(kOpen, "Is the path right?")}) {
    const absl::Status missing = ReadConfigFile(path_, kind).status();
    EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
    EXPECT_THAT(std::string(missing.message()), HasSubstr(remedy));
  }
}

// A pipe that nobody writes to is not waited for.
TEST_F(ConfigFileTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (const std::string& path :
       {path_, directory_.path(), std::string("/dev/null")}) {
    const absl::Status refused = ReadConfigFile(path, kOpen).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(path + " is not a regular file"));
  }
}

TEST_F(ConfigFileTest, IsWrittenWholeOrSaysWhyNot) {
  Write("", 0600);
  const FileDescriptor both(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  const absl::Status written =
      WriteConfigFile(both.get(), "text", path_, kSecret);
  EXPECT_TRUE(written.ok()) << written;
  const auto read = ReadConfigFile(path_, kSecret);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, "text");
  const FileDescriptor reading(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(
      std::string(
          WriteConfigFile(reading.get(), "more", path_, kSecret).message()),
      HasSubstr("secret file " + path_ + " can't be written"));
}

}  // namespace
}  // namespace alpheus
