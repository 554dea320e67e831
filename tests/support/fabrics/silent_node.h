// SPDX-License-Identifier: Apache-2.0
// silent_node: an address at which somebody listens and says nothing, as of a
// node that is stopped.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_SILENT_NODE_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_SILENT_NODE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {

class SilentNode {
 public:
  explicit SilentNode(const std::string& address = "127.0.0.1:0")
      : fabric_(fabric::tcp::TcpFabricOptions(), Clock::Real(), random_) {
    const auto listens = fabric_.Listen(address);
    EXPECT_TRUE(listens.ok()) << listens.status();
    if (listens.ok()) address_ = *listens;
  }

  const std::string& address() const { return address_; }

  // Connections that said hello, and may have gone meanwhile. Requires: whoever
  // connects is through.
  int CountConnections() {
    int count = 0;
    for (int i = 0; i < 1000; ++i) count += TakeConnections();
    return count;
  }

  // Returns when somebody has said hello. When this node is gone, they know at
  // once that it answers no more.
  void AwaitConnection() {
    const Deadline end = InPatience();
    while (TakeConnections() == 0) {
      ASSERT_FALSE(end.HasPassed(Clock::Real().NowNanos()));
      fabric_.WaitForActivity(end);
    }
  }

 private:
  int TakeConnections() {
    std::vector<fabric::Completion> completions(1);
    std::vector<fabric::ConnectionEvent> events;
    fabric_.Poll(std::span(completions), &events);
    return static_cast<int>(std::ranges::count(
        events, fabric::ConnectionEvent::Kind::kRequested,
        [](const fabric::ConnectionEvent& e) { return e.kind; }));
  }

  EntropyRandom random_;
  fabric::tcp::TcpFabric fabric_;
  std::string address_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_SILENT_NODE_H_
