// SPDX-License-Identifier: Apache-2.0
// A database that changes its process while the old one is still there: what
// the old one can no longer do to files (WFS2, WFS3 of wal_file_system.h), and
// what the new one gets (take_over.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "rocksdb/db.h"
#include "tests/api/rocksdb/fs/cluster_database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;
using ::testing::HasSubstr;
using ::testing::Not;

// Something happens behind the next renaming.
class InterruptedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  InterruptedFileSystem() : FileSystemWrapper(FileSystem::Default()) {}

  const char* Name() const override { return "InterruptedFileSystem"; }
  IOStatus RenameFile(const std::string& from, const std::string& to,
                      const IOOptions& options, IODebugContext* dbg) override {
    IOStatus renamed = target_->RenameFile(from, to, options, dbg);
    if (then_) std::exchange(then_, nullptr)();
    return renamed;
  }
  void Then(std::function<void()> then) { then_ = std::move(then); }

 private:
  std::function<void()> then_;
};

class FailOverTest : public testing::ClusterDatabaseFixture {
 protected:
  // The next process has the log.
  void OpenNext() {
    auto next = Log::Open(On(2).log);
    ASSERT_TRUE(next.ok()) << next.status();
    next_ = *std::move(next);
  }
  // Name and content of all but RocksDB's own notes.
  std::map<std::string, std::vector<std::byte>> Files() const {
    std::map<std::string, std::vector<std::byte>> files;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("LOG")) continue;
      files[name] = entry.is_symlink() ? std::vector<std::byte>()
                                       : testing::ReadFile(entry.path());
    }
    return files;
  }
  std::string TablePath() const {
    for (const auto& [name, content] : Files()) {
      if (name.ends_with(".sst")) return path_ + "/" + name;
    }
    ADD_FAILURE() << "no table";
    return "";
  }
  std::unique_ptr<FSWritableFile> Make(const std::string& path) {
    std::unique_ptr<FSWritableFile> file;
    const IOStatus made =
        fs().NewWritableFile(path, FileOptions(), &file, nullptr);
    EXPECT_TRUE(made.ok()) << made.ToString();
    return file;
  }
  static void Write(FSWritableFile& file, const std::string& text) {
    const IOStatus written = file.Append(text, IOOptions(), nullptr);
    ASSERT_TRUE(written.ok()) << written.ToString();
    ASSERT_TRUE(file.Flush(IOOptions(), nullptr).ok());
  }
  static std::string TextOf(const std::string& path) {
    const std::vector<std::byte> bytes = testing::ReadFile(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Continues as the process of another node, in a directory of its own.
  void GoToNode(int node) {
    Close();
    wal_options_ = On(node);
    path_ = directory_.File("db" + std::to_string(node));
    wal_options_.take_over = path_;
    Restart();
  }

  // A directory that a take-over left, of a database that is in `newest` now.
  void ExpectRefusedWithAnyWord(const std::string& newest) {
    Close();
    for (const bool adopts : {false, true}) {
      for (bool WalOptions::* word :
           {&WalOptions::adopt, &WalOptions::drop_wal, &WalOptions::keep_wal}) {
        wal_options_ = On(1);
        wal_options_.*word = true;
        wal_options_.adopt = adopts;
        Restart();
        const std::string refused = TryOpen().ToString();
        EXPECT_THAT(refused, HasSubstr("left by a take_over"));
        EXPECT_THAT(refused, HasSubstr(newest));
        for (const char* offered : {"adopt", "drop_wal", "keep_wal"}) {
          EXPECT_THAT(refused, Not(HasSubstr(offered)));
        }
      }
    }
  }

  std::unique_ptr<Log> next_;
};

// It has written nothing since, so nothing has told it yet.
TEST_F(FailOverTest, FencedProcessDoesNotDeleteATable) {
  Open();
  Put("a", "1", true);
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  const std::string table = TablePath();
  OpenNext();
  const IOStatus deleted = fs().DeleteFile(table, IOOptions(), nullptr);
  EXPECT_TRUE(deleted.IsIOFenced()) << deleted.ToString();
  EXPECT_TRUE(std::filesystem::exists(table));
}

// WST5 (wal_store.h): not even in a ring that has no room for the record which
// would ask; else an opening could begin behind what the next process needs.
TEST_F(FailOverTest, FencedProcessCleansNothing) {
  wal_options_.stall_ms = 0;
  Restart();
  const auto store = *fs().Store();
  {
    const auto file = *store->Create("1.log");
    const std::string piece(1000, 'x');
    while (store->Append(*file, AsBytes(piece)).ok()) {
    }
  }
  for (int i = 2; (*store->Create(std::to_string(i) + ".log"))->is_recorded();
       ++i) {
  }
  for (int i = 0; store
                      ->Rename(i % 2 == 0 ? "1.log" : "0.log",
                               i % 2 == 0 ? "0.log" : "1.log")
                      .ok();
       ++i) {
  }
  // Behind all files, so that cleaning does not write it again.
  ASSERT_TRUE(store->SetHome({path_, path_}).ok());
  const Lsn head = store->log().head_lsn();
  OpenNext();
  const std::string name = store->Find("0.log") != nullptr ? "0.log" : "1.log";
  const absl::Status removed = store->Remove(name);
  EXPECT_EQ(removed.code(), absl::StatusCode::kAborted) << removed;
  EXPECT_EQ(store->log().head_lsn(), head);
}

TEST_F(FailOverTest, FencedProcessDoesNotOverwriteATable) {
  Open();
  Put("a", "1", true);
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  const std::string table = TablePath();
  const std::string before = TextOf(table);
  OpenNext();
  std::unique_ptr<FSWritableFile> file;
  const IOStatus made =
      fs().NewWritableFile(table, FileOptions(), &file, nullptr);
  EXPECT_TRUE(made.IsIOFenced()) << made.ToString();
  EXPECT_EQ(TextOf(table), before);
}

// An ingestion writes so: into a file that it had made before.
TEST_F(FailOverTest, FencedProcessDoesNotWriteIntoATable) {
  Open();
  Put("a", "1", true);
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  const std::string table = TablePath();
  OpenNext();
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  const IOStatus opened =
      fs().NewRandomRWFile(table, FileOptions(), &file, nullptr);
  EXPECT_TRUE(opened.IsIOFenced()) << opened.ToString();
}

TEST_F(FailOverTest, FencedProcessLinksNoTable) {
  Open();
  Put("a", "1", true);
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  OpenNext();
  const std::string linked = path_ + "/000099.sst";
  const IOStatus made =
      fs().LinkFile(TablePath(), linked, IOOptions(), nullptr);
  EXPECT_TRUE(made.IsIOFenced()) << made.ToString();
  EXPECT_FALSE(std::filesystem::exists(linked));
}

TEST_F(FailOverTest, FencedProcessDoesNotChangeCurrent) {
  Open();
  const std::string before = TextOf(path_ + "/CURRENT");
  const auto other = Make(path_ + "/000099.dbtmp");
  Write(*other, "MANIFEST-000099\n");
  OpenNext();
  const IOStatus renamed = fs().RenameFile(
      path_ + "/000099.dbtmp", path_ + "/CURRENT", IOOptions(), nullptr);
  EXPECT_TRUE(renamed.IsIOFenced()) << renamed.ToString();
  EXPECT_EQ(TextOf(path_ + "/CURRENT"), before);
}

// With all that RocksDB itself tries: no name comes or goes, no content
// changes.
TEST_F(FailOverTest, FencedDatabaseLeavesItsFilesAsTheyAre) {
  Open();
  for (int i = 0; i < 3; ++i) {
    Put("a", std::to_string(i), true);
    ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  }
  // Tables that a compaction was done with wait to be deleted.
  ASSERT_TRUE(db_->DisableFileDeletions().ok());
  rocksdb::CompactRangeOptions force;
  force.bottommost_level_compaction =
      rocksdb::BottommostLevelCompaction::kForce;
  ASSERT_TRUE(db_->CompactRange(force, nullptr, nullptr).ok());
  Put("late", "1");
  OpenNext();
  const auto before = Files();
  EXPECT_TRUE(db_->EnableFileDeletions(/*force=*/true).ok());
  EXPECT_TRUE(db_->Flush(rocksdb::FlushOptions()).IsIOFenced());
  EXPECT_FALSE(
      db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr).ok());
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  EXPECT_FALSE(
      db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "c", &handle)
          .ok());
  if (handle != nullptr) (void)db_->DestroyColumnFamilyHandle(handle);
  Close();
  auto after = Files();
  // The fenced process may write the MANIFEST that it had open already: nobody
  // else reads that.
  for (const auto& [name, content] : before) {
    EXPECT_TRUE(after.contains(name)) << name;
    if (!name.starts_with("MANIFEST-")) {
      EXPECT_EQ(after[name], content) << name;
    }
    after.erase(name);
  }
  EXPECT_TRUE(after.empty()) << after.begin()->first;
}

