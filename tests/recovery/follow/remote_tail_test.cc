// SPDX-License-Identifier: Apache-2.0
// Tails of a log whose replicas and primaries come and go, on a simulated
// network.
#include "recovery/follow/remote_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;
using Primary = OpeningWorld::Primary;

constexpr int kMembers = 3;
// A primary without a replica of its own, and another one.
constexpr int kPrimaryHost = kMembers;
constexpr int kOtherHost = kMembers + 1;
constexpr int kTailHost = kMembers + 2;

OpeningWorld::Options WithOnlooker(uint64_t seed = 1,
                                   uint64_t ring_capacity = 16384) {
  OpeningWorld::Options options;
  options.members = kMembers;
  options.seed = seed;
  options.ring_capacity = ring_capacity;
  options.real_server = true;
  options.onlookers = 1;
  return options;
}

// A tail, and what it has shown.
class Onlooker {
 public:
  explicit Onlooker(OpeningWorld& world, Lsn from = Lsn(0)) : world_(world) {
    recovery::RemoteTail::Options options;
    options.cluster_id = kOpeningCluster;
    options.log_id = kOpeningLog;
    options.write_quorum = world.sizes().write_quorum;
    for (int node = 1; node <= kMembers; ++node) {
      options.members.push_back({NodeId(static_cast<uint64_t>(node)),
                                 model::SimNetwork::Address(node - 1, 1)});
    }
    options.self = {NodeId(0), 9};
    options.from = from;
    options.poll_ns = 50'000;
    options.retry_ns = 300'000;
    options.reply_timeout_ns = 3'000'000;
    tail_.emplace(fabric(), world.network().clock(), options);
    world_.on_event = [this] { Look(); };
  }
  ~Onlooker() { world_.on_event = nullptr; }

  recovery::RemoteTail& tail() { return *tail_; }
  const std::map<uint64_t, std::string>& shown() const { return shown_; }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& [lsn, text] : shown_) texts.push_back(text);
    return texts;
  }

  // Lets events happen until it is caught up, or has failed.
  void Rest(int primary_host = -1) {
    for (int i = 0; i < 20'000; ++i) {
      world_.StepOthers(primary_host);
      if (i > 500 && (tail_->is_caught_up() || !tail_->status().ok())) return;
    }
    FAIL() << "not caught up: next LSN " << tail_->next_lsn() << ", durable "
           << tail_->durable_lsn() << "; " << tail_->Absences();
  }

 private:
  fabric::Fabric& fabric() { return world_.network().fabric(kTailHost); }

  void Look() {
    fabric::Completion completions[16];
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric().Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events)
      tail_->OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) tail_->OnCompletion(completions[i]);
    tail_->Poll();
    while (const auto record = tail_->Next()) {
      ASSERT_LE(record->lsn, tail_->durable_lsn());
      // RT4. Nothing is aborted here.
      ASSERT_TRUE(shown_.empty() ||
                  record->lsn.value == shown_.rbegin()->first + 1);
      shown_[record->lsn.value] = AsText(record->payload);
    }
  }

  OpeningWorld& world_;
  std::optional<recovery::RemoteTail> tail_;
  std::map<uint64_t, std::string> shown_;
};

absl::Status Append(Primary& primary, const std::string& text) {
  const std::span<const std::byte> part = AsBytes(text);
  return primary.log->Append({&part, 1}, 1, Deadline()).status();
}

// Returns the payloads of the epoch's log by LSN, from its head on.
std::map<uint64_t, std::string> LogOf(Primary& primary) {
  std::map<uint64_t, std::string> log;
  TailPlace place;
  place.lsn = primary.log->head_lsn();
  for (;;) {
    const auto any = primary.log->CopyNext(place);
    EXPECT_TRUE(any.ok()) << any.status();
    if (!any.ok() || !*any) return log;
    log[place.copied_lsn.value] = AsText(place.payload);
  }
}

