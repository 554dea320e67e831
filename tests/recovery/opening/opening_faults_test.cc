// SPDX-License-Identifier: Apache-2.0
// Openings that meet replies that can't be, pauses of their own, and replicas
// that take their time.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/server_hello_check.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {

using recovery::EpochOpeningOptions;
using recovery::Message;
using recovery::ServerHello;
using recovery::StateReport;

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Primary = OpeningWorld::Primary;

constexpr int64_t kMillisecond = 1'000'000;

// Expects that the third of three replicas was left behind, and why.
void ExpectOpenedWithoutThird(const Primary& primary, const std::string& why) {
  ASSERT_TRUE(primary.status().ok()) << primary.status();
  ASSERT_EQ(primary.opened->not_installed.size(), 1u) << why;
  EXPECT_EQ(primary.opened->not_installed[0].node, NodeId(3));
  EXPECT_THAT(primary.opened->not_installed[0].why, HasSubstr(why));
}

// Steps until `so_far` holds and only gather_ns is waited for.
void StepUntilTimeIsWaitedFor(OpeningWorld& world, Primary& primary,
                              int64_t gather_ns,
                              const std::function<bool()>& so_far) {
  const Clock& clock = world.network().clock();
  const auto waits = [&] {
    const int64_t next = primary.opening->NextPoll().at_nanos();
    return next > clock.NowNanos() && next <= clock.NowNanos() + gather_ns &&
           so_far();
  };
  for (int i = 0; i < 10'000 && !waits(); ++i) {
    ASSERT_TRUE(world.Step({&primary}));
  }
}

// --- Replies that can't be ---------------------------------------------------

TEST(OpeningFaultsTest, ReplyThatIsNoneCostsItsReplicaOnly) {
  for (int nth = 1; nth <= 3; ++nth) {
    for (const bool is_other : {false, true}) {
      OpeningWorld world({});
      int replies = 0;
      world.server(3).on_reply = [&](std::vector<std::byte>& bytes) {
        if (++replies != nth) return;
        if (is_other) {
          bytes = recovery::EncodeMessage(kOpeningLog, recovery::Formatted{});
        } else {
          std::ranges::fill(bytes, std::byte{0x5a});
        }
      };
      const auto primary = world.Open(0);
      ExpectOpenedWithoutThird(
          *primary, is_other ? "not a reply" : "was damaged on the way");
    }
  }
}

// MSG1 (messages.h). Replicas whose reply was damaged on the way, or that were
// sent something that was, are asked again while too few have answered.
TEST(OpeningFaultsTest, WhatWasChangedOnItsWayIsAskedForAgain) {
  for (const bool is_request : {false, true}) {
    OpeningWorld world({});
    int changed = 0;
    for (const int node : {2, 3}) {
      world.server(node).on_reply = [&, replies = 0](auto& bytes) mutable {
        if (++replies != 1) return;
        ++changed;
        if (is_request)
          bytes = recovery::EncodeMessage(kOpeningLog, recovery::Changed{});
        if (!is_request) bytes[9] ^= std::byte{16};
      };
    }
    EpochOpeningOptions options = world.OpeningOptions(0);
    options.deadline = Deadline::AtNanos(10'000 * kMillisecond);
    const auto primary = world.Begin(0, options);
    world.Drive({primary.get()});
    EXPECT_TRUE(primary->status().ok()) << primary->status();
    EXPECT_EQ(changed, 2);
  }
}

TEST(OpeningFaultsTest, GarbageFromTooManyIsUnavailable) {
  OpeningWorld world({});
  for (const int node : {2, 3}) {
    world.server(node).on_reply = [](std::vector<std::byte>& bytes) {
      bytes.resize(1);
    };
  }
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(), HasSubstr("node 2"));
  EXPECT_FALSE(primary->opening->may_try_again());
}

TEST(OpeningFaultsTest, ServerHelloThatCannotBeCostsItsReplicaOnly) {
  struct Case {
    std::function<void(ServerHello&)> change;
    const char* why;
  };
  for (const Case& c : std::vector<Case>{
           {[](ServerHello& w) { w.node = NodeId(9); }, "node 9 answers there"},
           {[](ServerHello& w) {
              const NodeId node = w.node;
              w = ServerHello();
              w.node = node;
            },
            "has no replica"},
           {[](ServerHello& w) { w.ring_capacity += 1; },
            "are not a server hello"},
           {[](ServerHello& w) { w.ring_capacity = uint64_t{1} << 40; },
            "256 GiB"}}) {
    OpeningWorld world({});
    world.server(3).on_server_hello = c.change;
    const auto primary = world.Open(0);
    ExpectOpenedWithoutThird(*primary, c.why);
  }
}

