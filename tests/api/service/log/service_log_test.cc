// SPDX-License-Identifier: Apache-2.0
#include "api/service/log/service_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/service/record/service_record.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/core/durability/persisted_by.h"
#include "tests/api/service/log/memory_record_log.h"

namespace alpheus::service {
namespace {

constexpr Epoch kEpoch(5);

class ServiceLogTest : public ::testing::Test {
 protected:
  static constexpr ClientKey kKey = {std::byte{7}};

  ServiceLogTest() { client_ = Begun(); }

  ClientId Begun() {
    const Verdict opened = service_->Open(service_->epoch());
    EXPECT_EQ(opened.finding, Finding::kAppended);
    return {*opened.place};
  }
  // The client appends `text`.
  Verdict Append(uint64_t sequence, uint64_t unanswered,
                 std::string_view text = "text") {
    return Append({.client = client_, .number = {sequence, unanswered}}, text);
  }
  Verdict Append(AppendRequest request, std::string_view text) {
    const std::span<const std::byte> payload = AsBytes(text);
    request.payloads = {&payload, 1};
    std::vector<Verdict> verdicts;
    service_->Append(service_->epoch(), {&request, 1}, &verdicts);
    EXPECT_EQ(verdicts.size(), 1U);
    return verdicts.front();
  }
  // Returns the outcome of settling; none: not settled yet.
  std::shared_ptr<std::optional<absl::Status>> Settled(
      std::span<const Verdict> verdicts,
      std::optional<PersistedBy> by = PersistedBy::kQuorum) {
    auto settled = std::make_shared<std::optional<absl::Status>>();
    service_->Settle(verdicts, by, [settled](const absl::Status& status) {
      *settled = status;
    });
    return settled;
  }
  std::shared_ptr<std::optional<absl::Status>> Settled(const Verdict& verdict) {
    return Settled({&verdict, 1});
  }
  // Returns what a read is told; none: it waits.
  std::shared_ptr<std::optional<absl::StatusOr<Lsn>>> Reads(
      Consistency consistency, Lsn through = Lsn()) {
    auto told = std::make_shared<std::optional<absl::StatusOr<Lsn>>>();
    service_->BeginRead(
        consistency, through,
        [told](const absl::StatusOr<Lsn>& durable) { *told = durable; });
    return told;
  }
  // Returns the outcome of a cleaning; none: it has not ended.
  std::shared_ptr<std::optional<absl::Status>> CleanedThrough(Lsn through) {
    auto cleaned = std::make_shared<std::optional<absl::Status>>();
    service_->CleanupThrough(
        through, [cleaned](const absl::Status& status) { *cleaned = status; });
    return cleaned;
  }
  // Another primary opens the log, which has its records up to `end`.
  void FailOver(Lsn end) {
    MemoryRecordLog opened = log_->OpenedWith(end);
    log_->Fail();
    log_ = std::make_unique<MemoryRecordLog>(std::move(opened));
    service_ = std::make_unique<ServiceLog>(*log_, service_->epoch() + 1);
    for (const MemoryRecordLog::Record& record : log_->records()) {
      const absl::Status recovered =
          service_->Recover(record.place, AsBytes(record.payload));
      EXPECT_TRUE(recovered.ok()) << recovered;
    }
  }

