// SPDX-License-Identifier: Apache-2.0
// TLS at a server: whom each side trusts, and certificates that are replaced.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/api/grpc/secure_fixture.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Why(const absl::Status& status) {
  return std::string(status.message());
}

class TlsTest : public SecureServerTest {
 protected:
  LogClient Client(const TestCertificate& own = {}) const {
    return LogClient(server_->address(), Trusting(own), "");
  }
  LogClient ClientThatTrusts(const TestAuthority& other) const {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = other.certificate();
    return LogClient(server_->address(), grpc::SslCredentials(ssl), "");
  }
  void MustRefuse(const rpc::LogServerOptions& options, absl::StatusCode code,
                  const std::string& why) {
    const absl::Status refused = rpc::LogServer::Check(options, clock_);
    EXPECT_EQ(refused.code(), code) << refused;
    EXPECT_THAT(Why(refused), HasSubstr(why));
    // A start says the same.
    EXPECT_EQ(rpc::LogServer::Start(options, logs_, {}, clock_).status(),
              refused);
  }
};

TEST_F(TlsTest, ClientThatTrustsTheAuthorityAppends) {
  UseTls(ca_.Issue("node"));
  MustStart();
  LogClient client = Client();
  const grpc::Status opened = client.Open();
  ASSERT_TRUE(opened.ok()) << opened.error_message();
  v1::AppendResponse appended;
  EXPECT_TRUE(client.Append("a", &appended).ok());
  EXPECT_THAT(client.ReadAll(), ElementsAre("a"));
}

TEST_F(TlsTest, ClientWithoutTlsIsRefused) {
  UseTls(ca_.Issue("node"));
  MustStart();
  LogClient client(server_->address());
  EXPECT_EQ(client.Open().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(log_->next_lsn(), Lsn(1));
}

TEST_F(TlsTest, ClientRefusesACertificateOfAnotherAuthority) {
  UseTls(ca_.Issue("node"));
  MustStart();
  const TestAuthority other("another authority");
  LogClient client = ClientThatTrusts(other);
  const grpc::Status refused = client.Open();
  EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("certificate verify failed"));
}

