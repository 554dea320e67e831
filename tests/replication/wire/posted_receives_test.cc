// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/posted_receives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fabrics/counting_fabric.h"
#include "tests/support/fabrics/direct_fabric.h"
#include "tests/support/fabrics/failing_fabric.h"

namespace alpheus::testing {
namespace {

constexpr uint32_t kCredits = 6;
constexpr size_t kBytes = 16;

// A peer that sends, and the receives that take it.
class PostedReceivesTest : public ::testing::Test {
 protected:
  void Make(uint32_t receives_max) {
    limits_.receives_max = receives_max;
    here_ = std::make_unique<DirectFabric>(limits_);
    counted_ = std::make_unique<CountingFabric>(*here_);
    connection_ = DirectFabric::Join(*here_, there_);
    auto made = replication::PostedReceives::Make(*counted_, connection_,
                                                  kCredits, kBytes);
    ASSERT_TRUE(made.ok()) << made.status();
    receives_ = *std::move(made);
  }
  // The peer sends a message; returns the first byte that is read of it.
  std::byte Exchange(std::byte sent) {
    message_[0] = sent;
    const auto key = there_.Register(message_, fabric::RemoteAccess::kNone);
    EXPECT_TRUE(key.ok());
    EXPECT_TRUE(
        there_.PostSend(connection_, fabric::WorkId(1), {*key, message_}).ok());
    there_.Run();
    EXPECT_TRUE(there_.Deregister(*key).ok());
    const std::vector<fabric::Completion> came = here_->DrainCompletions();
    EXPECT_EQ(came.size(), 1u);
    if (came.size() != 1) return {};
    ++brought_;
    const std::byte read = receives_->BytesOf(came[0])[0];
    EXPECT_TRUE(receives_->Taken(came[0].work).ok());
    return read;
  }
  uint64_t posted() const {
    return counted_->counts().Of(fabric::Operation::kReceive) - brought_;
  }

  fabric::Fabric::Limits limits_ = {.sends_max = 64,
                                    .receives_max = 64,
                                    .message_bytes_max = 64,
                                    .private_bytes_max = 64,
                                    .retry_ns = 1};
  DirectFabric there_{limits_};
  std::unique_ptr<DirectFabric> here_;
  std::unique_ptr<CountingFabric> counted_;
  fabric::ConnectionId connection_;
  std::unique_ptr<replication::PostedReceives> receives_;
  std::array<std::byte, kBytes> message_{};
  uint64_t brought_ = 0;
};

// PR1, however seldom they are posted again.
TEST_F(PostedReceivesTest, PeerNeverFindsNone) {
  Make(64);
  uint64_t most_waited = 0;
  const uint64_t all = posted();
  for (int i = 1; i < 50; ++i) {
    EXPECT_EQ(Exchange(std::byte(i)), std::byte(i));
    EXPECT_GE(posted(), kCredits) << i;
    most_waited = std::max(most_waited, all - posted());
    if (i % 17 != 0) continue;
    EXPECT_TRUE(receives_->PostAll().ok());
    EXPECT_EQ(posted(), all);
  }
  // Some did wait.
  EXPECT_GT(most_waited, 1u);
}

TEST_F(PostedReceivesTest, NoneWaitsWhereTheFabricHasNoRoomForMore) {
  Make(kCredits);
  EXPECT_EQ(posted(), kCredits);
  for (int i = 1; i < 20; ++i) {
    Exchange(std::byte(i));
    EXPECT_EQ(posted(), kCredits);
  }
}

// Each call of the fabric, in turn: when they are made, and posted again.
TEST_F(PostedReceivesTest, FailureOfTheFabricIsTold) {
  limits_.receives_max = kCredits;
  constexpr uint64_t kCallsOfMake = 1 + kCredits;
  for (uint64_t call = 1; call <= kCallsOfMake; ++call) {
    DirectFabric other(limits_);
    DirectFabric peer(limits_);
    FailingFabric fails(other);
    fails.FailCall(call);
    EXPECT_FALSE(replication::PostedReceives::Make(
                     fails, DirectFabric::Join(other, peer), kCredits, kBytes)
                     .ok())
        << call;
    EXPECT_TRUE(fails.has_failed());
  }
  DirectFabric other(limits_);
  DirectFabric peer(limits_);
  FailingFabric fails(other);
  const auto made = replication::PostedReceives::Make(
      fails, DirectFabric::Join(other, peer), kCredits, kBytes);
  ASSERT_TRUE(made.ok()) << made.status();
  fails.FailCall(1);
  EXPECT_FALSE((*made)->Taken(fabric::WorkId(0)).ok());
}

}  // namespace
}  // namespace alpheus::testing