  std::unique_ptr<MemoryRecordLog> log_ =
      std::make_unique<MemoryRecordLog>(kEpoch);
  std::unique_ptr<ServiceLog> service_ =
      std::make_unique<ServiceLog>(*log_, kEpoch);
  ClientId client_;
};

TEST_F(ServiceLogTest, RequestIsAppendedAndSettledOnceItIsDurable) {
  const Verdict verdict = Append(1, 1, "hello");
  EXPECT_EQ(verdict.finding, Finding::kAppended);
  EXPECT_EQ(verdict.place, (Place{kEpoch, Lsn(2)}));
  const auto settled = Settled(verdict);
  EXPECT_EQ(log_->forced(), Lsn(2));
  EXPECT_FALSE(settled->has_value());
  log_->MakeDurable(Lsn(2));
  EXPECT_EQ(*settled, absl::OkStatus());
  const auto record = DecodeServiceRecord(AsBytes(log_->records()[1].payload));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->envelope,
            (Envelope{ServiceRecordKind::kAppend, 0, client_, 1}));
  EXPECT_EQ(AsText(record->body), "hello");
}

// A change of the members holds the log. First what is under way becomes
// durable; then the log says when it goes on.
TEST_F(ServiceLogTest, RequestThatTheLogHoldsUpIsJudgedOnceItGoesOn) {
  int told = 0;
  const auto tell = [&] { ++told; };
  EXPECT_EQ(Append(1, 1).finding, Finding::kAppended);
  log_->Hold();
  EXPECT_EQ(Append(2, 1).finding, Finding::kHeldUp);
  EXPECT_TRUE(service_->AwaitRoom(tell));
  EXPECT_EQ(log_->forced(), Lsn(2));
  EXPECT_EQ(told, 0);
  log_->MakeAllDurable();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(Append(2, 1).finding, Finding::kHeldUp);
  EXPECT_TRUE(service_->AwaitRoom(tell));
  EXPECT_EQ(told, 1);
  log_->Resume();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(Append(2, 1).finding, Finding::kAppended);
  log_->MakeAllDurable();
  EXPECT_FALSE(service_->AwaitRoom(tell)) << "nothing is under way";
  EXPECT_EQ(log_->records().size(), 3u) << "the beginning, and two requests";
}

TEST_F(ServiceLogTest, WhoWaitsForRoomHearsOfALogThatFails) {
  int told = 0;
  log_->MakeAllDurable();
  log_->Hold();
  EXPECT_TRUE(service_->AwaitRoom([&] { ++told; }));
  log_->Fail();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(Append(1, 1).finding, Finding::kFailed);
  EXPECT_TRUE(service_->AwaitRoom([&] { ++told; }));
  EXPECT_EQ(told, 2);
}

// SLG9: two streams look at the log, and both find one free place. Each request
// is judged when it is appended.
TEST_F(ServiceLogTest, ExposureIsJudgedByTheLogOfThatMoment) {
  log_->MakeAllDurable();
  EXPECT_EQ(Append({.client = client_, .number = {1, 1}, .max_exposed = 1}, "a")
                .finding,
            Finding::kAppended);
  EXPECT_EQ(Append({.client = client_, .number = {2, 1}, .max_exposed = 1}, "b")
                .finding,
            Finding::kTooExposed);
  EXPECT_EQ(Append({.client = client_, .number = {1, 1}, .max_exposed = 1}, "a")
                .finding,
            Finding::kRepeated)
      << "a repeat exposes nothing";
  EXPECT_EQ(Append({.client = client_, .number = {2, 1}, .max_exposed = 2}, "b")
                .finding,
            Finding::kAppended);
  EXPECT_EQ(Append(3, 1).finding, Finding::kAppended) << "without a limit";
  log_->MakeDurable(Lsn(3));
  EXPECT_EQ(Append({.client = client_, .number = {4, 1}, .max_exposed = 1}, "d")
                .finding,
            Finding::kTooExposed);
  log_->MakeAllDurable();
  EXPECT_EQ(Append({.client = client_, .number = {4, 1}, .max_exposed = 1}, "d")
                .finding,
            Finding::kAppended);
}

// P-Z6: a repeat of a request whose record is not durable yet.
TEST_F(ServiceLogTest, RepeatWaitsForTheRecord) {
  const Verdict first = Append(1, 1);
  const Verdict repeat = Append(1, 1);
  EXPECT_EQ(repeat.finding, Finding::kRepeated);
  EXPECT_EQ(repeat.place, first.place);
  EXPECT_EQ(log_->next_lsn(), Lsn(3));
  const auto settled = Settled(repeat);
  EXPECT_FALSE(settled->has_value());
  log_->MakeAllDurable();
  EXPECT_EQ(*settled, absl::OkStatus());
}

TEST_F(ServiceLogTest, OutcomeIsUnknownOnceTheLogHasFailed) {
  const auto settled = Settled(Append(1, 1));
  log_->Fail();
  EXPECT_TRUE(absl::IsAborted(**settled));
  EXPECT_EQ(Append(2, 1).finding, Finding::kFailed);
}

TEST_F(ServiceLogTest, RequestIsSettledOnceTheReplicasAskedForHaveIt) {
  const std::vector<Verdict> verdicts = {Append(1, 1)};  // LSN 2
  const auto accepted = Settled(verdicts, std::nullopt);
  const auto local = Settled(verdicts, PersistedBy::kOwnReplica);
  const auto quorum = Settled(verdicts, PersistedBy::kQuorum);
  const auto all = Settled(verdicts, PersistedBy::kAllInSync);
  EXPECT_TRUE(accepted->has_value());
  EXPECT_FALSE(local->has_value());
  log_->Persist(PersistedBy::kOwnReplica, Lsn(2));
  EXPECT_TRUE(local->has_value());
  EXPECT_FALSE(quorum->has_value());
  log_->Persist(PersistedBy::kQuorum, Lsn(2));
  EXPECT_TRUE(quorum->has_value());
  EXPECT_FALSE(all->has_value());
  log_->Persist(PersistedBy::kAllInSync, Lsn(2));
  EXPECT_TRUE(all->has_value());
}

// SLG3 holds for those that have no record, whatever the others ask for.
TEST_F(ServiceLogTest, RefusalIsToldOnceWhatItCameOfIsDurableWhateverIsAsked) {
  const Verdict appended = Append(1, 1);  // LSN 2
  const Verdict refused =
      Append({.client = client_, .number = {2, 1}, .expected_lsn = Lsn(9)}, "");
  ASSERT_EQ(refused.finding, Finding::kTailMismatch);
  const std::vector<Verdict> both = {appended, refused};
  const auto accepted = Settled(both, std::nullopt);
  const auto local = Settled(both, PersistedBy::kOwnReplica);
  const auto all = Settled(both, PersistedBy::kAllInSync);
  log_->Persist(PersistedBy::kOwnReplica, Lsn(2));
  EXPECT_FALSE(accepted->has_value());
  EXPECT_FALSE(local->has_value());
  log_->Persist(PersistedBy::kQuorum, Lsn(2));
  EXPECT_EQ(*accepted, absl::OkStatus());
  EXPECT_EQ(*local, absl::OkStatus());
  EXPECT_FALSE(all->has_value());
  log_->Persist(PersistedBy::kAllInSync, Lsn(2));
  EXPECT_EQ(*all, absl::OkStatus());
}

TEST_F(ServiceLogTest, OutcomeIsUnknownWhateverReplicasAreAskedFor) {
  const Verdict appended = Append(1, 1);  // LSN 2
  const Verdict refused =
      Append({.client = client_, .number = {2, 1}, .expected_lsn = Lsn(9)}, "");
  const std::vector<Verdict> both = {appended, refused};
  const auto local = Settled(both, PersistedBy::kOwnReplica);
  const auto all = Settled(both, PersistedBy::kAllInSync);
  const auto own = Settled({&appended, 1}, PersistedBy::kOwnReplica);
  log_->Fail();
  EXPECT_TRUE(absl::IsAborted(**local));
  EXPECT_TRUE(absl::IsAborted(**all));
  EXPECT_TRUE(absl::IsAborted(**own));
}

// SLG1.
TEST_F(ServiceLogTest, RequestsForAnotherOpeningAreRefused) {
  const Epoch old = service_->epoch();
  log_->MakeAllDurable();
  FailOver(Lsn(1));
  for (const Epoch epoch : {old, service_->epoch() + 1}) {
    std::vector<Verdict> verdicts;
    const AppendRequest request = {.client = client_, .number = {1, 1}};
    service_->Append(epoch, {&request, 1}, &verdicts);
    EXPECT_EQ(verdicts.front().finding, Finding::kWrongEpoch);
    EXPECT_EQ(service_->Open(epoch).finding, Finding::kWrongEpoch);
    EXPECT_EQ(service_->Close(epoch, client_).finding, Finding::kWrongEpoch);
  }
  EXPECT_EQ(log_->next_lsn(), Lsn(2));
}

TEST_F(ServiceLogTest, ClientsThatAreNotKnownAreRefused) {
  client_ = {{kEpoch, Lsn(77)}};
  EXPECT_EQ(Append(1, 1).finding, Finding::kUnknownClient);
  EXPECT_EQ(service_->Close(kEpoch, client_).finding, Finding::kUnknownClient);
  EXPECT_EQ(service_->Resume(client_, 1, kEpoch).On(1).finding,
            Finding::kUnknownClient);
}

// SLG2, P-E30: the repeat of a request that changed what its condition asks
// for.
TEST_F(ServiceLogTest, RepeatIsFoundBeforeConditionsAreLookedAt) {
  const AppendRequest request = {
      .client = client_, .number = {1, 1}, .expected_lsn = Lsn(2)};
  EXPECT_EQ(Append(request, "text").finding, Finding::kAppended);
  EXPECT_EQ(Append(request, "text").finding, Finding::kRepeated);
}

// SLG3, P-E20: what the condition was judged by might be lost.
TEST_F(ServiceLogTest, MismatchIsToldOnceWhatItCameOfIsDurable) {
  Append(1, 1);
  const Verdict verdict = Append(
      {.client = client_, .number = {2, 1}, .expected_lsn = Lsn(2)}, "text");
  EXPECT_EQ(verdict.finding, Finding::kTailMismatch);
  EXPECT_EQ(verdict.expected, 3U);
  const auto settled = Settled(verdict);
  EXPECT_FALSE(settled->has_value());
  log_->MakeDurable(Lsn(2));
  EXPECT_EQ(*settled, absl::OkStatus());
}

TEST_F(ServiceLogTest, AppendsOnlyBehindTheSameClientIfItIsAsked) {
  const auto only_if_last = [&](uint64_t sequence) {
    return Append({.client = client_,
                   .number = {sequence, sequence},
                   .only_if_last = true},
                  "text")
        .finding;
  };
  EXPECT_EQ(only_if_last(1), Finding::kAppended);
  EXPECT_EQ(only_if_last(2), Finding::kAppended);
  const ClientId one = client_;
  client_ = Begun();
  Append(1, 1, "other");
  client_ = one;
  EXPECT_EQ(only_if_last(3), Finding::kTailMismatch);
  EXPECT_EQ(Append(3, 3).finding, Finding::kAppended);
  // A table is of no client.
  log_->MakeAllDurable();
  service_->CleanupThrough(Lsn(1), [](const absl::Status&) {});
  EXPECT_EQ(only_if_last(4), Finding::kAppended);
}

TEST_F(ServiceLogTest, BatchIsOneRecord) {
  const std::vector<std::span<const std::byte>> payloads = {AsBytes("a"),
                                                            AsBytes("bc")};
  const AppendRequest request = {
      .client = client_, .number = {1, 1}, .payloads = payloads};
  std::vector<Verdict> verdicts;
  service_->Append(kEpoch, {&request, 1}, &verdicts);
  EXPECT_EQ(verdicts.front().finding, Finding::kAppended);
  ASSERT_EQ(log_->records().size(), 2U);
  const auto record = DecodeServiceRecord(AsBytes(log_->records()[1].payload));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->envelope.kind, ServiceRecordKind::kBatch);
  const auto read = DecodeBatch(record->body);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(AsText((*read)[1]), "bc");
}

