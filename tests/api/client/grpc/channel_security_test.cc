// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/channel_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::client {
namespace {

using ::testing::HasSubstr;

absl::Status Load(const ClientSecurity& options,
                  const std::vector<std::string>& addresses = {"127.0.0.1:1"}) {
  return ChannelSecurity::Load(options, addresses).status();
}

void ExpectInvalid(const ClientSecurity& options, const std::string& why) {
  const absl::Status refused = Load(options);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(why));
}

TEST(ChannelSecurityTest, LoopbackIsJudgedBySpelling) {
  for (const char* own : {"127.0.0.1:1", "127.255.0.9:7411", "[::1]:7411",
                          "localhost:7411", "LocalHost:1"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  for (const char* other : {"10.0.0.1:1",
                            "127.example.com:1",
                            "127.0.0.1.example.com:1",
                            "127.1:1",
                            "127.0.0.256:1",
                            "127.0.0.+1:1",
                            "127.0.0.:1",
                            "::1:1",
                            "localhost.example.com:1",
                            "xlocalhost:1",
                            "localhost",
                            "127.0.0.1",
                            "",
                            ":1",
                            "dns:///localhost:1",
                            "localhost:x",
                            "127.0.0.0001:1",
                            "[::1]",
                            "[::2]:1",
                            "node1:1"}) {
    EXPECT_FALSE(IsLoopback(other)) << other;
  }
}

TEST(ChannelSecurityTest, TokenLeavesThisMachineOnlyThroughTls) {
  const std::vector<std::string> far = {"127.0.0.1:1", "10.0.0.1:1"};
  EXPECT_TRUE(Load({}, far).ok());
  EXPECT_TRUE(Load({.uses_tls = true, .token = "t"}, far).ok());
  EXPECT_TRUE(Load({.token = "t"}, {"127.0.0.1:1", "localhost:2"}).ok());
  const absl::Status refused = Load({.token = "t"}, far);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_EQ(std::string(refused.message()),
            "security: without TLS everybody on the way to 10.0.0.1:1 could "
            "read the token. Set uses_tls; or name 127.0.0.1, [::1] or "
            "localhost, if the node is on this machine");
}

TEST(ChannelSecurityTest, OptionsGoTogether) {
  ExpectInvalid({.ca_pem = "x"}, "without TLS");
  ExpectInvalid({.server_name = "x"}, "without TLS");
  ExpectInvalid({.uses_tls = true, .ca_file = "a", .ca_pem = "b"},
                "both ca_file and ca_pem");
  ExpectInvalid({.uses_tls = true, .key_file = "a"},
                "a certificate needs its key");
  ExpectInvalid({.uses_tls = true, .certificate_file = "a"},
                "a certificate needs its key");
  for (const char* token : {"t\n", "a b", "\x80", "\x7f"}) {
    ExpectInvalid({.token = token}, "Is there a line end behind it?");
  }
}

TEST(ChannelSecurityTest, FilesAreRead) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("ca.pem");
  const absl::Status missing = Load({.uses_tls = true, .ca_file = path});
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr(path));
  const auto bytes = AsBytes("-----BEGIN CERTIFICATE-----\n");
  testing::WriteFile(path, {bytes.begin(), bytes.end()});
  EXPECT_TRUE(Load({.uses_tls = true, .ca_file = path}).ok());
  testing::WriteFile(path, {});
  ExpectInvalid({.uses_tls = true, .ca_file = path}, "expected PEM");
}

}  // namespace
}  // namespace alpheus::client
