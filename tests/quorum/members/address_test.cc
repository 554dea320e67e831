// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace alpheus::quorum {
namespace {

TEST(AddressTest, HostAndPortAreTakenApart) {
  const struct {
    const char *text, *host;
    uint16_t port;
  } cases[] = {
      {"a:1", "a", 1},
      {"node-1.Example.org:65535", "node-1.example.org", 65535},
      {"my_host:7400", "my_host", 7400},
      {"10.0.0.1:7400", "10.0.0.1", 7400},
      {"[::1]:7400", "::1", 7400},
      {"[FE80::1%eth0]:7400", "fe80::1%eth0", 7400},
  };
  for (const auto& c : cases) {
    const auto address = ParseAddress(c.text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(*address, (Address{c.host, c.port}));
    EXPECT_EQ(*ParseAddress(address->ToString()), *address);
  }
}

TEST(AddressTest, OtherTextIsRefusedWithItsReason) {
  const struct {
    std::string text, why;
  } cases[] = {
      {"", "it has no port"},
      {"host", "it has no port"},
      {"host:", "the port is not 1 to 65535"},
      {"host:0", "the port is not 1 to 65535"},
      {"host:07400", "the port is not 1 to 65535"},
      {"host:65536", "the port is not 1 to 65535"},
      {"host:-1", "the port is not 1 to 65535"},
      {"host:+1", "the port is not 1 to 65535"},
      {"host:74x", "the port is not 1 to 65535"},
      {"host: 7400", "the port is not 1 to 65535"},
      {"[::1]", "the port is not 1 to 65535"},
      {":7400", "it has no host"},
      {std::string(254, 'a').append(":1"), "the host is too long"},
      {"a b:1", "a character that is not allowed in a host"},
      {"::1:7400", "a character that is not allowed in a host"},
      {"[]:7400", "a character that is not allowed in a host"},
      {"[::1:7400", "a character that is not allowed in a host"},
      {"http://a:1", "a character that is not allowed in a host"},
      {"[a/b:c]:1", "a character that is not allowed in a host"},
      {"[host]:7400", "not an IPv6 number"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ParseAddress(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    const std::string message(status.message());
    EXPECT_NE(message.find(c.why), std::string::npos) << status;
    EXPECT_NE(message.find("\"" + c.text + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace alpheus::quorum