TEST(OpeningFaultsTest, ServerHelloThatPutsAllInDoubtEndsTheOpening) {
  for (const int host : {0, 3}) {
    OpeningWorld world({});
    world.server(3).on_server_hello = [](ServerHello& server_hello) {
      ++server_hello.configuration_id;
    };
    EpochOpeningOptions options = world.OpeningOptions(host);
    options.sizes = *quorum::MakeQuorumSizes(3, 1);  // R = 3: all must welcome
    const auto primary = world.Open(host, options);
    EXPECT_TRUE(absl::IsFailedPrecondition(primary->status()))
        << primary->status();
    EXPECT_THAT(primary->status().ToString(), HasSubstr("newer than 1"));
  }
}

// OP1 (opening_peer.h).
TEST(OpeningFaultsTest, ReportThatCannotBeCostsItsReplicaOnly) {
  struct Case {
    std::function<void(StateReport&)> change;
    const char* why;
  };
  for (const Case& c : std::vector<Case>{
           {[](StateReport& a) { a.node = NodeId(9); }, "answers as node 9"},
           {[](StateReport& a) { ++a.incarnation; }, "answers as node 3"},
           {[](StateReport& a) { a.ring_capacity *= 2; },
            "with a ring of 4096"},
           {[](StateReport& a) {
              a.log_epoch = Epoch(uint64_t{1} << 60);
              a.table =
                  EpochTable::Empty(kOpeningLog)
                      .With({a.log_epoch, 1, Lsn(1), RingOffset(), 0}, Lsn(1));
            },
            "that it promised"},
           {[](StateReport& a) { a.table = EpochTable::Empty(kOpeningLog); },
            "ends with epoch 0"},
           {[](StateReport& a) { a.log_epoch = Epoch(1); }, "its log epoch 1"},
       }) {
    OpeningWorld world({});
    ASSERT_TRUE(world.Open(0)->status().ok());
    world.server(3).on_report = c.change;
    const auto primary = world.Open(0);
    ExpectOpenedWithoutThird(*primary, c.why);
  }
}

// Memory for a report is made by what the replica says of it.
TEST(OpeningFaultsTest, ReportThatNoRingHasIsNotRead) {
  OpeningWorld world({});
  ASSERT_TRUE(world.Open(0)->status().ok());
  world.server(3).on_reply = [](std::vector<std::byte>& bytes) {
    absl::StatusOr<Message> reply = recovery::DecodeMessage(kOpeningLog, bytes);
    if (!reply.ok() || !std::holds_alternative<recovery::Promised>(*reply))
      return;
    std::get<recovery::Promised>(*reply).report_bytes = uint64_t{1} << 50;
    bytes = recovery::EncodeMessage(kOpeningLog, *reply);
  };
  ExpectOpenedWithoutThird(*world.Open(0), "bytes, expected 1 to");
}

TEST(OpeningFaultsTest, FullEpochTableIsSaidBeforeAnythingIsWritten) {
  OpeningWorld world({.ring_capacity = 16384});
  std::unique_ptr<Primary> primary;
  for (int i = 0; i < 200; ++i) {
    primary = world.Open(0);
    if (!primary->status().ok()) break;
    world.Append(*primary, "live", {1, 2, 3});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(primary->status()))
      << primary->status();
  EXPECT_THAT(primary->status().ToString(), HasSubstr("table is full"));
  for (const int node : {1, 2, 3}) {
    EXPECT_LT(world.replica(node).superline().log_epoch,
              world.replica(node).superline().promised_epoch);
  }
}

// --- Replicas that may come yet ----------------------------------------------

// Node 1's report does not suffice, node 2 knows nothing, and node 3 is lost
// while it is waited for: the opening ends, also without a deadline.
TEST(OpeningFaultsTest, LossOfTheLastOneThatIsWaitedForEndsTheOpening) {
  OpeningWorld world({});
  ASSERT_TRUE(world.Open(0)->status().ok());
  world.Crash(2);
  world.Restart(2, /*suspect=*/true);
  world.server(3).on_request = [](const Message&) { return false; };
  EpochOpeningOptions options = world.OpeningOptions(0);
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(),
              HasSubstr("no further replica can report"));
}

TEST(OpeningFaultsTest, NodeThatHadNoRoomIsTriedAgain) {
  OpeningWorld world({});
  int rejected = 0;
  for (const int node : {2, 3}) {
    world.server(node).on_connect = [&] {
      return ++rejected > 6 ? absl::OkStatus()
                            : absl::ResourceExhaustedError("too many");
    };
  }
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.deadline = Deadline::AtNanos(100 * kMillisecond);
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_GT(rejected, 6);
}

