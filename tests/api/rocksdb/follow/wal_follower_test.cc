// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/follow/wal_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/rocksdb/store/wal_record.h"
#include "log/base/bytes.h"
#include "tests/api/rocksdb/follow/followed_text.h"

namespace alpheus::wal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TextOf;
using Code = absl::StatusCode;

// The records that it was given.
class FakeSource final : public WalSource {
 public:
  void Add(const WalHeader& header, const std::string& body) {
    std::vector<std::byte> payload(kWalHeaderBytes);
    EncodeWalHeader(header, std::span(payload).first<kWalHeaderBytes>());
    const auto bytes = AsBytes(body);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    records.push_back(std::move(payload));
  }
  void Create(uint64_t id, const std::string& name) {
    Add({.kind = WalRecordKind::kCreate, .file = id, .seconds = 7}, name);
  }
  void Data(uint64_t id, uint64_t offset, const std::string& text) {
    Add({.kind = WalRecordKind::kData, .file = id, .offset = offset}, text);
  }
  void Remove(uint64_t id) {
    Add({.kind = WalRecordKind::kRemove, .file = id}, "");
  }
  void Clean(uint64_t through) { head = through + 1; }

  absl::StatusOr<Lsn> Read(Lsn from, const Visit& visit) override {
    ++reads;
    if (!status.ok()) return status;
    if (!next_status.ok()) {
      return std::exchange(next_status, absl::OkStatus());
    }
    if (from != Lsn(0) && from.value < head) {
      return absl::OutOfRangeError("cleaned");
    }
    const uint64_t first = std::max(from.value, head);
    for (uint64_t lsn = first; lsn <= records.size(); ++lsn) {
      const absl::Status visited = visit(Lsn(lsn), records[lsn - 1]);
      if (!visited.ok()) return visited;
    }
    if (std::exchange(is_cut_off, false)) {
      return absl::UnavailableError("no node is in reach");
    }
    return Lsn(records.size() + 1);
  }

  std::vector<std::vector<std::byte>> records;
  uint64_t head = 1;
  int reads = 0;
  absl::Status status;       // of each Read
  absl::Status next_status;  // of one
  bool is_cut_off = false;   // of one, when it has shown all
};

class WalFollowerTest : public ::testing::Test {
 protected:
  WalFollowerTest() {
    auto source = std::make_unique<FakeSource>();
    source_ = source.get();
    follower_ = std::make_unique<WalFollower>(std::move(source));
  }
  // Two files, and readers that look at the log.
  void BeginWithTwoFiles() {
    source_->Create(1, "000004.log");
    source_->Data(1, 0, "old");
    source_->Create(2, "000005.log");
    source_->Data(2, 0, "new");
    ASSERT_TRUE(follower_->Begin(&one_).ok());
    ASSERT_TRUE(follower_->Begin(&other_).ok());
  }
  // The files that a reader lists after a Refresh.
  std::vector<std::string> ListFor(const int& reader) {
    EXPECT_TRUE(follower_->Refresh().ok());
    const auto listed = follower_->List(&reader, "");
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.value_or(std::vector<std::string>());
  }

  const int one_ = 1;
  const int other_ = 2;
  FakeSource* source_;
  std::unique_ptr<WalFollower> follower_;
};

TEST_F(WalFollowerTest, FilesGrowWithTheLog) {
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_THAT(follower_->List(""), IsEmpty());
  source_->Add({.kind = WalRecordKind::kHome, .file = 1},
               EncodeWalHome({"/wal", "/db"}));
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "one ");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(follower_->home(), (WalHome{"/wal", "/db"}));
  const WalFollower::Followed file = follower_->Find("000004.log");
  EXPECT_EQ(TextOf(file), "one ");
  EXPECT_EQ(file.file->seconds(), 7u);
  source_->Data(1, 4, "two");
  EXPECT_EQ(TextOf(file), "one ");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(TextOf(file), "one two");
  EXPECT_EQ(TextOf(follower_->Find("000005.log")), "no such file");
  EXPECT_EQ(follower_->restarts(), 0);
}

TEST_F(WalFollowerTest, RemovedFileStaysForWhoReadsIt) {
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "old");
  source_->Create(2, "000005.log");
  source_->Data(2, 0, "new");
  ASSERT_TRUE(follower_->Refresh().ok());
  const WalFollower::Followed old = follower_->Find("000004.log");
  source_->Add({.kind = WalRecordKind::kRemove, .file = 1}, "");
  source_->Clean(2);
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_THAT(follower_->List(""), ElementsAre("000005.log"));
  EXPECT_EQ(TextOf(old), "old");
  EXPECT_EQ(TextOf(follower_->Find("000005.log")), "new");
}

