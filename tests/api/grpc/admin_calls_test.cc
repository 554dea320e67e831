// SPDX-License-Identifier: Apache-2.0
// Every order of an administrator, as a call: what reaches the node, what comes
// back, and how a call ends early. tests/api/admin has the orders themselves.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/v1/admin_service.grpc.pb.h"
#include "api/grpc/server/log_server.h"
#include "api/service/served/served_logs.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/wall_clock.h"
#include "tests/api/grpc/admin_token.h"
#include "tests/api/grpc/scripted_administrator.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Stub = v1::AdminService::Stub;

class AdminCallsTest : public ::testing::Test {
 protected:
  AdminCallsTest() : logs_({"main"}) {
    logs_.SetAddresses({{2, "192.0.2.2:7411"}});
    Start(&administrator_, tokens_.file());
  }

  void Start(Administrator* administrator, const std::string& tokens) {
    server_.reset();
    auto server =
        rpc::LogServer::Start({.listen = "127.0.0.1:0", .tokens = tokens},
                              logs_, {}, WallClock::Real(), administrator);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::AdminService::NewStub(grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials()));
  }
  template <class Request, class Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
                    Request request, Response* response) {
    grpc::ClientContext context;
    tokens_.Show(&context);
    request.set_log("main");
    return (stub_.get()->*method)(&context, request, response);
  }
  // Calls all methods, and hands each one's end to `look`.
  template <class Look>
  void CallAll(const Look& look) {
    const auto call = [&](auto method, auto request, auto response) {
      look(Call(method, request, &response));
    };
    call(&Stub::Elect, v1::ElectRequest(), v1::ElectResponse());
    call(&Stub::Drain, v1::DrainRequest(), v1::DrainResponse());
    call(&Stub::Scrub, v1::ScrubRequest(), v1::ScrubResponse());
    call(&Stub::Replace, v1::ReplaceRequest(), v1::ReplaceResponse());
    call(&Stub::Reconfigure, v1::ReconfigureRequest(),
         v1::ReconfigureResponse());
    call(&Stub::CreateLog, v1::CreateLogRequest(), v1::CreateLogResponse());
    call(&Stub::DeleteLog, v1::DeleteLogRequest(), v1::DeleteLogResponse());
  }

  const AdminToken tokens_;
  ScriptedAdministrator administrator_;
  service::ServedLogs logs_;
  std::unique_ptr<rpc::LogServer> server_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(AdminCallsTest, ElectionsSayWhoIsPrimaryAndWhereClientsReachIt) {
  v1::ElectRequest elect;
  v1::ElectResponse elected;
  ASSERT_TRUE(Call(&Stub::Elect, elect, &elected).ok());
  EXPECT_EQ(elected.primary().node(), 2u);
  EXPECT_EQ(elected.primary().epoch(), 131'075u);
  EXPECT_EQ(elected.primary().address(), "192.0.2.2:7411");
  elect.set_node(3);
  administrator_.primary.node = 3;
  ASSERT_TRUE(Call(&Stub::Elect, elect, &elected).ok());
  EXPECT_EQ(elected.primary().address(), "");
  v1::DrainRequest drain;
  v1::DrainResponse drained;
  ASSERT_TRUE(Call(&Stub::Drain, drain, &drained).ok());
  EXPECT_EQ(drained.primary().node(), 3u);
  drain.set_node(2);
  ASSERT_TRUE(Call(&Stub::Drain, drain, &drained).ok());
  EXPECT_THAT(administrator_.orders(),
              ElementsAre("elect main 1", "elect main 3", "drain main 1",
                          "drain main 2"));
}

TEST_F(AdminCallsTest, ScrubSaysWhatEachReplicaHas) {
  ScrubResult whole;
  whole.node = 1;
  whole.address = "192.0.2.1:7401";
  whole.said.pass = {.records = 7, .bytes = 448, .damaged = 1, .repaired = 1};
  ScrubResult damaged;
  damaged.node = 2;
  damaged.status = absl::DataLossError("2 damages");
  damaged.said.pass.unrepairable = 2;
  damaged.said.unrepairable = {{Lsn(3), Lsn(5)}, {Lsn(9), Lsn(10)}};
  ScrubResult empty;
  empty.node = 3;
  empty.said.is_empty = true;
  administrator_.scrubs = {whole, damaged, empty};
  v1::ScrubRequest scrub;
  scrub.set_node(2);
  v1::ScrubResponse scrubbed;
  ASSERT_TRUE(Call(&Stub::Scrub, scrub, &scrubbed).ok());
  EXPECT_THAT(administrator_.orders(), ElementsAre("scrub main 2"));
  ASSERT_EQ(scrubbed.replicas_size(), 3);
  const v1::ScrubResponse::Replica& first = scrubbed.replicas(0);
  EXPECT_EQ(first.node(), 1u);
  EXPECT_EQ(first.address(), "192.0.2.1:7401");
  EXPECT_EQ(first.code(), StatusCode::OK);
  EXPECT_EQ(first.message(), "");
  EXPECT_EQ(first.records(), 7u);
  EXPECT_EQ(first.bytes(), 448u);
  EXPECT_EQ(first.damaged(), 1u);
  EXPECT_EQ(first.repaired(), 1u);
  EXPECT_FALSE(first.is_empty());
  const v1::ScrubResponse::Replica& second = scrubbed.replicas(1);
  EXPECT_EQ(second.code(), StatusCode::DATA_LOSS);
  EXPECT_EQ(second.message(), "2 damages");
  EXPECT_EQ(second.unrepairable(), 2u);
  ASSERT_EQ(second.unrepairable_lsns_size(), 2);
  EXPECT_EQ(second.unrepairable_lsns(0).first(), 3u);
  EXPECT_EQ(second.unrepairable_lsns(0).last(), 4u);
  EXPECT_EQ(second.unrepairable_lsns(1).last(), 9u);
  EXPECT_TRUE(scrubbed.replicas(2).is_empty());
}

TEST_F(AdminCallsTest, ChangesSayWhatTheMembersHave) {
  administrator_.report.epoch = Epoch(5);
  administrator_.report.head_lsn = Lsn(2);
  administrator_.report.end_lsn = Lsn(8);
  administrator_.report.was_running = true;
  administrator_.report.absent_members = {"node 4: not in sync yet"};
  administrator_.report.repairs = {"a copy"};
  v1::ReplaceRequest replace;
  replace.add_nodes(3);
  replace.add_nodes(2);
  v1::ReplaceResponse replaced;
  ASSERT_TRUE(Call(&Stub::Replace, replace, &replaced).ok());
  EXPECT_EQ(replaced.members().epoch(), 5u);
  EXPECT_EQ(replaced.members().head_lsn(), 2u);
  EXPECT_EQ(replaced.members().end_lsn(), 8u);
  EXPECT_TRUE(replaced.members().was_running());
  EXPECT_THAT(replaced.members().absent_members(),
              ElementsAre("node 4: not in sync yet"));
  EXPECT_THAT(replaced.members().repairs(), ElementsAre("a copy"));
  v1::ReconfigureRequest reconfigure;
  reconfigure.set_cluster_file("configuration_id = 2");
  v1::ReconfigureResponse reconfigured;
  ASSERT_TRUE(Call(&Stub::Reconfigure, reconfigure, &reconfigured).ok());
  EXPECT_EQ(reconfigured.members().end_lsn(), 8u);
  EXPECT_THAT(
      administrator_.orders(),
      ElementsAre("replace main 3,2", "reconfigure main configuration_id = 2"));
}

TEST_F(AdminCallsTest, NewLogHasItsSizeAndItsId) {
  v1::CreateLogRequest create;
  v1::CreateLogResponse created;
  ASSERT_TRUE(Call(&Stub::CreateLog, create, &created).ok());
  EXPECT_EQ(created.log_id(), administrator_.log_id.ToString());
  create.set_region_bytes(1 << 20);
  ASSERT_TRUE(Call(&Stub::CreateLog, create, &created).ok());
  EXPECT_THAT(administrator_.orders(),
              ElementsAre("create main 67108864", "create main 1048576"));
}

TEST_F(AdminCallsTest, DeletedLogNamesItsNodes) {
  v1::DeleteLogResponse deleted;
  ASSERT_TRUE(Call(&Stub::DeleteLog, v1::DeleteLogRequest(), &deleted).ok());
  EXPECT_THAT(deleted.removed_nodes(), ElementsAre(1, 3));
  EXPECT_THAT(deleted.left_nodes(), ElementsAre(2));
  EXPECT_THAT(administrator_.orders(), ElementsAre("delete main"));
}

TEST_F(AdminCallsTest, ErrorsKeepTheirCodesAndSentences) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kCancelled, absl::StatusCode::kAborted,
        absl::StatusCode::kFailedPrecondition, absl::StatusCode::kNotFound,
        absl::StatusCode::kAlreadyExists, absl::StatusCode::kInvalidArgument,
        absl::StatusCode::kDataLoss}) {
    administrator_.status = {code, "nothing was changed"};
    CallAll([&](const grpc::Status& status) {
      EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(code));
      EXPECT_EQ(status.error_message(), "nothing was changed");
    });
  }
}

