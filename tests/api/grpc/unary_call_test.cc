// SPDX-License-Identifier: Apache-2.0
// Calls that wait, and whose callers go before: for a record that nobody
// forces, since the log has no thread.
#include "api/grpc/calls/unary_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "log/base/clock.h"
#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;

class UnaryCallTest : public ServerTest {
 protected:
  // A caller that waits.
  struct Caller {
    grpc::ClientContext context;
    v1::WaitDurableResponse response;
    std::optional<grpc::Status> end;
  };

  UnaryCallTest() {
    MustOpenClient();
    v1::AppendRequest request = client_->Request("a");
    request.set_durability(v1::DURABILITY_ACCEPTED);
    v1::AppendResponse appended;
    const grpc::Status accepted = client_->Append(request, &appended);
    EXPECT_TRUE(accepted.ok()) << accepted.error_message();
    *request_.mutable_place() = appended.place();
    request_.set_log("main");
  }
  ~UnaryCallTest() override {
    // A call that still waits, against the rules, must not keep the log open.
    EXPECT_TRUE(log_->Force(log_->next_lsn() - 1).ok());
    AwaitEnds();
  }

  void Begin(int callers, int deadline_ms = 0) {
    for (int i = 0; i < callers; ++i) {
      callers_.push_back(std::make_unique<Caller>());
      Caller* const caller = callers_.back().get();
      if (deadline_ms != 0) {
        caller->context.set_deadline(
            gpr_time_from_millis(deadline_ms, GPR_TIMESPAN));
      }
      under_way_.fetch_add(1);
      client_->stub().async()->WaitDurable(
          &caller->context, &request_, &caller->response,
          [this, caller](const grpc::Status& end) {
            caller->end = end;
            if (under_way_.fetch_sub(1) == 1) under_way_.notify_all();
          });
    }
  }
  void AwaitEnds() {
    for (int left = under_way_.load(); left != 0; left = under_way_.load()) {
      under_way_.wait(left);
    }
  }
  void ExpectEnds(StatusCode code) {
    AwaitEnds();
    for (const auto& caller : callers_) {
      ASSERT_TRUE(caller->end.has_value());
      EXPECT_EQ(caller->end->error_code(), code)
          << caller->end->error_message();
    }
  }
  size_t Waiting() { return logs_.Use("main")->waits().count(); }
  // Beside that of this question.
  uint32_t Uses() { return logs_.Use("main")->uses() - 1; }
  template <class Condition>
  bool Await(Condition condition) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (!condition()) {
      if (Clock::Real().NowNanos() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  v1::WaitDurableRequest request_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::atomic<int> under_way_{0};
};

TEST_F(UnaryCallTest, CallersThatStayAreAnswered) {
  Begin(20);
  ASSERT_TRUE(Await([&] { return Waiting() == 20; }));
  EXPECT_EQ(Uses(), 20u);
  EXPECT_EQ(logs_.Use("main")->waits().watches(), 1u);
  ASSERT_TRUE(log_->Force(log_->next_lsn() - 1).ok());
  ExpectEnds(StatusCode::OK);
  for (const auto& caller : callers_) {
    EXPECT_EQ(caller->response.durable_lsn(), request_.place().lsn());
  }
  EXPECT_TRUE(Await([&] { return Uses() == 0; }));
}

// UNC2. Nothing is appended meanwhile, and nothing becomes durable.
TEST_F(UnaryCallTest, CancelledCallersLeaveAtOnce) {
  constexpr int kCallers = 500;
  const Lsn next = log_->next_lsn();
  for (int round = 0; round < 3; ++round) {
    Begin(kCallers);
    ASSERT_TRUE(Await([&] { return Waiting() == kCallers; }));
    EXPECT_EQ(Uses(), static_cast<uint32_t>(kCallers));
    for (const auto& caller : callers_) caller->context.TryCancel();
    ASSERT_TRUE(Await([&] { return Waiting() == 0; }));
    ASSERT_TRUE(Await([&] { return Uses() == 0; }));
    ExpectEnds(StatusCode::CANCELLED);
    callers_.clear();
  }
  EXPECT_EQ(logs_.Use("main")->waits().watches(), 1u);
  EXPECT_EQ(log_->next_lsn(), next);
  EXPECT_EQ(log_->Exposed(), 1u);
}

// Their callers have no more time, and so the node has none for them.
TEST_F(UnaryCallTest, CallersWhoseDeadlinePassedLeaveAtOnce) {
  Begin(100, /*deadline_ms=*/50);
  ExpectEnds(StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Await([&] { return Waiting() == 0; }));
  EXPECT_TRUE(Await([&] { return Uses() == 0; }));
  EXPECT_EQ(log_->Exposed(), 1u);
}

// Calls that have left don't keep the log open. Nothing tells them of its end.
TEST_F(UnaryCallTest, LogIsGivenBackAfterItsCallersHaveGone) {
  Begin(50);
  ASSERT_TRUE(Await([&] { return Waiting() == 50; }));
  for (const auto& caller : callers_) caller->context.TryCancel();
  ASSERT_TRUE(Await([&] { return Uses() == 0; }));
  logs_.Withdraw("main");
  EXPECT_EQ(log_->Exposed(), 1u) << "it waited for no record";
  ExpectEnds(StatusCode::CANCELLED);
}

}  // namespace
}  // namespace alpheus::testing
