// SPDX-License-Identifier: Apache-2.0
#include "api/service/clients/client_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"

namespace alpheus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Place PlaceAt(uint64_t lsn) { return {Epoch(3), Lsn(lsn)}; }

// A log of service records; its table after all of them.
class WrittenLog {
 public:
  // Begins a client.
  ClientId Open() {
    return {{Epoch(3), Append(ServiceRecordKind::kOpen, {}, 0)}};
  }
  ClientId OpenByKey(const ClientKey& key) {
    return {{Epoch(3), Write({{ServiceRecordKind::kOpenByKey, 0, {}, 0},
                              {key.begin(), key.end()}})}};
  }
  Lsn SaveKeys(const std::vector<KeyEntry>& entries) {
    return Write({{ServiceRecordKind::kKeys, 0, {}, 0}, EncodeKeys(entries)});
  }
  Lsn Append(ServiceRecordKind kind, ClientId client, uint64_t sequence) {
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

Admission Asked(ClientTable& table, ClientId client, uint64_t sequence) {
  return table.Find(client)->Judge({sequence, sequence}).admission;
}

// CLT1.
TEST(ClientTableTest, ClientIsKnownFromItsBeginningUntilItsEndIsCleaned) {
  WrittenLog log;
  EXPECT_EQ(log.table.Find({PlaceAt(1)}), nullptr);
  const ClientId one = log.Open();
  EXPECT_EQ(Asked(log.table, one, 1), Admission::kAdmitted);
  log.Append(ServiceRecordKind::kAppend, one, 1);
  const Lsn end = log.Append(ServiceRecordKind::kClose, one, 1);
  log.CleanThrough(end - 1);
  EXPECT_EQ(Asked(log.table, one, 2), Admission::kClosed);
  log.CleanThrough(end);
  EXPECT_EQ(log.table.Find(one), nullptr);
  EXPECT_EQ(log.table.open(), 0U);
}

// CLT3.
TEST(ClientTableTest, BeginningThatComesAgainChangesNothing) {
  WrittenLog log;
  const ClientId one = log.Open();
  log.Append(ServiceRecordKind::kAppend, one, 1);
  log.table.Note({.kind = ServiceRecordKind::kOpen}, one.opened);
  EXPECT_EQ(Asked(log.table, one, 1), Admission::kRepeated);
}

// CLT2, P-E29: client 2 overwrites what client 1 wrote, the record of client 1
// is cleaned, and client 1 repeats its request.
TEST(ClientTableTest, RequestsAreKnownAfterTheirRecordsAreCleaned) {
  WrittenLog log;
  const ClientId one = log.Open();
  const ClientId two = log.Open();
  const Lsn last = log.Append(ServiceRecordKind::kAppend, one, 1);
  log.Append(ServiceRecordKind::kAppend, two, 1);
  const std::vector<TableEntry> saved = log.table.ToSaveBefore(last);
  EXPECT_THAT(saved, ElementsAre(TableEntry{one, 1, PlaceAt(last.value)}));
  log.SaveTable(saved);
  EXPECT_THAT(log.table.ToSaveBefore(last), IsEmpty());
  log.CleanThrough(last);
  ClientTable read = log.Read();
  EXPECT_EQ(Asked(read, one, 1), Admission::kRepeated);
  EXPECT_EQ(read.Find(one)->Judge({1, 1}).place, PlaceAt(last.value));
  EXPECT_EQ(Asked(read, one, 2), Admission::kAdmitted);
}

// CLT2: the table itself is to be cleaned.
TEST(ClientTableTest, TableThatGoesIsSavedAgain) {
  WrittenLog log;
  const ClientId one = log.Open();
  const Lsn last = log.Append(ServiceRecordKind::kAppend, one, 1);
  const Lsn table = log.SaveTable(log.table.ToSaveBefore(last));
  EXPECT_THAT(log.table.ToSaveBefore(table - 1), IsEmpty());
  EXPECT_EQ(log.table.ToSaveBefore(table).size(), 1U);
}

TEST(ClientTableTest, ClientsThatHaveEndedAreNotSaved) {
  WrittenLog log;
  const ClientId one = log.Open();
  const Lsn end = log.Append(ServiceRecordKind::kClose, one, 0);
  EXPECT_THAT(log.table.ToSaveBefore(end), IsEmpty());
}

// CLT3: a table was made, then a record was appended, then the table was.
TEST(ClientTableTest, TableOfBeforeDoesNotCountAsSaved) {
  WrittenLog log;
  const ClientId one = log.Open();
  log.Append(ServiceRecordKind::kAppend, one, 1);
  const std::vector<TableEntry> old = log.table.ToSaveBefore(Lsn(2));
  const Lsn last = log.Append(ServiceRecordKind::kAppend, one, 2);
  log.SaveTable(old);
  EXPECT_EQ(Asked(log.table, one, 2), Admission::kRepeated);
  EXPECT_EQ(log.table.ToSaveBefore(last).size(), 1U);
}

TEST(ClientTableTest, ImpossibleTableIsDamage) {
  ClientTable table;
  const std::vector<std::byte> body(kTableEntryBytes, std::byte{0xff});
  EXPECT_TRUE(absl::IsDataLoss(
      table.Apply({{ServiceRecordKind::kTable, 0, {}, 0}, body}, PlaceAt(1))));
}

// CLT2, CLT3: whatever is appended, saved and cleaned, an opening knows the
// last request of each client.
TEST(ClientTableTest, OpeningKnowsAllThatTheTableKnew) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    WrittenLog log;
    std::map<ClientId, uint64_t> last;  // of clients that have not ended
    Lsn newest;
    for (int step = 0; step < 200; ++step) {
      if (last.size() < 2 || (last.size() < 6 && random.Below(10) == 0)) {
        const ClientId id = log.Open();
        newest = id.opened.lsn;
        last[id] = 0;
      }
      const auto found = std::next(
          last.begin(), static_cast<ptrdiff_t>(random.Below(last.size())));
      if (random.Below(12) == 0) {
        newest =
            log.Append(ServiceRecordKind::kClose, found->first, found->second);
        last.erase(found);
      } else {
        newest = log.Append(ServiceRecordKind::kAppend, found->first,
                            ++found->second);
      }
      if (random.Below(10) != 0) continue;
      const Lsn through = log.first() + random.Below(newest - log.first() + 1);
      const std::vector<TableEntry> saved = log.table.ToSaveBefore(through);
      if (!saved.empty()) newest = log.SaveTable(saved);
      log.CleanThrough(through);
      if (through == newest) continue;
      ClientTable read = log.Read();
      for (const auto& [one, sequence] : last) {
        ClientRequests* known = read.Find(one);
        ASSERT_NE(known, nullptr) << seed;
        ASSERT_EQ(known->last(), sequence) << seed;
        ASSERT_FALSE(known->is_closed()) << seed;
      }
    }
  }
}

