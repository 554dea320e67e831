// SPDX-License-Identifier: Apache-2.0
// The fences under fire: FB5, P-R2, P-H6.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "tests/vm/verbs_guest_test.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;

namespace {

using Kind = ConnectionEvent::Kind;

constexpr uint64_t kLanes = 8;
constexpr uint64_t kRegionBytes = 16'384;
constexpr uint64_t kTrials = 1'000;
constexpr uint64_t kStreamReceives = 256;

// A pass takes a millisecond at least while nothing moves.
constexpr uint64_t kIdlePasses = 30'000;

enum class Fence { kBoth, kClose, kDeregister };
constexpr uint64_t kFences = 3;

// One stream at a time: the backup's end of an old primary's lane.
struct FencedLane {
  enum class State { kIdle, kStreaming, kFenced };

  State state = State::kIdle;
  Fence fence = Fence::kBoth;
  fabric::ConnectionId connection;
  TestRegion region;
  fabric::RegionKey key;  // that the old primary was given
  uint64_t immediates = 0;
  uint64_t fence_after = 0;
  std::vector<std::byte> snapshot;
};

class FenceTest : public VerbsGuestTest {
 protected:
  // Runs until so many trials have ended.
  void Run(uint64_t trials);
  uint64_t Trials() const { return trials_[0] + trials_[1] + trials_[2]; }

  uint64_t trials_[kFences] = {};
  uint64_t late_bytes_ = 0;
  uint64_t under_way_ = 0;  // writes that a fence met
  uint64_t broken_early_ = 0;

 private:
  std::string Lanes() const;
  void TakeEvent(const ConnectionEvent& event);
  void TakeCompletion(const fabric::Completion& done);
  void Begin(const ConnectionEvent& request, uint64_t number);
  void PutUpFence(FencedLane* lane);
  // Bytes that differ from the snapshot.
  static uint64_t Late(const FencedLane& lane);
  void End(FencedLane* lane);
  FencedLane* Find(fabric::ConnectionId connection);

