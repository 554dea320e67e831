// SPDX-License-Identifier: Apache-2.0
// Ports set aside for processes that begin later: whoever names one may listen
// there; nobody else is given it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "bench/replicated/candidates/cluster_folder.h"

namespace alpheus::bench::replicated {
namespace {

// The answer of bind(), 0 or errno; the kernel asks itself the same without
// SO_REUSEADDR before it chooses a port.
int BindTo(uint16_t port, bool reuses) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = reuses ? 1 : 0;
  EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int error = bind(fd, reinterpret_cast<const sockaddr*>(&address),
                         sizeof(address)) == 0
                        ? 0
                        : errno;
  close(fd);
  return error;
}

TEST(FreePortsTest, GoToWhoNamesThemAndToNobodyElse) {
  const auto ports = FreePorts(8);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(ports->size(), 8U);
  for (const uint16_t port : *ports) {
    EXPECT_EQ(BindTo(port, false), EADDRINUSE) << port;
    EXPECT_EQ(BindTo(port, true), 0) << port;
  }
}

}  // namespace
}  // namespace alpheus::bench::replicated