TEST(OpeningFaultsTest, NodeThatRefusesForGoodIsNotWaitedFor) {
  OpeningWorld world({});
  for (const int node : {2, 3}) {
    world.server(node).on_connect = [] {
      return absl::NotFoundError("not here");
    };
  }
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.deadline = Deadline::AtNanos(100 * kMillisecond);
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(), HasSubstr("not here"));
  EXPECT_LT(world.network().clock().NowNanos(), 10 * kMillisecond);
}

// A loser hears of no ballot if the winner's promises close its connections.
TEST(OpeningFaultsTest, OpeningThatIsFencedMayBeTriedAgain) {
  OpeningWorld world({});
  for (const int node : {2, 3}) {
    world.server(node).on_request = [&world, node](const Message& message) {
      if (!std::holds_alternative<recovery::Install>(message)) return true;
      world.network().Schedule(1,
                               [&world, node] { world.server(node).Fence(); });
      return false;
    };
  }
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_TRUE(primary->opening->may_try_again());
}

// --- Time --------------------------------------------------------------------

// EO5, with a pause at any step of the opening.
TEST(OpeningFaultsTest, OwnPauseIsNoPeersSilence) {
  int both = 0;
  for (int steps = 1; steps < 60; ++steps) {
    OpeningWorld world({});
    EpochOpeningOptions options = world.OpeningOptions(0);
    // All stand still: what was about to connect is tried again.
    options.deadline = Deadline::AtNanos(10'000 * kMillisecond);
    const auto primary = world.Begin(0, options);
    for (int i = 0; i < steps && world.Step({primary.get()}); ++i) {
    }
    const bool all_promised =
        world.replica(3).superline().promised_epoch != Epoch();
    both += all_promised ? 1 : 0;
    world.network().Run(200 * kMillisecond);
    world.Drive({primary.get()});
    ASSERT_TRUE(primary->status().ok()) << steps << ": " << primary->status();
    if (!all_promised) continue;
    EXPECT_EQ(primary->opened->backups.size(), 2u) << steps;
  }
  EXPECT_GT(both, 20);
}

// Enough have answered, and this process stands still while it waits for more:
// one that was about to answer is not left behind for that.
TEST(OpeningFaultsTest, OwnPauseDoesNotEndTheGathering) {
  OpeningWorld world({});
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.gather_ns = 50 * kMillisecond;
  options.step_timeout_ns = 1000 * kMillisecond;
  const auto primary = world.Begin(0, options);
  // Asked is not heard yet.
  while (world.replica(1).superline().promised_epoch == Epoch()) {
    ASSERT_TRUE(world.Step({primary.get()}));
  }
  world.paused_host = 2;
  StepUntilTimeIsWaitedFor(world, *primary, options.gather_ns,
                           [] { return true; });
  world.network().Run(200 * kMillisecond);
  world.paused_host = -1;
  world.Drive({primary.get()});
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->backups.size(), 2u);
}

TEST(OpeningFaultsTest, SilentPeerIsAbandonedAllTheSame) {
  OpeningWorld world({.write_quorum = 3});
  world.server(3).on_request = [](const Message&) { return false; };
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_LT(world.network().clock().NowNanos(), 10 * kMillisecond);
}

// The time of the last wake-up is over before it was asked for.
TEST(OpeningFaultsTest, WakeUpThatIsOverdueIsNotMissed) {
  OpeningWorld world({});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Install>(message);
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.step_timeout_ns = 1000 * kMillisecond;
  const auto primary = world.Begin(0, options);
  const Clock& clock = world.network().clock();
  // W have installed.
  StepUntilTimeIsWaitedFor(world, *primary, options.gather_ns, [&world] {
    return world.replica(2).superline().log_epoch != Epoch();
  });
  world.network().Run(2 * options.gather_ns);
  EXPECT_LE(primary->opening->NextPoll().at_nanos(), clock.NowNanos());
  EXPECT_FALSE(world.Step({primary.get()}));
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_FALSE(primary->opening->NextPoll().is_set());
}

// A report is lost while others are waited for: that time is neither over
// already nor begun again by each look at the clock.
TEST(OpeningFaultsTest, WaitEndsThoughAReportIsLostInIt) {
  OpeningWorld world({});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Prepare>(message);
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.step_timeout_ns = 1000 * kMillisecond;
  const auto primary = world.Begin(0, options);
  // Two have answered.
  StepUntilTimeIsWaitedFor(world, *primary, options.gather_ns,
                           [] { return true; });
  for (const int node : {1, 2}) {
    world.server(node).on_connect = [] {
      return absl::UnavailableError("gone for good");
    };
    world.server(node).Fence();
  }
  bool is_over = false;
  for (int i = 0; i < 10'000 && !is_over; ++i) {
    is_over = !world.Step({primary.get()});
  }
  ASSERT_TRUE(is_over);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
}

