// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/failover/directory_vouch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kAll = {
    VouchVerdict::kVouched,        VouchVerdict::kNotYet,
    VouchVerdict::kNothingToMix,   VouchVerdict::kDirectoryReplaced,
    VouchVerdict::kDirectoryOlder, VouchVerdict::kLogOlder,
    VouchVerdict::kOtherLog,       VouchVerdict::kManifestReplaced,
    VouchVerdict::kOtherDatabase,  VouchVerdict::kWalTwice,
    VouchVerdict::kLeft,           VouchVerdict::kNothingHere,
};

DirectoryVouch Saying(const WalVouch& log) {
  DirectoryVouch vouch;
  vouch.log = log;
  return vouch;
}

// A database whose log vouches, with data, and with a directory that says so.
VouchFacts Usual() {
  VouchFacts facts;
  facts.log = {"id", 5};
  facts.directory = Saying(facts.log);
  facts.directory->manifest = {"MANIFEST-000007", 100};
  facts.manifest = {"MANIFEST-000007", 100};
  facts.has_database = facts.has_data = facts.has_marker = true;
  return facts;
}

// The rows of docs/use/rocksdb.md#vouching, of a log that vouches.
TEST(DirectoryVouchTest, LogThatVouches) {
  VouchFacts facts = Usual();
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  // A crash between directory and log (DV2).
  facts.directory = Saying({"id", 6});
  facts.directory->log_was = facts.log;
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  facts.directory->log_was = WalVouch{"id", 4};
  EXPECT_EQ(Judge(facts), VouchVerdict::kLogOlder);
  facts.directory = Saying({"id", 6});
  EXPECT_EQ(Judge(facts), VouchVerdict::kLogOlder);
  facts.directory = Saying({"id", 4});
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryOlder);
  // The database may need what the log had (DV4).
  facts.has_data = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryOlder);
  facts.directory = Saying({"another", 5});
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherLog);
  facts.directory.reset();
  EXPECT_EQ(Judge(facts), VouchVerdict::kNothingToMix);
  facts.has_data = true;
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryReplaced);
  facts.has_database = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
}

TEST(DirectoryVouchTest, LogThatDoesNotVouch) {
  VouchFacts facts = Usual();
  facts.log = {};
  facts.directory.reset();
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
  facts.has_marker = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryReplaced);
  facts.has_data = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
  facts.has_data = true;
  facts.has_database = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
  // The log vouched for the first time.
  facts = Usual();
  facts.log = {};
  EXPECT_EQ(Judge(facts), VouchVerdict::kLogOlder);
  facts.directory->log_was = WalVouch();
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
  // Nor has the log what the directory has no names of any more.
  facts = Usual();
  facts.log = {};
  facts.has_data = facts.has_marker = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
  facts.has_wal_name = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kLogOlder);
  facts.has_database = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
}

// DV3.
TEST(DirectoryVouchTest, ManifestIsTheOneThatWasLeft) {
  VouchFacts facts = Usual();
  facts.manifest.bytes = 101;
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  facts.manifest.bytes = 99;
  EXPECT_EQ(Judge(facts), VouchVerdict::kManifestReplaced);
  facts.manifest = {"MANIFEST-000004", 1000};
  EXPECT_EQ(Judge(facts), VouchVerdict::kManifestReplaced);
  facts.directory->manifest_was = "MANIFEST-000004";
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  // RocksDB tells what is wrong with CURRENT.
  facts.directory->manifest_was.clear();
  facts.manifest = {};
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
}

// DV5.
TEST(DirectoryVouchTest, IsThatOfItsDatabase) {
  VouchFacts facts = Usual();
  facts.identity = "one";
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);  // of an older version
  facts.directory->identity = "one";
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  // RocksDB draws one where there is none.
  facts.identity.clear();
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  facts.identity = "other";
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherDatabase);
  // Nothing in this log, but maybe in the one of those tables.
  facts.has_data = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherDatabase);
  facts.log = {};
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherDatabase);
}

TEST(DirectoryVouchTest, PlainFileBesideOneOfTheLogIsRefused) {
  VouchFacts facts = Usual();
  facts.twice = "/db/000004.log";
  EXPECT_EQ(Judge(facts), VouchVerdict::kWalTwice);
  // Then that of the log, which is empty, goes.
  facts.directory.reset();
  facts.has_data = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNothingToMix);
}

