// SPDX-License-Identifier: Apache-2.0
#include "api/node/node_registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "quorum/membership/membership.h"
#include "tests/quorum/membership/noted_membership.h"

namespace alpheus::testing {

using quorum::SessionState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

class NodeRegistrationsTest : public ::testing::Test {
 protected:
  NodeRegistrationsTest()
      : registrations_(
            [this](const std::string& log_name)
                -> absl::StatusOr<std::unique_ptr<quorum::Membership>> {
              if (!opens_.ok()) return opens_;
              auto membership = std::make_unique<NotedMembership>();
              membership->next_poll = Deadline::AtNanos(0);
              at_[log_name] = membership.get();
              life_[log_name] = membership->life;
              return membership;
            },
            [this](const std::string& sentence) {
              said_.push_back(sentence);
            }) {}

  static quorum::Registration Served(uint64_t log_epoch) {
    return {NodeId(2), 0x102, "b:7000", Epoch(log_epoch)};
  }
  NotedMembership& at(const std::string& log_name) { return *at_[log_name]; }
  bool HasSession(const std::string& log_name) {
    return !life_[log_name].expired();
  }
  std::vector<std::string> Said() { return std::exchange(said_, {}); }
  void ServeNone() {
    registrations_.KeepOnly([](const std::string&) { return false; });
  }