TEST_F(AdminCallsTest, OrdersAreCounted) {
  CallAll([](const grpc::Status& status) { EXPECT_TRUE(status.ok()); });
  administrator_.status = absl::AbortedError("another order came");
  v1::DrainResponse drained;
  EXPECT_FALSE(Call(&Stub::Drain, v1::DrainRequest(), &drained).ok());
  for (const rpc::Method method :
       {rpc::Method::kElect, rpc::Method::kDrain, rpc::Method::kScrub,
        rpc::Method::kReplace, rpc::Method::kReconfigure,
        rpc::Method::kCreateLog, rpc::Method::kDeleteLog}) {
    EXPECT_EQ(server_->counts().ended(method, StatusCode::OK), 1u)
        << rpc::NameOf(method);
    EXPECT_EQ(server_->counts().ended(method, StatusCode::ABORTED),
              method == rpc::Method::kDrain ? 1u : 0u);
  }
  EXPECT_EQ(server_->connections().open, 1u);
  EXPECT_EQ(server_->connections().refused, 0u);
}

TEST_F(AdminCallsTest, NodeWithoutAnAdministratorTakesNoOrders) {
  Start(nullptr, tokens_.file());
  CallAll([](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("is of no cluster"));
  });
}

// ADC1. Everybody on the machine can call it.
TEST_F(AdminCallsTest, NodeThatAsksForNoTokensTakesNoOrders) {
  Start(&administrator_, /*tokens=*/"");
  CallAll([](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("Give alpheusd --tokens"));
  });
  EXPECT_THAT(administrator_.orders(), IsEmpty());
}

