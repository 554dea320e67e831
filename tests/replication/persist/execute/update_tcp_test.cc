// SPDX-License-Identifier: Apache-2.0
// The tables' rows over sockets: that they run, not what a power cut leaves.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_table.h"
#include "tests/replication/fabric/tcp/tcp_world.h"
#include "tests/replication/persist/execute/update_world.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;

namespace {

constexpr uint64_t kUpdatesOverTcp = 5;

class UpdatesOverTcp {
 public:
  UpdatesOverTcp(std::span<const replication::Step> steps, bool pmem_buffers) {
    const std::string address = *there().Listen(world_.ListenAddress(1));
    key_ =
        *there().Register(memory_.region(), fabric::RemoteAccess::kReadWrite);
    const fabric::ConnectionId at_here =
        *here().Connect(address, "", Deadline());
    const fabric::ConnectionId at_there =
        Await(1, ConnectionEvent::Kind::kRequested);
    const UpdateTerms terms = {.pmem_buffers = pmem_buffers};
    responder_ = *replication::UpdateResponder<model::ModelPersistence>::Start(
        memory_, steps, terms.ForResponder(key_, memory_.region()), there(),
        at_there);
    EXPECT_TRUE(there().Accept(at_there, "").ok());
    Await(0, ConnectionEvent::Kind::kEstablished);
    auto requester = replication::UpdateRequester::Start(
        steps, terms.ForRequester(key_), here(), at_here);
    start_ = requester.status();
    if (requester.ok()) requester_ = *std::move(requester);
  }

  const absl::Status& start() const { return start_; }
  void Run(bool is_compound) {
    while (requester_->persisted() < kUpdatesOverTcp) {
      if (requester_->CanPost()) {
        ASSERT_TRUE(requester_
                        ->Post(source_.Make(requester_->posted() + 1, key_,
                                            is_compound))
                        .ok());
      }
      world_.Pass();
      Take();
    }
    while (!requester_->CanPost()) {
      world_.Pass();
      Take();
    }
    ASSERT_TRUE(responder_->ApplyReceived().ok());
  }
  FoundUpdates Visible() { return FindUpdates(memory_.region()); }

 private:
  fabric::tcp::TcpFabric& here() { return world_.fabric(0); }
  fabric::tcp::TcpFabric& there() { return world_.fabric(1); }
  fabric::ConnectionId Await(int host, ConnectionEvent::Kind kind) {
    for (;;) {
      world_.Pass();
      for (int each = 0; each < 2; ++each) {
        world_.fabric(each).Poll({}, &events_[each]);
      }
      for (const ConnectionEvent& event : events_[host]) {
        if (event.kind == kind) return event.connection;
      }
    }
  }
  void Take() {
    std::array<fabric::Completion, 16> some;
    size_t count = there().Poll(some, &events_[1]);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(responder_->OnCompletion(some[i]).ok());
    }
    if (responder_->unapplied() == kUpdateCredits) {
      EXPECT_TRUE(responder_->ApplyReceived().ok());
    }
    count = here().Poll(some, &events_[0]);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(requester_->OnCompletion(some[i]).ok());
    }
  }

  TcpWorld world_;
  model::ModelPersistence memory_{kUpdateMemoryBytes};
  UpdateSource source_{world_.fabric(0)};
  fabric::RegionKey key_;
  std::vector<ConnectionEvent> events_[2];
  absl::Status start_;
  std::unique_ptr<replication::UpdateRequester> requester_;
  std::unique_ptr<replication::UpdateResponder<model::ModelPersistence>>
      responder_;
};

TEST(UpdateTcpTest, EveryRowRuns) {
  for (const replication::TableRow& row : replication::RowsOfTable()) {
    SCOPED_TRACE(replication::CellOf(row));
    replication::Platform platform =
        replication::PlatformOfTable(row.configuration);
    const bool pmem_buffers =
        platform.receive_buffers == replication::ReceiveBuffers::kPmem;
    std::span<const replication::Step> steps = row.steps;
    if (!UpdatesOverTcp(steps, pmem_buffers).start().ok()) {
      // The one that this adapter lacks an operation for.
      ASSERT_TRUE(
          absl::IsUnimplemented(UpdatesOverTcp(steps, pmem_buffers).start()));
      platform.atomic_write = false;
      steps = replication::PlanOfTable(platform, row.kind, row.operation).steps;
    }
    UpdatesOverTcp updates(steps, pmem_buffers);
    ASSERT_TRUE(updates.start().ok());
    updates.Run(row.kind == replication::UpdateKind::kCompound);
    EXPECT_EQ(updates.Visible().whole, kUpdatesOverTcp);
    EXPECT_EQ(
        updates.Visible().b,
        row.kind == replication::UpdateKind::kCompound ? kUpdatesOverTcp : 0);
  }
}

}  // namespace
}  // namespace alpheus::testing
