// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Code = absl::StatusCode;

const WalHome kHome = {"/db", "/db"};

class WalStoreTest : public ::testing::Test {
 protected:
  WalStoreTest() {
    options_.log.path = directory_.File("wal");
    options_.log.idle_force_us = 0;
    options_.create_bytes = 1 << 20;
    options_.stall_ms = 0;
    Open();
  }

  absl::Status TryOpen() {
    store_.reset();
    auto store = WalStore::Open(options_, [this] { return seconds_; });
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  }
  void Open() {
    const absl::Status opened = TryOpen();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  std::shared_ptr<WalFile> Create(const std::string& name) {
    auto file = store_->Create(name);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *file : nullptr;
  }
  void Append(WalFile& file, std::string_view text) {
    const absl::Status appended = store_->Append(file, AsBytes(text));
    ASSERT_TRUE(appended.ok()) << appended;
  }
  void Make(const std::string& name, std::string_view text) {
    const auto file = Create(name);
    Append(*file, text);
  }
  std::string Read(WalFile& file, uint64_t offset = 0, size_t n = 1 << 20) {
    std::string text(n, '\0');
    const auto copied =
        store_->Read(file, offset, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(copied.ok()) << copied.status();
    text.resize(copied.value_or(0));
    return text;
  }
  std::string Content(const std::string& name) {
    const auto file = store_->Find(name);
    return file == nullptr ? "no such file" : Read(*file);
  }
  // Writes records into the log without a store.
  void WriteRaw(const std::vector<std::pair<WalHeader, std::string>>& records) {
    store_.reset();
    auto log = Log::Open(options_.log);
    ASSERT_TRUE(log.ok()) << log.status();
    for (const auto& [header, body] : records) {
      std::string payload(kWalHeaderBytes, '\0');
      EncodeWalHeader(
          header,
          std::as_writable_bytes(std::span(payload)).first<kWalHeaderBytes>());
      ASSERT_TRUE((*log)->Append(payload + body).ok());
    }
  }
  // A small log that takes no more data.
  void FillWith(const std::string& name, size_t piece_bytes) {
    const auto file = Create(name);
    const std::string piece(piece_bytes, 'x');
    while (store_->Append(*file, AsBytes(piece)).ok()) {
    }
    ASSERT_TRUE(store_->SyncAll().ok());
  }
  void GoToASmallLog() {
    options_.log.path = directory_.File("small");
    options_.create_bytes = 256 << 10;
    Open();
  }
  uint64_t Durable() const { return store_->log().durable_lsn().value; }

  testing::TempDirectory directory_;
  WalOptions options_;
  uint64_t seconds_ = 1000;
  std::unique_ptr<WalStore> store_;
};

TEST_F(WalStoreTest, FileHasWhatWasAppended) {
  const auto file = Create("000004.log");
  EXPECT_EQ(file->size(), 0u);
  EXPECT_EQ(Read(*file), "");
  Append(*file, "one ");
  Append(*file, "");
  Append(*file, "two ");
  Append(*file, "three");
  EXPECT_EQ(file->size(), 13u);
  EXPECT_EQ(Content("000004.log"), "one two three");
}

TEST_F(WalStoreTest, AnyPartIsRead) {
  const auto file = Create("000004.log");
  const std::string all = "abcdefghij";
  for (const std::string_view part : {"abc", "d", "efgh", "ij"}) {
    Append(*file, part);
  }
  for (size_t from = 0; from <= all.size() + 1; ++from) {
    for (size_t n = 0; n <= all.size() + 1; ++n) {
      EXPECT_EQ(Read(*file, from, n),
                from > all.size() ? "" : all.substr(from, n))
          << from << " " << n;
    }
  }
}

TEST_F(WalStoreTest, SyncedFilesAreThereAfterReopening) {
  const auto first = Create("000004.log");
  const auto second = Create("000005.log");
  Append(*first, "a");
  Append(*second, "b");
  Append(*first, "c");
  ASSERT_TRUE(store_->Sync(*first).ok());
  Open();
  EXPECT_THAT(store_->List(""),
              UnorderedElementsAre("000004.log", "000005.log"));
  EXPECT_EQ(Content("000004.log"), "ac");
  EXPECT_EQ(Content("000005.log"), "b");
}

// WST1, WST2: one order over all files. Syncing the newer one makes the older
// one durable, too.
TEST_F(WalStoreTest, SyncOfANewerFileSyncsTheOlderOne) {
  const auto older = Create("000004.log");
  Append(*older, "old");
  const auto newer = Create("000005.log");
  Append(*newer, "new");
  const auto newest = Create("000006.log");
  EXPECT_EQ(Durable(), 0u);
  ASSERT_TRUE(store_->Sync(*newer).ok());
  EXPECT_EQ(Durable(), 4u);  // each was made, and has one record
  ASSERT_TRUE(store_->SyncAll().ok());
  EXPECT_EQ(Durable(), 5u);
}

// A caller that syncs each time gets the append durable with the fence that the
// sync would take; a caller that does not sync pays for none.
TEST_F(WalStoreTest, AppendAfterASyncIsDurableAtOnce) {
  const auto file = Create("000004.log");
  Append(*file, "a");
  EXPECT_EQ(Durable(), 0u);
  ASSERT_TRUE(store_->Sync(*file).ok());
  EXPECT_EQ(Durable(), 2u);
  Append(*file, "b");
  EXPECT_EQ(Durable(), 3u);
  ASSERT_TRUE(store_->Sync(*file).ok());
  Append(*file, "c");
  EXPECT_EQ(Durable(), 4u);
  Append(*file, "d");  // nobody synced "c"
  EXPECT_EQ(Durable(), 4u);
  ASSERT_TRUE(store_->Sync(*file).ok());
  EXPECT_EQ(Durable(), 5u);
  EXPECT_EQ(Content("000004.log"), "abcd");
  Open();
  EXPECT_EQ(Content("000004.log"), "abcd");
}

// WST1, WST2: such an append makes durable what other files were given before
// it.
TEST_F(WalStoreTest, AppendThatIsDurableAtOnceLeavesNothingBehindIt) {
  const auto file = Create("000004.log");
  Append(*file, "a");
  ASSERT_TRUE(store_->Sync(*file).ok());
  const auto other = Create("000005.log");
  Append(*other, "x");
  EXPECT_EQ(Durable(), 2u);
  Append(*file, "b");
  EXPECT_EQ(Durable(), 5u);
}

// One record for what is appended at once, however RocksDB made it; large
// pieces are split.
TEST_F(WalStoreTest, LargeAppendIsSplitAndWhole) {
  const auto file = Create("000004.log");
  std::string large(3 * store_->space().data_bytes_max() + 7, 'x');
  large.back() = 'y';
  Append(*file, large);
  ASSERT_TRUE(store_->Sync(*file).ok());
  EXPECT_EQ(Durable(), 1u + 4u);
  Open();
  EXPECT_EQ(Content("000004.log"), large);
}

TEST_F(WalStoreTest, RenamedFileHasItsNewNameAfterReopening) {
  Make("000004.log", "four");
  Make("000005.log", "five");
  seconds_ = 2000;
  ASSERT_TRUE(store_->Rename("000004.log", "archive/000004.log").ok());
  EXPECT_EQ(store_->Rename("000004.log", "x.log").code(), Code::kNotFound);
  ASSERT_TRUE(store_->SyncAll().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(store_->List(""), ElementsAre("000005.log"));
    EXPECT_THAT(store_->List("archive"), ElementsAre("000004.log"));
    EXPECT_EQ(store_->Find("000004.log"), nullptr);
    EXPECT_EQ(Content("archive/000004.log"), "four");
    EXPECT_EQ(store_->Find("archive/000004.log")->seconds(), 2000u);
    EXPECT_EQ(store_->Find("000005.log")->seconds(), 1000u);
    Open();
  }
}

TEST_F(WalStoreTest, RenameAndCreateReplaceWhatHasTheName) {
  Make("000004.log", "four");
  const auto replaced = store_->Find("000004.log");
  Make("000005.log", "five");
  ASSERT_TRUE(store_->Rename("000005.log", "000004.log").ok());
  EXPECT_EQ(Content("000004.log"), "five");
  EXPECT_EQ(store_->Append(*replaced, AsBytes("more")).code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(store_->Truncate(*replaced, 0).code(), Code::kFailedPrecondition);
  ASSERT_TRUE(store_->Rename("000004.log", "000004.log").ok());
  Make("000004.log", "six");
  ASSERT_TRUE(store_->SyncAll().ok());
  EXPECT_EQ(Read(*replaced), "four");  // while somebody has it open
  Open();
  EXPECT_EQ(Content("000004.log"), "six");
  EXPECT_THAT(store_->List(""), ElementsAre("000004.log"));
}

TEST_F(WalStoreTest, TruncatedFileIsShorterAfterReopening) {
  const auto file = Create("000004.log");
  Append(*file, "abc");
  Append(*file, "def");
  EXPECT_EQ(store_->Truncate(*file, 7).code(), Code::kInvalidArgument);
  ASSERT_TRUE(store_->Truncate(*file, 6).ok());
  ASSERT_TRUE(store_->Truncate(*file, 4).ok());
  EXPECT_EQ(Read(*file), "abcd");
  Append(*file, "x");
  ASSERT_TRUE(store_->Sync(*file).ok());
  Open();
  EXPECT_EQ(Content("000004.log"), "abcdx");
  ASSERT_TRUE(store_->Truncate(*store_->Find("000004.log"), 0).ok());
  EXPECT_EQ(Content("000004.log"), "");
}

TEST_F(WalStoreTest, RemovedFileIsGoneForGood) {
  Make("000004.log", "four");
  Make("000005.log", "five");
  EXPECT_EQ(store_->Remove("000009.log").code(), Code::kNotFound);
  ASSERT_TRUE(store_->Remove("000005.log").ok());
  Open();
  EXPECT_THAT(store_->List(""), ElementsAre("000004.log"));
  EXPECT_EQ(Content("000004.log"), "four");
}

// WST3: nothing is cleaned before the record that says it may be is durable. A
// file that lost its beginning and not its name would be a hole.
TEST_F(WalStoreTest, RemovalIsDurableBeforeAnythingIsCleaned) {
  Make("000004.log", "four");
  ASSERT_TRUE(store_->SyncAll().ok());
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  EXPECT_EQ(Durable(), 3u);
}

// The ring is used many times over, and never full of dead files.
TEST_F(WalStoreTest, RemovedFilesGiveTheirRoomBack) {
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  const std::string text(50'000, 'x');
  for (int i = 0; i < 100; ++i) {
    Make(std::to_string(i) + ".log", text);
    if (i > 0) {
      ASSERT_TRUE(store_->Remove(std::to_string(i - 1) + ".log").ok());
    }
    EXPECT_LT(store_->space().used_bytes(), 2 * 51'000u);
  }
  Open();
  EXPECT_THAT(store_->List(""), ElementsAre("99.log"));
  EXPECT_EQ(Content("99.log"), text);
}

// WIX3: the head passes the record that says whose log it is; it is written
// again.
TEST_F(WalStoreTest, HomeSurvivesCleaning) {
  EXPECT_EQ(store_->home(), WalHome());
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  for (int i = 0; i < 3; ++i) {
    Make("000004.log", "four");
    ASSERT_TRUE(store_->Remove("000004.log").ok());
    Open();
    EXPECT_EQ(store_->home(), kHome);
    EXPECT_THAT(store_->List(""), IsEmpty());
  }
}

TEST_F(WalStoreTest, LastHomeHolds) {
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  ASSERT_TRUE(store_->SetHome({"/wal", "/db"}).ok());
  EXPECT_EQ(Durable(), 2u);  // the same again is not written
  Open();
  EXPECT_EQ(store_->home(), (WalHome{"/wal", "/db"}));
}

// Ids go on when all that had one is cleaned: a removed file that comes back
// must not be mixed with a new one.
TEST_F(WalStoreTest, IdsAreNeverGivenTwice) {
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  Make("000004.log", "four");
  EXPECT_EQ(store_->Find("000004.log")->id(), 1u);
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  Open();
  Make("000005.log", "five");
  EXPECT_EQ(store_->Find("000005.log")->id(), 2u);
}

TEST_F(WalStoreTest, RemovedFileIsReadableWhileItIsOpen) {
  Make("000004.log", "four");
  const auto reading = store_->Find("000004.log");
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  const uint64_t held = store_->space().used_bytes();
  for (int i = 5; i < 40; ++i) {  // the ring goes round
    const std::string name = std::to_string(i) + ".log";
    if (!store_->Append(*Create(name), AsBytes(std::string(50'000, 'x')))
             .ok()) {
      break;
    }
    ASSERT_TRUE(store_->Remove(name).ok());
  }
  EXPECT_EQ(Read(*reading), "four");
  EXPECT_GT(store_->space().used_bytes(), held);
}

// WSP1: data is refused, what gives room back is not. Nothing is lost.
TEST_F(WalStoreTest, FullRingRefusesDataAndLetsFilesBeRemoved) {
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  const auto file = Create("000004.log");
  const std::string text(10'000, 'x');
  absl::Status appended;
  uint64_t size = 0;
  while ((appended = store_->Append(*file, AsBytes(text))).ok()) {
    size += text.size();
  }
  EXPECT_EQ(appended.code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(appended.message()), HasSubstr("max_total_wal_size"));
  EXPECT_FALSE(store_->has_failed());
  EXPECT_EQ(file->size(), size);
  EXPECT_GT(size, (1u << 20) / 2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(Create("archive/" + std::to_string(i) + ".log"), nullptr);
  }
  ASSERT_TRUE(store_->SyncAll().ok());
  Open();
  EXPECT_EQ(Content("000004.log").size(), size);
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  Make("000005.log", text);
}

// WST4: each process makes a file in a full ring, and ends before it removes
// one.
TEST_F(WalStoreTest, AnyNumberOfCrashesLeavesTheLogUsable) {
  GoToASmallLog();
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  FillWith("1.log", 1000);
  const std::string content = Content("1.log");
  std::shared_ptr<WalFile> newest;
  for (int i = 2; i < 320; ++i) {
    newest.reset();
    Open();
    newest = Create(std::to_string(i) + ".log");
    ASSERT_NE(newest, nullptr) << i;
    ASSERT_TRUE(store_->SyncAll().ok());
  }
  EXPECT_EQ(Content("1.log"), content);
  // The files that fitted were recorded. A crash left nothing of the others.
  EXPECT_GT(store_->List("").size(), 30u);
  EXPECT_LT(store_->List("").size(), 300u);
  for (const std::string& name : store_->List("")) {
    if (name == "319.log") continue;
    ASSERT_TRUE(store_->Remove(name).ok()) << name;
  }
  Append(*newest, content);
  ASSERT_TRUE(store_->Sync(*newest).ok());
  newest.reset();
  Open();
  EXPECT_THAT(store_->List(""), ElementsAre("319.log"));
  EXPECT_EQ(Content("319.log"), content);
  EXPECT_EQ(store_->home(), kHome);
}

// WST4: the newest first, as RocksDB does; what a crash in between brings back
// is removed again.
TEST_F(WalStoreTest, AnyNumberOfFilesIsRemovedFromAFullRing) {
  GoToASmallLog();
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  int files = 0;
  for (;; ++files) {
    const auto file = Create(std::to_string(files) + ".log");
    if (!store_->Append(*file, AsBytes(std::string(100, 'x'))).ok()) break;
  }
  ASSERT_TRUE(store_->SyncAll().ok());
  ASSERT_GT(files, 250);
  for (int i = files; i > 0; --i) {
    ASSERT_TRUE(store_->Remove(std::to_string(i) + ".log").ok()) << i;
  }
  EXPECT_THAT(store_->List(""), ElementsAre("0.log"));
  Open();
  EXPECT_GT(store_->List("").size(), 10u);
  EXPECT_EQ(Content("0.log"), std::string(100, 'x'));
  EXPECT_EQ(Content("1.log"), std::string(100, 'x'));
  for (int i = files; i >= 0; --i) {
    const absl::Status removed = store_->Remove(std::to_string(i) + ".log");
    ASSERT_TRUE(removed.ok() || absl::IsNotFound(removed)) << removed;
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(store_->List(""), IsEmpty());
    EXPECT_EQ(store_->home(), kHome);
    Open();
  }
  FillWith("next.log", 1000);
  EXPECT_GT(Content("next.log").size(), 64'000u);
}

// Where there is no room to say again whose log it is, the records before that
// give some.
TEST_F(WalStoreTest, HomeSurvivesCleaningOfAFullRing) {
  GoToASmallLog();
  ASSERT_TRUE(store_->SetHome(kHome).ok());
  FillWith("1.log", 1000);
  WalHome home = kHome;
  absl::Status set;
  for (int i = 0; set.ok(); ++i) {
    home = store_->home();
    set = store_->SetHome({"/db", "/" + std::to_string(i)});
  }
  ASSERT_EQ(set.code(), Code::kResourceExhausted);
  EXPECT_EQ(store_->home(), home);
  ASSERT_TRUE(store_->Remove("1.log").ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(store_->List(""), IsEmpty());
    EXPECT_EQ(store_->home(), home);
    Open();
  }
  FillWith("2.log", 1000);
  EXPECT_GT(Content("2.log").size(), 64'000u);
}

// WST4: a file without a record is a file, as long as the process lives.
TEST_F(WalStoreTest, FileIsRecordedWhenItGetsDataAndThereIsRoom) {
  GoToASmallLog();
  FillWith("1.log", 1000);
  int made = 2;
  while (Create(std::to_string(made) + ".log")->is_recorded()) ++made;
  const std::string name = std::to_string(made) + ".log";
  const auto file = store_->Find(name);
  EXPECT_EQ(Content(name), "");
  EXPECT_THAT(store_->List(""), Contains(name));
  ASSERT_TRUE(store_->Sync(*file).ok());
  EXPECT_TRUE(store_->Truncate(*file, 0).ok());
  const auto removed = Create("archive/removed.log");
  EXPECT_THAT(store_->List("archive"), ElementsAre("removed.log"));
  ASSERT_TRUE(store_->Remove("archive/removed.log").ok());
  EXPECT_EQ(store_->Remove("archive/removed.log").code(), Code::kNotFound);
  EXPECT_EQ(store_->Append(*file, AsBytes(std::string(1000, 'y'))).code(),
            Code::kResourceExhausted);
  EXPECT_FALSE(file->is_recorded());
  // A name takes a record, for which there is room longer than for a file.
  ASSERT_TRUE(store_->Rename(name, "archive/" + name).ok());
  EXPECT_TRUE(file->is_recorded());
  EXPECT_EQ(Content(name), "no such file");
  ASSERT_TRUE(store_->Remove("1.log").ok());
  EXPECT_EQ(store_->Append(*removed, AsBytes("z")).code(),
            Code::kFailedPrecondition);
  Append(*file, "late");
  ASSERT_TRUE(store_->Sync(*file).ok());
  Open();
  EXPECT_EQ(Content("archive/" + name), "late");
}

TEST_F(WalStoreTest, FullRingWaitsForARemoval) {
  options_.stall_ms = 600'000;
  Open();
  Make("000004.log", std::string(500'000, 'x'));
  const auto file = Create("000005.log");
  std::future<absl::Status> appended =
      std::async(std::launch::async, [this, &file] {
        return store_->Append(*file, AsBytes(std::string(500'000, 'y')));
      });
  while (store_->stalls() == 0) std::this_thread::yield();
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  const absl::Status status = appended.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(file->size(), 500'000u);
}

// Many threads, a file each: every file is whole and in its own order.
TEST_F(WalStoreTest, ThreadsShareTheLog) {
  constexpr int kThreads = 4;
  constexpr int kAppends = 200;
  std::string expected;
  for (int i = 0; i < kAppends; ++i) expected += std::to_string(i) + " ";
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t] {
        const auto file = Create(std::to_string(t) + ".log");
        for (int i = 0; i < kAppends; ++i) {
          Append(*file, std::to_string(i) + " ");
          if (i % 10 == 0) {
            ASSERT_TRUE(store_->Sync(*file).ok());
          }
        }
      });
    }
  }
  ASSERT_TRUE(store_->SyncAll().ok());
  Open();
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(Content(std::to_string(t) + ".log"), expected);
  }
}

TEST_F(WalStoreTest, LogOfSomebodyElseIsRefused) {
  store_.reset();
  ASSERT_TRUE((*Log::Open(options_.log))->Append("hello").ok());
  EXPECT_EQ(TryOpen().code(), Code::kFailedPrecondition);
}

TEST_F(WalStoreTest, SecondWriterIsRefused) {
  const auto second = WalStore::Open(options_, [] { return 0; });
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
}

TEST_F(WalStoreTest, MissingLogIsNotMadeUnasked) {
  options_.log.path = directory_.File("other");
  options_.create_bytes = 0;
  EXPECT_EQ(TryOpen().code(), Code::kNotFound);
}

// WIX2: records that the head left of a removed file are passed over.
TEST_F(WalStoreTest, RemainsOfARemovedFileAreNotAFile) {
  WriteRaw({{{.kind = WalRecordKind::kData, .file = 3, .offset = 9}, "x"},
            {{.kind = WalRecordKind::kRename, .file = 3}, "archive/3.log"},
            {{.kind = WalRecordKind::kCreate, .file = 4}, "4.log"},
            {{.kind = WalRecordKind::kData, .file = 3, .offset = 10}, "y"},
            {{.kind = WalRecordKind::kRemove, .file = 3}, ""}});
  Open();
  EXPECT_THAT(store_->List(""), ElementsAre("4.log"));
  EXPECT_THAT(store_->List("archive"), IsEmpty());
}

TEST_F(WalStoreTest, RecordsThatNoStoreWritesAreDamage) {
  const WalHeader create = {.kind = WalRecordKind::kCreate, .file = 5};
  const std::vector<std::pair<WalHeader, std::string>> cases[] = {
      // A hole, an overlap.
      {{create, "5.log"},
       {{.kind = WalRecordKind::kData, .file = 5, .offset = 1}, "x"}},
      // Data of a file that was never made (WIX2).
      {{create, "5.log"}, {{.kind = WalRecordKind::kData, .file = 6}, "x"}},
      // An id that was given (WIX1).
      {{create, "5.log"}, {create, "6.log"}},
      {{create, "5.log"},
       {{.kind = WalRecordKind::kTruncate, .file = 5, .offset = 1}, ""}},
      {{{.kind = WalRecordKind::kHome, .file = 1}, "one directory"}},
  };
  for (const auto& records : cases) {
    options_.log.path = directory_.File("damaged");
    ASSERT_TRUE(TryOpen().ok());
    WriteRaw(records);
    const absl::Status opened = TryOpen();
    EXPECT_EQ(opened.code(), Code::kDataLoss) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr("LSN "));
    ASSERT_EQ(std::remove(options_.log.path.c_str()), 0);
  }
}

}  // namespace
}  // namespace alpheus::wal