TEST_F(ServiceLogTest, RefusedRequestsWriteNothing) {
  EXPECT_EQ(Append(2, 1).finding, Finding::kOutOfOrder);
  EXPECT_EQ(Append(2, 1).expected, 1U);
  EXPECT_EQ(Append(0, 0).finding, Finding::kImpossible);
  const Verdict large = Append(1, 1, std::string(469, 'x'));
  EXPECT_EQ(large.finding, Finding::kTooLarge);
  EXPECT_EQ(large.expected, 468U);
  EXPECT_EQ(Append(1, 1, std::string(468, 'x')).finding, Finding::kAppended);
  log_->refusal = absl::ResourceExhaustedError("full");
  EXPECT_EQ(Append(2, 1).finding, Finding::kNoRoom);
  log_->refusal = absl::DeadlineExceededError("would wait");
  EXPECT_EQ(Append(2, 1).finding, Finding::kHeldUp);
  log_->refusal = absl::OkStatus();
  EXPECT_EQ(Append(kPlacesMax + 1, 1).finding, Finding::kTooMany);
  const AppendRequest empty = {.client = client_, .number = {2, 1}};
  std::vector<Verdict> verdicts;
  service_->Append(kEpoch, {&empty, 1}, &verdicts);
  EXPECT_EQ(verdicts.front().finding, Finding::kTooLarge);
  EXPECT_EQ(log_->next_lsn(), Lsn(3));
  EXPECT_EQ(Append(2, 1).finding, Finding::kAppended);
}

