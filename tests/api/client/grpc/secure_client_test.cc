// SPDX-License-Identifier: Apache-2.0
// The clients of a log at a server with TLS and tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "api/client/grpc/log_client.h"
#include "api/client/grpc/log_reader.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/api/client/grpc/scripted_primary.h"
#include "tests/api/grpc/secure_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SecureClientTest : public SecureServerTest {
 protected:
  // Options of a client that trusts the authority, and has this token.
  client::LogClientOptions Options(const std::string& token) const {
    client::LogClientOptions options;
    options.addresses = {server_->address()};
    options.security.uses_tls = true;
    options.security.ca_pem = ca_.certificate();
    options.security.token = token;
    return options;
  }
  static std::unique_ptr<client::LogClient> MustStartClient(
      client::LogClientOptions options) {
    auto started = client::LogClient::Start(std::move(options));
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  // A client with these options appends nothing, reads nothing, and says why.
  static void ExpectNever(const client::LogClientOptions& options,
                          const std::string& why) {
    constexpr absl::Duration kBrief = absl::Milliseconds(10);
    const auto reader = client::LogReader::Start(options, {});
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto appending = MustStartClient(options);
    std::string read;
    std::string appended;
    const Deadline end = InPatience();
    const auto may_wait = [&] {
      return !end.HasPassed(Clock::Real().NowNanos());
    };
    while (!absl::StrContains(read, why) && may_wait()) {
      const absl::Status reading = (*reader)->Next(kBrief).status();
      EXPECT_TRUE(absl::IsDeadlineExceeded(reading)) << reading;
      read = std::string(reading.message());
    }
    while (!absl::StrContains(appended, why) && may_wait()) {
      const auto answer = appending->Append({.parts = {"a"}}, kBrief);
      appended = std::string(answer.status().message());
    }
    EXPECT_THAT(read, HasSubstr(why));
    EXPECT_THAT(appended, HasSubstr(why));
  }
};

TEST_F(SecureClientTest, AppendsAndReadsByTlsWithAToken) {
  UseTls(ca_.Issue("node"));
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  const auto appending = MustStartClient(Options(token));
  const auto appended = appending->Append({.parts = {"a"}}, kPatienceDuration);
  ASSERT_TRUE(appended.ok()) << appended.status();
  const auto reader = client::LogReader::Start(Options(token), {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto record = (*reader)->Next(kPatienceDuration);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT((**record).parts, ElementsAre("a"));
}

// A node that can't be reached says why, to readers and to those who append.
TEST_F(SecureClientTest, CertificatesThatAreRefusedAreNamed) {
  UseTls(ca_.Issue("node"));
  MustStart();
  const TestAuthority other("another authority");
  client::LogClientOptions options = Options("");
  options.security.ca_pem = other.certificate();
  ExpectNever(options, "certificate verify failed");
  options = Options("");
  options.security.server_name = "elsewhere";
  ExpectNever(options, "node 127.0.0.1:");
  options.security = {};
  ExpectNever(options, "node 127.0.0.1:");
}

TEST_F(SecureClientTest, NameOfTheServerMayBeGiven) {
  UseTls(ca_.Issue("node"));
  MustStart();
  client::LogClientOptions options = Options("");
  options.security.server_name = "node";
  const auto appending = MustStartClient(options);
  EXPECT_TRUE(appending->Append({.parts = {"a"}}, kPatienceDuration).ok());
}

TEST_F(SecureClientTest, ShowsItsOwnCertificateFromFiles) {
  UseTls(ca_.Issue("node"));
  options_.tls_client_ca = Write("clients.pem", ca_.certificate(), 0644);
  MustStart();
  const TestCertificate own = ca_.Issue("client");
  client::LogClientOptions options = Options("");
  options.security.ca_pem = "";
  options.security.ca_file = options_.tls_client_ca;
  options.security.certificate_file = Write("client.pem", own.certificate);
  options.security.key_file = Write("client.key", own.key);
  const auto appending = MustStartClient(options);
  EXPECT_TRUE(appending->Append({.parts = {"a"}}, kPatienceDuration).ok());
}

TEST_F(SecureClientTest, TokenThatIsRefusedEndsTheClient) {
  UseTls(ca_.Issue("node"));
  const std::string read = AddToken("reader", {"read"});
  const std::string append = AddToken("appender", {"append"});
  MustStart();
  for (const auto& [token, code] :
       {std::pair{std::string("alph_0"), absl::StatusCode::kUnauthenticated},
        {std::string(), absl::StatusCode::kUnauthenticated},
        {read, absl::StatusCode::kPermissionDenied}}) {
    const auto appending = MustStartClient(Options(token));
    const auto refused = appending->Append({.parts = {"a"}}, kPatienceDuration);
    EXPECT_EQ(refused.status().code(), code) << refused.status();
    EXPECT_EQ(appending->AppendAsync({.parts = {"b"}}, {}), refused.status());
  }
  const auto other = client::LogReader::Start(Options("alph_0"), {});
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(absl::IsUnauthenticated((*other)->Next().status()));
  // It may ask who is primary.
  const auto tail = client::LogReader::Start(Options(append), {});
  ASSERT_TRUE(tail.ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*tail)->Next().status()));
  const auto reader =
      client::LogReader::Start(Options(append), {.follows = false});
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*reader)->Next().status()))
      << "also of an empty log: the node that reads says that it is";
}

