// SPDX-License-Identifier: Apache-2.0
// Streams of appends: runs, refusals, and their ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/service/clients/client_requests.h"
#include "tests/api/grpc/server_fixture.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using AppendStreamTest = ServerTest;

TEST_F(AppendStreamTest, RequestsOfAMessageAreOneRun) {
  MustOpenClient();
  AppendingStream stream(*client_);
  ASSERT_TRUE(stream.Send(1, {"a", "b", "c"}));
  ASSERT_TRUE(stream.ReadUntilDone(3));
  ASSERT_TRUE(stream.Send(4, {"d"}, 4));
  const grpc::Status end = stream.Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  ASSERT_EQ(stream.answers.done_size(), 2);
  const auto& run = stream.answers.done(0);
  EXPECT_EQ(run.first_sequence(), 1u);
  EXPECT_EQ(run.count(), 3u);
  EXPECT_EQ(run.first().lsn(), client_->client.lsn() + 1);
  EXPECT_EQ(run.first().epoch(), client_->epoch);
  EXPECT_EQ(stream.answers.last_admitted(), 4u);
  EXPECT_EQ(stream.answers.durable_lsn(), client_->client.lsn() + 4);
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(AppendStreamTest, RepeatsAreAnsweredWithTheirPlaces) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  AppendingStream stream(*client_);
  ASSERT_TRUE(stream.Send(1, {"a", "b"}));
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(stream.answers.done_size(), 2);
  EXPECT_TRUE(stream.answers.done(0).repeated());
  EXPECT_EQ(stream.answers.done(0).first().lsn(), first.place().lsn());
  EXPECT_FALSE(stream.answers.done(1).repeated());
  EXPECT_EQ(stream.answers.last_admitted(), 2u);
}

TEST_F(AppendStreamTest, RefusedRequestsLeaveTheStreamOpen) {
  MustOpenClient();
  AppendingStream stream(*client_);
  ASSERT_TRUE(stream.Send(3, {"c", "d"}));
  ASSERT_TRUE(stream.Send(1, {"a"}));
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(stream.answers.refused_size(), 2);
  const auto& refused = stream.answers.refused(0);
  EXPECT_EQ(refused.sequence(), 3u);
  EXPECT_EQ(refused.code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.error().out_of_order().expected_sequence(), 1u);
  EXPECT_EQ(stream.answers.done(0).first_sequence(), 1u);
  EXPECT_EQ(stream.answers.last_admitted(), 1u);
}

TEST_F(AppendStreamTest, AcceptedIsToldBeforeDone) {
  MustOpenClient();
  v1::AppendStreamRequest::Begin begin;
  begin.set_tell_accepted(true);
  AppendingStream stream(*client_, begin);
  ASSERT_TRUE(stream.Send(1, {"a", "b"}));
  EXPECT_TRUE(stream.Finish().ok());
  ASSERT_EQ(stream.answers.accepted_size(), 1);
  EXPECT_EQ(stream.answers.accepted(0).count(), 2u);
  EXPECT_EQ(stream.answers.done(0).count(), 2u);
}

// Nobody forces: the log has no thread.
TEST_F(AppendStreamTest, AcceptedIsEnoughForAStreamThatAsksForNoMore) {
  MustOpenClient();
  v1::AppendStreamRequest::Begin begin;
  begin.set_durability(v1::DURABILITY_ACCEPTED);
  AppendingStream stream(*client_, begin);
  ASSERT_TRUE(stream.Send(1, {"a", "b"}));
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.done, 2u);
  EXPECT_EQ(log_->Exposed(), 2u);
}

// Nobody forces the first message: the log has no thread.
TEST_F(AppendStreamTest, MessageMaySayWhenItIsAnswered) {
  MustOpenClient();
  AppendingStream stream(*client_);
  const auto send = [&](uint64_t sequence, v1::Durability durability) {
    v1::AppendStreamRequest message;
    auto* const requests = message.mutable_requests();
    requests->mutable_first()->set_sequence(sequence);
    requests->mutable_first()->set_lowest_unanswered(1);
    *requests->add_payloads() = PayloadOf("a");
    requests->set_durability(durability);
    return stream.stream().Write(message);
  };
  ASSERT_TRUE(send(1, v1::DURABILITY_ACCEPTED));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  EXPECT_EQ(log_->Exposed(), 1u);
  ASSERT_TRUE(send(2, v1::DURABILITY_UNSPECIFIED));
  ASSERT_TRUE(stream.ReadUntilDone(2));
  EXPECT_EQ(log_->Exposed(), 0u);
  ASSERT_TRUE(send(3, static_cast<v1::Durability>(17)));
  EXPECT_EQ(stream.Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(AppendStreamTest, ExposureIsNotExceeded) {
  MustOpenClient();
  v1::AppendStreamRequest::Begin begin;
  begin.set_durability(v1::DURABILITY_ACCEPTED);
  begin.set_max_exposed(2);
  AppendingStream stream(*client_, begin);
  ASSERT_TRUE(stream.Send(1, {"a", "b", "c"}));
  ASSERT_TRUE(stream.Send(3, {"c"}));
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.done, 2u);
  ASSERT_EQ(stream.answers.refused_size(), 2);
  for (const auto& refused : stream.answers.refused()) {
    EXPECT_EQ(refused.sequence(), 3u);
    EXPECT_EQ(refused.code(), StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(log_->Exposed(), 2u);
}

// SLG9. Each stream finds room for its request, and all send at once.
TEST_F(AppendStreamTest, StreamsTogetherDoNotExceedTheExposureThatEachAllows) {
  constexpr int kStreams = 8;
  constexpr uint64_t kAllowed = 2;
  std::vector<std::unique_ptr<LogClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<LogClient>(server_->address()));
    ASSERT_TRUE(clients.back()->Open().ok());
  }
  ASSERT_EQ(log_->Exposed(), 0u);
  std::atomic<uint64_t> done = 0;
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&done, &client = *client] {
      v1::AppendStreamRequest::Begin begin;
      begin.set_durability(v1::DURABILITY_ACCEPTED);
      begin.set_max_exposed(kAllowed);
      AppendingStream stream(client, begin);
      EXPECT_TRUE(stream.Send(1, {"a", "b"}));
      EXPECT_TRUE(stream.Finish().ok());
      for (const auto& refused : stream.answers.refused()) {
        EXPECT_EQ(refused.code(), StatusCode::RESOURCE_EXHAUSTED);
      }
      done += stream.done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kAllowed);
  EXPECT_EQ(log_->Exposed(), kAllowed);
}