// The server's clock is wrong here, else it would not start.
TEST_F(TlsTest, ClientRefusesAnExpiredCertificate) {
  UseTls(ca_.Issue("node", kYear2000, kYear2002));
  clock_.Set(kYear2001);
  MustStart();
  LogClient client = Client();
  EXPECT_EQ(client.Open().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ClientsMustShowACertificateWhereOneIsAskedFor) {
  UseTls(ca_.Issue("node"));
  const TestAuthority of_clients("authority of clients");
  options_.tls_client_ca = Write("clients.pem", of_clients.certificate(), 0644);
  MustStart();
  LogClient good = Client(of_clients.Issue("client"));
  const grpc::Status opened = good.Open();
  EXPECT_TRUE(opened.ok()) << opened.error_message();
  LogClient without = Client();
  EXPECT_EQ(without.Open().error_code(), StatusCode::UNAVAILABLE);
  LogClient other = Client(ca_.Issue("client"));
  EXPECT_EQ(other.Open().error_code(), StatusCode::UNAVAILABLE);
  LogClient expired = Client(of_clients.Issue("client", kYear2000, kYear2001));
  EXPECT_EQ(expired.Open().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(log_->next_lsn(), Lsn(2));
}

// New connections see the new certificate; a stream goes on.
TEST_F(TlsTest, CertificateIsReplacedUnderLoad) {
  UseTls(ca_.Issue("node"));
  MustStart();
  LogClient before = Client();
  ASSERT_TRUE(before.Open().ok());
  AppendingStream stream(before);
  ASSERT_TRUE(stream.Send(1, {"a"}));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  const TestAuthority next("next authority");
  LogClient early = ClientThatTrusts(next);
  EXPECT_EQ(early.Open().error_code(), StatusCode::UNAVAILABLE);
  UseTls(next.Issue("node"));
  const absl::Status reloaded = server_->Reload();
  ASSERT_TRUE(reloaded.ok()) << reloaded;
  for (uint64_t i = 2; i < 50; ++i) {
    ASSERT_TRUE(stream.Send(i, {"b"}, i));
  }
  LogClient after = ClientThatTrusts(next);
  EXPECT_TRUE(after.Open().ok());
  LogClient old = Client();
  EXPECT_EQ(old.Open().error_code(), StatusCode::UNAVAILABLE);
  ASSERT_TRUE(stream.ReadUntilDone(49));
  EXPECT_TRUE(stream.Finish().ok());
}

// LSV3.
TEST_F(TlsTest, ReplacedFilesAreTakenAtAHandshakeOfTheNextSecond) {
  UseTls(ca_.Issue("node"));
  std::vector<std::string> said;
  MustStart([&said](const std::string& sentence) { said.push_back(sentence); });
  const TestAuthority next("next authority");
  const TestCertificate own = next.Issue("node");
  Write("node.pem", own.certificate, 0644);
  const auto opens = [&] { return Client().Open().ok(); };
  EXPECT_TRUE(opens());
  EXPECT_THAT(said, IsEmpty());
  // The key is missing yet.
  for (int second = 1; second < 3; ++second) {
    clock_.Set(kYear2900 + second);
    EXPECT_TRUE(opens());
    EXPECT_THAT(said, ElementsAre(AllOf(
                          HasSubstr("the certificate of before is kept: "),
                          HasSubstr("the key of another certificate"))));
  }
  Write("node.key", own.key);
  clock_.Set(kYear2900 + 3);
  EXPECT_FALSE(opens());
  LogClient after = ClientThatTrusts(next);
  EXPECT_TRUE(after.Open().ok());
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[1], HasSubstr("the certificate was replaced, and is used"));
}

TEST_F(TlsTest, AuthoritiesOfClientsAreReplaced) {
  UseTls(ca_.Issue("node"));
  const TestAuthority first("first");
  const TestAuthority second("second");
  options_.tls_client_ca = Write("clients.pem", first.certificate(), 0644);
  MustStart();
  Write("clients.pem", second.certificate(), 0644);
  ASSERT_TRUE(server_->Reload().ok());
  LogClient old = Client(first.Issue("client"));
  EXPECT_EQ(old.Open().error_code(), StatusCode::UNAVAILABLE);
  LogClient fresh = Client(second.Issue("client"));
  EXPECT_TRUE(fresh.Open().ok());
}

TEST_F(TlsTest, FilesOfNoUseKeepTheCertificateAndSaySo) {
  const TestCertificate good = ca_.Issue("node");
  const TestCertificate other = ca_.Issue("node");
  UseTls(good);
  options_.tls_client_ca = Write("clients.pem", ca_.certificate(), 0644);
  const std::string token = AddToken("one", {"append"});
  MustStart();
  const auto must_keep = [&](const std::string& why) {
    const absl::Status kept = server_->Reload();
    EXPECT_FALSE(kept.ok()) << why;
    EXPECT_THAT(Why(kept), HasSubstr("the certificate of before is kept: "));
    EXPECT_THAT(Why(kept), HasSubstr(why));
    LogClient client = Client(ca_.Issue("client"));
    client.token = token;
    EXPECT_TRUE(client.Open().ok()) << why;
  };
  Write("node.key", other.key);
  must_keep("the key of another certificate");
  UseTls(good);
  Write("node.pem", good.certificate.substr(0, good.certificate.size() / 2));
  must_keep("certificate 1 is cut off");
  UseTls(good);
  Write("node.key", good.key, 0640);
  must_keep("has mode 640");
  UseTls(ca_.Issue("node", kYear2000, kYear2001));
  must_keep("has expired");
  UseTls(good);
  Write("clients.pem", "", 0644);
  must_keep("clients.pem: no certificate");
  EXPECT_EQ(unlink(options_.tls_client_ca.c_str()), 0);
  must_keep("can't be opened");
  // Tokens are taken all the same (LSV2).
  const std::string second = AddToken("two", {"append"});
  must_keep("can't be opened");
  LogClient client = Client(ca_.Issue("client"));
  client.token = second;
  EXPECT_TRUE(client.Open().ok());
}

TEST_F(TlsTest, StartNeedsFilesOfUse) {
  const TestCertificate good = ca_.Issue("node");
  UseTls(good);
  EXPECT_TRUE(rpc::LogServer::Check(options_, clock_).ok());
  rpc::LogServerOptions options = options_;
  options.tls_key = "";
  MustRefuse(options, absl::StatusCode::kInvalidArgument,
             "a certificate without its key");
  options = options_;
  options.tls_certificate = "";
  MustRefuse(options, absl::StatusCode::kInvalidArgument,
             "a key without its certificate");
  options.tls_key = "";
  options.tls_client_ca = options_.tls_certificate;
  MustRefuse(options, absl::StatusCode::kInvalidArgument,
             "--tls-client-ca without TLS");
  options = options_;
  options.tls_certificate = directory_.File("none");
  MustRefuse(options, absl::StatusCode::kNotFound,
             "certificate file " + options.tls_certificate);
  options = options_;
  options.tokens = Write("tokens.toml", "", 0604);
  MustRefuse(options, absl::StatusCode::kFailedPrecondition, "has mode 604");
  options = options_;
  options.tokens = directory_.path();
  MustRefuse(options, absl::StatusCode::kInvalidArgument,
             "is not a regular file");
  clock_.Set(kYear2999 + 1);
  MustRefuse(options_, absl::StatusCode::kFailedPrecondition,
             "the certificate of \"CN=node\" has expired at 2999-01-01");
}

TEST_F(TlsTest, OtherMachinesReachOnlyASecureServer) {
  UseTls(ca_.Issue("node"));
  AddToken("one", {"read"});
  options_.tls_client_ca = Write("clients.pem", ca_.certificate(), 0644);
  for (const char* listen : {"0.0.0.0:7411", "192.0.2.1:7411", "[::]:7411"}) {
    options_.listen = listen;
    EXPECT_TRUE(rpc::LogServer::Check(options_, clock_).ok()) << listen;
    rpc::LogServerOptions options = options_;
    options.tokens = "";
    EXPECT_TRUE(rpc::LogServer::Check(options, clock_).ok()) << listen;
    options.tls_client_ca = "";
    MustRefuse(options, absl::StatusCode::kInvalidArgument,
               "Give --tokens, or --tls-client-ca");
    MustRefuse({.listen = listen}, absl::StatusCode::kInvalidArgument,
               "Give --tls-certificate and --tls-key, and --tokens or "
               "--tls-client-ca");
    MustRefuse({.listen = listen, .tokens = options_.tokens},
               absl::StatusCode::kInvalidArgument, "without TLS");
  }
  // On this machine's own addresses each may be left out.
  options_.listen = "127.0.0.1:7411";
  options_.tls_client_ca = "";
  EXPECT_TRUE(rpc::LogServer::Check(options_, clock_).ok());
  EXPECT_TRUE(rpc::LogServer::Check(
                  {.listen = "127.0.0.1:7411", .tokens = options_.tokens})
                  .ok());
}

}  // namespace
}  // namespace alpheus::testing
