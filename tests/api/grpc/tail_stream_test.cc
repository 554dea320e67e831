// SPDX-License-Identifier: Apache-2.0
// Readers that follow a log.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/api/grpc/server_fixture.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FollowingStream {
 public:
  explicit FollowingStream(LogClient& client)
      : stream_(client.stub().Tail(&context_)) {}

  void Begin(uint64_t from, const std::vector<uint32_t>& tags = {},
             const std::string& log = "main") {
    v1::TailRequest request;
    request.mutable_begin()->set_log(log);
    request.mutable_begin()->set_from_lsn(from);
    for (const uint32_t tag : tags) request.mutable_begin()->add_tags(tag);
    stream_->Write(request);
  }
  void Allow(uint64_t bytes) {
    v1::TailRequest request;
    request.mutable_credit()->set_bytes(bytes);
    stream_->Write(request);
  }
  // Reads so many records, or up to the end.
  std::vector<std::string> Next(size_t count) {
    std::vector<std::string> payloads;
    v1::TailResponse response;
    while (payloads.size() < count && stream_->Read(&response)) {
      for (const v1::Record& record : response.records()) {
        payloads.push_back(record.payloads(0));
      }
      next_lsn = response.next_lsn();
      durable_lsn = response.durable_lsn();
    }
    return payloads;
  }
  grpc::Status Finish() {
    stream_->WritesDone();
    v1::TailResponse response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }

  uint64_t next_lsn = 0;
  uint64_t durable_lsn = 0;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::TailRequest, v1::TailResponse>>
      stream_;
};

using TailStreamTest = ServerTest;

