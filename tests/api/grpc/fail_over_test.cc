// SPDX-License-Identifier: Apache-2.0
// Three daemons that stand for a log and serve it, and a client that appends by
// streams. Its primary is killed, or ended in good order. The client asks what
// became of its requests, and goes on at the next one: nothing is lost, doubled
// or moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "api/client/grpc/log_client.h"
#include "log/base/clock.h"
#include "tests/api/grpc/log_client.h"
#include "tests/api/grpc/service_cluster_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAreArray;

class ServiceFailOverTest : public ServiceClusterTest {
 protected:
  void SetUp() override {
    ServiceClusterTest::SetUp();
    const grpc::Status opened = client_->Open();
    ASSERT_TRUE(opened.ok()) << opened.error_message();
  }

  // Appends requests from next_ on in messages of ten, all under way at once;
  // `interrupt` is called once some are done. Returns the end of the stream.
  template <class Interrupt>
  grpc::Status AppendThrough(const Interrupt& interrupt,
                             AppendingStream* stream) {
    constexpr uint64_t kMessages = 60;
    constexpr uint64_t kOfMessage = 10;
    for (uint64_t i = 0; i < kMessages; ++i) {
      std::vector<std::string> payloads;
      for (uint64_t k = 0; k < kOfMessage; ++k) {
        payloads.push_back(PayloadOfRequest(next_ + i * kOfMessage + k));
      }
      if (!stream->Send(next_ + i * kOfMessage, payloads, next_)) break;
      if (i != kMessages / 2) continue;
      EXPECT_TRUE(stream->ReadUntilDone(1));
      interrupt();
    }
    return stream->Finish();
  }

  static std::string PayloadOfRequest(uint64_t sequence) {
    return absl::StrCat("payload of request ", sequence);
  }

  // All requests before next_ are in the log, once, in order.
  void CheckAll() {
    std::vector<std::string> expected;
    for (uint64_t i = 1; i < next_; ++i) {
      expected.push_back(PayloadOfRequest(i));
    }
    EXPECT_THAT(client_->ReadAll(), ElementsAreArray(expected));
  }

  uint64_t next_ = 1;  // sequence that is not known to be in the log
};

TEST_F(ServiceFailOverTest, KilledPrimaryLosesNothingAndDoublesNothing) {
  for (int round = 0; round < 2; ++round) {
    AwaitAllInSync();
    const int killed = primary_;
    const uint64_t epoch = client_->epoch;
    {
      AppendingStream stream(*client_);
      const grpc::Status end =
          AppendThrough([&] { cluster_->Kill(killed); }, &stream);
      EXPECT_FALSE(end.ok());
      EXPECT_FALSE(stream.answers.has_last_admitted());
      next_ += stream.done;
    }
    FindPrimary();
    EXPECT_NE(primary_, killed);
    v1::ResumeClientResponse resumed;
    const grpc::Status asked = client_->Resume(next_, epoch, &resumed);
    ASSERT_TRUE(asked.ok()) << asked.error_message();
    ASSERT_GE(resumed.last_sequence() + 1, next_);
    next_ = resumed.last_sequence() + 1;
    CheckAll();
    client_->next = next_;
    v1::AppendResponse response;
    const grpc::Status appended =
        client_->Append(PayloadOfRequest(next_), &response);
    ASSERT_TRUE(appended.ok()) << appended.error_message();
    ++next_;
    const absl::Status started = cluster_->Start(killed);
    ASSERT_TRUE(started.ok()) << started;
  }
  CheckAll();
}

// P-Z3. The client needs to ask nobody what became of its requests.
TEST_F(ServiceFailOverTest, EndedPrimaryLeavesNoUnknownOutcome) {
  AwaitAllInSync();
  AppendingStream stream(*client_);
  // The node ends once its clients have read their last messages. Until then
  // requests are under way.
  constexpr uint64_t kUnderWay = 100;
  constexpr uint64_t kOfMessage = 10;
  std::thread ending;
  for (uint64_t sent = 0; !stream.answers.has_last_admitted();) {
    std::vector<std::string> payloads;
    for (uint64_t i = 0; i < kOfMessage; ++i) {
      payloads.push_back(PayloadOfRequest(next_ + sent + i));
    }
    if (!stream.Send(next_ + sent, payloads, next_ + stream.done)) break;
    sent += kOfMessage;
    if (sent == 2 * kUnderWay) {
      ending = std::thread([&] {
        const absl::Status ended = cluster_->Terminate(primary_);
        EXPECT_TRUE(ended.ok()) << ended;
      });
    }
    if (sent > kUnderWay && !stream.ReadUntilDone(sent - kUnderWay)) break;
  }
  ASSERT_TRUE(ending.joinable());
  const grpc::Status end = stream.Finish();
  ending.join();
  EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE) << end.error_message();
  ASSERT_TRUE(stream.answers.has_last_admitted());
  EXPECT_EQ(stream.answers.last_admitted(), stream.done);
  next_ += stream.done;
  FindPrimary();
  CheckAll();
  client_->next = next_;
  v1::AppendResponse response;
  const grpc::Status appended =
      client_->Append(PayloadOfRequest(next_), &response);
  ASSERT_TRUE(appended.ok()) << appended.error_message();
  ++next_;
  CheckAll();
}

