// SPDX-License-Identifier: Apache-2.0
// Does the judge of WAL files see each of its invariants violated? The first
// tests do everything right; each of the others does one thing wrong.
#include "tools/sim/checkers/wal_file_checker.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kOld = 1;  // files, by age
constexpr uint64_t kNew = 2;

class WalFileCheckerTest : public CheckerTest {
 protected:
  using Index = std::map<uint64_t, uint64_t>;

  WalFileCheckerTest() { Open({}, {}); }

  OperationId Create(uint64_t id) {
    checker_.Creates(primary_, id, ++operations_);
    return operations_;
  }
  OperationId Put(uint64_t id, uint64_t offset, uint64_t bytes) {
    checker_.Accepted(primary_, id, bytes);
    checker_.Writes(primary_, id, ++operations_, offset, bytes);
    return operations_;
  }
  OperationId Remove(uint64_t id) {
    checker_.Removes(primary_, id);
    checker_.RemovesBy(primary_, id, ++operations_);
    return operations_;
  }

  // The next primary is shown these records, and its plugin finds `index`.
  void Open(const std::vector<OperationId>& records, const Index& index) {
    checker_.Opens(++primary_);
    Show(records, index);
  }
  void Show(const std::vector<OperationId>& records, const Index& index) {
    std::vector<History::Shown> shown;
    for (const OperationId operation : records) {
      payloads_.emplace_back(kPayloadBytesMin);
      FillPayload(operation, payloads_.back());
      shown.push_back({.lsn = Lsn(shown.size() + 1),
                       .epoch = Epoch(1),
                       .payload = payloads_.back()});
    }
    checker_.Opened(primary_, shown, index);
  }

  // Two files with 10 bytes each.
  void WriteTwo() {
    old_created_ = Create(kOld);
    old_data_ = Put(kOld, 0, 10);
    new_created_ = Create(kNew);
    new_data_ = Put(kNew, 0, 10);
  }

  WalFileChecker checker_{oracle_};
  PrimaryNumber primary_ = 0;
  OperationId operations_ = 0;
  std::deque<std::vector<std::byte>> payloads_;
  OperationId old_created_ = 0, old_data_ = 0;
  OperationId new_created_ = 0, new_data_ = 0;
};

TEST_F(WalFileCheckerTest, WhatWasWrittenIsGood) {
  WriteTwo();
  checker_.Synced(primary_, kOld, 10);
  Open({old_created_, old_data_, new_created_, new_data_},
       {{kOld, 10}, {kNew, 10}});
  EXPECT_EQ(violated(), "");
}

TEST_F(WalFileCheckerTest, WhatWasNotSyncedMayBeCutOffAnywhere) {
  WriteTwo();
  Open({old_created_, old_data_, new_created_}, {{kOld, 10}, {kNew, 0}});
  EXPECT_EQ(violated(), "");
  Open({old_created_}, {{kOld, 0}});
  EXPECT_EQ(violated(), "");
}

TEST_F(WalFileCheckerTest, RemovedFilesMayBeGoneOrThere) {
  WriteTwo();
  checker_.Synced(primary_, kNew, 10);
  const OperationId removed = Remove(kOld);
  Open({old_created_, old_data_, new_created_, new_data_, removed},
       {{kNew, 10}});
  EXPECT_EQ(violated(), "");
  // Its beginning was cleaned, and what is left of it lies behind the head.
  Open({old_data_, new_created_, new_data_}, {{kNew, 10}});
  EXPECT_EQ(violated(), "");
}

TEST_F(WalFileCheckerTest, SyncedBytesThatAreGoneAreSeen) {
  WriteTwo();
  checker_.Synced(primary_, kOld, 10);
  Open({old_created_}, {{kOld, 0}});
  EXPECT_EQ(violated(), "WST1");
}

TEST_F(WalFileCheckerTest, SyncedFileThatIsGoneIsSeen) {
  WriteTwo();
  checker_.Synced(primary_, kNew, 10);
  Open({old_created_, old_data_}, {{kOld, 10}});
  EXPECT_EQ(violated(), "WST1");
}

// The primary that opens the log can't know of it.
TEST_F(WalFileCheckerTest, WhatIsSyncedWhileOthersOpenIsNotAskedFor) {
  WriteTwo();
  const PrimaryNumber writer = primary_;
  checker_.Opens(++primary_);
  checker_.Synced(writer, kOld, 10);
  Show({old_created_}, {{kOld, 0}});
  EXPECT_EQ(violated(), "");
}

TEST_F(WalFileCheckerTest, HoleInAFileIsSeen) {
  const OperationId created = Create(kOld);
  Put(kOld, 0, 10);
  const OperationId second = Put(kOld, 10, 10);
  Open({created, second}, {{kOld, 10}});
  EXPECT_EQ(violated(), "WST2");
}

TEST_F(WalFileCheckerTest, NewerFileWithoutTheOldersDataIsSeen) {
  WriteTwo();
  Open({old_created_, new_created_, new_data_}, {{kOld, 0}, {kNew, 10}});
  EXPECT_EQ(violated(), "WST2");
}

// It was accepted, and never left the buffer.
TEST_F(WalFileCheckerTest, NewerFileWithoutTheOldersBufferIsSeen) {
  WriteTwo();
  checker_.Accepted(primary_, kOld, 1);
  Open({old_created_, old_data_, new_created_, new_data_},
       {{kOld, 10}, {kNew, 10}});
  EXPECT_EQ(violated(), "WST2");
}

TEST_F(WalFileCheckerTest, OlderFileThatIsGoneIsSeen) {
  WriteTwo();
  Open({new_created_, new_data_}, {{kNew, 10}});
  EXPECT_EQ(violated(), "WST2");
}

// A file is whole as an opening found it, to the primary that goes on.
TEST_F(WalFileCheckerTest, RecoveredFileThatIsShorterLaterIsSeen) {
  WriteTwo();
  Open({old_created_, old_data_}, {{kOld, 10}});
  const OperationId created = Create(kNew);
  const OperationId data = Put(kNew, 0, 7);
  Open({old_created_, created, data}, {{kOld, 0}, {kNew, 7}});
  EXPECT_EQ(violated(), "WST2");
}

// One primary's record where another one's file of that id is.
TEST_F(WalFileCheckerTest, DataOfAnotherPrimarysFileIsSeen) {
  WriteTwo();
  Open({old_created_, old_data_}, {{kOld, 10}});
  const OperationId created = Create(kNew);
  Open({old_created_, old_data_, created, new_data_}, {{kOld, 10}, {kNew, 10}});
  EXPECT_EQ(violated(), "WST2");
}

TEST_F(WalFileCheckerTest, FileThatOutlivesALaterRemovedOneIsSeen) {
  WriteTwo();
  checker_.Synced(primary_, kNew, 10);
  Remove(kOld);
  const OperationId removed = Remove(kNew);
  Open({old_created_, old_data_, new_created_, new_data_, removed},
       {{kOld, 10}});
  EXPECT_EQ(violated(), "WST2");
}

// Nobody knows whether it ever was on a medium.
TEST_F(WalFileCheckerTest, LaterRemovedFileThatWasNotSyncedIsNotMissed) {
  WriteTwo();
  Remove(kOld);
  Remove(kNew);
  Open({old_created_, old_data_}, {{kOld, 10}});
  EXPECT_EQ(violated(), "");
}

TEST_F(WalFileCheckerTest, IndexThatSaysOtherwiseIsSeen) {
  WriteTwo();
  Open({old_created_, old_data_}, {{kOld, 9}});
  EXPECT_EQ(violated(), "WST2");
}

}  // namespace
}  // namespace alpheus::sim
