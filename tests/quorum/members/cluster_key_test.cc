// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/cluster_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kElevens[] =
    "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";

void WriteKeyText(const std::string& path, std::string_view text) {
  const auto bytes = AsBytes(text);
  testing::WriteFile(path, {bytes.begin(), bytes.end()});
}

std::string HexOf(const Digest& digest) {
  const std::string_view text = AsText(digest);
  return absl::BytesToHexString({text.data(), text.size()});
}

ClusterKey KeyOf(unsigned char byte) {
  std::array<std::byte, kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{byte});
  return ClusterKey(bytes);
}

// As `printf 'Hi There' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0b...`
// and Python's hmac say.
TEST(ClusterKeyTest, SignsAsOthersDo) {
  EXPECT_EQ(HexOf(KeyOf(0x0b).Sign(AsBytes("Hi There"))),
            "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7");
  EXPECT_EQ(HexOf(KeyOf(0x0b).Sign({})),
            "5177e637aaac0b50e5dca8bb05b0b571444bd59b9b0d834d50681af21fc14b1e");
}

TEST(ClusterKeyTest, DigestsDifferByKeyAndByText) {
  const Digest digest = KeyOf(1).Sign(AsBytes("text"));
  EXPECT_TRUE(AreSame(digest, KeyOf(1).Sign(AsBytes("text"))));
  EXPECT_FALSE(AreSame(digest, KeyOf(2).Sign(AsBytes("text"))));
  EXPECT_FALSE(AreSame(digest, KeyOf(1).Sign(AsBytes("texu"))));
  for (size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(AreSame(digest, other)) << i;
  }
}

TEST(ClusterKeyTest, NoneIsNotSetAndLikeNoOther) {
  EXPECT_FALSE(ClusterKey().is_set());
  EXPECT_EQ(ClusterKey(), ClusterKey());
  EXPECT_NE(ClusterKey(), KeyOf(0));
  EXPECT_NE(KeyOf(1), KeyOf(2));
}

TEST(ClusterKeyDeathTest, NoneSignsNothing) {
  EXPECT_DEATH(ClusterKey().Sign({}), "a signer has a key");
}

TEST(ClusterKeyTest, TextIsHexadecimalDigits) {
  const std::string upper = "0B" + std::string(kElevens).substr(2);
  for (const std::string& text :
       {std::string(kElevens), upper, std::string(" \t") + kElevens + "\r\n"}) {
    const auto key = ParseClusterKey(text, "k");
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(*key, KeyOf(0x0b));
  }
}

// The text of the file stays there: logs are read by more people than keys.
TEST(ClusterKeyTest, TextThatIsNoKeyIsRefusedAndNotShown) {
  const std::string digits(kElevens);
  for (const std::string& text :
       {std::string(), digits + "0", digits.substr(1), digits + digits,
        "g" + digits.substr(1), digits.substr(1) + "g",
        digits.substr(0, 32) + "\n" + digits.substr(32),
        std::string(64, '0')}) {
    const absl::Status refused = ParseClusterKey(text, "dir/k").status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << text;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("dir/k: not a cluster"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("alpheus key new"));
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("0b0b")));
  }
}

// The cause stands before the remedy.
TEST(ClusterKeyFileTest, MissingOneIsNamedWithWhatHelps) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("none");
  const absl::Status missing = LoadClusterKey(path).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(std::string(missing.message()),
            "key file " + path +
                " can't be opened: No such file or directory. It must be the "
                "same one as on all other nodes; `alpheus key new FILE` makes "
                "the first");
}

TEST(ClusterKeyFileTest, NewOneIsItsOwnersAloneAndCanBeLoaded) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("k");
  Random random(1);
  ASSERT_TRUE(MakeClusterKeyFile(path, random).ok());
  struct stat found = {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  const auto key = LoadClusterKey(path);
  ASSERT_TRUE(key.ok()) << key.status();
  // Another one each time, and none is overwritten.
  const absl::Status again = MakeClusterKeyFile(path, random);
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_THAT(std::string(again.message()), HasSubstr("copy it to the other"));
  EXPECT_THAT(std::string(again.message()), Not(HasSubstr("emove")));
  EXPECT_EQ(*LoadClusterKey(path), *key);
  ASSERT_TRUE(MakeClusterKeyFile(directory.File("other"), random).ok());
  EXPECT_NE(*LoadClusterKey(directory.File("other")), *key);
}

TEST(ClusterKeyFileTest, WhatOthersMayUseIsRefused) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("k");
  WriteKeyText(path, kElevens);
  for (unsigned mode = 0; mode < 0100; ++mode) {
    ASSERT_EQ(chmod(path.c_str(), 0600 | mode), 0);
    const absl::Status status = LoadClusterKey(path).status();
    EXPECT_EQ(status.ok(), mode == 0) << mode;
    if (mode == 0) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const absl::Status status = LoadClusterKey(path).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("has mode 640"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600 " + path));
}

TEST(ClusterKeyFileTest, WhatCannotBeReadOrMadeIsRefused) {
  const testing::TempDirectory directory;
  Random random(1);
  EXPECT_TRUE(absl::IsNotFound(LoadClusterKey(directory.File("k")).status()));
  EXPECT_TRUE(
      absl::IsNotFound(MakeClusterKeyFile(directory.File("no/k"), random)));
  // Neither a directory nor a pipe, which would never end, is a key.
  std::filesystem::create_directory(directory.File("d"));
  std::filesystem::permissions(directory.File("d"),
                               std::filesystem::perms::owner_all);
  const std::string pipe = directory.File("p");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {directory.File("d"), pipe}) {
    const absl::Status status = LoadClusterKey(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not a regular file"));
  }
}

// The key is right: a new one would not help. A right for others would be
// refused, so its owner must be another one.
TEST(ClusterKeyFileTest, OneOfAnotherUserIsNotToBeMadeAgain) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("k");
  WriteKeyText(path, kElevens);
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  constexpr uid_t kNobody = 65'534;
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const absl::Status refused = LoadClusterKey(path).status();
  const uid_t asked_as = geteuid();
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  const std::string said(refused.message());
  EXPECT_THAT(said,
              HasSubstr("Permission denied. User " + std::to_string(asked_as)));
  EXPECT_THAT(said,
              HasSubstr("chown " + std::to_string(asked_as) + " " + path));
  EXPECT_THAT(said, Not(HasSubstr("alpheus key new")));
}

// This is like a full disk: no file of this process may have a byte.
TEST(ClusterKeyFileTest, NothingIsLeftOfOneThatCannotBeWritten) {
  const testing::TempDirectory directory;
  Random random(1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto on_excess = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit nothing = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
  const absl::Status status = MakeClusterKeyFile(directory.File("k"), random);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, on_excess);
  EXPECT_THAT(std::string(status.message()), HasSubstr("can't be written"));
  EXPECT_FALSE(std::filesystem::exists(directory.File("k")));
}

}  // namespace
}  // namespace alpheus::quorum
