// SPDX-License-Identifier: Apache-2.0
// Calls and streams are counted by what they ended with.
#include "api/grpc/calls/call_counts.h"

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "alpheus/v1/log_service.grpc.pb.h"
#include "api/service/log/log_counts.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/duration_histogram.h"
#include "tests/api/grpc/log_client.h"
#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using rpc::Method;

uint64_t CountOf(const DurationHistogram::Reading& reading) {
  return std::accumulate(reading.counts.begin(), reading.counts.end(),
                         uint64_t{0});
}

class CallCountsTest : public ServerTest {
 protected:
  uint64_t Ended(Method method, grpc::StatusCode code) const {
    return server_->counts().ended(method, code);
  }
  // A stream is over at the server soon after its client knows.
  void AwaitNoStream(Method method) const {
    const Deadline deadline = InPatience();
    while (server_->counts().open_streams(method) != 0) {
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos()));
    }
  }
};

TEST_F(CallCountsTest, CallsAreCountedByTheirCode) {
  MustOpenClient();
  MustAppend("record");
  v1::AppendResponse response;
  v1::AppendRequest early = client_->Request(99, "too early");
  early.mutable_number()->set_lowest_unanswered(2);
  const grpc::Status refused = client_->Append(early, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Ended(Method::kOpenClient, grpc::StatusCode::OK), 1U);
  EXPECT_EQ(Ended(Method::kAppend, grpc::StatusCode::OK), 1U);
  EXPECT_EQ(Ended(Method::kAppend, grpc::StatusCode::FAILED_PRECONDITION), 1U);
  EXPECT_EQ(Ended(Method::kForce, grpc::StatusCode::OK), 0U);
  EXPECT_EQ(CountOf(server_->counts().durations(Method::kAppend)), 2U);
  EXPECT_EQ(CountOf(server_->counts().durations(Method::kForce)), 0U);
  EXPECT_EQ(logs_.counts("main").told(service::Finding::kOutOfOrder), 1U);
  EXPECT_EQ(logs_.counts("main").appended_records(), 1U);
}

TEST_F(CallCountsTest, StreamIsOpenUntilItEnds) {
  MustOpenClient();
  {
    AppendingStream stream(*client_);
    ASSERT_TRUE(stream.Send(1, {"a", "b"}));
    ASSERT_TRUE(stream.ReadUntilDone(2));
    EXPECT_EQ(server_->counts().open_streams(Method::kAppendStream), 1U);
    EXPECT_EQ(Ended(Method::kAppendStream, grpc::StatusCode::OK), 0U);
    const grpc::Status end = stream.Finish();
    EXPECT_TRUE(end.ok()) << end.error_message();
  }
  AwaitNoStream(Method::kAppendStream);
  EXPECT_EQ(Ended(Method::kAppendStream, grpc::StatusCode::OK), 1U);
  EXPECT_EQ(client_->ReadAll().size(), 2U);
  AwaitNoStream(Method::kRead);
  EXPECT_EQ(Ended(Method::kRead, grpc::StatusCode::OK), 1U);
}

TEST_F(CallCountsTest, StreamThatIsRefusedIsCounted) {
  MustOpenClient();
  v1::AppendStreamRequest::Begin begin;
  begin.set_log("no such log");
  AppendingStream stream(*client_, begin);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  AwaitNoStream(Method::kAppendStream);
  EXPECT_EQ(Ended(Method::kAppendStream, grpc::StatusCode::NOT_FOUND), 1U);
}

// One of 64 requests, in messages of any size, each stage once.
TEST_F(CallCountsTest, StagesOfSomeRequestsAreTimed) {
  MustOpenClient();
  AppendingStream stream(*client_);
  const std::vector<std::string> half(service::LogCounts::kSampled / 2, "x");
  uint64_t sequence = 1;
  for (int message = 0; message < 4; ++message) {
    ASSERT_TRUE(stream.Send(sequence, half, sequence));
    sequence += half.size();
    ASSERT_TRUE(stream.ReadUntilDone(sequence - 1));
  }
  EXPECT_TRUE(stream.Finish().ok());
  AwaitNoStream(Method::kAppendStream);
  for (const service::AppendStage stage :
       {service::AppendStage::kAppended, service::AppendStage::kDurable,
        service::AppendStage::kAnswered}) {
    EXPECT_EQ(CountOf(logs_.counts("main").stage(stage)), 2U)
        << service::NameOf(stage);
  }
}

}  // namespace
}  // namespace alpheus::testing