// A refusal depends on nothing that is not durable.
TEST_F(ServiceLogTest, RefusalIsToldAtOnce) {
  EXPECT_EQ(*Settled(Append(2, 1)), absl::OkStatus());
}

TEST_F(ServiceLogTest, ClientThatHasEndedAppendsNothing) {
  Append(1, 1);
  EXPECT_EQ(service_->Close(kEpoch, client_).finding, Finding::kAppended);
  const Verdict again = service_->Close(kEpoch, client_);
  EXPECT_EQ(again.finding, Finding::kRepeated);
  EXPECT_EQ(again.settled_with, Lsn(3));
  EXPECT_EQ(Append(2, 2).finding, Finding::kClosed);
  const Resumed resumed = service_->Resume(client_, 1, kEpoch);
  EXPECT_TRUE(resumed.is_closed);
  EXPECT_EQ(resumed.On(2).finding, Finding::kNever);
  EXPECT_EQ(resumed.On(1).finding, Finding::kRepeated);
}

// SLG4, P-Z1: the request might still come on another connection.
TEST_F(ServiceLogTest, ResumedClientKnowsWhatWillNeverBeAppended) {
  const Verdict first = Append(1, 1);
  const Resumed resumed = service_->Resume(client_, 1, kEpoch);
  EXPECT_EQ(resumed.verdict.finding, Finding::kRepeated);
  EXPECT_EQ(resumed.last, 1U);
  EXPECT_FALSE(resumed.is_closed);
  EXPECT_EQ(resumed.places, std::vector<Placed>({{1, *first.place}}));
  // Its place may be told once it is durable.
  const auto settled = Settled(resumed.verdict);
  EXPECT_FALSE(settled->has_value());
  log_->MakeAllDurable();
  EXPECT_EQ(*settled, absl::OkStatus());
  EXPECT_EQ(Append(2, 1).finding, Finding::kSuperseded);
  EXPECT_EQ(
      Append({.client = client_, .number = {2, 2, resumed.resumption}}, "text")
          .finding,
      Finding::kAppended);
}