// WFR5: RocksDB has read the MANIFEST between the two, and may need it.
TEST_F(WalFollowerTest, FileThatIsRemovedDuringALookStaysForIt) {
  BeginWithTwoFiles();
  source_->Data(1, 3, "er");
  source_->Remove(1);
  source_->Create(3, "000006.log");
  source_->Data(3, 0, "short-lived");
  source_->Remove(3);
  source_->Clean(4);
  EXPECT_THAT(ListFor(one_),
              ElementsAre("000005.log", "000004.log", "000006.log"));
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "older");
  EXPECT_EQ(TextOf(follower_->Find("000006.log")), "short-lived");
  // The other one began before it was removed; this one begins again.
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_THAT(ListFor(one_), ElementsAre("000005.log"));
  EXPECT_EQ(ListFor(other_).size(), 3u);
  ASSERT_TRUE(follower_->Begin(&other_).ok());
  EXPECT_THAT(ListFor(one_), ElementsAre("000005.log"));
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "no such file");
}

// WFR6: it may be let go before that one opens it.
TEST_F(WalFollowerTest, FileThatIsKeptForAnotherIsNotListed) {
  BeginWithTwoFiles();
  source_->Remove(1);
  ASSERT_TRUE(follower_->Refresh().ok());
  ASSERT_TRUE(follower_->Begin(&other_).ok());
  source_->Create(3, "000006.log");
  source_->Remove(2);
  const std::vector<std::string> listed = ListFor(other_);
  EXPECT_THAT(listed, ElementsAre("000006.log", "000005.log"));
  EXPECT_THAT(ListFor(one_),
              ElementsAre("000006.log", "000004.log", "000005.log"));
  EXPECT_THAT(follower_->List(""), ElementsAre("000006.log"));
  const int without_a_look = 3;
  EXPECT_THAT(ListFor(without_a_look), ElementsAre("000006.log"));
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "no such file");
  for (const std::string& name : listed) {
    EXPECT_NE(follower_->Find(name).file, nullptr) << name;
  }
}

// It is in the archive then, or another file has its name.
TEST_F(WalFollowerTest, NameThatAFileLosesDuringALookStaysForIt) {
  BeginWithTwoFiles();
  source_->Add({.kind = WalRecordKind::kRename, .file = 1},
               "archive/000004.log");
  source_->Create(3, "000005.log");
  source_->Data(3, 0, "newest");
  EXPECT_THAT(ListFor(one_), ElementsAre("000005.log", "000004.log"));
  EXPECT_THAT(*follower_->List(&one_, "archive"), ElementsAre("000004.log"));
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "old");
  EXPECT_EQ(TextOf(follower_->Find("000005.log")), "newest");
}

// The cleaned records said what was in a file, and when it was removed: nobody
// can read them any more.
TEST_F(WalFollowerTest, ViewIsToldThatTheLogWasReadAgainMeanwhile) {
  BeginWithTwoFiles();
  source_->Data(1, 3, "er");
  source_->Remove(1);
  source_->Data(2, 3, "er");
  source_->Clean(6);
  source_->Create(3, "000006.log");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(follower_->restarts(), 1);
  for (const int* reader : {&one_, &other_}) {
    // Each time: RocksDB passes over some errors, and lists again.
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(follower_->List(reader, "").status().code(),
                Code::kUnavailable);
    }
    ASSERT_TRUE(follower_->Begin(reader).ok());
    EXPECT_THAT(ListFor(*reader), ElementsAre("000006.log"));
  }
  // A reader that has listed before is told, too; but one that only lists goes
  // on after a while.
  source_->Clean(8);
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(follower_->List(&one_, "").status().code(), Code::kUnavailable);
  EXPECT_EQ(follower_->List(&other_, "").status().code(), Code::kUnavailable);
  for (uint64_t i = 1; i < WalFollower::kListsMax; ++i) {
    follower_->List(&one_, "").IgnoreError();
  }
  EXPECT_THAT(ListFor(one_), IsEmpty());
  EXPECT_THAT(ListFor(other_), IsEmpty());
}

// WFR6: a thread that caught up once, and is no more.
TEST_F(WalFollowerTest, ReaderThatIsGoneKeepsFilesForAWhile) {
  BeginWithTwoFiles();
  EXPECT_EQ(ListFor(other_).size(), 2u);
  source_->Remove(1);
  for (uint64_t i = 1; i < WalFollower::kListsMax; ++i) {
    ASSERT_TRUE(follower_->Begin(&one_).ok());
    EXPECT_THAT(ListFor(one_), ElementsAre("000005.log"));
    EXPECT_EQ(TextOf(follower_->Find("000004.log")), "old");
  }
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  ListFor(one_);
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "no such file");
}