// The client's own search and resumptions.
TEST_F(ServiceFailOverTest, ClientFollowsTheLogFromPrimaryToPrimary) {
  auto started = client::LogClient::Start({.addresses = addresses_});
  ASSERT_TRUE(started.ok()) << started.status();
  std::vector<std::string> expected;
  for (int round = 0; round < 3; ++round) {
    AwaitAllInSync();
    for (int i = 0; i < 300; ++i) {
      expected.push_back(absl::StrCat(round, "/", i));
      const absl::Status taken = (*started)->AppendAsync(
          {.parts = {expected.back()}},
          [](const absl::StatusOr<client::Appended>& answer) {
            EXPECT_TRUE(answer.ok()) << answer.status();
          });
      ASSERT_TRUE(taken.ok()) << taken;
    }
    const int killed = primary_;
    cluster_->Kill(killed);
    FindPrimary();
    const absl::Status back = cluster_->Start(killed);
    ASSERT_TRUE(back.ok()) << back;
  }
  const absl::Status flushed =
      (*started)->Flush(absl::Nanoseconds(kPatienceNanos));
  ASSERT_TRUE(flushed.ok()) << flushed;
  EXPECT_THAT(client_->ReadAll(), ElementsAreArray(expected));
}

// A stopped backup acknowledges nothing, so the answer says that it is out of
// sync by now.
TEST_F(ServiceFailOverTest, AllDoesNotWaitForABackupThatIsOutOfSync) {
  AwaitAllInSync();
  const int stopped = primary_ == 1 ? 2 : 1;
  v1::AppendRequest request = client_->Request("a");
  request.set_durability(v1::DURABILITY_ALL);
  v1::AppendResponse response;
  grpc::Status appended = client_->Append(request, &response);
  ASSERT_TRUE(appended.ok()) << appended.error_message();
  cluster_->Pause(stopped);
  ++client_->next;
  request = client_->Request("b");
  request.set_durability(v1::DURABILITY_ALL);
  appended = client_->Append(request, &response);
  ASSERT_TRUE(appended.ok()) << appended.error_message();
  grpc::ClientContext context;
  v1::GetStatusRequest about;
  about.set_log("main");
  v1::GetStatusResponse status;
  ASSERT_TRUE(client_->stub().GetStatus(&context, about, &status).ok());
  EXPECT_EQ(status.replicas().count(), static_cast<uint32_t>(kNodes));
  EXPECT_EQ(status.replicas().write_quorum(), 2u);
  EXPECT_EQ(status.replicas().in_sync(), 2u);
  ASSERT_EQ(status.replicas().out_of_sync_size(), 1);
  EXPECT_THAT(status.replicas().out_of_sync(0),
              ::testing::HasSubstr(absl::StrCat("node ", stopped)));
  cluster_->Continue(stopped);
}

// A node that is not primary names the one that is.
TEST_F(ServiceFailOverTest, OthersNameThePrimary) {
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  for (int node = 1; node <= kNodes; ++node) {
    if (node == primary_) continue;
    LogClient other(addresses_[node - 1]);
    v1::NotPrimary named;
    while (named.node() == 0 && Clock::Real().NowNanos() < end) {
      const grpc::Status status = other.Open();
      EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
      named = ErrorIn(status).not_primary();
    }
    EXPECT_EQ(named.node(), static_cast<uint64_t>(primary_));
    EXPECT_EQ(named.address(), addresses_[primary_ - 1]);
  }
}

// Its records are not the service's.
TEST_F(ServiceFailOverTest, LogOfOthersIsHeldAndNotServed) {
  Append(primary_, "somebody else's\n");
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  grpc::Status status;
  while (status.error_code() != StatusCode::FAILED_PRECONDITION &&
         Clock::Real().NowNanos() < end) {
    cluster_->Listen();
    for (const std::string& address : addresses_) {
      LogClient any(address);
      status = any.Open();
      if (status.error_code() == StatusCode::FAILED_PRECONDITION) break;
    }
  }
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("not served"));
  // The node refuses clients first, then says why.
  const char* const said = "but does not serve it";
  while (!absl::StrContains(cluster_->Story(), said) &&
         Clock::Real().NowNanos() < end) {
  }
  EXPECT_THAT(cluster_->Story(), ::testing::HasSubstr(said));
}

}  // namespace
}  // namespace alpheus::testing
