// SPDX-License-Identifier: Apache-2.0
// Three daemons that take an administrator's orders, while a client appends.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/admin_service.grpc.pb.h"
#include "tests/api/grpc/log_client.h"
#include "tests/api/grpc/service_cluster_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using AdminStub = v1::AdminService::Stub;

class AdminTest : public ServiceClusterTest {
 protected:
  AdminTest() { asks_for_tokens_ = true; }

  void SetUp() override {
    ServiceClusterTest::SetUp();
    AwaitAllInSync();
    // A primary whose member promised another epoch has handed over (ELE9).
    FindPrimary();
    const grpc::Status opened = client_->Open();
    ASSERT_TRUE(opened.ok()) << opened.error_message();
    MustAppend("first");
  }

  // Gives an order to a node.
  template <class Request, class Response>
  grpc::Status Order(int node,
                     grpc::Status (AdminStub::*method)(grpc::ClientContext*,
                                                       const Request&,
                                                       Response*),
                     Request request, Response* response,
                     int deadline_ms = kPatienceMs) {
    const auto stub = v1::AdminService::NewStub(
        grpc::CreateChannel(addresses_[static_cast<size_t>(node) - 1],
                            grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    tokens_.Show(&context);
    context.set_deadline(gpr_time_from_millis(deadline_ms, GPR_TIMESPAN));
    if (request.log().empty()) request.set_log("main");
    return (stub.get()->*method)(&context, request, response);
  }
  void MustAppend(const std::string& data) {
    v1::AppendResponse response;
    const grpc::Status appended = client_->Append(data, &response);
    ASSERT_TRUE(appended.ok()) << appended.error_message();
  }
  // Connects to the primary as the same client, and goes on.
  void GoOn() {
    const uint64_t before = client_->epoch;
    const uint64_t next = client_->next;
    FindPrimary();
    v1::ResumeClientResponse resumed;
    const grpc::Status asked = client_->Resume(next, before, &resumed);
    ASSERT_TRUE(asked.ok()) << asked.error_message();
    EXPECT_EQ(resumed.last_sequence(), next - 1);
    client_->next = next;
  }
  v1::ListEpochsResponse Epochs() {
    grpc::ClientContext context;
    tokens_.Show(&context);
    v1::ListEpochsRequest request;
    request.set_log("main");
    v1::ListEpochsResponse epochs;
    const grpc::Status listed =
        client_->stub().ListEpochs(&context, request, &epochs);
    EXPECT_TRUE(listed.ok()) << listed.error_message();
    return epochs;
  }
};

// Any node may be asked; by default it is the one that is meant.
TEST_F(AdminTest, PrimaryIsDrainedAndElectedAgain) {
  const int first = primary_;
  v1::DrainResponse drained;
  grpc::Status status =
      Order(first, &AdminStub::Drain, v1::DrainRequest(), &drained);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto second = static_cast<int>(drained.primary().node());
  EXPECT_NE(second, first);
  EXPECT_EQ(drained.primary().address(),
            addresses_[static_cast<size_t>(second) - 1]);
  GoOn();
  EXPECT_EQ(primary_, second);
  MustAppend("second");
  v1::ElectRequest elect;
  elect.set_node(static_cast<uint64_t>(first));
  v1::ElectResponse elected;
  status = Order(second, &AdminStub::Elect, elect, &elected);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(elected.primary().node(), static_cast<uint64_t>(first));
  EXPECT_GT(elected.primary().epoch(), drained.primary().epoch());
  GoOn();
  EXPECT_EQ(primary_, first);
  MustAppend("third");
  EXPECT_THAT(client_->ReadAll(), ElementsAre("first", "second", "third"));
  const v1::ListEpochsResponse epochs = Epochs();
  std::map<uint64_t, uint64_t> node_of;
  for (const v1::ListEpochsResponse::LogEpoch& epoch : epochs.epochs()) {
    node_of[epoch.epoch()] = epoch.node();
  }
  for (const v1::Primary& primary : {drained.primary(), elected.primary()}) {
    EXPECT_THAT(node_of, Contains(Pair(primary.epoch(), primary.node())));
  }
  EXPECT_EQ(epochs.opening().epoch(), elected.primary().epoch());
  EXPECT_GT(epochs.opening().promise_ns(), 0u);
  elect.set_node(9);
  status = Order(first, &AdminStub::Elect, elect, &elected);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  elect.set_log("nosuch");
  elect.set_node(0);
  status = Order(first, &AdminStub::Elect, elect, &elected);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
}

// A lost replica: the plan lacks it, a scrub misses it, an order brings it back
// while the log goes on.
TEST_F(AdminTest, LostReplicaIsReplacedWhileTheLogGoesOn) {
  const int lost = primary_ == 1 ? 2 : 1;
  cluster_->Kill(lost);
  const std::string path = cluster_->region(lost, "main");
  ASSERT_TRUE(std::filesystem::remove(path)) << path;
  const absl::Status started = cluster_->Start(lost);
  ASSERT_TRUE(started.ok()) << started;
  MustAppend("second");
  v1::ScrubResponse scrubbed;
  grpc::Status status =
      Order(primary_, &AdminStub::Scrub, v1::ScrubRequest(), &scrubbed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(scrubbed.replicas_size(), kNodes);
  for (const v1::ScrubResponse::Replica& replica : scrubbed.replicas()) {
    EXPECT_EQ(replica.code(), replica.node() == static_cast<uint64_t>(lost)
                                  ? StatusCode::NOT_FOUND
                                  : StatusCode::OK)
        << replica.message();
  }
  v1::ReplaceRequest replace;
  replace.add_nodes(static_cast<uint64_t>(lost));
  v1::ReplaceResponse replaced;
  // The log holds its requests until the next epoch is open: they wait for
  // that.
  std::atomic<bool> is_replaced = false;
  std::vector<std::string> appended = {"first", "second"};
  std::thread appends([&] {
    while (!is_replaced) {
      appended.push_back(absl::StrCat("meanwhile ", appended.size()));
      MustAppend(appended.back());
    }
  });
  LogClient other(addresses_[static_cast<size_t>(primary_) - 1],
                  grpc::InsecureChannelCredentials(), tokens_.token());
  ASSERT_TRUE(other.Open().ok());
  AppendingStream stream(other);
  uint64_t streamed = 0;
  std::thread streams([&] {
    while (!is_replaced) {
      ++streamed;
      if (!stream.Send(streamed, {"streamed"}, streamed) ||
          !stream.ReadUntilDone(streamed)) {
        return;
      }
    }
  });
  status = Order(lost, &AdminStub::Replace, replace, &replaced);
  is_replaced = true;
  appends.join();
  stream.Cancel();  // its last request may have no answer
  streams.join();
  EXPECT_EQ(stream.answers.refused_size(), 0);
  EXPECT_GE(stream.done + 1, streamed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(replaced.members().was_running());
  // A slow member joins later.
  AwaitAllInSync();
  GoOn();
  appended.emplace_back("third");
  MustAppend(appended.back());
  std::vector<std::string> read = client_->ReadAll();
  EXPECT_GE(std::erase(read, "streamed"), stream.done);
  EXPECT_EQ(read, appended);
  EXPECT_TRUE(std::filesystem::exists(path));
  grpc::ClientContext context;
  tokens_.Show(&context);
  v1::DescribeDurabilityRequest request;
  request.set_log("main");
  v1::DescribeDurabilityResponse plan;
  status = client_->stub().DescribeDurability(&context, request, &plan);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(plan.replicas_size(), kNodes);
  EXPECT_EQ(plan.write_quorum(), 2u);
  EXPECT_EQ(plan.lost_replicas_max(), 1u);
  EXPECT_EQ(plan.absent_replicas_max(), 1u);
  for (const auto& replica : plan.replicas()) {
    EXPECT_TRUE(replica.in_sync());
    EXPECT_EQ(replica.is_primary(),
              replica.node() == static_cast<uint64_t>(primary_));
    EXPECT_THAT(replica.steps(), Not(IsEmpty()));
  }
}

// Nobody stands for it, so nobody serves it yet.
TEST_F(AdminTest, LogIsMadeByAnyNode) {
  v1::CreateLogRequest create;
  create.set_log("second");
  create.set_region_bytes(1 << 20);
  v1::CreateLogResponse created;
  grpc::Status status = Order(3, &AdminStub::CreateLog, create, &created);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(created.log_id(), Not(IsEmpty()));
  status = Order(2, &AdminStub::CreateLog, create, &created);
  EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
  Append(primary_, "a line\n", "second");
  EXPECT_EQ(Cat("second"), "a line\n");
  v1::DrainRequest drain;
  drain.set_log("second");
  v1::DrainResponse drained;
  // It looks for somebody for a third of its time.
  status = Order(1, &AdminStub::Drain, drain, &drained, 20'000);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("nobody stands"));
}

}  // namespace
}  // namespace alpheus::testing
