// SPDX-License-Identifier: Apache-2.0
// A sender that is lost in the middle of large writes: FB1, FB2, FB3, FB4.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/vm/verbs_guest_test.h"

namespace alpheus::testing {

using fabric::CompletionStatus;
using fabric::WorkId;

namespace {

using enum fabric::RemoteAccess;
using Kind = fabric::ConnectionEvent::Kind;

constexpr uint64_t kWriteBytes = uint64_t{1} << 18;
constexpr uint64_t kSlots = 4;
// So many that the link is cut long before the last one, however fast it is.
constexpr uint64_t kWrites = 64;
// A sender is killed long before it has used them up; no more than a connection
// has room for.
constexpr uint64_t kLandingReceives = 120;

// Bytes of a slot that have this value. Requires: 8-byte words are whole (FB1).
uint64_t CountOf(std::span<const std::byte> slot, int value) {
  return static_cast<uint64_t>(
      std::ranges::count(slot, static_cast<std::byte>(value)));
}

bool AreWordsWhole(std::span<const std::byte> slot) {
  for (size_t at = 0; at < slot.size(); at += 8) {
    if (CountOf(slot.subspan(at, 8), static_cast<int>(slot[at])) != 8) {
      return false;
    }
  }
  return true;
}

// Write number n fills slot n % kSlots with one value, as an old primary does.
class LandingTest : public VerbsGuestTest {
 protected:
  static int ValueOf(uint64_t write) {
    return static_cast<int>(write % 251 + 1);
  }
  std::span<std::byte> SlotOf(uint64_t write) const {
    return region_.bytes.subspan(write % kSlots * kWriteBytes, kWriteBytes);
  }
  // Begun, and not ended.
  bool IsInTheMiddle(uint64_t write) const {
    const std::byte value{static_cast<uint8_t>(ValueOf(write))};
    return SlotOf(write).front() == value && SlotOf(write).back() != value;
  }
  // All that were announced are whole; the next is there in part or not at all,
  // and what is behind it has not begun. Returns bytes of that part.
  uint64_t CheckWhatLanded(uint64_t announced) const;
  void CutTheLink(const TestLink& link, const TestRegion& own);

  TestRegion region_;
};

uint64_t LandingTest::CheckWhatLanded(uint64_t announced) const {
  const uint64_t first = announced < kSlots - 1 ? 0 : announced - kSlots + 1;
  for (uint64_t write = first; write < announced; ++write) {
    EXPECT_EQ(CountOf(SlotOf(write), ValueOf(write)), kWriteBytes)
        << "FB2: write " << write << " of " << announced << " announced";
  }
  const std::span<std::byte> slot = SlotOf(announced);
  const uint64_t part = CountOf(slot, ValueOf(announced));
  const int before = announced < kSlots ? 0 : ValueOf(announced - kSlots);
  EXPECT_EQ(part + CountOf(slot, before), kWriteBytes) << "bytes of no write";
  EXPECT_TRUE(AreWordsWhole(slot)) << "FB1";
  for (uint64_t write = announced + 1; write < kSlots; ++write) {
    EXPECT_EQ(CountOf(SlotOf(write), 0), kWriteBytes)
        << "FB1: write " << write << " began before the one ahead of it ended";
  }
  return part;
}

TEST_P(LandingTest, SenderIsKilledInTheMiddleOfAWrite) {
  constexpr int kRounds = 5;
  int in_part = 0;
  for (int round = 0; round < kRounds; ++round) {
    region_ = MakeRegion(1, kSlots * kWriteBytes, kWrite);
    OldPrimaryPlan plan = Plan();
    plan.write_bytes = kWriteBytes;
    OldPrimary sender(plan);
    events_[1].clear();
    while (events_[1].empty()) {  // a process takes its time to begin
      ASSERT_TRUE(sender.is_running());
      (void)Pass();
    }
    const fabric::ConnectionId link = Await(1, Kind::kRequested).connection;
    for (uint64_t i = 0; i < kLandingReceives; ++i) {
      ASSERT_TRUE(fabric(1).PostReceive(link, WorkId(i), {}).ok());
    }
    ASSERT_TRUE(
        fabric(1)
            .Accept(link, EncodePair(region_.key.value, region_.bytes.size()))
            .ok());
    // Some have passed, and one is on its way.
    uint64_t announced = 0;
    while (announced < static_cast<uint64_t>(round) ||
           !IsInTheMiddle(announced)) {
      ASSERT_TRUE(sender.is_running());
      (void)Pass();
      announced += std::exchange(completions_[1], {}).size();
    }
    sender.Kill();
    // The kernel tells of its end, or else what is posted finds out.
    const absl::Status asked =
        fabric(1).PostWrite(link, WorkId(kLandingReceives), {}, {});
    EXPECT_EQ(Await(1, Kind::kDisconnected).connection, link);
    uint64_t ended = 0;
    for (const fabric::Completion& done : std::exchange(completions_[1], {})) {
      ended += done.status == CompletionStatus::kOk ? 0 : 1;
      announced += done.status == CompletionStatus::kOk ? 1 : 0;
    }
    EXPECT_EQ(announced + ended, kLandingReceives + (asked.ok() ? 1 : 0))
        << "FB3";
    const uint64_t part = CheckWhatLanded(announced);
    in_part += part > 0 && part < kWriteBytes ? 1 : 0;
    EXPECT_TRUE(fabric(1).Close(link).ok());
    EXPECT_TRUE(fabric(1).Deregister(region_.key).ok());
  }
  std::printf("[   counts ] %d senders killed, %d writes landed in part\n",
              kRounds, in_part);
  EXPECT_GT(in_part, 0) << "no sender was killed in the middle";
}

// Posts large writes, and cuts the link when some have passed.
void LandingTest::CutTheLink(const TestLink& link, const TestRegion& own) {
  region_.Fill(0);
  for (uint64_t write = 0; write < kWrites; ++write) {
    ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(write), {}).ok());
    const fabric::LocalBytes from = own.Local(write * kWriteBytes, kWriteBytes);
    std::memset(from.bytes.data(), ValueOf(write), from.bytes.size());
    ASSERT_TRUE(
        fabric(0)
            .PostWriteImmediate(link.at_host, WorkId(write), from,
                                region_.At(write % kSlots * kWriteBytes), 7)
            .ok());
  }
  // The slots are filled for the second time, or more often: values grow.
  ASSERT_TRUE(Until([&] {
    return static_cast<int>(SlotOf(kSlots).front()) >= ValueOf(kSlots);
  }));
  world_->Cut(0, 1);
}