TEST_F(TailStreamTest, ShowsWhatIsThereAndWhatComes) {
  MustOpenClient();
  MustAppend("a");
  FollowingStream tail(*client_);
  tail.Begin(0);
  tail.Allow(1'000);
  EXPECT_THAT(tail.Next(1), ElementsAre("a"));
  EXPECT_EQ(tail.next_lsn, 3u);
  EXPECT_EQ(tail.durable_lsn, 2u);
  for (int i = 0; i < 20; ++i) {
    MustAppend(std::to_string(i));
    EXPECT_THAT(tail.Next(1), ElementsAre(std::to_string(i)));
  }
  EXPECT_TRUE(tail.Finish().ok());
}

// Accepted records are shown once another one makes them durable.
TEST_F(TailStreamTest, ShowsDurableRecordsOnly) {
  MustOpenClient();
  FollowingStream tail(*client_);
  tail.Begin(0);
  tail.Allow(1'000);
  v1::AppendRequest request = client_->Request("a");
  request.set_durability(v1::DURABILITY_ACCEPTED);
  v1::AppendResponse response;
  ASSERT_TRUE(client_->Append(request, &response).ok());
  ++client_->next;
  MustAppend("b");
  EXPECT_THAT(tail.Next(2), ElementsAre("a", "b"));
}

TEST_F(TailStreamTest, SendsAsMuchAsItsCreditAllows) {
  MustOpenClient();
  for (int i = 0; i < 4; ++i) MustAppend(std::string(100, '0' + i));
  FollowingStream tail(*client_);
  tail.Begin(0);
  tail.Allow(1);  // one record, although it is larger
  EXPECT_EQ(tail.Next(1).size(), 1u);
  EXPECT_EQ(tail.next_lsn, 3u);
  tail.Allow(1);
  EXPECT_EQ(tail.Next(1).size(), 1u);
  EXPECT_EQ(tail.next_lsn, 4u);
  tail.Allow(1'000);
  EXPECT_EQ(tail.Next(2).size(), 2u);
}

TEST_F(TailStreamTest, ShowsTheTagsThatAreAskedFor) {
  MustOpenClient();
  FollowingStream tail(*client_);
  tail.Begin(0, {1});
  tail.Allow(1'000);
  for (uint32_t i = 0; i < 4; ++i) {
    v1::AppendRequest request = client_->Request(std::to_string(i));
    request.mutable_payload()->set_tag(i % 2);
    v1::AppendResponse response;
    ASSERT_TRUE(client_->Append(request, &response).ok());
    ++client_->next;
  }
  EXPECT_THAT(tail.Next(2), ElementsAre("1", "3"));
}

// A reader of a rare tag learns how far it is, and may go on there.
TEST_F(TailStreamTest, TellsItsPlaceWhenItPassesMuchOver) {
  CloseLog();
  OpenLog({.anonymous_bytes = 8 << 20, .idle_force_us = 0});
  MustOpenClient();
  for (int i = 0; i < 40; ++i) MustAppend(std::string(50'000, 'x'));
  FollowingStream tail(*client_);
  tail.Begin(0, {1});
  tail.Allow(1'000);
  v1::AppendRequest request = client_->Request("last");
  request.mutable_payload()->set_tag(1);
  v1::AppendResponse response;
  ASSERT_TRUE(client_->Append(request, &response).ok());
  EXPECT_THAT(tail.Next(1), ElementsAre("last"));
}

TEST_F(TailStreamTest, DrainedLogEndsItsReaders) {
  MustOpenClient();
  MustAppend("a");
  FollowingStream tail(*client_);
  tail.Begin(0);
  tail.Allow(1'000);
  EXPECT_THAT(tail.Next(1), ElementsAre("a"));
  FollowingStream without_credit(*client_);
  without_credit.Begin(0);
  CloseLog();
  const grpc::Status end = tail.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ErrorIn(end).has_not_primary());
  EXPECT_EQ(without_credit.Finish().error_code(), StatusCode::UNAVAILABLE);
}

// Its window is full, and stays so.
TEST_F(TailStreamTest, ReaderThatStandsStillHoldsNobodyUp) {
  CloseLog();
  OpenLog({.anonymous_bytes = 64 << 20, .idle_force_us = 0});
  MustOpenClient();
  for (int i = 0; i < 400; ++i) MustAppend(std::string(100'000, 'x'));
  FollowingStream still(*client_);
  still.Begin(0);
  still.Allow(uint64_t{1} << 40);
  FollowingStream other(*client_);
  other.Begin(400);
  other.Allow(uint64_t{1} << 40);
  EXPECT_EQ(other.Next(2).size(), 2u);
  MustAppend("b");
  EXPECT_THAT(other.Next(1), ElementsAre("b"));
  CloseLog();
  EXPECT_EQ(still.Finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(TailStreamTest, StreamThatBeginsWronglyEnds) {
  MustOpenClient();
  {
    FollowingStream tail(*client_);
    tail.Allow(1);
    EXPECT_EQ(tail.Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  }
  {
    FollowingStream tail(*client_);
    tail.Begin(0);
    tail.Allow(0);
    EXPECT_EQ(tail.Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  }
  {
    FollowingStream tail(*client_);
    tail.Begin(77);
    const grpc::Status end = tail.Finish();
    EXPECT_EQ(end.error_code(), StatusCode::OUT_OF_RANGE);
    EXPECT_EQ(ErrorIn(end).out_of_log().head_lsn(), 1u);
  }
  FollowingStream tail(*client_);
  tail.Begin(0, {}, "nosuch");
  EXPECT_EQ(tail.Finish().error_code(), StatusCode::NOT_FOUND);
}

// A reader that is behind the head learns that, and where the log begins now.
TEST_F(TailStreamTest, CleaningEndsAReaderThatIsBehind) {
  MustOpenClient();
  for (const char* one : {"a", "b", "c"}) MustAppend(one);
  FollowingStream tail(*client_);
  tail.Begin(0);
  tail.Allow(1);
  EXPECT_THAT(tail.Next(1), ElementsAre("a"));
  ASSERT_TRUE(log_->CleanupThrough(Lsn(3)).ok());
  tail.Allow(100);
  EXPECT_THAT(tail.Next(1), IsEmpty());
  const grpc::Status end = tail.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ErrorIn(end).out_of_log().head_lsn(), 4u);
}

}  // namespace
}  // namespace alpheus::testing