  std::array<FencedLane, kLanes> lanes_;
  uint64_t begun_ = 0;
  Random random_{/*seed=*/1};
};

void FenceTest::Run(uint64_t trials) {
  for (FencedLane& lane : lanes_) {
    lane.region = MakeRegion(1, kRegionBytes, fabric::RemoteAccess::kNone);
  }
  OldPrimaryPlan plan = Plan();
  plan.lanes = kLanes;
  const OldPrimary old_primary(plan);
  uint64_t passes = 0;  // since a trial ended
  uint64_t ended = 0;
  while (Trials() < trials && late_bytes_ == 0) {
    ASSERT_TRUE(old_primary.is_running());
    passes = Trials() == ended ? passes + 1 : 0;
    ended = Trials();
    ASSERT_LT(passes, kIdlePasses) << "no stream ends any more: " << Lanes();
    constexpr int64_t kWaitNanos = 1'000'000;
    fabric(1).WaitForActivity(
        Deadline::AtNanos(world_->NowNanos() + kWaitNanos));
    std::array<fabric::Completion, 64> done;
    std::vector<ConnectionEvent> events;
    const size_t count = fabric(1).Poll(done, &events);
    for (size_t i = 0; i < count; ++i) TakeCompletion(done[i]);
    for (const ConnectionEvent& event : events) TakeEvent(event);
    for (FencedLane& lane : lanes_) {
      if (lane.state == FencedLane::State::kFenced) late_bytes_ += Late(lane);
    }
  }
}

std::string FenceTest::Lanes() const {
  std::string text;
  for (const FencedLane& lane : lanes_) {
    absl::StrAppend(&text, "connection ", lane.connection.value, " in state ",
                    static_cast<int>(lane.state), ", ", lane.immediates, " of ",
                    lane.fence_after, " immediates; ");
  }
  return text;
}

FencedLane* FenceTest::Find(fabric::ConnectionId connection) {
  for (FencedLane& lane : lanes_) {
    if (lane.connection == connection) return &lane;
  }
  return nullptr;
}

void FenceTest::TakeEvent(const ConnectionEvent& event) {
  if (event.kind == Kind::kRequested) {
    const auto [number, in_flight] = DecodePair(event.private_data);
    ASSERT_LT(number, kLanes);
    // It has given up its old stream: nothing is on its way any more.
    if (lanes_[number].state == FencedLane::State::kFenced) {
      under_way_ += in_flight;
    }
    End(&lanes_[number]);
    Begin(event, number);
  }
}

void FenceTest::Begin(const ConnectionEvent& request, uint64_t number) {
  FencedLane& lane = lanes_[number];
  lane.connection = request.connection;
  lane.state = FencedLane::State::kStreaming;
  lane.fence = static_cast<Fence>(begun_++ % kFences);
  lane.immediates = 0;
  lane.fence_after = 1 + random_.Next() % 64;
  const auto key =
      fabric(1).Register(lane.region.bytes, fabric::RemoteAccess::kWrite);
  ASSERT_TRUE(key.ok()) << key.status();
  lane.key = *key;
  for (uint64_t i = 0; i < kStreamReceives; ++i) {
    (void)fabric(1).PostReceive(lane.connection, fabric::WorkId(i), {});
  }
  // Fails where the peer has gone: it comes again.
  (void)fabric(1).Accept(lane.connection, EncodePair(key->value, kRegionBytes));
}

void FenceTest::TakeCompletion(const fabric::Completion& done) {
  FencedLane* const lane = Find(done.connection);
  if (lane == nullptr || lane->state != FencedLane::State::kStreaming ||
      done.operation != fabric::Operation::kReceiveImmediate) {
    return;
  }
  (void)fabric(1).PostReceive(done.connection, done.work, {});
  if (++lane->immediates == lane->fence_after) PutUpFence(lane);
}

void FenceTest::PutUpFence(FencedLane* lane) {
  if (lane->fence != Fence::kDeregister) {
    ASSERT_TRUE(fabric(1).Close(lane->connection).ok());
  }
  if (lane->fence != Fence::kClose) {
    ASSERT_TRUE(fabric(1).Deregister(lane->key).ok());
  }
  if (lane->fence == Fence::kBoth) {
    // The next epoch does so, too: the same bytes under another key.
    const auto key =
        fabric(1).Register(lane->region.bytes, fabric::RemoteAccess::kWrite);
    ASSERT_TRUE(key.ok()) << key.status();
    lane->key = *key;
  }
  lane->state = FencedLane::State::kFenced;
  lane->snapshot.assign(lane->region.bytes.begin(), lane->region.bytes.end());
}

uint64_t FenceTest::Late(const FencedLane& lane) {
  uint64_t late = 0;
  if (std::memcmp(lane.snapshot.data(), lane.region.bytes.data(),
                  lane.snapshot.size()) == 0) {
    return 0;
  }
  for (size_t i = 0; i < lane.snapshot.size(); ++i) {
    late += lane.snapshot[i] != lane.region.bytes[i] ? 1 : 0;
  }
  return late;
}

void FenceTest::End(FencedLane* lane) {
  const bool is_fenced = lane->state == FencedLane::State::kFenced;
  if (lane->state == FencedLane::State::kIdle) return;
  if (is_fenced) {
    late_bytes_ += Late(*lane);
    ++trials_[static_cast<size_t>(lane->fence)];
  } else {
    ++broken_early_;
  }
  if (!is_fenced || lane->fence == Fence::kDeregister) {
    EXPECT_TRUE(fabric(1).Close(lane->connection).ok());
  }
  if (!is_fenced || lane->fence != Fence::kDeregister) {
    EXPECT_TRUE(fabric(1).Deregister(lane->key).ok());
  }
  lane->state = FencedLane::State::kIdle;
}

TEST_P(FenceTest, NothingLandsBehindIt) {
  uint64_t trials = kTrials;
  const char* const given = std::getenv("ALPHEUS_FENCE_TRIALS");
  if (given != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(given, &trials)) << given;
  }
  Run(trials);
  std::printf(
      "[   counts ] %lu fences (%lu by Close and Deregister, %lu by Close, %lu "
      "by Deregister), %lu late bytes; %lu writes were under way; %lu streams "
      "broke before\n",
      Trials(), trials_[0], trials_[1], trials_[2], late_bytes_, under_way_,
      broken_early_);
  EXPECT_EQ(late_bytes_, 0u);
  EXPECT_GE(under_way_, Trials()) << "fences met no stream";
}

INSTANTIATE_TEST_SUITE_P(Verbs, FenceTest, ::testing::Values(GuestParam()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