// WFS3. The log is lost between the question before and the deed.
TEST_F(FailOverTest, ManifestThatWasSyncedTooLateIsNotAcknowledged) {
  Open();
  const auto manifest = Make(path_ + "/MANIFEST-000099");
  Write(*manifest, "x");
  EXPECT_TRUE(manifest->Sync(IOOptions(), nullptr).ok());
  OpenNext();
  const IOStatus synced = manifest->Sync(IOOptions(), nullptr);
  EXPECT_TRUE(synced.IsIOFenced()) << synced.ToString();
}

TEST_F(FailOverTest, CurrentThatWasRenamedTooLateIsNotAcknowledged) {
  const auto base = std::make_shared<InterruptedFileSystem>();
  fs_ = std::make_shared<WalFileSystem>(wal_options_, base);
  env_ = rocksdb::NewCompositeEnv(fs_);
  options_.env = env_.get();
  std::filesystem::create_directory(path_);
  for (const char* name : {"/1.dbtmp", "/2.dbtmp"}) {
    Write(*Make(path_ + name), "MANIFEST-000001\n");
  }
  base->Then([this] { OpenNext(); });
  const IOStatus other = fs().RenameFile(path_ + "/1.dbtmp", path_ + "/OTHER",
                                         IOOptions(), nullptr);
  EXPECT_TRUE(other.ok()) << other.ToString();
  next_.reset();
  fs_ = std::make_shared<WalFileSystem>(wal_options_, base);
  base->Then([this] { OpenNext(); });
  const IOStatus renamed = fs().RenameFile(
      path_ + "/2.dbtmp", path_ + "/CURRENT", IOOptions(), nullptr);
  EXPECT_TRUE(renamed.IsIOFenced()) << renamed.ToString();
}