TEST(RemoteTailTest, DurableRecordsAreShownAsTheyCome) {
  OpeningWorld world(WithOnlooker());
  Onlooker onlooker(world);
  onlooker.Rest();
  EXPECT_THAT(onlooker.texts(), IsEmpty());
  const auto primary = world.Open(kPrimaryHost);
  world.StartLog(*primary);
  ASSERT_TRUE(Append(*primary, "a").ok());
  ASSERT_TRUE(Append(*primary, std::string(5000, 'b')).ok());
  onlooker.Rest(kPrimaryHost);
  ASSERT_TRUE(Append(*primary, "").ok());
  onlooker.Rest(kPrimaryHost);
  EXPECT_THAT(onlooker.texts(), ElementsAre("a", std::string(5000, 'b'), ""));
  EXPECT_EQ(onlooker.tail().durable_lsn(), Lsn(3));
  EXPECT_EQ(onlooker.tail().next_lsn(), Lsn(4));
  EXPECT_NE(onlooker.tail().source(), NodeId(0));
}

TEST(RemoteTailTest, TailBeginsAtAnyLsn) {
  OpeningWorld world(WithOnlooker());
  const auto primary = world.Open(kPrimaryHost);
  world.StartLog(*primary);
  for (const char* text : {"a", "b", "c"}) {
    ASSERT_TRUE(Append(*primary, text).ok());
  }
  {
    Onlooker onlooker(world, Lsn(3));
    onlooker.Rest(kPrimaryHost);
    EXPECT_THAT(onlooker.texts(), ElementsAre("c"));
  }
  Onlooker onlooker(world, Lsn(4));
  onlooker.Rest(kPrimaryHost);
  EXPECT_THAT(onlooker.texts(), IsEmpty());
  ASSERT_TRUE(Append(*primary, "d").ok());
  onlooker.Rest(kPrimaryHost);
  EXPECT_THAT(onlooker.texts(), ElementsAre("d"));
}

// Goal: RT1, RT2. Only node 1 got the record, and another opening dropped it
// and wrote another one at its LSN; node 1, which has the old one, comes back.
class DivergentWorld {
 public:
  explicit DivergentWorld(uint64_t seed) : world_(WithOnlooker(seed)) {}

  OpeningWorld& world() { return world_; }
  void LeaveOnNodeOneOnly() {
    const auto primary = world_.Open(kPrimaryHost);
    world_.StartLog(*primary);
    for (const int node : {2, 3}) world_.network().Cut(kPrimaryHost, node - 1);
    EXPECT_EQ(Append(*primary, "lost").code(), Code::kAborted);
    for (const int node : {2, 3}) world_.network().Heal(kPrimaryHost, node - 1);
  }
  void WriteWithoutNodeOne() {
    world_.Crash(1, /*power_cut=*/false);
    const auto primary = world_.Open(kOtherHost);
    world_.StartLog(*primary);
    EXPECT_TRUE(Append(*primary, "kept").ok());
    log_ = LogOf(*primary);
    world_.Restart(1);
  }
  // The log as the second primary has it. A record that the links had taken
  // before they were cut may have landed after all, and then it was kept.
  const std::map<uint64_t, std::string>& log() const { return log_; }

 private:
  OpeningWorld world_;
  std::map<uint64_t, std::string> log_;
};

TEST(DivergentReplicaTest, RecordOfOneReplicaIsNotShown) {
  DivergentWorld divergent(1);
  Onlooker onlooker(divergent.world());
  divergent.LeaveOnNodeOneOnly();
  onlooker.Rest();
  EXPECT_THAT(onlooker.texts(), IsEmpty());
  EXPECT_EQ(onlooker.tail().durable_lsn(), Lsn(0));
  divergent.WriteWithoutNodeOne();
  onlooker.Rest();
  EXPECT_THAT(onlooker.texts(), ElementsAre("kept"));
}

// The order of the answers makes no difference.
TEST(DivergentReplicaTest, ReplicaOfAnOlderEpochIsNotRead) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    DivergentWorld divergent(seed);
    divergent.LeaveOnNodeOneOnly();
    divergent.WriteWithoutNodeOne();
    Onlooker onlooker(divergent.world());
    onlooker.Rest();
    EXPECT_EQ(onlooker.shown(), divergent.log()) << "seed " << seed;
  }
}

