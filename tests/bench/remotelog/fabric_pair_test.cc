// SPDX-License-Identifier: Apache-2.0
// Appends over sockets, the server with a thread of its own, as over verbs.
#include "bench/remotelog/fabric_pair.h"

#include <gtest/gtest.h>

#include <memory>

#include "bench/remotelog/rows.h"
#include "replication/persist/platform/method_steps.h"

namespace alpheus::bench::remotelog {
namespace {

constexpr uint64_t kAppends = 3 * kCredits;
constexpr uint64_t kWarmUp = 5;

// Past all credits, with warm-up and several clients; the transport itself
// looks for the records at the server.
TEST(FabricPairTest, RowsRunWithAThreadForTheServer) {
  auto pair = FabricPair::OverTcp("");
  ASSERT_TRUE(pair.ok()) << pair.status();
  auto transport = FabricTransport::Make((*pair)->Ends(kWarmUp));
  ASSERT_TRUE(transport.ok()) << transport.status();
  for (const BenchRow& row : BenchRows()) {
    // No memory was named; this adapter has no atomic WRITE.
    if (row.platform.receive_buffers == replication::ReceiveBuffers::kPmem)
      continue;
    if (row.name == "dmp,off,dram,compound,write") continue;
    SCOPED_TRACE(row.name);
    const auto times = (*transport)
                           ->Append({.platform = row.platform,
                                     .steps = row.steps,
                                     .clients = 2,
                                     .appends = kAppends});
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->latency.size(), 2 * kAppends);
    EXPECT_GT(times->elapsed, 0);
  }
}

// Goal: an error of the server's thread ends the clients' waiting, and is the
// one that is told. Method: the responder hears of an immediate where its
// steps have a message.
TEST(FabricPairTest, ErrorOfTheServersThreadIsTold) {
  auto pair = FabricPair::OverTcp("");
  ASSERT_TRUE(pair.ok()) << pair.status();
  auto transport = FabricTransport::Make((*pair)->Ends(0));
  ASSERT_TRUE(transport.ok()) << transport.status();
  const replication::Step steps[] = {
      replication::steps::kWriteImmediateA, replication::steps::kReceiveA,
      replication::steps::kSendAck, replication::steps::kReceiveAck};
  const auto times = (*transport)->Append({.platform = {}, .steps = steps});
  EXPECT_TRUE(absl::IsDataLoss(times.status())) << times.status();
  // The next run has new connections.
  EXPECT_TRUE(
      (*transport)
          ->Append({.platform = {}, .steps = replication::steps::kWriteThenAck})
          .ok());
}

TEST(FabricPairTest, MemoryThatIsNoPersistentMemoryIsRefused) {
  EXPECT_FALSE(FabricPair::OverTcp("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace alpheus::bench::remotelog