TEST(OpeningFaultsTest, CopyThatGetsOnIsNotCutOff) {
  OpeningWorld world({.ring_capacity = 8192});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (int i = 0; i < 50; ++i) {
    world.Append(*primary, std::string(64, 'x'), {1, 2});
  }
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.copy_bytes_max = kLineBytes;
  options.gather_ns = 50'000;
  // This bounds the wait for reports alone.
  options.report_ns = 100'000;
  const int64_t start = world.network().clock().NowNanos();
  primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_THAT(primary->opened->not_installed, IsEmpty());
  EXPECT_GT(world.network().clock().NowNanos() - start, 4 * options.gather_ns);
}

// The request is out before the own replica's scan begins, which takes many
// polls.
TEST(OpeningFaultsTest, PeersScanWhileTheOwnReplicaDoes) {
  OpeningWorld world({.ring_capacity = 16384});
  ASSERT_TRUE(world.Open(0)->status().ok());
  uint64_t fences_before = 0;
  world.server(2).on_request = [&](const Message& message) {
    if (std::holds_alternative<recovery::Prepare>(message)) {
      fences_before = world.pmem(1).fence_count();
    }
    return true;
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.slice_bytes = kLineBytes;
  const auto primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->backups.size(), 2u);
  // One fence for each slice that is flushed.
  EXPECT_GT(world.pmem(1).fence_count() - fences_before, 200u);
}

TEST(OpeningFaultsTest, OpenerWithWorkLeftDoesNotSleep) {
  OpeningWorld world({.ring_capacity = 16384});
  // From now on records may be anywhere in the ring.
  ASSERT_TRUE(world.Open(0)->status().ok());
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.slice_bytes = kLineBytes;
  const auto primary = world.Begin(0, options);
  const Clock& clock = world.network().clock();
  int polls = 0;
  while (world.Step({primary.get()})) {
    const bool is_due =
        primary->opening->NextPoll().HasPassed(clock.NowNanos());
    polls += is_due ? 1 : 0;
  }
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_GT(polls, 250);
}

TEST(OpeningFaultsTest, OwnMediumThatFailsInASliceEndsTheOpening) {
  for (uint64_t fence = 3; fence < 400; fence += 13) {
    OpeningWorld world({.ring_capacity = 16384});
    ASSERT_TRUE(world.Open(0)->status().ok());
    EpochOpeningOptions options = world.OpeningOptions(0);
    options.slice_bytes = kLineBytes;
    world.pmem(1).FailFence(fence);
    const auto primary = world.Open(0, options);
    if (primary->status().ok()) {
      EXPECT_GT(fence, 200u);
      continue;
    }
    EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
    EXPECT_FALSE(primary->opened.has_value());
  }
}

// Copies to a replica that is given up end before the opening does. Until then
// there is nothing to do by the clock.
TEST(OpeningFaultsTest, OpeningThatStopsPastItsDeadlineSleeps) {
  int stopping = 0;
  for (int64_t open_ns = 10'000; open_ns < 400'000; open_ns += 2'000) {
    OpeningWorld world(
        {.members = 4, .write_quorum = 2, .ring_capacity = 8192});
    auto primary = world.Open(0);
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    for (int i = 0; i < 20; ++i) {
      world.Append(*primary, std::string(64, 'x'), {1, 2});
    }
    primary.reset();
    const Clock& clock = world.network().clock();
    EpochOpeningOptions options = world.OpeningOptions(2);
    options.copy_bytes_max = kLineBytes;
    options.deadline = Deadline::AtNanos(clock.NowNanos() + open_ns);
    primary = world.Begin(2, options);
    while (world.Step({primary.get()})) {
      if (!options.deadline.HasPassed(clock.NowNanos())) continue;
      if (primary->opening->Poll() == Polled::kDone) break;
      ++stopping;
      EXPECT_FALSE(primary->opening->NextPoll().HasPassed(clock.NowNanos()));
    }
  }
  EXPECT_GT(stopping, 0);
}

// --- Sizes -------------------------------------------------------------------

TEST(OpeningFaultsTest, RingIsNoLargerThanAnImmediateNames) {
  EXPECT_TRUE(
      recovery::CheckReplicatedRing(recovery::kReplicatedRingBytesMax).ok());
  for (const uint64_t bytes :
       {recovery::kReplicatedRingBytesMax + kLineBytes, uint64_t{65}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(recovery::CheckReplicatedRing(bytes)));
  }
}

}  // namespace
}  // namespace alpheus::testing
