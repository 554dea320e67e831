// SPDX-License-Identifier: Apache-2.0
// `alpheus export-wal`, and salvage of what the RocksDB plugin wrote. With a
// real RocksDB: tests/api/rocksdb/fs/tools_test.py.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "api/rocksdb/store/wal_record.h"
#include "api/rocksdb/store/wal_repairer.h"
#include "log/base/bytes.h"
#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {

using wal::WalRecordKind;

namespace {

std::string Record(const wal::WalHeader& header, std::string_view body = "") {
  std::array<std::byte, wal::kWalHeaderBytes> bytes;
  wal::EncodeWalHeader(header, bytes);
  return std::string(AsText(bytes)).append(body);
}

std::string Data(uint64_t file, uint64_t offset, std::string_view body) {
  return Record({.kind = WalRecordKind::kData, .file = file, .offset = offset},
                body);
}

class ExportWalTest : public CliTest {
 protected:
  std::vector<std::string> Records() const {
    return {
        Record({.kind = WalRecordKind::kHome, .file = 1},
               std::string("/db\0/db", 7)),
        Record({.kind = WalRecordKind::kCreate, .file = 1}, "000003.log"),
        Data(1, 0, "one "),
        Data(1, 4, "two "),
        Data(1, 8, "three"),
        Record({.kind = WalRecordKind::kCreate, .file = 2}, "000004.log"),
        Data(2, 0, "four"),
        Record({.kind = WalRecordKind::kRename, .file = 2},
               "archive/000004.log"),
        Record({.kind = WalRecordKind::kCreate, .file = 3}, "000005.log.trash"),
    };
  }
  std::string Content(const std::string& name) const {
    const auto bytes = ReadFile(out_ + "/" + name);
    return std::string(AsText(bytes));
  }

  const std::string out_ = File("out");
};

TEST_F(ExportWalTest, FullFolderIsNamed) {
  FormatWith(Records());
  std::filesystem::create_directory(out_);
  std::filesystem::create_symlink("/dev/full", out_ + "/000003.log.export");
  ExpectRefused({"export-wal", region_, out_}, kFailed,
                out_ + "/000003.log.export: write failed: No space left");
}

TEST_F(ExportWalTest, FilesAreWrittenWithTheirBytes) {
  FormatWith(Records());
  EXPECT_EQ(RunWell({"export-wal", region_, out_}), "2\n");
  EXPECT_EQ(Content("000003.log"), "one two three");
  EXPECT_EQ(Content("archive/000004.log"), "four");
  EXPECT_FALSE(std::filesystem::exists(out_ + "/000005.log.trash"));
}

TEST_F(ExportWalTest, MarkersAreReplacedAndOtherFilesAreNot) {
  FormatWith(Records());
  std::filesystem::create_directory(out_);
  std::filesystem::create_symlink("alpheus", out_ + "/000003.log");
  RunWell({"export-wal", region_, out_});
  EXPECT_EQ(Content("000003.log"), "one two three");
  ExpectRefused({"export-wal", region_, out_}, kFailed, "000003.log: exists");
}

TEST_F(ExportWalTest, LostBytesBecomeADamagedRecord) {
  FormatWith(Records());
  FlipBit(FindOffsets()[3] + 64, 1);
  ExpectRefused({"export-wal", region_, out_}, kDataLoss, "lost: LSN 4");
  const auto lost = wal::DamagedWalBytes(4, 4);
  EXPECT_EQ(Content("000003.log"),
            "one " + std::string(AsText(lost)) + "three");
}

TEST_F(ExportWalTest, LostNameIsTold) {
  FormatWith(Records());
  FlipBit(FindOffsets()[1] + 64, 1);
  ExpectRefused({"export-wal", region_, out_}, kDataLoss,
                "their names are lost");
  EXPECT_FALSE(std::filesystem::exists(out_ + "/000003.log"));
  EXPECT_EQ(Content("archive/000004.log"), "four");
}

// The salvaged region opens: it is a log without a hole.
TEST_F(ExportWalTest, SalvagedLogIsExportedWithoutLoss) {
  FormatWith(Records());
  FlipBit(FindOffsets()[3] + 64, 1);
  const std::string saved = File("saved");
  ExpectRefused({"salvage", region_, saved}, kDataLoss,
                "4 lost bytes of RocksDB's WAL files");
  EXPECT_EQ(RunWell({"export-wal", saved, out_}), "2\n");
  EXPECT_EQ(Content("000003.log").size(), 13u);
}

TEST_F(ExportWalTest, LogOfSomethingElseIsRefused) {
  FormatWith({"anything"});
  ExpectRefused({"export-wal", region_, out_}, kFailed,
                "no WAL files of RocksDB");
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(ExportWalTest, EmptyLogHasNoFiles) {
  FormatWith({});
  EXPECT_EQ(RunWell({"export-wal", region_, out_}), "0\n");
}

TEST_F(ExportWalTest, FolderThatCannotBeMadeIsTold) {
  FormatWith(Records());
  std::ofstream(out_) << "a file";
  ExpectRefused({"export-wal", region_, out_ + "/in"}, kUsage, out_);
}

TEST_F(ExportWalTest, WhatIsMissingIsAskedFor) {
  FormatWith(Records());
  ExpectRefused({"export-wal", region_}, kUsage, "REGION and DIR");
  ExpectRefused({"export-wal", "--cluster", "/c", region_, out_}, kUsage,
                "--cluster and DIR");
  ExpectRefused({"export-wal", File("none"), out_}, kFailed, "none");
}

}  // namespace
}  // namespace alpheus::testing
