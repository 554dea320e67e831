// SPDX-License-Identifier: Apache-2.0
// Where the server listens, and what it says of its health.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/api/grpc/server_fixture.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

TEST(LogServerAddressTest, OnlyLoopbackIsTaken) {
  for (const char* good :
       {"127.0.0.1:7411", "localhost:7411", "[::1]:7411", "127.0.0.1:0"}) {
    EXPECT_TRUE(rpc::LogServer::Check(good).ok()) << good;
  }
  for (const char* other : {"0.0.0.0:7411", "192.0.2.1:7411", "[::]:7411"}) {
    const absl::Status refused = rpc::LogServer::Check(other);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << other;
    EXPECT_THAT(refused.message(), HasSubstr("no TLS"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(rpc::LogServer::Check("127.0.0.1")));
}

// Sends one message, written out, to a method of another service. Returns the
// first answer.
std::string AnswerOf(LogClient& client, const std::string& method,
                     const std::string& request) {
  grpc::GenericStub stub(client.channel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  if (!wait()) return "no call";
  const grpc::Slice slice(request);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  wait();  // the server may have ended the call by then
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  const bool has_answer = wait();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  if (!has_answer) return status.error_message();
  grpc::Slice bytes;
  EXPECT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

std::string HealthOf(LogClient& client, const std::string& name) {
  std::string request = "\n";  // field 1, of bytes
  request += static_cast<char>(name.size());
  request += name;
  const std::string answer =
      AnswerOf(client, "/grpc.health.v1.Health/Check", request);
  if (answer == "\b\1") return "serving";
  if (answer == "\b\2") return "not serving";
  return answer;
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
TEST_F(LogServerTest, ReflectionTellsOfTheService) {
  for (const std::string version : {"v1", "v1alpha"}) {
    const std::string method = "/grpc.reflection." + version +
                               ".ServerReflection/ServerReflectionInfo";
    EXPECT_THAT(AnswerOf(*client_, method, ":\1*"),  // field 7
                HasSubstr("alpheus.v1.LogService"));
    const std::string symbol = "alpheus.v1.LogService";
    std::string question = "\"";  // field 4
    question += static_cast<char>(symbol.size());
    EXPECT_THAT(AnswerOf(*client_, method, question + symbol),
                HasSubstr("AppendStreamRequest"));
    EXPECT_THAT(AnswerOf(*client_, method, "\x1a\1x"),  // field 3
                HasSubstr("x: not declared"));
    EXPECT_THAT(AnswerOf(*client_, method, "*\1x"),  // field 5
                HasSubstr("no such question"));
    EXPECT_EQ(AnswerOf(*client_, method, "x"), "no question");
  }
  EXPECT_THAT(AnswerOf(*client_, "/alpheus.v1.LogService/Nothing", ""),
              HasSubstr("there is no such method"));
}

TEST_F(LogServerTest, PortOfAnotherServerIsUnavailable) {
  const auto second = rpc::LogServer::Start(server_->address(), logs_);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr(server_->address()));
}

}  // namespace
}  // namespace alpheus::testing