// Goal: RT4.
TEST(RemoteTailTest, TailThatIsOvertakenIsToldSo) {
  OpeningWorld world(WithOnlooker());
  const auto primary = world.Open(kPrimaryHost);
  world.StartLog(*primary);
  for (const char* text : {"a", "b", "c"}) {
    ASSERT_TRUE(Append(*primary, text).ok());
  }
  ASSERT_TRUE(primary->log->CleanupAll().ok());
  ASSERT_TRUE(Append(*primary, "d").ok());
  {
    Onlooker onlooker(world, Lsn(2));
    onlooker.Rest(kPrimaryHost);
    const absl::Status& status = onlooker.tail().status();
    EXPECT_EQ(status.code(), Code::kOutOfRange) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("LSN 2 "), HasSubstr("LSN 4 ")));
    EXPECT_THAT(onlooker.texts(), IsEmpty());
  }
  Onlooker onlooker(world);
  onlooker.Rest(kPrimaryHost);
  EXPECT_THAT(onlooker.texts(), ElementsAre("d"));
}

// A replica that can't read what it should have is not the last word.
TEST(RemoteTailTest, DamagedReplicaIsPassedByUntilAllAreDamaged) {
  OpeningWorld world(WithOnlooker());
  const auto primary = world.Open(kPrimaryHost);
  world.StartLog(*primary);
  for (const char* text : {"a", "b", "c"}) {
    ASSERT_TRUE(Append(*primary, text).ok());
  }
  for (const int damaged : {1, 3}) {
    for (int node = 1; node <= damaged; ++node) {
      // The payload of one record, the header of another.
      std::byte* const ring = world.replica(node).ring().data();
      ring[node == 1 ? 64 + 48 : 64] ^= std::byte{static_cast<uint8_t>(1)};
    }
    Onlooker onlooker(world);
    onlooker.Rest(kPrimaryHost);
    if (damaged == 1) {
      EXPECT_THAT(onlooker.texts(), ElementsAre("a", "b", "c"));
      world.replica(1).ring().data()[64 + 48] ^= std::byte{1};  // whole again
      continue;
    }
    EXPECT_THAT(onlooker.texts(), ElementsAre("a"));
    const absl::Status& status = onlooker.tail().status();
    EXPECT_EQ(status.code(), Code::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("LSN 2 "));
  }
}

TEST(RemoteTailTest, WhoIsAwayIsNamed) {
  OpeningWorld world(WithOnlooker());
  for (int node = 1; node <= kMembers; ++node) world.Crash(node);
  Onlooker onlooker(world);
  for (int i = 0; i < 5000; ++i) world.StepOthers(-1);
  EXPECT_FALSE(onlooker.tail().is_in_reach());
  EXPECT_TRUE(onlooker.tail().is_settled());
  EXPECT_FALSE(onlooker.tail().is_caught_up());
  EXPECT_EQ(onlooker.tail().Absences().code(), Code::kUnavailable);
  EXPECT_THAT(std::string(onlooker.tail().Absences().message()),
              AllOf(HasSubstr("node 1"), HasSubstr("node 3")));
  for (int node = 1; node <= kMembers; ++node) world.Restart(node);
  onlooker.Rest();
  EXPECT_TRUE(onlooker.tail().Absences().ok());
}

// Goal: RT5a. The records of the one replica in reach are shown, and not taken
// for all.
TEST(RemoteTailTest, TooFewToKnowIsDoubt) {
  OpeningWorld world(WithOnlooker());
  {
    const auto primary = world.Open(kPrimaryHost);
    world.StartLog(*primary);
    ASSERT_TRUE(Append(*primary, "a").ok());
    ASSERT_TRUE(Append(*primary, "b").ok());
  }
  for (const int node : {1, 2}) world.Crash(node);
  Onlooker onlooker(world);
  for (int i = 0; i < 5000; ++i) world.StepOthers(-1);
  EXPECT_THAT(onlooker.texts(), ElementsAre("a"));
  EXPECT_TRUE(onlooker.tail().is_settled());
  EXPECT_FALSE(onlooker.tail().is_caught_up());
  const absl::Status doubt = onlooker.tail().Doubt();
  EXPECT_EQ(doubt.code(), Code::kUnavailable);
  EXPECT_THAT(std::string(doubt.message()),
              AllOf(HasSubstr("2 of 3 members"), HasSubstr("node 1"),
                    HasSubstr("node 2")));
  world.Restart(1);
  onlooker.Rest();
  EXPECT_TRUE(onlooker.tail().Doubt().ok());
}