// The predecessor has a table open that it was not done with; the successor
// gives a table of its own the same number.
TEST_F(FailOverTest, FileThatIsMadeIsNotTheOneThatAPredecessorHasOpen) {
  Open();
  const std::string path = path_ + "/000099.sst";
  std::unique_ptr<FSWritableFile> old;
  ASSERT_TRUE(FileSystem::Default()
                  ->NewWritableFile(path, FileOptions(), &old, nullptr)
                  .ok());
  Write(*old, "of the predecessor");
  const auto file = Make(path);
  Write(*file, "of the successor");
  Write(*old, ", again");
  EXPECT_EQ(TextOf(path), "of the successor");
}

// A ring that is full of WAL files must not keep tables from being written,
// which is what empties it.
TEST_F(FailOverTest, FullRingLetsFilesBeMade) {
  wal_options_.stall_ms = 0;
  Restart();
  Open();
  // Else RocksDB empties the ring at once.
  ASSERT_TRUE(db_->PauseBackgroundWork().ok());
  int written = 0;
  Status put;
  while ((put = db_->Put(rocksdb::WriteOptions(), std::to_string(written),
                         std::string(1000, 'v')))
             .ok()) {
    ++written;
  }
  EXPECT_TRUE(put.IsNoSpace()) << put.ToString();
  for (int i = 0; i < 2000; ++i) {
    Make(path_ + "/" + std::to_string(i) + ".tmp");
  }
  ASSERT_TRUE(db_->ContinueBackgroundWork().ok());
  while (!db_->Put(rocksdb::WriteOptions(), "more", "1").ok()) {
    std::this_thread::yield();
  }
  Reopen();
  EXPECT_EQ(Get("0"), std::string(1000, 'v'));
  EXPECT_EQ(Get("more"), "1");
}

// Tables and WAL come along; what the predecessor does to its own directory
// afterwards does not matter.
TEST_F(FailOverTest, DatabaseIsTakenOverFromAProcessThatIsStillThere) {
  Open();
  for (int i = 0; i < 40; ++i) {
    Put(std::to_string(i), "x" + std::to_string(i), true);
    if (i % 10 == 5) {
      ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
    }
  }
  const std::unique_ptr<rocksdb::Env> old_env = std::move(env_);
  const std::unique_ptr<rocksdb::DB> old = std::move(db_);
  const std::string old_path = path_;
  GoToNode(2);
  Open();
  rocksdb::WriteOptions sync;
  sync.sync = true;
  EXPECT_TRUE(old->Put(sync, "late", "1").IsIOFenced());
  std::filesystem::remove_all(old_path);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(Get(std::to_string(i)), "x" + std::to_string(i));
  }
  EXPECT_EQ(Get("late"), "(none)");
  Put("more", "1", true);
  // From now on it is there: the option may stay.
  Reopen();
  EXPECT_EQ(Get("more"), "1");
  EXPECT_EQ(Get("39"), "x39");
}