// A condition that did not hold holds later, when the same request comes on an
// old connection.
TEST_F(ServiceLogTest, RefusalIsFinalForAClientThatHasResumed) {
  const uint64_t resumption = service_->Resume(client_, 1, kEpoch).resumption;
  AppendRequest request = {
      .client = client_, .number = {1, 1, resumption}, .expected_lsn = Lsn(3)};
  EXPECT_EQ(Append(request, "text").finding, Finding::kTailMismatch);
  Begun();
  request.number.resumption = 0;
  EXPECT_EQ(Append(request, "text").finding, Finding::kSuperseded);
}

// SLG4.
TEST_F(ServiceLogTest, ResumptionSaysWhatBecameOfEachRequest) {
  const Verdict first = Append(1, 1);
  Append(2, 1);
  const Resumed resumed = service_->Resume(client_, 1, kEpoch);
  EXPECT_EQ(resumed.On(1).finding, Finding::kRepeated);
  EXPECT_EQ(resumed.On(1).place, first.place);
  EXPECT_EQ(resumed.On(1).settled_with, Lsn(3));
  EXPECT_EQ(resumed.On(3).finding, Finding::kNever);
  EXPECT_EQ(*Settled(resumed.On(3)), absl::OkStatus());
  EXPECT_EQ(resumed.On(0).finding, Finding::kImpossible);
  // Places that the client did not ask for are forgotten.
  service_->Resume(client_, 2, kEpoch);
  const Verdict again = service_->Resume(client_, 1, kEpoch).On(1);
  EXPECT_EQ(again.finding, Finding::kRepeated);
  EXPECT_FALSE(again.place.has_value());
}

// SLG4: no primary of the old epoch can append it any more.
TEST_F(ServiceLogTest, LaterPrimaryKnowsWhatWillNeverBeAppended) {
  Append(1, 1);
  Append(2, 1);
  log_->MakeDurable(Lsn(2));
  FailOver(Lsn(2));
  const Resumed resumed = service_->Resume(client_, 1, kEpoch);
  EXPECT_EQ(resumed.last, 1U);
  EXPECT_EQ(*Settled(resumed.verdict), absl::OkStatus());
  EXPECT_EQ(log_->next_lsn(), Lsn(3));
}

