// SPDX-License-Identifier: Apache-2.0
// secure_fixture: a server with TLS and tokens, whose files are the test's.
#ifndef ALPHEUS_TESTS_API_GRPC_SECURE_FIXTURE_H_
#define ALPHEUS_TESTS_API_GRPC_SECURE_FIXTURE_H_

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "api/grpc/access/token_file.h"
#include "api/grpc/server/log_server.h"
#include "api/service/served/served_logs.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/api/grpc/log_client.h"
#include "tests/support/fixtures/fake_wall_clock.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"

namespace alpheus::testing {

class SecureServerTest : public ::testing::Test {
 protected:
  SecureServerTest() : logs_({"main", "other"}) {
    log_ = OpenLog();
    EXPECT_TRUE(logs_.Serve("main", *log_).ok());
    options_.listen = "127.0.0.1:0";
  }
  ~SecureServerTest() override {
    logs_.Withdraw("main");
    log_.reset();
  }

  // Without a thread of the log, nothing is forced by itself.
  static std::unique_ptr<Log> OpenLog() {
    auto log = Log::Open({.anonymous_bytes = 4 << 20, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::string Write(const std::string& name, const std::string& text,
                    mode_t mode = 0600) {
    const std::string path = directory_.File(name);
    const auto bytes = AsBytes(text);
    WriteFile(path, {bytes.begin(), bytes.end()});
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  void UseTls(const TestCertificate& certificate) {
    options_.tls_certificate = Write("node.pem", certificate.certificate, 0644);
    options_.tls_key = Write("node.key", certificate.key);
  }
  // Adds a token to the file, and returns it.
  std::string AddToken(const std::string& name,
                       const std::vector<std::string>& roles,
                       const std::vector<std::string>& logs = {"main"},
                       const std::string& expires = "",
                       const rpc::Rates& rates = {}) {
    const auto made =
        rpc::MakeToken(name, roles, logs, expires, random_, rates);
    EXPECT_TRUE(made.ok()) << made.status();
    options_.tokens = directory_.File("tokens.toml");
    const absl::Status added =
        rpc::AddToTokenFile(options_.tokens, made->entry);
    EXPECT_TRUE(added.ok()) << added;
    return made->token;
  }
  // `say`: what an operator is told.
  void MustStart(std::function<void(const std::string&)> say = {}) {
    auto server =
        rpc::LogServer::Start(options_, logs_, std::move(say), clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // Credentials that trust `ca_`, with this certificate of the client's own.
  std::shared_ptr<grpc::ChannelCredentials> Trusting(
      const TestCertificate& own = {}) const {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = ca_.certificate();
    ssl.pem_cert_chain = own.certificate;
    ssl.pem_private_key = own.key;
    return grpc::SslCredentials(ssl);
  }

  const TempDirectory directory_;
  const TestAuthority ca_{"test authority"};
  FakeWallClock clock_{kYear2900};
  Random random_{1};
  rpc::LogServerOptions options_;
  service::ServedLogs logs_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<rpc::LogServer> server_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_SECURE_FIXTURE_H_
