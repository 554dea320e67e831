// SPDX-License-Identifier: Apache-2.0
// health_and_reflection: calls of other services of a server of logs.
#ifndef ALPHEUS_TESTS_API_GRPC_HEALTH_AND_REFLECTION_H_
#define ALPHEUS_TESTS_API_GRPC_HEALTH_AND_REFLECTION_H_

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/api/grpc/log_client.h"

namespace alpheus::testing {

// Sends one message, written out, to a method of another service. Returns the
// first answer.
inline std::string AnswerOf(LogClient& client, const std::string& method,
                            const std::string& request) {
  grpc::GenericStub stub(client.channel());
  grpc::ClientContext context;
  client.Authorize(&context);
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

inline std::string HealthOf(LogClient& client, const std::string& name) {
  std::string request = "\n";  // field 1, of bytes
  request += static_cast<char>(name.size());
  request += name;
  const std::string answer =
      AnswerOf(client, "/grpc.health.v1.Health/Check", request);
  if (answer == "\b\1") return "serving";
  if (answer == "\b\2") return "not serving";
  return answer;
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_HEALTH_AND_REFLECTION_H_