TEST_P(LandingTest, LinkIsCutInTheMiddleOfAWrite) {
  constexpr int kRounds = 6;
  int in_part = 0;
  region_ = MakeRegion(1, kSlots * kWriteBytes, kWrite);
  const TestRegion own = MakeRegion(0, kWrites * kWriteBytes, kNone);
  for (int round = 0; round < kRounds; ++round) {
    const TestLink link = Link(0, 1);
    ASSERT_NO_FATAL_FAILURE(CutTheLink(link, own));
    // FB3: in order; one has failed, all behind it are flushed.
    uint64_t acknowledged = 0;
    fabric::Completion done = Next(0, link.at_host);
    for (; done.status == CompletionStatus::kOk && acknowledged < kWrites;
         ++acknowledged) {
      done = Next(0, link.at_host);
    }
    EXPECT_EQ(done.status, CompletionStatus::kPeerGone) << "cut behind them";
    for (uint64_t write = acknowledged + 1; write < kWrites; ++write) {
      EXPECT_EQ(Next(0, link.at_host).status, CompletionStatus::kFlushed);
    }
    EXPECT_EQ(Await(0, Kind::kDisconnected).connection, link.at_host);
    // The peer hears nothing until it asks.
    const uint64_t announced = CompletionsOf(1, link.at_peer);
    EXPECT_GE(announced, acknowledged);
    EXPECT_FALSE(HasEvent(1, Kind::kDisconnected, link.at_peer));
    ASSERT_TRUE(fabric(1).PostWrite(link.at_peer, WorkId(99), {}, {}).ok());
    EXPECT_EQ(Await(1, Kind::kDisconnected).connection, link.at_peer);
    EXPECT_EQ(CompletionsOf(1, link.at_peer), kWrites + 1) << "FB3";
    if (announced < kWrites) {
      const uint64_t part = CheckWhatLanded(announced);
      in_part += part > 0 && part < kWriteBytes ? 1 : 0;
    }
    completions_[1].clear();
    EXPECT_TRUE(fabric(0).Close(link.at_host).ok());
    EXPECT_TRUE(fabric(1).Close(link.at_peer).ok());
    world_->Heal(0, 1);
  }
  std::printf("[   counts ] %d links cut, %d writes landed in part\n", kRounds,
              in_part);
  EXPECT_GT(in_part, 0) << "no link was cut in the middle";
}

INSTANTIATE_TEST_SUITE_P(Verbs, LandingTest, ::testing::Values(GuestParam()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