TEST_F(ServiceLogTest, EarlierPrimaryDecidesNothing) {
  EXPECT_EQ(service_->Resume(client_, 1, kEpoch + 1).verdict.finding,
            Finding::kWrongEpoch);
  EXPECT_EQ(service_->Resume(client_, 1, kEpoch + 1).On(1).finding,
            Finding::kWrongEpoch);
  // Nothing was superseded.
  EXPECT_EQ(Append(1, 1).finding, Finding::kAppended);
}

// SLG5, P-E29.
TEST_F(ServiceLogTest, LogIsCleanedOnceATableHasItsClients) {
  Append(1, 1);
  Begun();
  log_->MakeAllDurable();
  const auto cleaned = CleanedThrough(Lsn(2));
  EXPECT_FALSE(cleaned->has_value());
  EXPECT_EQ(log_->head_lsn(), Lsn(1));
  log_->MakeAllDurable();
  EXPECT_EQ(*cleaned, absl::OkStatus());
  EXPECT_EQ(log_->head_lsn(), Lsn(3));
  FailOver(Lsn(4));
  EXPECT_EQ(Append(1, 1).finding, Finding::kRepeated);
  EXPECT_EQ(Append(2, 2).finding, Finding::kAppended);
}

// SLG5: a second cleaning rests on the table that the first one appended.
TEST_F(ServiceLogTest, CleaningWaitsForATableThatIsThereAlready) {
  Append(1, 1);
  Begun();
  log_->MakeAllDurable();
  const auto first = CleanedThrough(Lsn(2));
  const auto second = CleanedThrough(Lsn(2));
  EXPECT_EQ(log_->next_lsn(), Lsn(5));
  EXPECT_FALSE(second->has_value());
  EXPECT_EQ(log_->head_lsn(), Lsn(1));
  log_->MakeAllDurable();
  EXPECT_EQ(*first, absl::OkStatus());
  EXPECT_EQ(*second, absl::OkStatus());
  EXPECT_EQ(log_->head_lsn(), Lsn(3));
}

// SLG5: the client's table goes, and its newer record may be lost.
TEST_F(ServiceLogTest, CleaningWaitsForRecordsThatKeepAClient) {
  Begun();
  log_->MakeAllDurable();
  CleanedThrough(Lsn(1));
  log_->MakeAllDurable();
  Append(1, 1);
  const auto cleaned = CleanedThrough(Lsn(3));
  EXPECT_FALSE(cleaned->has_value());
  EXPECT_EQ(log_->head_lsn(), Lsn(2));
  FailOver(Lsn(3));
  EXPECT_EQ(service_->Resume(client_, 1, kEpoch).verdict.finding,
            Finding::kRepeated);
}

// SLG6: else a later primary would not know whose the last request is.
TEST_F(ServiceLogTest, LastRequestIsNotCleaned) {
  Append(1, 1);
  Append(2, 1);
  log_->MakeAllDurable();
  CleanedThrough(Lsn(3));
  EXPECT_EQ(log_->head_lsn(), Lsn(3));
  FailOver(Lsn(3));
  EXPECT_EQ(Append({.client = client_, .number = {3, 3}, .only_if_last = true},
                   "text")
                .finding,
            Finding::kAppended);
}

// SLG10: its first answer was lost.
TEST_F(ServiceLogTest, ClientThatBeginsAgainByItsKeyIsTheSame) {
  const Verdict first = service_->Open(kEpoch, kKey);
  ASSERT_EQ(first.finding, Finding::kAppended);
  const Verdict again = service_->Open(kEpoch, kKey);
  EXPECT_EQ(again.finding, Finding::kRepeated);
  EXPECT_EQ(again.place, first.place);
  const auto settled = Settled(again);
  EXPECT_FALSE(settled->has_value()) << "its record is not durable yet";
  log_->MakeAllDurable();
  EXPECT_EQ(*settled, absl::OkStatus());
  EXPECT_EQ(service_->clients(), 2u);
  EXPECT_NE(service_->Open(kEpoch).place, first.place);
  const ClientKey other = {std::byte{8}};
  EXPECT_EQ(service_->Open(kEpoch, other).finding, Finding::kAppended);
  EXPECT_EQ(service_->Open(kEpoch + 1, kKey).finding, Finding::kWrongEpoch);
  const Verdict request =
      Append({.client = {*first.place}, .number = {1, 1}}, "text");
  EXPECT_EQ(request.finding, Finding::kAppended);
}

