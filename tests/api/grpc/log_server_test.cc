// SPDX-License-Identifier: Apache-2.0
// Where the server listens, and what it says of its health.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/api/grpc/health_and_reflection.h"
#include "tests/api/grpc/server_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

TEST(LogServerAddressTest, OnlyLoopbackIsTaken) {
  for (const char* good :
       {"127.0.0.1:7411", "localhost:7411", "[::1]:7411", "127.0.0.1:0"}) {
    EXPECT_TRUE(rpc::LogServer::Check({.listen = good}).ok()) << good;
  }
  for (const char* other : {"0.0.0.0:7411", "192.0.2.1:7411", "[::]:7411"}) {
    const absl::Status refused = rpc::LogServer::Check({.listen = other});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << other;
    EXPECT_THAT(refused.message(), HasSubstr("without TLS"));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(rpc::LogServer::Check({.listen = "127.0.0.1"})));
}

using LogServerTest = ServerTest;

TEST_F(LogServerTest, HealthFollowsTheLog) {
  EXPECT_EQ(HealthOf(*client_, ""), "serving");
  EXPECT_EQ(HealthOf(*client_, "alpheus/main/append"), "serving");
  EXPECT_EQ(HealthOf(*client_, "alpheus/main/tail"), "serving");
  EXPECT_EQ(HealthOf(*client_, "alpheus/other/append"), "not serving");
  CloseLog();
  EXPECT_EQ(HealthOf(*client_, ""), "serving");
  EXPECT_EQ(HealthOf(*client_, "alpheus/main/append"), "not serving");
}

// Both versions; what is asked for by name is there.
TEST_F(LogServerTest, ReflectionTellsOfTheServices) {
  for (const std::string version : {"v1", "v1alpha"}) {
    const std::string method = "/grpc.reflection." + version +
                               ".ServerReflection/ServerReflectionInfo";
    const std::string listed = AnswerOf(*client_, method, ":\1*");  // field 7
    for (const auto& [symbol, message] :
         {std::pair<std::string, std::string>("alpheus.v1.LogService",
                                              "AppendStreamRequest"),
          std::pair<std::string, std::string>("alpheus.v1.AdminService",
                                              "ReconfigureRequest")}) {
      EXPECT_THAT(listed, HasSubstr(symbol));
      std::string question = "\"";  // field 4
      question += static_cast<char>(symbol.size());
      EXPECT_THAT(AnswerOf(*client_, method, question + symbol),
                  HasSubstr(message));
    }
    EXPECT_THAT(AnswerOf(*client_, method, "\x1a\1x"),  // field 3
                HasSubstr("x: not declared"));
    EXPECT_THAT(AnswerOf(*client_, method, "*\1x"),  // field 5
                HasSubstr("no such question"));
    EXPECT_EQ(AnswerOf(*client_, method, "x"), "no question");
  }
  EXPECT_THAT(AnswerOf(*client_, "/alpheus.v1.LogService/Nothing", ""),
              HasSubstr("there is no such method"));
}

TEST_F(LogServerTest, PortOfAnotherServerIsTaken) {
  const auto second =
      rpc::LogServer::Start({.listen = server_->address()}, logs_);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr(server_->address()));
}

TEST_F(LogServerTest, MoreConnectionsThanAreAllowedAreClosed) {
  std::string said;
  const auto server = rpc::LogServer::Start(
      {.listen = "127.0.0.1:0", .connections = {.open_max = 2}}, logs_,
      [&](const std::string& sentence) { said = sentence; });
  ASSERT_TRUE(server.ok()) << server.status();
  LogClient first((*server)->address());
  LogClient second((*server)->address());
  EXPECT_EQ(HealthOf(first, ""), "serving");
  EXPECT_EQ(HealthOf(second, ""), "serving");
  LogClient third((*server)->address());
  EXPECT_EQ(third.Open().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(said, HasSubstr("2 connections of clients are open. Raise "
                              "--connections-max"));
  // Open connections go on.
  EXPECT_TRUE(first.Open().ok());
  EXPECT_TRUE(second.Open().ok());
}

TEST(LogServerLimitsTest, NoneIsZero) {
  for (const rpc::ConnectionLimitOptions& limits :
       {rpc::ConnectionLimitOptions{.open_max = 0},
        rpc::ConnectionLimitOptions{.of_host_max = 0},
        rpc::ConnectionLimitOptions{.per_second = 0}}) {
    const absl::Status refused =
        rpc::LogServer::Check({.listen = "127.0.0.1:0", .connections = limits});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
}

}  // namespace
}  // namespace alpheus::testing