  absl::Status opens_;
  std::map<std::string, NotedMembership*> at_;
  std::map<std::string, std::weak_ptr<bool>> life_;
  std::vector<std::string> said_;
  NodeRegistrations registrations_;
};

TEST_F(NodeRegistrationsTest, ReplicaIsRegisteredOnceUntilSomethingChanges) {
  registrations_.Register("main", Served(3));
  registrations_.Register("main", Served(3));
  EXPECT_THAT(at("main").Calls(), ElementsAre("register b:7000 3"));
  registrations_.Register("main", Served(4));
  EXPECT_THAT(at("main").Calls(), ElementsAre("register b:7000 4"));
}

// NR1.
TEST_F(NodeRegistrationsTest, ReplicaThatIsNotServedIsTakenBackOnce) {
  registrations_.Register("main", Served(3));
  registrations_.Register("audit", Served(3));
  at("main").Calls();
  at("audit").Calls();
  for (int i = 0; i < 2; ++i) {
    registrations_.KeepOnly(
        [](const std::string& log_name) { return log_name == "audit"; });
  }
  EXPECT_THAT(at("main").Calls(), ElementsAre("unregister"));
  EXPECT_THAT(at("audit").Calls(), IsEmpty());
  EXPECT_FALSE(registrations_.IsRegistered("main"));
  EXPECT_TRUE(registrations_.IsRegistered("audit"));
  registrations_.Register("main", Served(3));
  EXPECT_THAT(at("main").Calls(), ElementsAre("register b:7000 3"));
}

// NR2.
TEST_F(NodeRegistrationsTest, ExpiredSessionIsRenewed) {
  registrations_.Register("main", Served(3));
  at("main").Calls();
  at("main").state = SessionState::kExpired;
  registrations_.Poll(1);
  EXPECT_THAT(at("main").Calls(), ElementsAre("renew"));
  EXPECT_EQ(at("main").polls, 1);
}

TEST_F(NodeRegistrationsTest, EachProblemIsSaidOnce) {
  registrations_.Register("main", Served(3));
  at("main").trouble = absl::PermissionDeniedError("no right to create");
  registrations_.Poll(1);
  registrations_.Poll(1);
  EXPECT_THAT(Said(), ElementsAre("log main: no right to create"));
  at("main").trouble = absl::OkStatus();
  at("main").settled = false;
  registrations_.Poll(1);
  EXPECT_THAT(Said(), IsEmpty());
  at("main").trouble = absl::PermissionDeniedError("no right to create");
  registrations_.Poll(1);
  EXPECT_THAT(Said(), ElementsAre("log main: no right to create"));
}

TEST_F(NodeRegistrationsTest, ReplicaIsSaidToBeRegisteredOnceAfterEachProblem) {
  registrations_.Register("main", Served(3));
  at("main").settled = false;
  registrations_.Poll(1);
  EXPECT_THAT(Said(), IsEmpty());
  at("main").settled = true;
  for (int i = 0; i < 2; ++i) {
    registrations_.Poll(1);
    registrations_.Poll(1);
    EXPECT_THAT(
        Said(),
        ElementsAre("log main: its replica is registered in ZooKeeper"));
    at("main").trouble = absl::UnavailableError("no server has answered");
    registrations_.Poll(1);
    EXPECT_THAT(Said(), ElementsAre("log main: no server has answered"));
    at("main").trouble = absl::OkStatus();
  }
  ServeNone();
  at("main").settled = false;
  registrations_.Poll(1);
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(NodeRegistrationsTest, EachWarningIsSaidOnceWhateverBecomesOfSessions) {
  registrations_.Register("main", Served(3));
  at("main").settled = false;
  at("main").warns = "another time-out";
  registrations_.Poll(1);
  at("main").state = SessionState::kSuspended;
  at("main").warns = "";
  registrations_.Poll(1);
  at("main").state = SessionState::kConnected;
  at("main").warns = "another time-out";
  registrations_.Poll(1);
  EXPECT_THAT(Said(), ElementsAre("log main: warning: another time-out"));
}

TEST_F(NodeRegistrationsTest, ProgramWithoutAClientSaysSoAndServesOn) {
  opens_ = absl::UnimplementedError("built without a client");
  registrations_.Register("main", Served(3));
  registrations_.Register("main", Served(4));
  registrations_.Poll(1);
  EXPECT_THAT(Said(), ElementsAre("log main: built without a client"));
  EXPECT_TRUE(registrations_.IsRegistered("main"));
}

// NR2.
TEST_F(NodeRegistrationsTest, MembershipThatFailedToOpenIsOpenedLater) {
  opens_ = absl::InternalError("too many open files");
  registrations_.Register("main", Served(3));
  opens_ = absl::OkStatus();
  registrations_.Register("main", Served(3));
  EXPECT_THAT(at("main").Calls(), ElementsAre("register b:7000 3"));
  registrations_.Register("main", Served(3));
  EXPECT_THAT(at("main").Calls(), IsEmpty());
  EXPECT_THAT(Said(), ElementsAre("log main: too many open files"));
}

// NR3.
TEST_F(NodeRegistrationsTest, EachIsPolledWhenItHasSomethingToDo) {
  EXPECT_FALSE(registrations_.NextPoll().is_set());
  registrations_.Register("main", Served(3));
  registrations_.Register("audit", Served(3));
  at("main").next_poll = Deadline::AtNanos(70);
  at("audit").next_poll = Deadline::AtNanos(50);
  registrations_.Poll(10);
  EXPECT_EQ(registrations_.NextPoll().at_nanos(), 50);
  registrations_.Poll(49);
  EXPECT_EQ(at("main").polls, 1);
  EXPECT_EQ(at("audit").polls, 1);
  at("audit").next_poll = Deadline::AtNanos(80);
  registrations_.Poll(50);
  EXPECT_EQ(at("main").polls, 1);
  EXPECT_EQ(at("audit").polls, 2);
  EXPECT_EQ(registrations_.NextPoll().at_nanos(), 70);
  // A wish is done at once.
  registrations_.Register("main", Served(4));
  EXPECT_EQ(registrations_.NextPoll().at_nanos(), 0);
  registrations_.Poll(51);
  EXPECT_EQ(at("main").polls, 2);
  EXPECT_EQ(at("audit").polls, 2);
}

// NR4: a node serves one log after the other.
TEST_F(NodeRegistrationsTest, LogThatIsNotServedKeepsNoSession) {
  registrations_.Register("main", Served(3));
  registrations_.Poll(1);
  ServeNone();
  at("main").settled = false;
  registrations_.Poll(2);
  // Its znode is still to be deleted.
  EXPECT_TRUE(HasSession("main"));
  at("main").settled = true;
  registrations_.Poll(3);
  EXPECT_FALSE(HasSession("main"));
  // It is served again.
  registrations_.Register("main", Served(4));
  EXPECT_TRUE(HasSession("main"));
  EXPECT_THAT(at("main").Calls(), ElementsAre("register b:7000 4"));
  registrations_.Poll(4);
  EXPECT_TRUE(HasSession("main"));
}

// NR4.
TEST_F(NodeRegistrationsTest, LogThatIsNotServedDoesNotWaitForAGoneSession) {
  registrations_.Register("main", Served(3));
  registrations_.Poll(1);
  at("main").settled = false;
  at("main").expires = true;
  ServeNone();
  registrations_.Poll(2);
  EXPECT_FALSE(HasSession("main"));
}

// NR4. A membership that could not be opened leaves nothing either.
TEST_F(NodeRegistrationsTest, LogThatWasNeverOpenedIsForgotten) {
  opens_ = absl::InternalError("too many open files");
  registrations_.Register("main", Served(3));
  ServeNone();
  registrations_.Poll(1);
  EXPECT_FALSE(registrations_.IsRegistered("main"));
  registrations_.Register("main", Served(3));
  // It is a new one, and says so.
  EXPECT_EQ(Said().size(), 2U);
}

// NR2: it says of itself that it never has anything to do again.
TEST_F(NodeRegistrationsTest, SessionThatExpiresInAPollIsRenewed) {
  registrations_.Register("main", Served(3));
  at("main").next_poll = Deadline();
  at("main").expires = true;
  registrations_.Poll(10);
  at("main").Calls();
  EXPECT_EQ(registrations_.NextPoll().at_nanos(), 10);
  at("main").expires = false;
  registrations_.Poll(11);
  EXPECT_THAT(at("main").Calls(), ElementsAre("renew"));
  EXPECT_FALSE(registrations_.NextPoll().is_set());
}

}  // namespace
}  // namespace alpheus::testing