constexpr ClientKey kFirstKey = {std::byte{7}};
constexpr ClientKey kOtherKey = {std::byte{8}};

// CLT4. It has a request, so it has heard its name.
TEST(ClientTableTest, KeyFindsItsClientUntilItsRecordIsCleaned) {
  WrittenLog log;
  const ClientId client = log.OpenByKey(kFirstKey);
  EXPECT_EQ(log.table.FindByKey(kFirstKey), client);
  EXPECT_EQ(log.table.FindByKey(kOtherKey), std::nullopt);
  EXPECT_EQ(log.Read().FindByKey(kFirstKey), client);
  const Lsn request = log.Append(ServiceRecordKind::kAppend, client, 1);
  EXPECT_EQ(log.table.FindByKey(kFirstKey), client);
  EXPECT_THAT(log.table.KeysToSaveBefore(request - 1), IsEmpty());
  log.CleanThrough(request - 1);
  EXPECT_EQ(log.table.FindByKey(kFirstKey), std::nullopt);
  EXPECT_EQ(log.table.keys(), 0u);
  EXPECT_EQ(log.Read().FindByKey(kFirstKey), std::nullopt);
  EXPECT_NE(log.table.Find(client), nullptr);
}

// CLT4. The answer may have been lost.
TEST(ClientTableTest, KeyOfAClientWithoutARequestIsSaved) {
  WrittenLog log;
  const ClientId client = log.OpenByKey(kFirstKey);
  const std::vector<KeyEntry> keys = log.table.KeysToSaveBefore(Lsn(1));
  ASSERT_THAT(keys, ElementsAre(KeyEntry{client, kFirstKey}));
  log.SaveTable(log.table.ToSaveBefore(Lsn(1)));
  const Lsn saved = log.SaveKeys(keys);
  EXPECT_THAT(log.table.KeysToSaveBefore(Lsn(1)), IsEmpty());
  log.CleanThrough(Lsn(1));
  EXPECT_EQ(log.table.FindByKey(kFirstKey), client);
  EXPECT_EQ(log.Read().FindByKey(kFirstKey), client);
  EXPECT_THAT(log.table.KeysToSaveBefore(saved),
              ElementsAre(KeyEntry{client, kFirstKey}))
      << "the record that has it goes";
}

TEST(ClientTableTest, ClientThatHasEndedIsFoundByNoKey) {
  WrittenLog log;
  const ClientId first = log.OpenByKey(kFirstKey);
  log.Append(ServiceRecordKind::kClose, first, 0);
  EXPECT_EQ(log.table.FindByKey(kFirstKey), std::nullopt);
  const ClientId second = log.OpenByKey(kFirstKey);
  EXPECT_EQ(log.table.FindByKey(kFirstKey), second);
  // Keys of a client that has ended, and of none.
  log.SaveKeys({{first, kFirstKey}, {{PlaceAt(99)}, kOtherKey}});
  EXPECT_EQ(log.table.FindByKey(kFirstKey), second);
  EXPECT_EQ(log.table.FindByKey(kOtherKey), std::nullopt);
  EXPECT_EQ(log.Read().FindByKey(kFirstKey), second);
}

}  // namespace
}  // namespace alpheus::service