TEST(DirectoryVouchTest, EveryRefusalNamesWhatToDo) {
  VouchFacts facts = Usual();
  facts.twice = "/db/000004.log";
  for (const VouchVerdict verdict : kAll) {
    const absl::Status status = ToStatus(verdict, facts, "/db");
    EXPECT_EQ(status.ok(), verdict <= VouchVerdict::kNothingToMix);
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(status.message());
    for (const char* word : {"/db: ", "Nothing was changed"}) {
      EXPECT_THAT(message, HasSubstr(word));
    }
    // The WAL of something else is not there to be dropped.
    const bool is_others =
        verdict == VouchVerdict::kOtherLog || verdict >= VouchVerdict::kLeft;
    for (const char* word : {"drop_wal=true", "keep_wal=true"}) {
      EXPECT_EQ(message.find(word) == std::string::npos, is_others) << message;
    }
  }
}

// DV6.
TEST(DirectoryVouchTest, NoWordIsOfferedWhereTheDatabaseIsElsewhere) {
  VouchFacts facts = Usual();
  facts.twice = "/db/000004.log";
  facts.elsewhere = "/newer";
  for (const VouchVerdict verdict : kAll) {
    const absl::Status status = ToStatus(verdict, facts, "/db");
    if (status.ok()) continue;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr("Nothing was changed"));
    for (const char* word : {"drop_wal", "keep_wal", "adopt"}) {
      EXPECT_THAT(message, Not(HasSubstr(word)));
    }
    if (verdict == VouchVerdict::kOtherLog) continue;
    EXPECT_THAT(message, HasSubstr("/newer"));
  }
}

TEST(DirectoryVouchTest, TakeOverLeavesWhatIsNotOlderThanItself) {
  VouchFacts facts = Usual();
  facts.elsewhere = "/newer";
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);  // moved, or a clone
  facts.left = {"/old", {"id", 3}};
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  facts.directory = Saying({"id", 4});
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryOlder);
  for (const uint64_t generation : {1, 3}) {
    facts.directory = Saying({"id", generation});
    EXPECT_EQ(Judge(facts), VouchVerdict::kLeft);
  }
  facts.directory = Saying({"other", 1});
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherLog);
  // The successor was stopped before it began a generation.
  facts.directory = Saying({"id", 5});
  facts.left = {"/old", {"id", 5}};
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
  facts.has_left_name = true;
  EXPECT_EQ(Judge(facts), VouchVerdict::kLeft);
  // The predecessor was stopped in a rise.
  facts.directory = Saying({"id", 6});
  EXPECT_EQ(Judge(facts), VouchVerdict::kLeft);
  // It was deleted, and something else came there.
  facts.directory = Saying({"other", 1});
  EXPECT_EQ(Judge(facts), VouchVerdict::kOtherLog);
  facts.directory.reset();
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryReplaced);
  // Neither vouched then.
  facts.left = {"/old", {}};
  EXPECT_EQ(Judge(facts), VouchVerdict::kLeft);
  facts.has_marker = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kDirectoryReplaced);
  // The database is where it was left: it came back.
  facts = Usual();
  facts.left = {"/db", {"id", 5}};
  facts.has_left_name = true;
  EXPECT_EQ(Judge(facts), VouchVerdict::kVouched);
}

TEST(DirectoryVouchTest, NothingElsewhereIsGivenTheWal) {
  VouchFacts facts = Usual();
  facts.elsewhere = "/newer";
  facts.directory.reset();
  facts.has_database = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);  // to be repaired
  facts.has_marker = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNothingHere);
  facts.has_data = false;
  EXPECT_EQ(Judge(facts), VouchVerdict::kNotYet);
}

TEST(DirectoryVouchTest, FileSaysWhatWasPutIn) {
  DirectoryVouch vouch = Saying({"id", 5});
  EXPECT_EQ(EncodeDirectoryVouch(vouch), "alpheus vouch 1\nlog id 5\n");
  EXPECT_EQ(DecodeDirectoryVouch(EncodeDirectoryVouch(vouch)), vouch);
  vouch.log_was = WalVouch();
  vouch.manifest = {"MANIFEST-000007", 100};
  vouch.manifest_was = "MANIFEST-000004";
  EXPECT_EQ(EncodeDirectoryVouch(vouch),
            "alpheus vouch 1\nlog id 5\nlog-was - 0\n"
            "manifest MANIFEST-000007 100\nmanifest-was MANIFEST-000004 0\n");
  EXPECT_EQ(DecodeDirectoryVouch(EncodeDirectoryVouch(vouch)), vouch);
  vouch.log_was = WalVouch{"old", 4};
  EXPECT_EQ(DecodeDirectoryVouch(EncodeDirectoryVouch(vouch)), vouch);
  vouch = Saying({"id", 5});
  vouch.identity = "0a-1b";
  EXPECT_EQ(EncodeDirectoryVouch(vouch),
            "alpheus vouch 1\nlog id 5\nidentity 0a-1b 0\n");
  EXPECT_EQ(DecodeDirectoryVouch(EncodeDirectoryVouch(vouch)), vouch);
}

