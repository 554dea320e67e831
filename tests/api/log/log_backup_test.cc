// SPDX-License-Identifier: Apache-2.0
// Backups of an open log, and the files that they become. The files are read as
// `alpheus cat` reads them.
#include "api/log/log_backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "api/log/backup_file.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/pmem/new_file.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TempDirectory;

constexpr uint64_t kAll = uint64_t{1} << 40;

// Returns "5:five" of each durable record.
std::vector<std::string> RecordsOf(const std::string& path) {
  std::vector<std::string> records;
  const auto reader = LogReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return records;
  EXPECT_TRUE((*reader)->info().is_backup);
  const absl::Status read = (*reader)->ForEach([&](const ReaderRecord& record) {
    if (record.state == RecordState::kDurable) {
      records.push_back(absl::StrCat(record.lsn.value, ":",
                                     std::string(AsText(record.payload))));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  const VerifyReport verified = (*reader)->Verify();
  EXPECT_TRUE(verified.status.ok()) << verified.status;
  EXPECT_EQ(verified.verdict, "complete");
  return records;
}

class LogBackupTest : public ::testing::Test {
 protected:
  LogBackupTest() {
    log_ = *Log::Open({.anonymous_bytes = 256 << 10, .idle_force_us = 0});
  }

  Lsn Append(const std::string& text) {
    const absl::StatusOr<Lsn> lsn = log_->Append(text);
    EXPECT_TRUE(lsn.ok()) << lsn.status();
    return *lsn;
  }
  std::unique_ptr<LogBackup> Begin() {
    auto backup = LogBackup::Begin(*log_, random_);
    EXPECT_TRUE(backup.ok()) << backup.status();
    bytes_.assign((*backup)->region_bytes(), '\0');
    return *std::move(backup);
  }
  absl::StatusOr<bool> Continue(LogBackup* backup, uint64_t bytes) {
    return backup->Continue(
        bytes, [this](uint64_t offset, std::span<const std::byte> piece) {
          bytes_.replace(offset, piece.size(), AsText(piece));
          return absl::OkStatus();
        });
  }
  // Composes the rest, and returns the records.
  std::vector<std::string> Finish(LogBackup* backup) {
    const absl::StatusOr<bool> more = Continue(backup, kAll);
    EXPECT_TRUE(more.ok()) << more.status();
    EXPECT_FALSE(*more);
    const std::string path = directory_.File("composed");
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes_;
    return RecordsOf(path);
  }

  const TempDirectory directory_;
  Random random_{1};
  std::unique_ptr<Log> log_;
  std::string bytes_;
};

// Goal: LBK1. Records that come during a backup are not in it.
TEST_F(LogBackupTest, AllThatWasDurableIsInIt) {
  Append("one");
  Append("two");
  const auto backup = Begin();
  EXPECT_EQ(backup->subject().head_lsn, Lsn(1));
  EXPECT_EQ(backup->subject().end_lsn, Lsn(2));
  EXPECT_EQ(backup->subject().log_id, log_->report().log_id);
  Append("three");
  EXPECT_THAT(Finish(backup.get()), ElementsAre("1:one", "2:two"));
  const absl::StatusOr<bool> more = Continue(backup.get(), 1);
  EXPECT_TRUE(more.ok() && !*more);
}

// A record that is completed and not forced is not durable.
TEST_F(LogBackupTest, WhatIsNotDurableIsNotInIt) {
  Append("one");
  ASSERT_TRUE(log_->Append("two", {.frequency = 16}).ok());
  ASSERT_EQ(log_->durable_lsn(), Lsn(1));
  const auto backup = Begin();
  EXPECT_EQ(backup->subject().end_lsn, Lsn(1));
  EXPECT_THAT(Finish(backup.get()), ElementsAre("1:one"));
}

TEST_F(LogBackupTest, LogsWithoutRecordsHaveABackup) {
  EXPECT_THAT(Finish(Begin().get()), IsEmpty());
  Append("one");
  ASSERT_TRUE(log_->CleanupAll().ok());
  const auto backup = Begin();
  EXPECT_EQ(backup->subject().head_lsn, Lsn(2));
  EXPECT_EQ(backup->subject().end_lsn, Lsn(1));
  EXPECT_THAT(Finish(backup.get()), IsEmpty());
}

TEST_F(LogBackupTest, AbortedRecordsAreGaps) {
  Append("one");
  {
    auto given_up = log_->Reserve(10);
  }
  Append("three");
  {
    auto given_up = log_->Reserve(10);
  }
  ASSERT_TRUE(log_->Force(Lsn(4)).ok());
  ASSERT_EQ(log_->durable_lsn(), Lsn(4));
  const auto backup = Begin();
  EXPECT_EQ(backup->subject().end_lsn, Lsn(4));
  EXPECT_THAT(Finish(backup.get()), ElementsAre("1:one", "3:three"));
}

// The ring of the log has wrapped many times, with PADs; that of the backup
// begins at its head.
TEST_F(LogBackupTest, WrappedRingsAreBackedUpWhole) {
  std::vector<std::string> kept;
  for (int i = 0; i < 500; ++i) {
    const std::string text =
        absl::StrCat(i, std::string(static_cast<size_t>(i) * 37 % 5000, 'x'));
    const Lsn lsn = Append(text);
    kept.push_back(absl::StrCat(lsn.value, ":", text));
    if (kept.size() < 25) continue;
    ASSERT_TRUE(log_->CleanupThrough(lsn - 20).ok());
    kept.erase(kept.begin(), kept.end() - 20);
    ASSERT_EQ(Finish(Begin().get()), kept) << i;
  }
}

// Goal: LBK2. The cleanup goes on, and the backup says what happened.
TEST_F(LogBackupTest, CleanupBehindWhatWasReadIsNoMatter) {
  for (int i = 1; i <= 6; ++i) Append(absl::StrCat(i));
  const auto backup = Begin();
  ASSERT_TRUE(*Continue(backup.get(), 3 * 64));
  ASSERT_TRUE(log_->CleanupThrough(Lsn(3)).ok());
  EXPECT_THAT(Finish(backup.get()),
              ElementsAre("1:1", "2:2", "3:3", "4:4", "5:5", "6:6"));
}

TEST_F(LogBackupTest, CleanupThatOvertakesABackupEndsIt) {
  for (int i = 1; i <= 6; ++i) Append(absl::StrCat(i));
  const auto backup = Begin();
  ASSERT_TRUE(*Continue(backup.get(), 3 * 64));
  ASSERT_TRUE(log_->CleanupThrough(Lsn(4)).ok());
  const absl::StatusOr<bool> more = Continue(backup.get(), kAll);
  EXPECT_TRUE(absl::IsAborted(more.status())) << more.status();
  EXPECT_THAT(more.status().message(), HasSubstr("LSN 4 was cleaned"));
  EXPECT_THAT(more.status().message(), HasSubstr("Back up again"));
  EXPECT_THAT(Finish(Begin().get()), ElementsAre("5:5", "6:6"));
}

// Each opening is an epoch.
TEST_F(LogBackupTest, EpochsAreThoseOfTheLog) {
  const std::string path = directory_.File("wal");
  ASSERT_TRUE(Log::Format({.path = path, .region_bytes = 256 << 10}).ok());
  for (int epoch = 1; epoch <= 3; ++epoch) {
    log_.reset();
    auto log = Log::Open({.path = path, .idle_force_us = 0});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    Append(absl::StrCat("epoch ", epoch));
  }
  EXPECT_THAT(Finish(Begin().get()),
              ElementsAre("1:epoch 1", "2:epoch 2", "3:epoch 3"));
  const auto reader = LogReader::Open(directory_.File("composed"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const RegionInfo& info = (*reader)->info();
  ASSERT_THAT(info.epochs, SizeIs(3));
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(info.epochs[i].epoch, Epoch(i + 1));
    EXPECT_EQ(info.epochs[i].start_lsn, Lsn(i + 1));
  }
  EXPECT_TRUE(info.closed_cleanly);
  EXPECT_EQ(info.node, NodeId(0));
}

class BackupFileTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRingBytes = 64 << 10;

  // Makes a backup of one record.
  absl::Status Make(const std::string& text, bool replaces = false) {
    absl::StatusOr<BackupFile> file = BackupFile::Create(path_, replaces);
    if (!file.ok()) return file.status();
    absl::Status done = file->Begin(Subject(1), random_);
    if (done.ok()) done = file->Add(Lsn(1), Epoch(1), AsBytes(text));
    if (done.ok()) done = file->Publish();
    return done;
  }
  static BackupSubject Subject(uint64_t end) {
    return {{1, 2}, kRingBytes, Lsn(1), Lsn(end), {{Epoch(1), Lsn(1)}}};
  }
  // Names in the folder.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TempDirectory directory_;
  const std::string path_ = directory_.File("backup");
  Random random_{1};
};

// Goal: BKF1. Nothing has the name before, nor after an error.
TEST_F(BackupFileTest, NameComesLast) {
  {
    absl::StatusOr<BackupFile> file = BackupFile::Create(path_, false);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Begin(Subject(1), random_).ok());
    ASSERT_TRUE(file->Add(Lsn(1), Epoch(1), AsBytes(std::string("one"))).ok());
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_TRUE(Make("one").ok());
  EXPECT_THAT(Names(), ElementsAre("backup"));
  EXPECT_THAT(RecordsOf(path_), ElementsAre("1:one"));
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0440U);
  // Holes take no room.
  EXPECT_GE(info.st_size, off_t{kRingBytes});
  EXPECT_LT(info.st_blocks * 512, info.st_size);
}

// Goal: BKF2.
TEST_F(BackupFileTest, OnlyABackupIsReplacedAndOnlyOnRequest) {
  ASSERT_TRUE(Make("one").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Make("two")));
  EXPECT_THAT(RecordsOf(path_), ElementsAre("1:one"));
  ASSERT_TRUE(Make("two", /*replaces=*/true).ok());
  EXPECT_THAT(RecordsOf(path_), ElementsAre("1:two"));
  EXPECT_THAT(Names(), ElementsAre("backup"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_TRUE(Make("three", /*replaces=*/true).ok());

  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_TRUE(Log::Format({.path = path_, .region_bytes = 256 << 10}).ok());
  absl::Status refused = Make("four", /*replaces=*/true);
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("is no backup"));
  EXPECT_TRUE(Log::Open({.path = path_, .idle_force_us = 0}).ok());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  std::ofstream(path_) << "a text";
  refused = Make("four", /*replaces=*/true);
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
}

// A backup that was killed under --force is in nobody's way.
TEST_F(BackupFileTest, RemainsOfAKilledBackupAreRemoved) {
  ASSERT_TRUE(Make("one").ok());
  const std::string half = NewFile::WorkingName(path_);
  std::filesystem::copy(path_, half);
  ASSERT_EQ(chmod(half.c_str(), 0640), 0);
  {  // its superline did not get there
    std::fstream file(half, std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(8192, '\0');
  }
  ASSERT_TRUE(Make("two", /*replaces=*/true).ok());
  EXPECT_THAT(Names(), ElementsAre("backup"));
}

// Goal: BKF3. The bytes change on their way to the disk.
TEST_F(BackupFileTest, BackupThatReadsOtherwiseIsNotPublished) {
  ASSERT_TRUE(Make("old").ok());
  constexpr uint64_t kRing = 106'496;
  for (const uint64_t offset : {kRing, kRing + 50, kRing + 64 + 36}) {
    absl::StatusOr<BackupFile> file =
        BackupFile::Create(path_, /*replaces=*/true);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Begin(Subject(2), random_).ok());
    ASSERT_TRUE(file->Add(Lsn(1), Epoch(1), AsBytes(std::string("one"))).ok());
    ASSERT_TRUE(file->Add(Lsn(2), Epoch(1), AsBytes(std::string("two"))).ok());
    {  // a backup that replaces another one has a name meanwhile
      std::fstream half(NewFile::WorkingName(path_),
                        std::ios::in | std::ios::out | std::ios::binary);
      half.seekp(static_cast<std::streamoff>(offset));
      half << '\xff';
    }
    const absl::Status published = file->Publish();
    EXPECT_TRUE(absl::IsDataLoss(published)) << offset << published;
    EXPECT_THAT(published.message(), HasSubstr("does not read as it was"));
  }
  EXPECT_THAT(Names(), ElementsAre("backup"));
  EXPECT_THAT(RecordsOf(path_), ElementsAre("1:old"));
}

// Goal: BKF1. Errors of the folder and of the disk.
TEST_F(BackupFileTest, ErrorsOfFilesAreTold) {
  EXPECT_TRUE(absl::IsNotFound(
      BackupFile::Create(directory_.File("none/backup"), false).status()));
  absl::StatusOr<BackupFile> file = BackupFile::Create(path_, false);
  ASSERT_TRUE(file.ok()) << file.status();
  BackupSubject none = Subject(1);
  none.ring_capacity = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(file->Begin(none, random_)));
  // A file may have less than this: as on a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = file->Begin(Subject(1), random_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(full.ok());
  ASSERT_TRUE(file->Begin(Subject(1), random_).ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status late =
      file->Add(Lsn(1), Epoch(1), AsBytes(std::string("one")));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_FALSE(late.ok());
  EXPECT_THAT(late.message(), HasSubstr(path_));
  EXPECT_THAT(Names(), IsEmpty());
}

}  // namespace
}  // namespace alpheus