TEST_F(ServiceLogTest, ClientBeginsOnceAlsoWithALaterPrimary) {
  const Place place = *service_->Open(kEpoch, kKey).place;
  FailOver(place.lsn);
  const Verdict again = service_->Open(service_->epoch(), kKey);
  EXPECT_EQ(again.finding, Finding::kRepeated);
  EXPECT_EQ(again.place, place);
  EXPECT_EQ(again.settled_with, place.lsn);
  // The record of the beginning is lost.
  FailOver(place.lsn - 1);
  const Verdict anew = service_->Open(service_->epoch(), kKey);
  EXPECT_EQ(anew.finding, Finding::kAppended);
  EXPECT_NE(anew.place, place);
}

// CLT4: the record of its beginning is cleaned before it asks again.
TEST_F(ServiceLogTest, ClientBeginsOnceAlsoIfTheLogIsCleanedMeanwhile) {
  const Place place = *service_->Open(kEpoch, kKey).place;
  Append(1, 1);
  log_->MakeAllDurable();
  const auto cleaned = CleanedThrough(place.lsn);
  log_->MakeAllDurable();
  ASSERT_EQ(*cleaned, absl::OkStatus());
  ASSERT_GT(log_->head_lsn(), place.lsn);
  EXPECT_EQ(service_->Open(kEpoch, kKey).place, place);
  FailOver(log_->next_lsn() - 1);
  EXPECT_EQ(service_->Open(service_->epoch(), kKey).place, place);
  EXPECT_EQ(Append({.client = {place}, .number = {1, 1}}, "text").finding,
            Finding::kAppended);
}

TEST_F(ServiceLogTest, KeysThatNoRecordHoldsBecomeSeveral) {
  std::vector<Place> places;
  for (int i = 0; i < 40; ++i) {
    const ClientKey key = {static_cast<std::byte>(i)};
    places.push_back(*service_->Open(kEpoch, key).place);
  }
  Append(1, 1);
  log_->MakeAllDurable();
  const auto cleaned = CleanedThrough(places.back().lsn);
  log_->MakeAllDurable();
  ASSERT_EQ(*cleaned, absl::OkStatus());
  FailOver(log_->next_lsn() - 1);
  for (int i = 0; i < 40; ++i) {
    const ClientKey key = {static_cast<std::byte>(i)};
    EXPECT_EQ(service_->Open(service_->epoch(), key).place,
              places[static_cast<size_t>(i)]);
  }
}

TEST_F(ServiceLogTest, WhatWasNeverAssignedIsNotCleaned) {
  log_->MakeAllDurable();
  const auto cleaned = CleanedThrough(Lsn(2));
  EXPECT_TRUE(absl::IsOutOfRange(**cleaned));
}

// A log runs callbacks inside of its calls, also of those under the lock.
TEST_F(ServiceLogTest, CleaningMayEndInsideOfAnAppend) {
  service_->Close(kEpoch, client_);
  client_ = Begun();
  const auto cleaned = CleanedThrough(Lsn(2));
  EXPECT_FALSE(cleaned->has_value());
  log_->on_append = [this] { log_->MakeAllDurable(); };
  EXPECT_EQ(Append(1, 1).finding, Finding::kAppended);
  EXPECT_EQ(*cleaned, absl::OkStatus());
  EXPECT_EQ(service_->clients(), 1U);  // the other one has ended
}

TEST_F(ServiceLogTest, TablesThatNoRecordHoldsBecomeSeveral) {
  std::vector<ClientId> clients = {client_};
  for (int i = 0; i < 50; ++i) clients.push_back(Begun());
  log_->MakeAllDurable();
  const auto cleaned = CleanedThrough(Lsn(50));
  log_->MakeAllDurable();
  EXPECT_EQ(*cleaned, absl::OkStatus());
  // Tables of 20, 20 and 10 clients, behind the last client's beginning.
  EXPECT_EQ(log_->records().size(), 4U);
  FailOver(Lsn(54));
  EXPECT_EQ(service_->clients(), 51U);
  for (const ClientId& client : clients) {
    client_ = client;
    EXPECT_EQ(Append(1, 1).finding, Finding::kAppended);
  }
}