// The time of a call bounds its order, and leaves some for the answer.
TEST_F(AdminCallsTest, OrderHasNineTenthsOfTheTimeOfItsCall) {
  const auto call_within = [&](auto method, auto request, auto response,
                               int millis) {
    grpc::ClientContext context;
    tokens_.Show(&context);
    context.set_deadline(gpr_time_from_millis(millis, GPR_TIMESPAN));
    request.set_log("main");
    EXPECT_TRUE((stub_.get()->*method)(&context, request, &response).ok());
    return administrator_.timeout_ms();
  };
  constexpr int kMinute = 60'000;
  const auto elect_within = [&](int millis) {
    return call_within(&Stub::Elect, v1::ElectRequest(), v1::ElectResponse(),
                       millis);
  };
  // gRPC sends the time of a call with few digits, rounded up: by 1 % at most.
  EXPECT_LE(elect_within(30 * kMinute), 28u * kMinute);
  EXPECT_GT(administrator_.timeout_ms(), uint32_t{kMinute});
  // No order takes longer than an hour. A node that ends waits for some, which
  // have a minute (ADC3).
  EXPECT_EQ(elect_within(24 * 60 * kMinute), 60u * kMinute);
  const auto is_bounded = [&](auto method, auto request, auto response) {
    EXPECT_EQ(call_within(method, request, response, 24 * 60 * kMinute),
              uint32_t{kMinute});
  };
  is_bounded(&Stub::Replace, v1::ReplaceRequest(), v1::ReplaceResponse());
  is_bounded(&Stub::Reconfigure, v1::ReconfigureRequest(),
             v1::ReconfigureResponse());
  is_bounded(&Stub::CreateLog, v1::CreateLogRequest(), v1::CreateLogResponse());
  is_bounded(&Stub::DeleteLog, v1::DeleteLogRequest(), v1::DeleteLogResponse());
  v1::ElectResponse elected;
  ASSERT_TRUE(Call(&Stub::Elect, v1::ElectRequest(), &elected).ok());
  EXPECT_EQ(administrator_.timeout_ms(), 10'000u);
  v1::ReplaceResponse replaced;
  ASSERT_TRUE(Call(&Stub::Replace, v1::ReplaceRequest(), &replaced).ok());
  EXPECT_EQ(administrator_.timeout_ms(), uint32_t{kMinute});
}

TEST_F(AdminCallsTest, OrderLearnsThatItsCallerIsGone) {
  std::latch is_begun(1);
  std::atomic<bool> gave_up = false;
  administrator_.during = [&](const OrderBounds& bounds) {
    is_begun.count_down();
    const Deadline end = InPatience();
    while (!end.HasPassed(Clock::Real().NowNanos())) {
      if (!bounds.gives_up()) continue;
      gave_up = true;
      return;
    }
  };
  grpc::ClientContext context;
  tokens_.Show(&context);
  std::thread leaving([&] {
    is_begun.wait();
    context.TryCancel();
  });
  v1::DrainRequest request;
  request.set_log("main");
  v1::DrainResponse response;
  EXPECT_EQ(stub_->Drain(&context, request, &response).error_code(),
            StatusCode::CANCELLED);
  leaving.join();
  server_.reset();  // waits for the order
  EXPECT_TRUE(gave_up);
}

// A node that ends tells the orders that it carries out.
TEST_F(AdminCallsTest, OrderLearnsThatTheServerEnds) {
  std::latch is_begun(1);
  std::atomic<bool> gave_up = false;
  administrator_.during = [&](const OrderBounds& bounds) {
    is_begun.count_down();
    const Deadline end = InPatience();
    while (!gave_up && !end.HasPassed(Clock::Real().NowNanos())) {
      gave_up = bounds.gives_up();
    }
  };
  std::thread ending([&] {
    is_begun.wait();
    server_.reset();
  });
  v1::DrainResponse response;
  EXPECT_FALSE(Call(&Stub::Drain, v1::DrainRequest(), &response).ok());
  ending.join();
  EXPECT_TRUE(gave_up);
}

TEST_F(AdminCallsTest, FifthOrderAtOnceIsRefused) {
  constexpr int kOrders = 4;
  std::latch are_begun(kOrders);
  std::latch may_end(1);
  administrator_.during = [&](const OrderBounds& /*bounds*/) {
    are_begun.count_down();
    may_end.wait();
  };
  std::vector<std::thread> callers;
  callers.reserve(kOrders);
  for (int i = 0; i < kOrders; ++i) {
    callers.emplace_back([this] {
      v1::ScrubResponse response;
      EXPECT_TRUE(Call(&Stub::Scrub, v1::ScrubRequest(), &response).ok());
    });
  }
  are_begun.wait();
  CallAll([](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("Nothing was begun"));
  });
  may_end.count_down();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(administrator_.orders().size(), size_t{kOrders});
}

}  // namespace
}  // namespace alpheus::testing