// Such a file vouches for nothing.
TEST(DirectoryVouchTest, WhatNoVersionWroteIsNoVouch) {
  const std::string good = "alpheus vouch 1\nlog id 5\n";
  ASSERT_TRUE(DecodeDirectoryVouch(good));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(DecodeDirectoryVouch(good.substr(0, bytes))) << bytes;
  }
  for (const std::string& bad :
       {std::string("alpheus vouch 2\nlog id 5\n"),
        std::string("alpheus vouch 1\nlog id five\n"),
        std::string("alpheus vouch 1\nlog id\n"), good + "more id 5\n",
        std::string("alpheus vouch 1\nmanifest MANIFEST-1 5\n")}) {
    EXPECT_FALSE(DecodeDirectoryVouch(bad)) << bad;
  }
}

class VouchFileTest : public ::testing::Test {
 protected:
  rocksdb::FileSystem& fs() { return *rocksdb::FileSystem::Default(); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(path_ + "/" + name) << text;
  }

  testing::TempDirectory directory_;
  std::string path_ = directory_.path();
};

TEST_F(VouchFileTest, IsReadBackReplacedAndRemoved) {
  EXPECT_EQ(*ReadDirectoryVouch(fs(), path_), std::nullopt);
  EXPECT_TRUE(RemoveDirectoryVouch(fs(), path_).ok());
  for (uint64_t generation = 1; generation < 3; ++generation) {
    const DirectoryVouch vouch = Saying({"id", generation});
    ASSERT_TRUE(WriteDirectoryVouch(fs(), path_, vouch).ok());
    EXPECT_EQ(*ReadDirectoryVouch(fs(), path_), vouch);
  }
  EXPECT_TRUE(RemoveDirectoryVouch(fs(), path_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(VouchFileTest, DirectoryThatIsAwayIsUnavailable) {
  const std::string away = path_ + "/away";
  EXPECT_EQ(WriteDirectoryVouch(fs(), away, Saying({"id", 1})).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(SyncDirectory(fs(), away).code(), absl::StatusCode::kUnavailable);
  std::filesystem::create_directories(path_ + "/ALPHEUS/full");
  EXPECT_EQ(ReadDirectoryVouch(fs(), path_).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(RemoveDirectoryVouch(fs(), path_).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(VouchFileTest, IdentityIsOneWord) {
  EXPECT_EQ(*DatabaseIdentity(fs(), path_), "");
  for (const auto& [text, identity] :
       {std::pair("one", "one"), std::pair("one\n", "one"),
        std::pair("no identity", ""), std::pair("", "")}) {
    Write("IDENTITY", text);
    EXPECT_EQ(*DatabaseIdentity(fs(), path_), identity);
  }
  std::filesystem::remove(path_ + "/IDENTITY");
  std::filesystem::create_directories(path_ + "/IDENTITY/full");
  EXPECT_EQ(DatabaseIdentity(fs(), path_).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(VouchFileTest, ManifestIsSynced) {
  EXPECT_EQ(*SyncedManifest(fs(), path_), ManifestName());
  Write("CURRENT", "MANIFEST-000007\n");
  Write("MANIFEST-000007", "seven");
  EXPECT_EQ(*SyncedManifest(fs(), path_), (ManifestName{"MANIFEST-000007", 5}));
  std::filesystem::remove(path_ + "/MANIFEST-000007");
  std::filesystem::create_directory(path_ + "/MANIFEST-000007");
  EXPECT_EQ(SyncedManifest(fs(), path_).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(VouchFileTest, ManifestIsTheOneThatCurrentNames) {
  EXPECT_EQ(*NamedManifest(fs(), path_), ManifestName());
  Write("CURRENT", "MANIFEST-000007\n");
  EXPECT_EQ(*NamedManifest(fs(), path_), ManifestName());
  Write("MANIFEST-000007", "seven");
  EXPECT_EQ(*NamedManifest(fs(), path_), (ManifestName{"MANIFEST-000007", 5}));
  Write("CURRENT", "nothing\n");
  EXPECT_EQ(*NamedManifest(fs(), path_), ManifestName());
}

}  // namespace
}  // namespace alpheus::wal
