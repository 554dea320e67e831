// SPDX-License-Identifier: Apache-2.0
// silent_node: the address of a node that is stopped.
#ifndef ALPHEUS_TESTS_TOOLS_CLI_SILENT_NODE_H_
#define ALPHEUS_TESTS_TOOLS_CLI_SILENT_NODE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus::testing {

// A client that connects there hears nothing, as of a node that is stopped.
class SilentNode {
 public:
  explicit SilentNode(const std::string& address)
      : fabric_(fabric::tcp::TcpFabricOptions(), Clock::Real(), random_) {
    const auto listens = fabric_.Listen(address);
    EXPECT_TRUE(listens.ok()) << listens.status();
  }

  // Connections that said hello, and have gone meanwhile.
  int CountConnections() {
    int count = 0;
    std::vector<fabric::Completion> completions(1);
    std::vector<fabric::ConnectionEvent> events;
    for (int i = 0; i < 1000; ++i) {
      events.clear();
      fabric_.Poll(std::span(completions), &events);
      count += static_cast<int>(std::ranges::count(
          events, fabric::ConnectionEvent::Kind::kRequested,
          [](const fabric::ConnectionEvent& e) { return e.kind; }));
    }
    return count;
  }

 private:
  EntropyRandom random_;
  fabric::tcp::TcpFabric fabric_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TOOLS_CLI_SILENT_NODE_H_
