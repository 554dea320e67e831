// SPDX-License-Identifier: Apache-2.0
// server_fixture: a server of the test's own, and its log "main" in memory or
// in a file.
#ifndef ALPHEUS_TESTS_API_GRPC_SERVER_FIXTURE_H_
#define ALPHEUS_TESTS_API_GRPC_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "alpheus/log.h"
#include "api/grpc/server/log_server.h"
#include "api/service/served/served_logs.h"
#include "tests/api/grpc/log_client.h"

namespace alpheus::testing {

class ServerTest : public ::testing::Test {
 protected:
  // Without a thread of the log, nothing is forced by itself.
  explicit ServerTest(LogOptions options = {.anonymous_bytes = 1 << 20,
                                            .idle_force_us = 0})
      : logs_({"main", "other"}) {
    OpenLog(std::move(options));
    auto server = rpc::LogServer::Start({.listen = "127.0.0.1:0"}, logs_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = std::make_unique<LogClient>(server_->address());
  }
  ~ServerTest() override { CloseLog(); }

  void OpenLog(LogOptions options) {
    auto log = Log::Open(std::move(options));
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    const absl::Status serves = logs_.Serve("main", *log_);
    ASSERT_TRUE(serves.ok()) << serves;
  }
  // As a node gives it back.
  void CloseLog() {
    logs_.Withdraw("main");
    log_.reset();
  }
  void MustOpenClient() {
    const grpc::Status opened = client_->Open();
    ASSERT_TRUE(opened.ok()) << opened.error_message();
  }
  v1::AppendResponse MustAppend(const std::string& data) {
    v1::AppendResponse response;
    const grpc::Status appended = client_->Append(data, &response);
    EXPECT_TRUE(appended.ok()) << appended.error_message();
    return response;
  }

  service::ServedLogs logs_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<rpc::LogServer> server_;
  std::unique_ptr<LogClient> client_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_SERVER_FIXTURE_H_
