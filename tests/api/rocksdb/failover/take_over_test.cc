// SPDX-License-Identifier: Apache-2.0
// Files are taken over from a directory in which a predecessor still works.
#include "api/rocksdb/failover/take_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Before the n-th link something happens; it may fail. So may questions.
class LinkingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  LinkingFileSystem() : FileSystemWrapper(FileSystem::Default()) {}

  const char* Name() const override { return "LinkingFileSystem"; }
  IOStatus LinkFile(const std::string& from, const std::string& to,
                    const IOOptions& options, IODebugContext* dbg) override {
    ++links_;
    IOStatus before = before_ ? before_(links_) : IOStatus::OK();
    return before.ok() ? target_->LinkFile(from, to, options, dbg) : before;
  }
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* dbg) override {
    return path == unknown_ ? IOStatus::IOError("input/output error")
                            : target_->FileExists(path, options, dbg);
  }
  IOStatus NewSequentialFile(const std::string& path,
                             const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override {
    return path == unreadable_
               ? IOStatus::IOError("stale file handle")
               : target_->NewSequentialFile(path, options, result, dbg);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext* dbg) override {
    steps_.push_back("sync " + path);
    return target_->NewDirectory(path, options, result, dbg);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    steps_.push_back("make " + to);
    return target_->RenameFile(from, to, options, dbg);
  }
  // Directories that were synced, and names that were made, in order.
  const std::vector<std::string>& steps() const { return steps_; }
  void DontRead(const std::string& path) { unreadable_ = path; }
  // Whether this one is there can't be told.
  void Hide(const std::string& path) { unknown_ = path; }
  void BeforeLink(std::function<IOStatus(int)> before) {
    before_ = std::move(before);
  }
  int links() const { return links_; }

 private:
  int links_ = 0;
  std::function<IOStatus(int)> before_;
  std::string unknown_;
  std::string unreadable_;
  std::vector<std::string> steps_;
};

class TakeOverTest : public ::testing::Test {
 protected:
  TakeOverTest() {
    std::filesystem::create_directory(from_);
    Put("CURRENT", "MANIFEST-000005\n");
    Put("MANIFEST-000005", "one,");
    Put("000007.sst", "seven");
    Put("000008.sst", "eight");
  }

