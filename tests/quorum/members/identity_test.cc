// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void WriteIdentity(const std::string& path, std::string_view text,
                   std::filesystem::perms mode) {
  const auto bytes = AsBytes(text);
  testing::WriteFile(path, {bytes.begin(), bytes.end()});
  std::filesystem::permissions(path, mode);
}

TEST(IdentityTest, IsOneLineWithNameAndPassword) {
  EXPECT_EQ(*ParseIdentity(" alpheus:a b:c\n", "f"), "alpheus:a b:c");
  for (const char* text : {"", "\n", "alpheus", ":secret",
                           "alpheus:", "alpheus:secret\nmore", "a:b\rc"}) {
    const absl::Status status = ParseIdentity(text, "dir/f").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("dir/f"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
  EXPECT_FALSE(
      ParseIdentity("a:" + std::string(kIdentityBytesMax, 'x'), "f").ok());
}

TEST(IdentityTest, IsReadFromAFileOfItsOwnerAlone) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("identity");
  EXPECT_TRUE(absl::IsNotFound(LoadIdentity(path).status()));
  WriteIdentity(path, "alpheus:secret\n", std::filesystem::perms::owner_read);
  EXPECT_EQ(*LoadIdentity(path), "alpheus:secret");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read |
                                         std::filesystem::perms::others_read);
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadIdentity(path).status()));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  WriteIdentity(path, "a:" + std::string(2 * kIdentityBytesMax, 'x'),
                std::filesystem::perms::owner_all);
  EXPECT_TRUE(absl::IsInvalidArgument(LoadIdentity(path).status()));
}

TEST(IdentityTest, WhatIsNoPlainFileIsRefused) {
  const testing::TempDirectory directory;
  const std::string pipe = directory.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(LoadIdentity(pipe).status()));
}

}  // namespace
}  // namespace alpheus::quorum
