// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"

namespace alpheus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Uuid kOne = {1, 1};
constexpr Uuid kTwo = {2, 2};

Place At(uint64_t lsn) { return {Epoch(3), Lsn(lsn)}; }

// A log of service records; its table after all of them.
class WrittenLog {
 public:
  Lsn Append(ServiceRecordKind kind, Uuid client, uint64_t sequence) {
    return Write({{kind, 0, client, sequence}, {}});
  }
  Lsn SaveTable(const std::vector<TableEntry>& entries) {
    return Write({{ServiceRecordKind::kTable, 0, {}, 0}, EncodeTable(entries)});
  }
  void CleanThrough(Lsn through) {
    table.OnCleaned(through);
    records_.erase(records_.begin(), records_.upper_bound(through));
  }
  // Returns what an opening makes of the records that are left.
  ClientTable Read() const {
    ClientTable read;
    for (const auto& [lsn, record] : records_) Apply(read, record, lsn);
    return read;
  }
  Lsn first() const { return records_.begin()->first; }

  ClientTable table;

 private:
  struct Written {
    Envelope envelope;
    std::vector<std::byte> body;
  };

  static void Apply(ClientTable& to, const Written& record, Lsn lsn) {
    const absl::Status applied =
        to.Apply({record.envelope, record.body}, {Epoch(3), lsn});
    EXPECT_TRUE(applied.ok()) << applied;
  }
  Lsn Write(Written record) {
    const Lsn lsn(next_++);
    Apply(table, record, lsn);
    records_.emplace(lsn, std::move(record));
    return lsn;
  }

  uint64_t next_ = 1;
  std::map<Lsn, Written> records_;
};

Admission Asked(ClientTable& table, Uuid client, uint64_t sequence) {
  return table.Find(client)->Judge({sequence, sequence}).admission;
}

// CLT1.
TEST(ClientTableTest, ClientIsKnownFromItsBeginningUntilItsEndIsCleaned) {
  WrittenLog log;
  EXPECT_EQ(log.table.Find(kOne), nullptr);
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  EXPECT_EQ(Asked(log.table, kOne, 1), Admission::kAdmitted);
  log.Append(ServiceRecordKind::kAppend, kOne, 1);
  const Lsn end = log.Append(ServiceRecordKind::kClose, kOne, 1);
  log.CleanThrough(end - 1);
  EXPECT_EQ(Asked(log.table, kOne, 2), Admission::kClosed);
  log.CleanThrough(end);
  EXPECT_EQ(log.table.Find(kOne), nullptr);
  EXPECT_EQ(log.table.size(), 0U);
}

TEST(ClientTableTest, BeginningThatComesAgainChangesNothing) {
  WrittenLog log;
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  log.Append(ServiceRecordKind::kAppend, kOne, 1);
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  EXPECT_EQ(Asked(log.table, kOne, 1), Admission::kRepeated);
}

// CLT2, E29: client 2 overwrites what client 1 wrote, the record of client 1 is
// cleaned, and client 1 repeats its request.
TEST(ClientTableTest, RequestsAreKnownAfterTheirRecordsAreCleaned) {
  WrittenLog log;
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  log.Append(ServiceRecordKind::kOpen, kTwo, 0);
  const Lsn last = log.Append(ServiceRecordKind::kAppend, kOne, 1);
  log.Append(ServiceRecordKind::kAppend, kTwo, 1);
  const std::vector<TableEntry> saved = log.table.ToSaveBefore(last);
  EXPECT_THAT(saved, ElementsAre(TableEntry{kOne, 1, Epoch(3), last}));
  log.SaveTable(saved);
  EXPECT_THAT(log.table.ToSaveBefore(last), IsEmpty());
  log.CleanThrough(last);
  ClientTable read = log.Read();
  EXPECT_EQ(Asked(read, kOne, 1), Admission::kRepeated);
  EXPECT_EQ(read.Find(kOne)->Judge({1, 1}).place, At(last.value));
  EXPECT_EQ(Asked(read, kOne, 2), Admission::kAdmitted);
}

// CLT2: the table itself is to be cleaned.
TEST(ClientTableTest, TableThatGoesIsSavedAgain) {
  WrittenLog log;
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  const Lsn last = log.Append(ServiceRecordKind::kAppend, kOne, 1);
  const Lsn table = log.SaveTable(log.table.ToSaveBefore(last));
  EXPECT_THAT(log.table.ToSaveBefore(table - 1), IsEmpty());
  EXPECT_EQ(log.table.ToSaveBefore(table).size(), 1U);
}

TEST(ClientTableTest, ClientsThatHaveEndedAreNotSaved) {
  WrittenLog log;
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  const Lsn end = log.Append(ServiceRecordKind::kClose, kOne, 0);
  EXPECT_THAT(log.table.ToSaveBefore(end), IsEmpty());
}

// CLT3: a table was made, then a record was appended, then the table was.
TEST(ClientTableTest, TableOfBeforeDoesNotCountAsSaved) {
  WrittenLog log;
  log.Append(ServiceRecordKind::kOpen, kOne, 0);
  log.Append(ServiceRecordKind::kAppend, kOne, 1);
  const std::vector<TableEntry> old = log.table.ToSaveBefore(Lsn(2));
  const Lsn last = log.Append(ServiceRecordKind::kAppend, kOne, 2);
  log.SaveTable(old);
  EXPECT_EQ(Asked(log.table, kOne, 2), Admission::kRepeated);
  EXPECT_EQ(log.table.ToSaveBefore(last).size(), 1U);
}

TEST(ClientTableTest, ImpossibleTableIsDamage) {
  ClientTable table;
  const std::vector<std::byte> body(kTableEntryBytes, std::byte{0xff});
  EXPECT_TRUE(absl::IsDataLoss(
      table.Apply({{ServiceRecordKind::kTable, 0, {}, 0}, body}, At(1))));
}

// CLT2, CLT3: whatever is appended, saved and cleaned, an opening knows the
// last request of each client.
TEST(ClientTableTest, OpeningKnowsAllThatTheTableKnew) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    WrittenLog log;
    std::map<uint64_t, uint64_t> last;  // of clients that have not ended
    Lsn newest = log.Append(ServiceRecordKind::kOpen, {1, 1}, 0);
    last[1] = 0;
    for (int step = 0; step < 200; ++step) {
      const uint64_t client = 1 + random.Below(6);
      const Uuid id = {client, client};
      const auto found = last.find(client);
      if (found == last.end()) {
        // A client is never opened again under its id; this one is.
        if (log.table.Find(id) != nullptr) continue;
        newest = log.Append(ServiceRecordKind::kOpen, id, 0);
        last[client] = 0;
      } else if (random.Below(12) == 0) {
        newest = log.Append(ServiceRecordKind::kClose, id, found->second);
        last.erase(found);
      } else {
        newest = log.Append(ServiceRecordKind::kAppend, id, ++found->second);
      }
      if (random.Below(10) != 0) continue;
      const Lsn through = log.first() + random.Below(newest - log.first() + 1);
      const std::vector<TableEntry> saved = log.table.ToSaveBefore(through);
      if (!saved.empty()) newest = log.SaveTable(saved);
      log.CleanThrough(through);
      if (through == newest) continue;
      ClientTable read = log.Read();
      for (const auto& [one, sequence] : last) {
        ClientRequests* known = read.Find({one, one});
        ASSERT_NE(known, nullptr) << seed;
        ASSERT_EQ(known->last(), sequence) << seed;
        ASSERT_FALSE(known->is_closed()) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace alpheus::service