// The node says what it has admitted, so no outcome is unknown (APS6).
TEST_F(SecureClientTest, RevokedAppenderKnowsThatNothingWasAppended) {
  UseTls(ca_.Issue("node"));
  const std::string token = AddToken("both", {"append"});
  MustStart();
  const auto appending = MustStartClient(Options(token));
  ASSERT_TRUE(appending->Append({.parts = {"a"}}, kPatienceDuration).ok());
  Write("tokens.toml", "");
  ASSERT_TRUE(server_->Reload().ok());
  const auto lost = appending->Append({.parts = {"b"}}, kPatienceDuration);
  EXPECT_TRUE(absl::IsUnauthenticated(lost.status())) << lost.status();
  EXPECT_THAT(std::string(lost.status().message()),
              HasSubstr("the token is not known here"));
  EXPECT_EQ(appending->UnknownOutcomes(), 0U);
  const auto refused = appending->AppendAsync({.parts = {"c"}}, {});
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  EXPECT_EQ(log_->next_lsn(), Lsn(3));
}

TEST_F(SecureClientTest, RevokedReaderEnds) {
  UseTls(ca_.Issue("node"));
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  const auto appending = MustStartClient(Options(token));
  ASSERT_TRUE(appending->Append({.parts = {"a"}}, kPatienceDuration).ok());
  const auto reader = client::LogReader::Start(Options(token), {});
  ASSERT_TRUE(reader.ok());
  ASSERT_TRUE((*reader)->Next(kPatienceDuration).ok());
  const std::string second = AddToken("second", {"append"});
  const std::string text(AsText(ReadFile(options_.tokens)));
  Write("tokens.toml", text.substr(text.rfind("[[token]]")));
  ASSERT_TRUE(server_->Reload().ok());
  const auto other = MustStartClient(Options(second));
  ASSERT_TRUE(other->Append({.parts = {"b"}}, kPatienceDuration).ok());
  const auto end = (*reader)->Next(kPatienceDuration);
  EXPECT_TRUE(absl::IsUnauthenticated(end.status())) << end.status();
}

TEST_F(SecureClientTest, TokenWithoutTlsIsForThisMachine) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  client::LogClientOptions options = Options(token);
  options.security = {.token = token};
  const auto appending = MustStartClient(options);
  EXPECT_TRUE(appending->Append({.parts = {"a"}}, kPatienceDuration).ok());
  options.addresses.emplace_back("node1.example.com:7411");
  EXPECT_TRUE(
      absl::IsInvalidArgument(client::LogClient::Start(options).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(client::LogReader::Start(options, {}).status()));
}

// The spelling counts: this address leads here.
TEST_F(SecureClientTest, TokenIsNotSentWhereANodeSaysWithoutTls) {
  const std::string token = AddToken("both", {"append"}, {"other"});
  MustStart();
  ScriptedPrimary named;
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0;
  bool is_answered = false;
  logs_.SetAddresses({{2, "ipv4:" + named.address()}});
  logs_.SetFindPrimary("other", [&] {
    const std::lock_guard lock(mutex);
    ++asked;
    changed.notify_all();
    return PrimaryReport{.node = 2, .epoch = Epoch(5)};
  });
  client::LogClientOptions options = Options(token);
  options.security = {.token = token};
  options.log = "other";
  auto appending = MustStartClient(options);
  const absl::Status taken = appending->AppendAsync(
      {.parts = {"a"}}, [&](const absl::StatusOr<client::Appended>&) {
        const std::lock_guard lock(mutex);
        is_answered = true;
        changed.notify_all();
      });
  ASSERT_TRUE(taken.ok()) << taken;
  {
    std::unique_lock lock(mutex);
    // It asks again after it was to ask the other one.
    EXPECT_TRUE(changed.wait_for(lock, kPatience,
                                 [&] { return asked > 1 || is_answered; }));
    EXPECT_FALSE(is_answered);
  }
  appending.reset();
  EXPECT_EQ(named.streams(), 0);
  logs_.SetFindPrimary("other", {});
}

}  // namespace
}  // namespace alpheus::testing