// SLG7.
TEST_F(ServiceLogTest, RequestsLeaveRoomForATable) {
  Begun();
  log_->MakeAllDurable();
  // A request of 4 bytes, a table of 3 clients, and a key, twice each with 128
  // bytes around them.
  const uint64_t enough =
      2 * (32 + 4 + 128) + 2 * (32 + 3 * 48 + 128) + 2 * (32 + 32 + 128);
  log_->room = enough - 1;
  EXPECT_EQ(Append(1, 1).finding, Finding::kNoRoom);
  log_->room = 0;
  EXPECT_EQ(service_->Open(kEpoch).finding, Finding::kNoRoom);
  EXPECT_EQ(service_->Close(kEpoch, client_).finding, Finding::kNoRoom);
  EXPECT_EQ(log_->next_lsn(), Lsn(3));
  // A table needs to leave nothing.
  const auto cleaned = CleanedThrough(Lsn(1));
  log_->MakeAllDurable();
  EXPECT_EQ(*cleaned, absl::OkStatus());
  EXPECT_EQ(log_->head_lsn(), Lsn(2));
  log_->room = enough;
  EXPECT_EQ(Append(1, 1).finding, Finding::kAppended);
}

TEST_F(ServiceLogTest, LogThatHasNoRoomForTheTableIsNotCleaned) {
  Begun();
  log_->MakeAllDurable();
  log_->refusal = absl::ResourceExhaustedError("full");
  const auto cleaned = CleanedThrough(Lsn(1));
  EXPECT_TRUE(absl::IsResourceExhausted(**cleaned));
  EXPECT_EQ(log_->head_lsn(), Lsn(1));
}

// SLG8. Its end is taken once the epoch is confirmed: a later primary would
// have been heard of.
TEST_F(ServiceLogTest, LinearizableReadWaitsForAConfirmation) {
  Begun();
  const auto told = Reads(Consistency::kLinearizable);
  EXPECT_FALSE(told->has_value());
  log_->MakeAllDurable();
  EXPECT_FALSE(told->has_value());
  EXPECT_EQ(log_->Confirm(), 1U);
  EXPECT_EQ((*told)->value(), Lsn(2));
}

TEST_F(ServiceLogTest, LocalReadShowsWhatIsThere) {
  log_->MakeAllDurable();
  Begun();
  EXPECT_EQ((*Reads(Consistency::kLocal))->value(), Lsn(1));
  EXPECT_EQ(log_->Confirm(), 0U);
  log_->Fail();
  EXPECT_EQ((*Reads(Consistency::kLocal))->value(), Lsn(1));
}

// Its records never change, whoever is primary.
TEST_F(ServiceLogTest, ReadThroughADurableRecordAsksNobody) {
  log_->MakeAllDurable();
  Begun();
  EXPECT_EQ((*Reads(Consistency::kLinearizable, Lsn(1)))->value(), Lsn(1));
  EXPECT_EQ(log_->Confirm(), 0U);
  const auto told = Reads(Consistency::kLinearizable, Lsn(2));
  EXPECT_FALSE(told->has_value());
  log_->MakeAllDurable();
  EXPECT_EQ(log_->Confirm(), 1U);
  EXPECT_EQ((*told)->value(), Lsn(2));
}

TEST_F(ServiceLogTest, ReadOfALogThatFailsIsToldOfIt) {
  log_->MakeAllDurable();
  const auto told = Reads(Consistency::kLinearizable);
  log_->Fail();
  EXPECT_TRUE(absl::IsAborted((*told)->status())) << (*told)->status();
  const auto later = Reads(Consistency::kLinearizable);
  EXPECT_TRUE(absl::IsAborted((*later)->status())) << (*later)->status();
}

TEST_F(ServiceLogTest, LogOfSomebodyElseIsNotServed) {
  EXPECT_TRUE(absl::IsFailedPrecondition(service_->Recover(
      {kEpoch, Lsn(2)}, AsBytes("some record of a program"))));
}

}  // namespace
}  // namespace alpheus::service