// Goal: a node that stands still, and whose adapter works, holds nothing up for
// long.
TEST(RemoteTailTest, SilentReplicaIsAbandoned) {
  OpeningWorld world(WithOnlooker());
  const auto primary = world.Open(kPrimaryHost);
  world.StartLog(*primary);
  Onlooker onlooker(world);
  ASSERT_TRUE(Append(*primary, "a").ok());
  onlooker.Rest(kPrimaryHost);
  world.paused_host = 0;
  ASSERT_TRUE(Append(*primary, "b").ok());
  while (onlooker.tail().Absences().ok()) world.StepOthers(kPrimaryHost);
  EXPECT_THAT(onlooker.texts(), ElementsAre("a", "b"));
  EXPECT_THAT(std::string(onlooker.tail().Absences().message()),
              HasSubstr("silent"));
}

// One tail through many primaries and restarts of replicas.
class LongTail {
 public:
  explicit LongTail(uint64_t seed)
      : random_(seed), world_(WithOnlooker(seed, 8192)) {
    onlooker_.emplace(world_);
  }

  void Run() {
    for (int epoch = 0; epoch < 5 && !::testing::Test::HasFailure(); ++epoch) {
      const int host = epoch % 2 == 0 ? kPrimaryHost : kOtherHost;
      auto primary = world_.Open(host);
      ASSERT_TRUE(primary->status().ok()) << primary->status();
      world_.StartLog(*primary);
      Compare(*primary);
      Write(*primary, epoch);
      primary.reset();
      End(host);
    }
  }
  size_t shown() const { return onlooker_->shown().size(); }

 private:
  // RT1, RT2: the oracle is what an opening has recovered.
  void Compare(Primary& primary) {
    const auto log = LogOf(primary);
    const uint64_t head = primary.log->head_lsn().value;
    for (const auto& [lsn, text] : onlooker_->shown()) {
      if (lsn < head) continue;
      ASSERT_TRUE(log.contains(lsn)) << "LSN " << lsn << " was dropped";
      ASSERT_EQ(log.at(lsn), text) << "LSN " << lsn;
    }
  }

  void Write(Primary& primary, int epoch) {
    int away = 0;
    for (int i = 0; i < 25; ++i) {
      const std::string text =
          absl::StrCat(epoch, " ", i, " ",
                       std::string(random_.Below(10) == 0 ? 2000 : 50, 'x'));
      const absl::Status status = Append(primary, text);
      if (!status.ok()) return;  // the quorum is lost
      // So that the tail is overtaken never: it keeps up with the head.
      const Lsn next = onlooker_->tail().next_lsn();
      if (next > Lsn(3) && next - 3 >= primary.log->head_lsn()) {
        ASSERT_TRUE(primary.log->CleanupThrough(next - 3).ok());
      }
      if (away == 0 && random_.Below(12) == 0) {
        away = 1 + static_cast<int>(random_.Below(kMembers));
        world_.Crash(away, random_.Below(2) == 0);
      }
      // The ring is small; the tail must be given time.
      Breathe(primary.host);
    }
    if (away != 0) world_.Restart(away);
  }

  void Breathe(int host) {
    for (int i = 0; i < 3000; ++i) {
      world_.StepOthers(host);
      if (i > 200 && onlooker_->tail().is_caught_up()) return;
    }
  }

  void End(int host) {
    world_.network().Crash(host);
    world_.network().Restart(host);
    for (int node = 1; node <= kMembers; ++node) {
      if (!world_.IsUp(node)) world_.Restart(node);
    }
  }

  Random random_;
  OpeningWorld world_;
  std::optional<Onlooker> onlooker_;
};

TEST(RemoteTailTest, WhatWasShownIsInEveryLaterOpening) {
  size_t shown = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    LongTail tail(seed);
    tail.Run();
    shown += tail.shown();
    if (HasFailure()) return;
  }
  EXPECT_GT(shown, 1000u);
}

}  // namespace
}  // namespace alpheus::testing