  void Put(const std::string& name, const std::string& text) {
    const IOStatus put = rocksdb::WriteStringToFile(
        &fs_, text, from_ + "/" + name, /*should_sync=*/false);
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  void Remove(const std::string& name) {
    std::filesystem::remove(from_ + "/" + name);
  }
  std::string Taken(const std::string& name) {
    std::string text;
    const IOStatus read =
        rocksdb::ReadFileToString(&fs_, to_ + "/" + name, &text);
    return read.ok() ? text : "(none)";
  }
  std::vector<std::string> TakenNames() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(to_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  absl::Status TakeOver() {
    return TakeOverDatabase(fs_, {from_, from_}, {to_, to_});
  }

  testing::TempDirectory directory_;
  const std::string from_ = directory_.File("from");
  const std::string to_ = directory_.File("to");
  LinkingFileSystem fs_;
};

TEST_F(TakeOverTest, TakesWhatBelongsToTheDatabase) {
  Put("IDENTITY", "id");
  Put("OPTIONS-000009", "options");
  Put("OPTIONS-000010.dbtmp", "unfinished");
  Put("MANIFEST-000004", "older");
  Put("000006.ldb", "of LevelDB");
  Put("000011.blob", "blob");
  Put("000012.log", "a WAL from before the plugin");
  Put("LOCK", "");
  Put("LOG", "notes");
  std::filesystem::create_symlink("nowhere", from_ + "/000013.log");
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_THAT(TakenNames(),
              UnorderedElementsAre("CURRENT", "MANIFEST-000005", "000007.sst",
                                   "000008.sst", "IDENTITY", "OPTIONS-000009",
                                   "000006.ldb", "000011.blob", "000012.log"));
  EXPECT_EQ(Taken("CURRENT"), "MANIFEST-000005\n");
  EXPECT_EQ(Taken("MANIFEST-000005"), "one,");
  EXPECT_EQ(Taken("000008.sst"), "eight");
}

// It may be the only one that has synced writes.
TEST_F(TakeOverTest, WalThatCannotBeReadEndsIt) {
  Put("000012.log", "a WAL from before the plugin");
  fs_.DontRead(from_ + "/000012.log");
  const absl::Status taken = TakeOver();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("stale file handle"));
  EXPECT_EQ(Taken("CURRENT"), "(none)");
  // The predecessor has removed it since it was listed.
  Remove("000012.log");
  EXPECT_TRUE(TakeOver().ok());
}

TEST_F(TakeOverTest, PlainWalGoesFromOneWalDirectoryToTheOther) {
  const std::string wal_from = directory_.File("wal_from");
  const std::string wal_to = directory_.File("wal_to");
  std::filesystem::create_directory(wal_from);
  Put("../wal_from/000012.log", "a WAL from before the plugin");
  std::filesystem::create_symlink("000012.log", wal_from + "/000013.log");
  ASSERT_TRUE(TakeOverDatabase(fs_, {wal_from, from_}, {wal_to, to_}).ok());
  EXPECT_EQ(Taken("../wal_to/000012.log"), "a WAL from before the plugin");
  EXPECT_FALSE(std::filesystem::exists(wal_to + "/000013.log"));
  EXPECT_EQ(Taken("000012.log"), "(none)");
}

TEST_F(TakeOverTest, AllIsDurableBeforeCurrentIsThere) {
  const std::string wal_from = directory_.File("wal_from");
  const std::string wal_to = directory_.File("wal_to");
  std::filesystem::create_directory(wal_from);
  ASSERT_TRUE(TakeOverDatabase(fs_, {wal_from, from_}, {wal_to, to_}).ok());
  const std::string above =
      std::filesystem::path(wal_to).parent_path().string();
  EXPECT_THAT(fs_.steps(),
              ElementsAre("sync " + wal_to, "sync " + above, "sync " + to_,
                          "make " + to_ + "/CURRENT", "sync " + to_));
}

// Nothing is written there, which could be cut off.
TEST_F(TakeOverTest, PlainWalStaysInADirectoryThatBothHave) {
  const std::string wal = directory_.File("wal");
  std::filesystem::create_directory(wal);
  Put("../wal/000012.log", "a WAL from before the plugin");
  fs_.DontRead(wal + "/000012.log");
  const std::string link = directory_.File("link");
  std::filesystem::create_symlink(wal, link);
  EXPECT_TRUE(TakeOverDatabase(fs_, {wal, from_}, {link, to_}).ok());
}

TEST_F(TakeOverTest, WalDirectoryThatIsNotThereEndsIt) {
  const absl::Status taken =
      TakeOverDatabase(fs_, {directory_.File("nowhere"), from_}, {to_, to_});
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(std::string(taken.message()), HasSubstr("nowhere"));
  EXPECT_EQ(Taken("CURRENT"), "(none)");
}

// The predecessor appends to its MANIFEST and deletes its tables; a copy would
// not notice the first, a link does not notice the second.
TEST_F(TakeOverTest, WhatThePredecessorDoesLaterDoesNotMatter) {
  ASSERT_TRUE(TakeOver().ok());
  Put("MANIFEST-000005", "one,two,");
  Put("CURRENT", "MANIFEST-000099\n");
  Remove("000007.sst");
  EXPECT_EQ(Taken("MANIFEST-000005"), "one,");
  EXPECT_EQ(Taken("CURRENT"), "MANIFEST-000005\n");
  EXPECT_EQ(Taken("000007.sst"), "seven");
}

// TO2. A compaction ends between MANIFEST and tables.
TEST_F(TakeOverTest, ManifestAndTablesAreOfOneMoment) {
  fs_.BeforeLink([this](int links) {
    if (links == 1) {
      Put("000009.sst", "seven and eight");
      Put("MANIFEST-000005", "one,two,");
      Remove("000007.sst");
      Remove("000008.sst");
    }
    return IOStatus::OK();
  });
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_EQ(Taken("MANIFEST-000005"), "one,two,");
  EXPECT_EQ(Taken("000009.sst"), "seven and eight");
}

// The same with a MANIFEST that was begun again.
TEST_F(TakeOverTest, ManifestIsTheOneThatIsCurrent) {
  fs_.BeforeLink([this](int links) {
    if (links == 1) {
      Put("MANIFEST-000010", "two,");
      Put("CURRENT", "MANIFEST-000010\n");
    }
    return IOStatus::OK();
  });
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_EQ(Taken("CURRENT"), "MANIFEST-000010\n");
  EXPECT_EQ(Taken("MANIFEST-000010"), "two,");
}

TEST_F(TakeOverTest, PredecessorThatNeverRestsIsAnError) {
  fs_.BeforeLink([this](int links) {
    Put("MANIFEST-000005", std::to_string(links));
    return IOStatus::OK();
  });
  const absl::Status taken = TakeOver();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_EQ(Taken("CURRENT"), "(none)");
}

// It does not matter how much of it was done, nor what has changed since.
TEST_F(TakeOverTest, TakingOverThatWasCutOffIsMadeAgain) {
  for (const int nth : {1, 2}) {
    const int before = fs_.links();
    fs_.BeforeLink([=](int links) {
      return links == before + nth ? IOStatus::IOError("cut off")
                                   : IOStatus::OK();
    });
    const absl::Status cut = TakeOver();
    EXPECT_TRUE(absl::IsUnavailable(cut)) << cut;
    EXPECT_THAT(std::string(cut.message()), HasSubstr("cut off"));
    EXPECT_EQ(Taken("CURRENT"), "(none)");
  }
  fs_.BeforeLink(nullptr);
  // The number was given to another table meanwhile.
  Remove("000007.sst");
  Put("000007.sst", "another seven");
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_EQ(Taken("000007.sst"), "another seven");
  EXPECT_EQ(Taken("CURRENT"), "MANIFEST-000005\n");
}

TEST_F(TakeOverTest, DatabaseIsNotPutOverAnother) {
  ASSERT_TRUE(TakeOver().ok());
  const absl::Status again = TakeOver();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
}

TEST_F(TakeOverTest, WhatCannotBeSeenIsNotTakenForMissing) {
  for (const std::string& directory : {from_, to_}) {
    fs_.Hide(directory + "/CURRENT");
    const absl::Status status = TakeOver();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(directory));
    EXPECT_FALSE(std::filesystem::exists(to_));
  }
}

TEST_F(TakeOverTest, DirectoryWithoutADatabaseIsAnError) {
  Remove("CURRENT");
  EXPECT_TRUE(absl::IsFailedPrecondition(TakeOver()));
  Put("CURRENT", "nonsense");
  EXPECT_TRUE(absl::IsFailedPrecondition(TakeOver()));
}

}  // namespace
}  // namespace alpheus::wal