TEST_F(AppendStreamTest, StreamThatBeginsWronglyEnds) {
  MustOpenClient();
  const auto end_of = [&](v1::AppendStreamRequest::Begin begin) {
    AppendingStream stream(*client_, begin);
    const grpc::Status end = stream.Finish();
    EXPECT_FALSE(stream.answers.has_last_admitted());
    return end;
  };
  v1::AppendStreamRequest::Begin begin;
  begin.set_log("nosuch");
  EXPECT_EQ(end_of(begin).error_code(), StatusCode::NOT_FOUND);
  begin.clear_log();
  begin.set_durability(static_cast<v1::Durability>(17));
  EXPECT_EQ(end_of(begin).error_code(), StatusCode::INVALID_ARGUMENT);
  begin.clear_durability();
  begin.set_epoch(client_->epoch + 7);
  const grpc::Status other = end_of(begin);
  EXPECT_EQ(other.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorIn(other).wrong_epoch().epoch(), client_->epoch);
  const auto stream = AppendingStream::WithoutBegin(*client_);
  stream->Send(1, {"a"});
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(AppendStreamTest, MessageWithoutRequestsOrWithTooManyEndsTheStream) {
  MustOpenClient();
  AppendingStream empty(*client_);
  ASSERT_TRUE(empty.Send(1, {"a"}));
  empty.Send(2, {});
  EXPECT_EQ(empty.Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(empty.answers.last_admitted(), 1u);
  AppendingStream many(*client_);
  many.Send(2, std::vector<std::string>(service::kPlacesMax + 1));
  const grpc::Status end = many.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(end.error_message(), HasSubstr("1025 payloads"));
  EXPECT_EQ(many.answers.last_admitted(), 0u);
}

// P-Z3. The stream stays open until the log is given back, and its client reads
// only then.
TEST_F(AppendStreamTest, DrainedLogEndsItsStreamsInOrder) {
  MustOpenClient();
  AppendingStream stream(*client_);
  ASSERT_TRUE(stream.Send(1, {"a", "b"}));
  ASSERT_TRUE(stream.ReadUntilDone(2));
  CloseLog();
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ErrorIn(end).has_not_primary());
  EXPECT_EQ(stream.answers.last_admitted(), 2u);
}

// Its client reads nothing, so that answers and window fill up; the log is
// given back all the same.
TEST_F(AppendStreamTest, StreamWhoseClientReadsNothingHoldsNobodyUp) {
  MustOpenClient();
  AppendingStream stream(*client_);
  // It has begun, before the log is given back.
  ASSERT_TRUE(stream.Send(1, {"a"}));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  client_->next = 2;
  std::atomic<bool> has_read_last = false;
  std::thread sender([&] {
    while (!has_read_last) {
      // Each one is refused, with a long answer.
      if (!stream.Send(7, std::vector<std::string>(1'000, ""))) return;
    }
  });
  MustAppend("b");
  CloseLog();
  EXPECT_FALSE(stream.ReadUntilDone(2));
  EXPECT_TRUE(stream.answers.has_last_admitted());
  has_read_last = true;
  sender.join();
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(AppendStreamTest, ClientThatGoesAwayLeavesWhatWasAdmitted) {
  MustOpenClient();
  {
    AppendingStream stream(*client_);
    ASSERT_TRUE(stream.Send(1, {"a"}));
    ASSERT_TRUE(stream.ReadUntilDone(1));
    stream.Cancel();
    EXPECT_EQ(stream.stream().Finish().error_code(), StatusCode::CANCELLED);
  }
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a"));
  CloseLog();
}

}  // namespace
}  // namespace alpheus::testing