// WHK1. A WAL with a directory of its own has another one from now on.
TEST_F(FailOverTest, WalApartIsNotTakenOverByGuessing) {
  options_.wal_dir = directory_.File("wal1");
  Open();
  Put("a", "1", true);
  GoToNode(2);
  options_.wal_dir = directory_.File("wal2");
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("by wal_dir= in the URI"));
  wal_options_.wal_directory = options_.wal_dir;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
  Put("b", "2", true);
  Reopen();
  EXPECT_EQ(Get("b"), "2");
}

// The other way round: the WAL was in the database's directory.
TEST_F(FailOverTest, WalThatComesApartWhileItIsTakenOverIsRefused) {
  Open();
  Put("a", "1", true);
  GoToNode(2);
  options_.wal_dir = directory_.File("wal2");
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("Open it with that wal_dir"));
  options_.wal_dir.clear();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// The one whose directory it was does not open it there again by mistake.
TEST_F(FailOverTest, DatabaseThatWasTakenOverIsNotOpenedWhereItWas) {
  Open();
  Put("a", "1", true);
  const std::string old_path = path_;
  GoToNode(2);
  Open();
  Put("b", "2", true);
  Close();
  path_ = old_path;
  wal_options_ = On(1);
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("left by a take_over"));
  // Nor back into a directory where an older one is.
  wal_options_.take_over = old_path;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("empty directory"));
  std::filesystem::remove_all(old_path);
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
}

// DV6 (directory_vouch.h).
TEST_F(FailOverTest, NoWordBringsBackWhatATakeOverLeft) {
  Open();
  Put("a", "1", true);
  const std::string first = path_;
  GoToNode(2);
  Open();
  Put("a", "2", true);
  Put("b", "1", true);
  const std::string second = path_;
  GoToNode(3);
  Open();
  Put("a", "3", true);
  Close();
  const std::string newest = path_;
  const std::string moved = directory_.File("moved");
  std::filesystem::rename(second, moved);
  const std::string away = directory_.File("away");
  for (const bool is_mounted : {true, false}) {
    if (!is_mounted) std::filesystem::rename(newest, away);
    for (const std::string& left : {first, moved}) {
      path_ = left;
      ExpectRefusedWithAnyWord(newest);
    }
  }
  std::filesystem::rename(away, newest);
  path_ = newest;
  wal_options_ = On(3);
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "3");
  EXPECT_EQ(Get("b"), "1");
}

// The successor was stopped before it wrote anything: the two directories say
// the same.
TEST_F(FailOverTest, DirectoryThatWasJustLeftIsNotOpenedAgain) {
  Open();
  Put("a", "1", true);
  const std::string left = path_;
  GoToNode(2);
  ASSERT_TRUE(fs().Store().ok());
  const std::string newest = path_;
  path_ = left;
  ExpectRefusedWithAnyWord(newest);
  path_ = newest;
  wal_options_ = On(2);
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// Where it was, the database may come back, and is left again.
TEST_F(FailOverTest, DatabaseComesBackWhereItWasLeft) {
  Open();
  Put("a", "1", true);
  const std::string first = path_;
  GoToNode(2);
  Open();
  Put("b", "1", true);
  const std::string second = path_;
  std::filesystem::remove_all(first);
  GoToNode(1);
  path_ = wal_options_.take_over = first;
  Restart();
  Open();
  Put("c", "1", true);
  Close();
  path_ = second;
  ExpectRefusedWithAnyWord(first);
  path_ = first;
  wal_options_ = On(1);
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "1");
  EXPECT_EQ(Get("c"), "1");
}

TEST_F(FailOverTest, NothingIsTakenOverWithAnEmptyLog) {
  wal_options_.take_over = path_;
  Restart();
  Open();
  Put("a", "1", true);
  Reopen();
  EXPECT_EQ(Get("a"), "1");
}

// A process that stands still keeps RocksDB's own lock; only a directory of
// its own gives the next one the database.
TEST_F(FailOverTest, LockOfAProcessThatIsStillThereIsRespected) {
  Open();
  Put("a", "1", true);
  const std::unique_ptr<rocksdb::Env> old_env = std::move(env_);
  const std::unique_ptr<rocksdb::DB> old = std::move(db_);
  wal_options_ = On(2);
  Restart();
  const Status opened = TryOpen();
  EXPECT_TRUE(opened.IsIOError()) << opened.ToString();
  EXPECT_THAT(opened.ToString(), HasSubstr("lock"));
  GoToNode(2);
  Open();
  EXPECT_EQ(Get("a"), "1");
}

}  // namespace
}  // namespace alpheus::wal