// WFR4, WFR5: one that asks for the WAL files again and again.
TEST_F(WalFollowerTest, ReaderThatOnlyListsKeepsNothing) {
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "old");
  source_->Create(2, "000005.log");
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  source_->Remove(1);
  for (uint64_t i = 0; i < WalFollower::kListsMax; ++i) {
    EXPECT_THAT(ListFor(one_), ElementsAre("000005.log", "000004.log"));
  }
  EXPECT_THAT(ListFor(one_), ElementsAre("000005.log"));
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "no such file");
  const std::string piece(8 << 20, 'x');
  for (uint64_t i = 0; i < 9; ++i) source_->Data(2, i << 23, piece);
  source_->Create(3, "000006.log");
  EXPECT_EQ(ListFor(one_).size(), 2u);
  source_->Clean(14);
  source_->Remove(3);
  EXPECT_THAT(ListFor(one_), IsEmpty());
  EXPECT_EQ(follower_->restarts(), 1);
}

// WFR4: nor does one that began and never listed.
TEST_F(WalFollowerTest, LookThatNeverListsKeepsNoMoreThanALogThatGrows) {
  BeginWithTwoFiles();
  const std::string piece(8 << 20, 'x');
  for (uint64_t i = 0; i < 9; ++i) source_->Data(1, 3 + (i << 23), piece);
  source_->Remove(1);
  source_->Clean(2);
  EXPECT_EQ(ListFor(one_).size(), 2u);
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_EQ(follower_->restarts(), 1);
  EXPECT_THAT(ListFor(one_), ElementsAre("000005.log"));
  EXPECT_FALSE(follower_->List(&other_, "").ok());
}

TEST_F(WalFollowerTest, LogThatWasCleanedBeforeItWasReadIsReadAgain) {
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "old");
  ASSERT_TRUE(follower_->Refresh().ok());
  const WalFollower::Followed old = follower_->Find("000004.log");
  for (int i = 0; i < 3; ++i) source_->Data(1, 3, "never read");
  source_->Create(2, "000005.log");
  source_->Data(2, 0, "new");
  source_->Clean(5);
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(follower_->restarts(), 1);
  EXPECT_THAT(follower_->List(""), ElementsAre("000005.log"));
  EXPECT_EQ(TextOf(old), "old");
}

// Records of which none says that their file was removed (WST4).
TEST_F(WalFollowerTest, LogThatGrowsByFarIsReadAgain) {
  const std::string piece(8 << 20, 'x');
  source_->Create(1, "000004.log");
  ASSERT_TRUE(follower_->Refresh().ok());
  for (uint64_t i = 0; i < 9; ++i) source_->Data(1, i << 23, piece);
  source_->Create(2, "000005.log");
  source_->Data(2, 0, "new");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(follower_->restarts(), 0);
  const WalFollower::Followed old = follower_->Find("000004.log");
  const WalFollower::Followed open = follower_->Find("000005.log");
  source_->Clean(10);
  source_->Data(2, 3, " and more");
  // Nothing is shown of what could not be read to its end.
  source_->next_status = absl::UnavailableError("no node is in reach");
  EXPECT_EQ(follower_->Begin(&one_).code(), Code::kUnavailable);
  EXPECT_EQ(follower_->List("").size(), 2u);
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_EQ(follower_->restarts(), 1);
  EXPECT_THAT(follower_->List(""), ElementsAre("000005.log"));
  // A reader that has the file open goes on with it.
  EXPECT_EQ(TextOf(follower_->Latest(open)), "new and more");
  EXPECT_EQ(follower_->Latest(old).file->size(), 9u << 23);
}

// It is as large as it was, and was read in two parts.
TEST_F(WalFollowerTest, LogIsNotReadAgainBecauseReadingWasInterrupted) {
  const std::string piece(8 << 20, 'x');
  source_->Create(1, "000004.log");
  for (uint64_t i = 0; i < 9; ++i) {
    if (i == 2) {
      source_->is_cut_off = true;
      EXPECT_EQ(follower_->Refresh().code(), Code::kUnavailable);
    }
    source_->Data(1, i << 23, piece);
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_EQ(follower_->restarts(), 0);
}

// A node that was away answers, and it alone.
TEST_F(WalFollowerTest, WhoKnowsLessIsNotBelieved) {
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "one");
  ASSERT_TRUE(follower_->Refresh().ok());
  const auto last = source_->records.back();
  source_->records.pop_back();
  source_->next_status = absl::OutOfRangeError("cleaned");
  EXPECT_EQ(follower_->Refresh().code(), Code::kUnavailable);
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "one");
  source_->records.push_back(last);
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "one");
}

