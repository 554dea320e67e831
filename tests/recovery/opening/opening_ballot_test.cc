// SPDX-License-Identifier: Apache-2.0
// Openings whose ballots come late, or not at all.
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

// A service as the test says.
struct Service {
  std::optional<absl::StatusOr<Epoch>> report;
  std::optional<quorum::BallotQuestion> asked;
  int waiting = 0;  // requests that are there
};

class Source final : public quorum::BallotSource {
 public:
  explicit Source(Service& service) : service_(service) {}

  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion& question) override {
    service_.asked = question;
    return std::make_unique<Request>(service_);
  }

 private:
  class Request final : public quorum::BallotRequest {
   public:
    explicit Request(Service& service) : service_(service) {
      ++service_.waiting;
    }
    ~Request() override { --service_.waiting; }

    Polled Poll() override {
      return service_.report ? Polled::kDone : Polled::kIdle;
    }
    Deadline NextPoll() const override { return Deadline(); }
    absl::StatusOr<Epoch> ballot() const override { return *service_.report; }

   private:
    Service& service_;
  };

  Service& service_;
};

class OpeningBallotTest : public ::testing::Test {
 protected:
  OpeningBallotTest() {
    world_.make_ballots = [this](const quorum::PrimaryId&) {
      return std::make_unique<Source>(service_);
    };
  }

  std::unique_ptr<OpeningWorld::Primary> BeginAndWait() {
    recovery::EpochOpeningOptions options = world_.OpeningOptions(0);
    options.deadline = Deadline::AtNanos(100'000'000);
    auto primary = world_.Begin(0, options);
    for (int i = 0; i < 10'000 && !service_.asked; ++i) {
      world_.Step({primary.get()});
    }
    return primary;
  }

  Service service_;
  OpeningWorld world_{{}};
};

// Nothing is promised meanwhile, and the opening goes on when it comes.
TEST_F(OpeningBallotTest, AnOpeningWaitsForItsBallot) {
  const auto primary = BeginAndWait();
  ASSERT_TRUE(service_.asked);
  EXPECT_GE(service_.asked->promised.size(), 2u);
  EXPECT_EQ(service_.waiting, 1);
  EXPECT_FALSE(primary->opening->is_over());
  for (const int node : {1, 2, 3}) {
    EXPECT_EQ(world_.replica(node).superline().promised_epoch, Epoch(0));
  }
  const Epoch ballot = quorum::PackBallot({7, {NodeId(1), 1}});
  service_.report = ballot;
  world_.Drive({primary.get()});
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->epoch, ballot);
  EXPECT_EQ(service_.waiting, 0);
}

TEST_F(OpeningBallotTest, WithoutABallotTheDeadlineEndsIt) {
  const auto primary = BeginAndWait();
  world_.network().Schedule(200'000'000, [] {});
  world_.Drive({primary.get()});
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(std::string(primary->status().message()),
              HasSubstr("before a ballot came"));
  EXPECT_EQ(service_.waiting, 0);
  EXPECT_FALSE(primary->opening->may_try_again());
}

TEST_F(OpeningBallotTest, WhatTheServiceRefusesIsTheError) {
  service_.report = absl::UnavailableError("session 3 has expired");
  const auto primary = BeginAndWait();
  world_.Drive({primary.get()});
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(std::string(primary->status().message()),
              HasSubstr("session 3 has expired"));
  for (const int node : {1, 2, 3}) {
    EXPECT_EQ(world_.replica(node).superline().promised_epoch, Epoch(0));
  }
}

}  // namespace
}  // namespace alpheus::testing
