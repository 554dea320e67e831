// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/primary_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "api/client/grpc/log_client.h"
#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using client::Durability;
using client::Place;
using client::PrimaryCalls;
using ::testing::HasSubstr;

// LSN 1 has the client's beginning. Nothing is forced by itself.
class PrimaryCallsTest : public ServerTest {
 protected:
  PrimaryCallsTest() {
    client::LogClientOptions options;
    // The first one serves nothing.
    options.addresses = {"127.0.0.1:1", server_->address()};
    options.durability = Durability::kAccepted;
    auto calls = PrimaryCalls::Start(options);
    EXPECT_TRUE(calls.ok()) << calls.status();
    calls_ = *std::move(calls);
    auto appending = client::LogClient::Start(options);
    EXPECT_TRUE(appending.ok()) << appending.status();
    appending_ = *std::move(appending);
  }
  Place MustAccept(const std::string& text) {
    const auto appended =
        appending_->Append({.parts = {text}}, kPatienceDuration);
    EXPECT_TRUE(appended.ok()) << appended.status();
    return appended->place.value_or(Place());
  }

  std::unique_ptr<PrimaryCalls> calls_;
  std::unique_ptr<client::LogClient> appending_;
};

TEST_F(PrimaryCallsTest, AcceptedRecordIsDurableOnceItIsForced) {
  const Place place = MustAccept("a");
  EXPECT_LT(log_->durable_lsn().value, place.lsn);
  auto exposed = calls_->GetExposure(kPatienceDuration);
  ASSERT_TRUE(exposed.ok()) << exposed.status();
  EXPECT_EQ(exposed->records, 1u);
  EXPECT_GT(exposed->records_max, 1u);
  const auto forced = calls_->Force(place, kPatienceDuration);
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ(*forced, place.lsn);
  EXPECT_EQ(log_->durable_lsn().value, place.lsn);
  EXPECT_EQ(*calls_->WaitDurable(place, kPatienceDuration), place.lsn);
  exposed = calls_->GetExposure(kPatienceDuration);
  ASSERT_TRUE(exposed.ok()) << exposed.status();
  EXPECT_EQ(exposed->records, 0u);
}

TEST_F(PrimaryCallsTest, RequestSaysWhenItIsAnswered) {
  client::Payload payload = {.parts = {"a"}};
  payload.durability = Durability::kQuorum;
  const auto appended =
      appending_->Append(std::move(payload), kPatienceDuration);
  ASSERT_TRUE(appended.ok()) << appended.status();
  EXPECT_EQ(log_->durable_lsn().value, appended->place->lsn);
}

TEST_F(PrimaryCallsTest, RecordThatNobodyForcesIsWaitedForInVain) {
  const Place place = MustAccept("a");
  const absl::Status late =
      calls_->WaitDurable(place, absl::Milliseconds(1)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("log main"));
}

// PRC1.
TEST_F(PrimaryCallsTest, PlaceOfAnotherEpochIsOfAnotherRecord) {
  Place place = MustAccept("a");
  ++place.epoch;
  const absl::Status other = calls_->Force(place, kPatienceDuration).status();
  EXPECT_TRUE(absl::IsOutOfRange(other)) << other;
}

TEST_F(PrimaryCallsTest, StateFollowsTheLog) {
  const Place place = MustAccept("a");
  ASSERT_TRUE(calls_->Force(place, kPatienceDuration).ok());
  const auto state = calls_->GetState(kPatienceDuration);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->epoch, place.epoch);
  EXPECT_EQ(state->durable_lsn, place.lsn);
  EXPECT_EQ(state->next_lsn, place.lsn + 1);
  EXPECT_EQ(state->clients, 1u);
  EXPECT_GT(state->max_payload_bytes, 0u);
  const auto head = calls_->CleanupThrough(place.lsn, kPatienceDuration);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(*head, log_->head_lsn().value);
  const absl::Status beyond =
      calls_->CleanupThrough(place.lsn + 99, kPatienceDuration).status();
  EXPECT_TRUE(absl::IsOutOfRange(beyond)) << beyond;
}

TEST_F(PrimaryCallsTest, WithoutAPrimaryTheLastWordIsTold) {
  CloseLog();
  const absl::Status late = calls_->GetState(absl::Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("no primary was found in time. Last: "));
}

TEST_F(PrimaryCallsTest, CancelledCallsEnd) {
  CloseLog();
  calls_->Cancel();
  EXPECT_TRUE(
      absl::IsCancelled(calls_->GetState(absl::InfiniteDuration()).status()));
}

TEST_F(PrimaryCallsTest, ErrorsThatNoNodeSolvesEndACall) {
  client::LogClientOptions options;
  EXPECT_TRUE(absl::IsInvalidArgument(PrimaryCalls::Start(options).status()));
  options.addresses = {server_->address()};
  options.log = "nosuch";
  const auto calls = PrimaryCalls::Start(options);
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_TRUE(
      absl::IsNotFound((*calls)->GetExposure(kPatienceDuration).status()));
}

}  // namespace
}  // namespace alpheus::testing