TEST_F(WalFollowerTest, EmptiedLogThatIsReadAgainHasNoFiles) {
  source_->Create(1, "000004.log");
  ASSERT_TRUE(follower_->Refresh().ok());
  source_->Add({.kind = WalRecordKind::kRemove, .file = 1}, "");
  source_->Clean(2);
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_THAT(follower_->List(""), IsEmpty());
}

// It grew in what was read again, and is removed there: what was seen stays.
TEST_F(WalFollowerTest, OpenFileIsAsItWasLast) {
  const std::shared_ptr<WalFollower> follower = std::move(follower_);
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "one ");
  ASSERT_TRUE(follower->Refresh().ok());
  OpenFollowed open(follower, follower->Find("000004.log"));
  const auto read = [&open] {
    std::string text(20, '\0');
    const auto copied = open.Read(0, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(copied.ok()) << copied.status();
    text.resize(copied.value_or(0));
    return text;
  };
  source_->Data(1, 4, "two");
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(read(), "one two");
  source_->Add({.kind = WalRecordKind::kRemove, .file = 1}, "");
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(read(), "one two");
}

// WFR7: it grew in what was shown meanwhile, and a list may have been of that.
TEST_F(WalFollowerTest, OpenFileDoesNotEndBeforeItsEnd) {
  const std::shared_ptr<WalFollower> follower = std::move(follower_);
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "one ");
  ASSERT_TRUE(follower->Refresh().ok());
  OpenFollowed open(follower, follower->Find("000004.log"));
  OpenFollowed once(follower, follower->Find("000004.log"));
  std::string text(20, '\0');
  const auto out = std::as_writable_bytes(std::span(text));
  source_->Data(1, 4, "two");
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(*once.Read(0, out), 7u);
  source_->Remove(1);
  source_->Clean(4);
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(open.Read(0, out).status().code(), Code::kUnavailable);
  EXPECT_EQ(*open.Read(0, out.first(4)), 4u);
  EXPECT_EQ(*once.Read(0, out), 7u);
}

// It grew and was removed during a look: who has it open reads all of it.
TEST_F(WalFollowerTest, OpenFileIsTheOneThatIsKept) {
  BeginWithTwoFiles();
  const WalFollower::Followed old = follower_->Find("000004.log");
  source_->next_status = absl::OutOfRangeError("cleaned");
  ASSERT_TRUE(follower_->Begin(&one_).ok());
  EXPECT_EQ(follower_->restarts(), 1);
  source_->Data(1, 3, "er");
  source_->Remove(1);
  EXPECT_EQ(ListFor(one_).size(), 2u);
  EXPECT_EQ(TextOf(follower_->Latest(old)), "older");
}

TEST_F(WalFollowerTest, ErrorsLeaveTheFilesAndPass) {
  source_->Create(1, "000004.log");
  source_->Data(1, 0, "one");
  ASSERT_TRUE(follower_->Refresh().ok());
  source_->status = absl::UnavailableError("no node is in reach");
  EXPECT_EQ(follower_->Refresh().code(), Code::kUnavailable);
  source_->status = absl::OkStatus();
  source_->Data(1, 8, "behind a hole");
  EXPECT_EQ(follower_->Refresh().code(), Code::kDataLoss);
  EXPECT_EQ(follower_->Refresh().code(), Code::kDataLoss);
  source_->records.back() = {};
  EXPECT_EQ(follower_->Refresh().code(), Code::kFailedPrecondition);
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "one");
  source_->records.pop_back();
  source_->Data(1, 3, " two");
  ASSERT_TRUE(follower_->Refresh().ok());
  EXPECT_EQ(TextOf(follower_->Find("000004.log")), "one two");
}

TEST_F(WalFollowerTest, LogThatIsCleanedFasterThanReadIsAnError) {
  source_->reads = 0;
  source_->status = absl::OutOfRangeError("cleaned");
  const absl::Status refreshed = follower_->Refresh();
  EXPECT_EQ(refreshed.code(), Code::kUnavailable);
  EXPECT_THAT(refreshed.message(), HasSubstr("larger log"));
  EXPECT_EQ(source_->reads, 10);
}

}  // namespace
}  // namespace alpheus::wal
