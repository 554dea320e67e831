// SPDX-License-Identifier: Apache-2.0
// The calls of a log to its sink and their order, and the thread that waits in
// it.
#include "log/core/durability/replication_sink.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/thread_token.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {
namespace {

// Does what it is told; counts for W = 1.
class FakeSink final : public ReplicationSink {
 public:
  std::function<void(const RingEnd&)> on_advance = [](const RingEnd&) {};
  std::function<void(Lsn)> on_local = [](Lsn) {};
  std::function<void()> on_poll = [] {};
  std::function<void()> on_wait = [] {};
  Lsn durable{0};
  Lsn in_sync{0};
  bool follows_local = true;
  bool idle = true;
  bool catching_up = false;
  bool resumed = false;
  bool failed = false;
  bool confirming = false;  // until the test ends it
  int confirmations = 0;
  std::function<void()> on_confirm = [] {};
  bool has_news = true;       // Poll returns this
  mutable int questions = 0;  // how often it was asked
  int waits = 0;
  int wakes = 0;
  bool leaves_sending = false;
  std::vector<absl::Status> ended;

  void Advance(const RingEnd& finished) override { on_advance(finished); }
  void LocalPersisted(Lsn lsn) override {
    on_local(lsn);
    if (follows_local) durable = lsn;
  }
  void AdvanceBounds(const RingBounds& bounds) override { bounds_ = bounds; }
  void BeginConfirmation() override {
    ++confirmations;
    confirming = true;
    on_confirm();
  }
  void End(const absl::Status& why) override { ended.push_back(why); }
  bool sends_for_waiters() const override { return leaves_sending; }
  // A copy: it may put another in its place.
  Polled Poll() override {
    const auto act = on_poll;
    act();
    return has_news ? Polled::kMoved : Polled::kIdle;
  }
  ReplicationState replication_state() const override {
    ++questions;
    return {.durable_lsn = durable,
            .in_sync_lsn = in_sync,
            .reuse_limit = bounds_.ceiling,
            .durable_head_lsn = bounds_.head.lsn,
            .is_idle = idle,
            .is_catching_up = catching_up,
            .has_failed = failed,
            .is_confirming = confirming,
            .has_resumed = resumed};
  }
  absl::Status status() const override {
    return failed ? absl::AbortedError("lost its epoch") : absl::OkStatus();
  }
  void WaitForActivity(Deadline) override {
    ++waits;
    const auto act = on_wait;
    act();
  }
  void Wake() override { ++wakes; }

 private:
  RingBounds bounds_;
};

constexpr FlushOrder kOrders[] = {
    FlushOrder::kRemoteFirst, FlushOrder::kLocalFirst, FlushOrder::kParallel};

// Counts the sleeps that are none in the sink.
class CountingWaiter final : public Waiter {
 public:
  bool Spin(int) override { return false; }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline) override {
    ++waits;
    if (on_wait) on_wait();
    woken = generation != seen;
  }
  void WakeAll(const std::atomic<uint32_t>&) override { ++wakes; }
  std::function<void()> on_wait;
  int waits = 0;
  int wakes = 0;
  bool woken = false;  // the last one that waited
};

class ReplicationSinkTest : public ::testing::Test {
 protected:
  ReplicationSinkTest() : pmem_(Layout::ForRing(4096, 64)->region_bytes) {
    EXPECT_TRUE(FormatRegion(pmem_, pmem_.region(), *Layout::ForRing(4096, 64),
                             NewLocalIdentity(random_))
                    .ok());
  }

  void Open(FlushOrder order) {
    recovery::LocalOpeningOptions opening;
    opening.name = "model";
    opened_ =
        *recovery::OpenEpochLocally(pmem_, pmem_.region(), opening, random_);
    RingLogOptions options;
    options.name = "model";
    options.sink = &sink_;
    options.flush_order = order;
    log_ = std::make_unique<RingLog<model::ModelPersistence>>(
        pmem_, pmem_.region(), opened_->start, options, clock_, waiter_);
  }
  // Opens another log, which is empty.
  void OpenAnew(FlushOrder order) {
    log_.reset();
    pmem_.Reset(std::vector<std::byte>(pmem_.region().size()));
    ASSERT_TRUE(FormatRegion(pmem_, pmem_.region(), *Layout::ForRing(4096, 64),
                             NewLocalIdentity(random_))
                    .ok());
    sink_.durable = sink_.in_sync = Lsn(0);
    Open(order);
  }
  absl::Status Append() {
    const std::string text(100, 'x');
    const std::span<const std::byte> part = AsBytes(text);
    return log_
        ->Append({&part, 1}, 1, Deadline::AtNanos(clock_.NowNanos() + 100'000))
        .status();
  }
  bool IsFirstRecordPersisted() {
    return pmem_.IsPersisted(log_->ring().At(RingOffset(0)), 48 + 100);
  }

  Random random_{1};
  model::ModelPersistence pmem_;
  SteppingClock clock_;
  CountingWaiter waiter_;
  FakeSink sink_;
  std::optional<recovery::OpenedEpoch> opened_;
  std::unique_ptr<RingLog<model::ModelPersistence>> log_;
};

// P-H22, on the image that a power cut leaves; and what each order does first.
TEST_F(ReplicationSinkTest, OwnReplicaCountsOnlyBehindItsFenceInEveryOrder) {
  for (const FlushOrder order : kOrders) {
    OpenAnew(order);
    bool told = false;
    uint64_t flushed_before_post = 0;
    const uint64_t flushed = pmem_.lint().flushed_lines;
    sink_.on_advance = [&](const RingEnd& finished) {
      EXPECT_EQ(finished.lsn, Lsn(1));
      EXPECT_EQ(finished.offset, RingOffset(192));
      EXPECT_EQ(IsFirstRecordPersisted(), order == FlushOrder::kLocalFirst);
      flushed_before_post = pmem_.lint().flushed_lines - flushed;
    };
    sink_.on_local = [&](Lsn lsn) {
      EXPECT_EQ(lsn, Lsn(1));
      EXPECT_TRUE(IsFirstRecordPersisted());
      told = true;
    };
    EXPECT_TRUE(Append().ok());
    EXPECT_TRUE(told);
    EXPECT_EQ(flushed_before_post, order == FlushOrder::kRemoteFirst ? 0u : 3u);
  }
}

// RF4: other nodes would hear a primary that can append nothing.
TEST_F(ReplicationSinkTest, SinkIsEndedOnceTheMediumFails) {
  for (const FlushOrder order : kOrders) {
    OpenAnew(order);
    sink_.ended.clear();
    EXPECT_TRUE(Append().ok());
    EXPECT_TRUE(sink_.ended.empty());
    pmem_.FailFence(1);
    EXPECT_FALSE(Append().ok());
    log_->Poll();
    log_->Poll();
    ASSERT_EQ(sink_.ended.size(), 1U);
    EXPECT_EQ(sink_.ended[0], log_->MediumError());
  }
}

// RF4: the sink hears of acks that were under way when it was ended.
TEST_F(ReplicationSinkTest, NothingBecomesDurableBehindAFailure) {
  Open(FlushOrder::kRemoteFirst);
  sink_.follows_local = false;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append()));
  pmem_.FailFence(1);
  EXPECT_TRUE(absl::IsUnavailable(Append()));
  sink_.durable = Lsn(1);
  log_->Poll();
  EXPECT_EQ(log_->durable_lsn(), Lsn(0));
}

// RF1: W others may be faster than this host; slots are not given up for that.
TEST_F(ReplicationSinkTest, DurableIsAtMostWhatIsPersistedHere) {
  Open(FlushOrder::kRemoteFirst);
  sink_.follows_local = false;
  sink_.on_local = [&](Lsn) { EXPECT_EQ(log_->durable_lsn(), Lsn(0)); };
  sink_.on_advance = [&](const RingEnd& end) { sink_.durable = end.lsn; };
  EXPECT_TRUE(Append().ok());
  EXPECT_EQ(log_->durable_lsn(), Lsn(1));
}

// Nothing else says so, and no thread waits.
TEST_F(ReplicationSinkTest, CallbackIsToldThatTheOwnReplicaHasARecord) {
  for (const FlushOrder order : kOrders) {
    SCOPED_TRACE(static_cast<int>(order));
    OpenAnew(order);
    sink_.follows_local = false;
    const Lsn lsn(1);
    ReservedRecord record = *log_->Reserve(100, Deadline());
    ASSERT_TRUE(log_->Complete(record).ok());
    int told = 0;
    bool is_durable = false;
    EXPECT_TRUE(log_->OnPersisted(lsn, PersistedBy::kOwnReplica,
                                  [&](const absl::Status& status) {
                                    EXPECT_TRUE(status.ok()) << status;
                                    EXPECT_TRUE(
                                        pmem_.IsPersisted(record.payload, 100));
                                    ++told;
                                  })
                    .ok());
    EXPECT_TRUE(log_->OnDurable(lsn,
                                [&](const absl::Status& status) {
                                  is_durable = status.ok();
                                })
                    .ok());
    EXPECT_EQ(told, 0);
    EXPECT_TRUE(log_->BeginForce(lsn).ok());
    EXPECT_EQ(told, 1);
    EXPECT_FALSE(is_durable);
    sink_.durable = lsn;
    log_->Poll();
    EXPECT_TRUE(is_durable);
    // It has the record by now: the callback runs at once.
    EXPECT_TRUE(log_->OnPersisted(lsn, PersistedBy::kOwnReplica,
                                  [&](const absl::Status&) { ++told; })
                    .ok());
    EXPECT_EQ(told, 2);
  }
}

// RF6: rounds of confirmation.
class ConfirmationTest : public ReplicationSinkTest {
 protected:
  ConfirmationTest() { Open(FlushOrder::kRemoteFirst); }
  // Closing tells the callbacks, which are at home here.
  ~ConfirmationTest() override { log_.reset(); }
  // Asks, and notes what it is told.
  void Ask() {
    const size_t number = told_.size();
    told_.emplace_back();
    EXPECT_TRUE(log_->OnEpochConfirmed([this, number](const absl::Status& end) {
                      EXPECT_FALSE(told_[number].has_value()) << "twice";
                      told_[number] = end;
                    })
                    .ok());
  }
  void EndRound() {
    sink_.confirming = false;
    log_->Poll();
  }
  bool IsTold(size_t number) const {
    return told_[number].has_value() && told_[number]->ok();
  }
  Deadline Soon() const {
    return Deadline::AtNanos(clock_.NowNanos() + 100'000);
  }

  std::vector<std::optional<absl::Status>> told_;
};

// A round that is under way may have asked before a later call began.
TEST_F(ConfirmationTest, CallsThatComeDuringARoundShareTheNextOne) {
  Ask();
  EXPECT_EQ(sink_.confirmations, 1);
  Ask();
  Ask();
  EXPECT_EQ(sink_.confirmations, 1);
  EndRound();
  EXPECT_TRUE(IsTold(0));
  EXPECT_FALSE(told_[1].has_value());
  EXPECT_EQ(sink_.confirmations, 2) << "begun at once";
  EndRound();
  EXPECT_TRUE(IsTold(1));
  EXPECT_TRUE(IsTold(2));
  EXPECT_EQ(sink_.confirmations, 2);
}

TEST_F(ConfirmationTest, NobodyAskedNothingIsConfirmed) {
  log_->Poll();
  EXPECT_TRUE(Append().ok());
  EXPECT_EQ(sink_.confirmations, 0);
}

TEST_F(ConfirmationTest, CallIsConfirmedAtOnceIfNobodyMustBeAsked) {
  sink_.on_confirm = [this] { sink_.confirming = false; };
  Ask();
  EXPECT_TRUE(IsTold(0));
  EXPECT_TRUE(log_->ConfirmEpoch(Soon()).ok());
  EXPECT_EQ(sink_.confirmations, 2);
  EXPECT_EQ(sink_.waits, 0);
}

TEST_F(ConfirmationTest, CallWaitsForItsRound) {
  Ask();
  int rounds = 0;
  sink_.on_wait = [&] {
    if (++rounds <= 2) sink_.confirming = false;
  };
  EXPECT_TRUE(log_->ConfirmEpoch(Soon()).ok());
  EXPECT_EQ(rounds, 2) << "the one of before, and its own";
  EXPECT_TRUE(IsTold(0));
  sink_.on_wait = [] {};
  EXPECT_TRUE(absl::IsDeadlineExceeded(log_->ConfirmEpoch(Soon())));
  EXPECT_TRUE(log_->IsUsable());
}

// RF6: a thread that finds the step taken leaves no more than its callback.
TEST_F(ConfirmationTest, RoundThatWasAskedForDuringAStepBegins) {
  sink_.on_poll = [this] {
    sink_.on_poll = [] {};
    Ask();
    EXPECT_EQ(sink_.confirmations, 0);
  };
  log_->Poll();
  EXPECT_EQ(sink_.confirmations, 1);
  EndRound();
  EXPECT_TRUE(IsTold(0));
}

TEST_F(ConfirmationTest, FailureIsToldAndConfirmsNothing) {
  Ask();
  sink_.on_poll = [this] {
    sink_.confirming = false;  // in the same step
    sink_.failed = true;
  };
  log_->Poll();
  ASSERT_TRUE(told_[0].has_value());
  EXPECT_TRUE(absl::IsAborted(*told_[0])) << *told_[0];
  EXPECT_TRUE(absl::IsAborted(log_->ConfirmEpoch(Soon())));
  EXPECT_TRUE(absl::IsAborted(log_->OnEpochConfirmed(
      [](const absl::Status&) { ADD_FAILURE() << "it is not called"; })));
  EXPECT_EQ(sink_.confirmations, 1);
}

TEST_F(ConfirmationTest, ClosedLogConfirmsNothing) {
  ASSERT_TRUE(log_->Close().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(log_->ConfirmEpoch(Soon())));
  EXPECT_TRUE(absl::IsFailedPrecondition(log_->OnEpochConfirmed(
      [](const absl::Status&) { ADD_FAILURE() << "it is not called"; })));
}

TEST_F(ConfirmationTest, CallbackOfALogThatIsDroppedHearsOfIt) {
  Ask();
  log_.reset();
  ASSERT_TRUE(told_[0].has_value());
  EXPECT_TRUE(absl::IsCancelled(*told_[0]));
}

// A call that sees the round over sees what was durable then.
TEST_F(ConfirmationTest, DurableLsnMovesFirst) {
  sink_.follows_local = false;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append()));
  Lsn durable(0);
  EXPECT_TRUE(log_->OnEpochConfirmed([&](const absl::Status&) {
                    durable = log_->durable_lsn();
                  })
                  .ok());
  sink_.durable = Lsn(1);
  EndRound();
  EXPECT_EQ(durable, Lsn(1));
}

// No call waits, and no record is on its way: the log's own thread does.
TEST_F(ConfirmationTest, AckPollerWaitsForTheAnswers) {
  std::atomic<uint32_t> stop{0};
  Ask();
  sink_.waits = 0;
  sink_.on_wait = [this] { sink_.confirming = false; };
  EXPECT_TRUE(log_->WaitForAcks(Soon(), stop));
  EXPECT_EQ(sink_.waits, 1);
  EXPECT_TRUE(IsTold(0));
}

// P-A5.4, of one log: its region is opened in place, as an opening of the
// primary's own process would, by a local opening.
class SuccessionRingTest : public ReplicationSinkTest {
 protected:
  SuccessionRingTest() { Open(FlushOrder::kRemoteFirst); }

  recovery::OpenedEpoch OpenInPlace(Lsn cleanup_through = Lsn(0)) {
    recovery::LocalOpeningOptions opening;
    opening.name = "model";
    opening.cleanup_through = cleanup_through;
    return *recovery::OpenEpochLocally(pmem_, pmem_.region(), opening, random_);
  }
  absl::Status GoOn(const RingLogStart& start) {
    const absl::Status continued = log_->Continue(start);
    if (continued.ok()) log_->Resume();
    return continued;
  }
  // Takes all steps at once.
  Epoch Succeed() {
    EXPECT_TRUE(log_->TryHold());
    EXPECT_TRUE(log_->IsAtRest());
    log_->HandRegion();
    const recovery::OpenedEpoch next = OpenInPlace();
    EXPECT_TRUE(GoOn(next.start).ok());
    return next.epoch;
  }
  // Epochs of the records that a tail shows.
  std::vector<Epoch> EpochsShown() {
    std::vector<Epoch> epochs;
    TailPlace place;
    for (;;) {
      const absl::StatusOr<bool> copied = log_->CopyNext(place);
      EXPECT_TRUE(copied.ok()) << copied.status();
      if (!copied.ok() || !*copied) return epochs;
      epochs.push_back(place.epoch);
    }
  }
};

TEST_F(SuccessionRingTest, AppendsGoOnInTheNextEpoch) {
  const Epoch first = opened_->epoch;
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(Append().ok());
  const Epoch second = Succeed();
  EXPECT_GT(second, first);
  ASSERT_TRUE(Append().ok());
  EXPECT_EQ(EpochsShown(), (std::vector<Epoch>{first, first, second}));
  // A power cut keeps them, as what they are.
  log_.reset();
  pmem_.Reset(pmem_.CutKeepingNone());
  const recovery::OpenedEpoch last = OpenInPlace();
  EXPECT_EQ(last.previous_epoch, second);
  EXPECT_EQ(last.start.end.lsn, Lsn(4));
}

// An iterator has the table of before.
TEST_F(SuccessionRingTest, TablesThatWereShownStay) {
  const EpochTable& before = log_->table();
  const size_t entries = before.entries().size();
  ASSERT_TRUE(Append().ok());
  Succeed();
  EXPECT_EQ(before.entries().size(), entries);
  EXPECT_EQ(log_->table().entries().size(), entries + 1);
}

TEST_F(SuccessionRingTest, ReservationsWaitAndOpenOnesAreWaitedFor) {
  absl::StatusOr<ReservedRecord> open = log_->Reserve(8, Deadline());
  ASSERT_TRUE(open.ok());
  log_->Detach(*open);
  ASSERT_TRUE(log_->TryHold());
  EXPECT_FALSE(log_->TryHold()) << "one change at a time";
  EXPECT_FALSE(log_->IsAtRest());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append())) << "held";
  ASSERT_TRUE(log_->Complete(*open).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append())) << "held, and forces";
  EXPECT_TRUE(log_->IsAtRest());
  log_->Resume();
  EXPECT_TRUE(Append().ok()) << "a change that was given up";
}

TEST_F(SuccessionRingTest, CallsThatWaitAreWokenByResume) {
  sink_.has_news = true;
  log_->Poll();
  const uint32_t seen = log_->progress().Announce();
  sink_.resumed = true;
  log_->Poll();
  EXPECT_TRUE(log_->progress().HasMoved(seen));
  log_->progress().Withdraw();
}

// Nobody is told at once: the log may hold reservations for long.
TEST_F(SuccessionRingTest, CallersThatMayNotWaitAreToldOnceReservationsGoOn) {
  std::vector<absl::Status> told;
  const auto tell = [&](const absl::Status& status) { told.push_back(status); };
  EXPECT_EQ(*log_->OnResumed(tell), false) << "nothing is held";
  ASSERT_TRUE(log_->TryHold());
  EXPECT_EQ(*log_->OnResumed(tell), true);
  log_->Poll();
  EXPECT_TRUE(told.empty());
  sink_.resumed = true;
  log_->Resume();
  log_->Poll();
  EXPECT_EQ(told, std::vector<absl::Status>{absl::OkStatus()});
  EXPECT_TRUE(Append().ok());
  EXPECT_EQ(*log_->OnResumed(tell), false);
  ASSERT_TRUE(log_->TryHold());
  EXPECT_EQ(*log_->OnResumed(tell), true) << "a later change";
  EXPECT_EQ(told.size(), 1u);
  log_->Resume();
  log_->Poll();
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(SuccessionRingTest, CallersThatWaitForReservationsAreToldOfAFailure) {
  std::vector<absl::Status> told;
  ASSERT_TRUE(log_->TryHold());
  EXPECT_EQ(*log_->OnResumed(
                [&](const absl::Status& status) { told.push_back(status); }),
            true);
  sink_.failed = true;
  log_->Poll();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(told.front())) << told.front();
  EXPECT_TRUE(absl::IsAborted(log_->OnResumed([](const auto&) {}).status()));
}

TEST_F(SuccessionRingTest, HeldHeadIsPublishedAfterwards) {
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->TryHold());
  log_->HandRegion();
  ASSERT_TRUE(log_->CleanupThrough(Lsn(2)).ok());
  EXPECT_EQ(log_->head_lsn(), Lsn(3));
  const recovery::OpenedEpoch next = OpenInPlace();
  EXPECT_EQ(next.start.superline.head_lsn, Lsn(1));
  ASSERT_TRUE(GoOn(next.start).ok());
  ASSERT_TRUE(log_->CleanupAll().ok());
  log_.reset();
  EXPECT_EQ(OpenInPlace().start.superline.head_lsn, Lsn(3));
}

// A reservation may find the ring full just before the head is held.
TEST_F(SuccessionRingTest, FullRingIsNoErrorWhileTheHeadIsHeld) {
  const auto append = [&] {
    const std::string text(100, 'x');
    const std::span<const std::byte> part = AsBytes(text);
    return log_->Append({&part, 1}, 1, Deadline()).status();
  };
  while (append().ok()) {
  }
  ASSERT_TRUE(absl::IsResourceExhausted(append()));
  log_->HandRegion();
  ASSERT_TRUE(log_->CleanupThrough(Lsn(2)).ok());
  sink_.on_wait = waiter_.on_wait = [&] { log_->Resume(); };
  EXPECT_TRUE(append().ok());
}

TEST_F(SuccessionRingTest, AnotherEndIsNotItsOwn) {
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->CleanupAll().ok());
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->TryHold());
  log_->HandRegion();
  const recovery::OpenedEpoch next = OpenInPlace();
  RingLogStart other = next.start;
  other.end.lsn = Lsn(4);
  EXPECT_TRUE(absl::IsDataLoss(log_->Continue(other)));
  other = next.start;
  other.end.chain ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(log_->Continue(other)));
  other = next.start;
  other.superline.head_lsn = Lsn(1);
  EXPECT_TRUE(absl::IsDataLoss(log_->Continue(other))) << "an earlier head";
  EXPECT_TRUE(GoOn(next.start).ok());
}

// A member had it from the primary of before; records before it were cleaned.
TEST_F(SuccessionRingTest, LaterHeadOfTheNextEpochIsShown) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Append().ok());
  TailPlace tail;
  ASSERT_TRUE(log_->CopyNext(tail).ok());
  ASSERT_TRUE(log_->TryHold());
  log_->HandRegion();
  ASSERT_TRUE(GoOn(OpenInPlace(/*cleanup_through=*/Lsn(2)).start).ok());
  EXPECT_EQ(log_->head_lsn(), Lsn(3));
  EXPECT_TRUE(absl::IsOutOfRange(log_->CopyNext(tail).status()));
  tail = TailPlace();
  tail.lsn = Lsn(3);
  EXPECT_TRUE(log_->CopyNext(tail).ok());
  EXPECT_TRUE(log_->CleanupThrough(Lsn(1)).ok()) << "it was, before";
  EXPECT_TRUE(absl::IsNotFound(log_->Cleanup(Lsn(2))));
  ASSERT_TRUE(Append().ok());
  EXPECT_TRUE(log_->Cleanup(Lsn(3)).ok());
  EXPECT_EQ(log_->head_lsn(), Lsn(4));
  log_->CheckInvariants();
  ASSERT_TRUE(log_->CleanupAll().ok());
  log_.reset();
  EXPECT_EQ(OpenInPlace().start.superline.head_lsn, Lsn(6));
}

TEST_F(SuccessionRingTest, HeadInMemoryMayBeLaterThanThat) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->TryHold());
  log_->HandRegion();
  ASSERT_TRUE(log_->CleanupThrough(Lsn(3)).ok());
  ASSERT_TRUE(GoOn(OpenInPlace(/*cleanup_through=*/Lsn(2)).start).ok());
  EXPECT_EQ(log_->head_lsn(), Lsn(4));
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  EXPECT_EQ(OpenInPlace().start.superline.head_lsn, Lsn(4));
}

// EPS10 (epoch_succession.h). Each epoch has one record, of a line.
TEST_F(SuccessionRingTest, FullTableHasNoRoomForAnotherEpoch) {
  const uint64_t room = opened_->start.superline.table_capacity;
  ASSERT_EQ(room, 64u);
  for (uint64_t entries = 1; entries <= room; ++entries) {
    EXPECT_TRUE(log_->HasRoomForEpoch()) << "the last one has no record";
    const std::span<const std::byte> nothing;
    const absl::StatusOr<Lsn> lsn = log_->Append(
        {&nothing, 1}, 1, Deadline::AtNanos(clock_.NowNanos() + 100'000));
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    EXPECT_EQ(log_->HasRoomForEpoch(), entries < room) << entries;
    if (entries < room) Succeed();
  }
  ASSERT_TRUE(log_->CleanupThrough(Lsn(1)).ok());
  EXPECT_FALSE(log_->HasRoomForEpoch()) << "its head is not published";
  ASSERT_TRUE(log_->CleanupAll().ok());
  EXPECT_TRUE(log_->HasRoomForEpoch());
}

// The thread that closes makes the progress of the change.
TEST_F(SuccessionRingTest, CloseWaitsForTheNextEpoch) {
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->TryHold());
  Epoch next;
  sink_.on_poll = [&] {
    sink_.on_poll = [] {};
    log_->HandRegion();
    const recovery::OpenedEpoch opened = OpenInPlace();
    next = opened.epoch;
    EXPECT_TRUE(GoOn(opened.start).ok());
  };
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  EXPECT_EQ(OpenInPlace().previous_epoch, next);
}

TEST_F(SuccessionRingTest, NoChangeBeginsInALogThatIsClosed) {
  ASSERT_TRUE(Append().ok());
  ASSERT_TRUE(log_->Close().ok());
  EXPECT_FALSE(log_->TryHold());
}

// A waiting thread steps again and again.
TEST_F(ReplicationSinkTest, WithoutNewsTheSinkIsAskedNothing) {
  Open(FlushOrder::kRemoteFirst);
  sink_.has_news = false;
  log_->Poll();
  EXPECT_EQ(sink_.questions, 1) << "its first state is published";
  log_->Poll();
  EXPECT_EQ(sink_.questions, 1);
  sink_.has_news = true;
  log_->Poll();
  EXPECT_EQ(sink_.questions, 2);
  sink_.has_news = false;
  ASSERT_TRUE(Append().ok()) << "what was told is news, too";
  EXPECT_EQ(sink_.questions, 3);
}

// Thread B asks for something while A is in the middle of a step, and then
// would sleep: A notifies when it is done.
TEST_F(ReplicationSinkTest, WhoMissedAStepIsTold) {
  Open(FlushOrder::kRemoteFirst);
  sink_.follows_local = false;
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append()));
  const auto step_with_another = [this](const std::function<void()>& other) {
    sink_.on_poll = [this, &other] {
      sink_.on_poll = [] {};
      std::thread(other).join();
    };
    const uint32_t seen = log_->progress().Announce();
    (void)log_->WaitDurable(Lsn(1), Deadline::AtNanos(0));
    // The waiting call itself announces nothing: its deadline has passed.
    const bool moved = log_->progress().HasMoved(seen);
    log_->progress().Withdraw();
    return moved;
  };
  EXPECT_FALSE(step_with_another([] {}));
  EXPECT_TRUE(step_with_another(
      [this] { (void)log_->WaitDurable(Lsn(1), Deadline::AtNanos(0)); }));
}

// A third thread that steps in between does what B wanted.
TEST_F(ReplicationSinkTest, MissedRequestIsTakenOver) {
  Open(FlushOrder::kRemoteFirst);
  auto record = log_->Reserve(16, Deadline());
  ASSERT_TRUE(record.ok());
  log_->Detach(*record);
  sink_.on_poll = [&] {
    sink_.on_poll = [] {};
    ASSERT_TRUE(log_->Complete(*record).ok());
    std::thread([this] {
      (void)log_->Force(Lsn(1), 1, Deadline::AtNanos(0));
    }).join();
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      log_->WaitDurable(Lsn(1), Deadline::AtNanos(0))));
  EXPECT_EQ(log_->durable_lsn(), Lsn(0));
  // Wants nothing for itself.
  EXPECT_TRUE(log_->WaitDurable(Lsn(1), Deadline::AtNanos(0)).ok());
}

// One waits in the sink; the second finds the role taken and sleeps as in a
// local log; progress wakes both; the first to leave says so.
TEST_F(ReplicationSinkTest, WatchIsHandedOn) {
  Open(FlushOrder::kRemoteFirst);
  Progress& progress = log_->progress();
  sink_.on_wait = [&] {
    sink_.on_wait = [] {};
    const uint32_t watch = ThreadToken();
    SetThreadToken(watch + 1);
    log_->WaitForWork(progress.Announce(), Deadline());
    SetThreadToken(watch);
    EXPECT_EQ(waiter_.waits, 1);
    EXPECT_EQ(sink_.wakes, 0);
    progress.Notify();
    EXPECT_EQ(sink_.wakes, 1);
    progress.Withdraw();
  };
  const uint32_t seen = progress.Announce();
  log_->WaitForWork(seen, Deadline());
  EXPECT_EQ(sink_.waits, 1);
  progress.Withdraw();
  // It left: a thread that is announced now is told.
  const uint32_t next = progress.Announce();
  log_->WaitForWork(next, Deadline());
  EXPECT_EQ(sink_.waits, 2);
  EXPECT_TRUE(progress.HasMoved(next));
  // Progress since the announcement is not waited for.
  log_->WaitForWork(next, Deadline());
  EXPECT_EQ(sink_.waits, 2);
  progress.Withdraw();
}

// A record is on its way whose callback is to be told, and nobody forces it.
class AckPollerTest : public ReplicationSinkTest {
 protected:
  AckPollerTest() {
    Open(FlushOrder::kRemoteFirst);
    sink_.follows_local = false;
    EXPECT_TRUE(absl::IsDeadlineExceeded(Append()));
    const auto tell = [this](const absl::Status& s) { notified_ = s.ok(); };
    EXPECT_TRUE(log_->OnDurable(Lsn(1), tell).ok());
    sink_.waits = 0;
    waiter_.waits = 0;
  }
  // Closing tells the callbacks, which are at home here.
  ~AckPollerTest() override { log_.reset(); }
  Deadline Soon() const {
    return Deadline::AtNanos(clock_.NowNanos() + 100'000);
  }
  bool PollAcks() { return log_->WaitForAcks(Soon(), stop_); }
  // The same by another thread, in the middle of this one's wait in the sink.
  bool PollAcksBesideACall() {
    bool again = false;
    sink_.on_wait = [&] {
      sink_.on_wait = [] {};
      const uint32_t call = ThreadToken();
      SetThreadToken(call + 1);
      again = PollAcks();
      SetThreadToken(call);
    };
    EXPECT_TRUE(absl::IsDeadlineExceeded(log_->WaitDurable(
        Lsn(1), Deadline::AtNanos(clock_.NowNanos() + 1500))));
    return again;
  }
  void Stop() {
    stop_ = 1;
    log_->waiter().WakeAll(stop_);
  }

  std::atomic<uint32_t> stop_{0};
  bool notified_ = false;
};

// A call that waits does what the ack poller would; once it has left, the
// ack poller goes on, and need not pass an interval first.
TEST_F(AckPollerTest, TakesOverWhenACallHasLeft) {
  EXPECT_TRUE(PollAcksBesideACall());
  EXPECT_EQ(sink_.waits, 1);
  EXPECT_EQ(waiter_.waits, 1);
  EXPECT_FALSE(notified_);
  sink_.on_wait = [this] { sink_.durable = Lsn(1); };
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(sink_.waits, 2);
  EXPECT_TRUE(notified_);
}

// W replicas have the record, and one in sync lacks it. The sink may know of
// others before this host has it (RF1).
TEST_F(AckPollerTest, GoesOnUntilAllInSyncHaveARecord) {
  bool all_have_it = false;
  EXPECT_TRUE(log_->OnPersisted(Lsn(1), PersistedBy::kAllInSync,
                                [&](const absl::Status& status) {
                                  all_have_it = status.ok();
                                })
                  .ok());
  sink_.in_sync = Lsn(1);
  log_->Poll();
  EXPECT_FALSE(all_have_it);
  sink_.in_sync = Lsn(0);
  sink_.on_wait = [this] { sink_.durable = Lsn(1); };
  EXPECT_TRUE(PollAcks());
  EXPECT_TRUE(notified_);
  EXPECT_FALSE(all_have_it);
  const int waits = sink_.waits;
  sink_.on_wait = [this] { sink_.in_sync = Lsn(1); };
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(sink_.waits, waits + 1);
  EXPECT_TRUE(all_have_it);
}

TEST_F(AckPollerTest, CallbacksHearOfTheFailureWhateverTheyWaitFor) {
  std::vector<absl::Status> told;
  const auto tell = [&](const absl::Status& status) { told.push_back(status); };
  ReservedRecord record = *log_->Reserve(100, Deadline());
  ASSERT_TRUE(log_->Complete(record).ok());
  for (const PersistedBy by :
       {PersistedBy::kOwnReplica, PersistedBy::kAllInSync}) {
    EXPECT_TRUE(log_->OnPersisted(Lsn(2), by, tell).ok());
  }
  EXPECT_TRUE(log_->OnPersisted(Lsn(1), PersistedBy::kAllInSync, tell).ok());
  EXPECT_THAT(told, ::testing::IsEmpty());
  log_.reset();
  ASSERT_EQ(told.size(), 3U);
  for (const absl::Status& status : told) {
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
}

// Nothing is on its way that a callback wants; then a callback comes, or what
// it wants is sent.
TEST_F(AckPollerTest, RestsUntilItIsCalled) {
  sink_.durable = Lsn(1);
  log_->Poll();
  EXPECT_TRUE(notified_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Append()));  // 2 is on its way
  waiter_.waits = sink_.waits = waiter_.wakes = 0;
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(waiter_.waits, 1);
  EXPECT_FALSE(waiter_.woken);

  const auto tell = [this](const absl::Status& s) { notified_ = s.ok(); };
  notified_ = false;
  waiter_.on_wait = [&] { EXPECT_TRUE(log_->OnDurable(Lsn(2), tell).ok()); };
  EXPECT_TRUE(PollAcks());
  EXPECT_TRUE(waiter_.woken);
  EXPECT_EQ(waiter_.wakes, 1);
  sink_.on_wait = [this] { sink_.durable = Lsn(2); };
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(sink_.waits, 1);
  EXPECT_TRUE(notified_);

  ReservedRecord record = *log_->Reserve(8, Deadline());
  ASSERT_TRUE(log_->Complete(record).ok());
  EXPECT_TRUE(log_->OnDurable(Lsn(3), tell).ok());
  EXPECT_EQ(waiter_.wakes, 1);
  waiter_.on_wait = [&] { EXPECT_TRUE(log_->BeginForce(Lsn(3)).ok()); };
  EXPECT_TRUE(PollAcks());
  EXPECT_TRUE(waiter_.woken);
  EXPECT_EQ(waiter_.wakes, 2);
}

TEST_F(AckPollerTest, StopIsNotMissedWhileItRests) {
  sink_.durable = Lsn(1);
  log_->Poll();
  waiter_.waits = 0;
  waiter_.on_wait = [this] { Stop(); };
  PollAcks();
  EXPECT_EQ(waiter_.waits, 1);
  EXPECT_TRUE(waiter_.woken);
  PollAcks();
  EXPECT_EQ(waiter_.waits, 1);
}

// Nobody waits for a record, and a replica that gets what it missed would get a
// little of it once an interval.
TEST_F(AckPollerTest, WaitsForAReplicaThatCatchesUp) {
  sink_.on_wait = [this] { sink_.durable = Lsn(1); };
  EXPECT_TRUE(PollAcks());
  EXPECT_TRUE(notified_);
  sink_.catching_up = true;
  log_->Poll();
  sink_.waits = 0;
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(sink_.waits, 1);
  sink_.catching_up = false;
  EXPECT_TRUE(PollAcks());  // it learns of that
  EXPECT_EQ(sink_.waits, 2);
  EXPECT_TRUE(PollAcks());
  EXPECT_EQ(sink_.waits, 2);
}

// Stopped before it waits: it does not. While it waits: it is woken.
TEST_F(AckPollerTest, StopIsNotMissedInTheSink) {
  sink_.on_wait = [this] {
    EXPECT_EQ(sink_.wakes, 0);
    Stop();
    EXPECT_EQ(sink_.wakes, 1);
  };
  PollAcks();
  EXPECT_EQ(sink_.waits, 1);
  PollAcks();
  EXPECT_EQ(sink_.waits, 1);
}

TEST_F(AckPollerTest, StopIsNotMissedBesideACall) {
  waiter_.on_wait = [this] { Stop(); };
  PollAcksBesideACall();
  EXPECT_EQ(waiter_.waits, 1);
  EXPECT_TRUE(waiter_.woken);
  PollAcksBesideACall();
  EXPECT_EQ(waiter_.waits, 1);
}

// 6. of activity_watch.h: the last call to leave wakes it, and no other does.
TEST(ActivityWatchTest, LastCallToLeaveWakesTheAckPoller) {
  FakeSink sink;
  CountingWaiter waiter;
  ActivityWatch watch(waiter, sink);
  Progress progress(watch);
  const std::atomic<uint32_t> stop{0};
  std::optional<ActivityWatch::Role> first(std::in_place, watch, progress);
  std::optional<ActivityWatch::Role> last(std::in_place, watch, progress);
  waiter.on_wait = [&] {
    first.reset();
    watch.WakeAll(std::atomic<uint32_t>(0));
    EXPECT_EQ(waiter.wakes, 1);
    last.reset();
    EXPECT_EQ(waiter.wakes, 2);
  };
  watch.WaitForWaitersToLeave(stop, Deadline());
  EXPECT_TRUE(waiter.woken);
  watch.WaitForWaitersToLeave(stop, Deadline());
  EXPECT_EQ(waiter.waits, 1);
  // Nobody sleeps there any more.
  last.emplace(watch, progress);
  last.reset();
  EXPECT_EQ(waiter.wakes, 2);
}

// And it is asked once per step, whatever comes first: that may be a call of
// the system.
TEST_F(ReplicationSinkTest, StepPollsOnce) {
  for (const FlushOrder order :
       {FlushOrder::kRemoteFirst, FlushOrder::kLocalFirst,
        FlushOrder::kParallel}) {
    log_.reset();
    Open(order);
    int polls = 0;
    sink_.on_poll = [&] { ++polls; };
    EXPECT_TRUE(Append().ok());
    EXPECT_EQ(polls, 1);
    log_->Poll();
    log_->Poll();  // it rests, and tells so
    const int before = polls;
    log_->Poll();
    EXPECT_EQ(polls, before + 1);
  }
}

// The wait of a thread beside others sends for it. A thread that goes on sends.
TEST_F(ReplicationSinkTest,
       OfferOfAThreadThatWaitsBesideOthersIsLeftToItsWait) {
  for (const FlushOrder order : kOrders) {
    log_.reset();
    Open(order);
    sink_.leaves_sending = true;
    int polls = 0;
    sink_.on_poll = [&] { ++polls; };
    EXPECT_TRUE(Append().ok());
    EXPECT_EQ(polls, 0);
    ReservedRecord record = *log_->Reserve(8, Deadline());
    ASSERT_TRUE(log_->Complete(record).ok());
    EXPECT_TRUE(log_->BeginForce(record.lsn).ok());
    EXPECT_EQ(polls, 1);
  }
}

TEST_F(ReplicationSinkTest, BegunForceIsPostedAndNobodyWaits) {
  for (const FlushOrder order :
       {FlushOrder::kRemoteFirst, FlushOrder::kLocalFirst,
        FlushOrder::kParallel}) {
    log_.reset();
    Open(order);
    sink_.follows_local = false;
    Lsn posted{0};
    sink_.on_advance = [&](const RingEnd& finished) { posted = finished.lsn; };
    ReservedRecord first = *log_->Reserve(8, Deadline());
    ReservedRecord second = *log_->Reserve(8, Deadline());
    const Lsn before = first.lsn - 1;
    ASSERT_TRUE(log_->Complete(second).ok());
    EXPECT_TRUE(log_->BeginForce(second.lsn).ok());  // the first is open
    EXPECT_EQ(posted, Lsn(0));
    ASSERT_TRUE(log_->Complete(first).ok());
    EXPECT_TRUE(log_->BeginForce(first.lsn).ok());
    EXPECT_EQ(posted, second.lsn);
    EXPECT_EQ(log_->durable_lsn(), before);
    EXPECT_EQ(waiter_.waits + sink_.waits, 0);
    sink_.durable = second.lsn;  // the answer came
    EXPECT_TRUE(log_->Force(second.lsn, 1, Deadline()).ok());
    EXPECT_EQ(log_->durable_lsn(), second.lsn);
    sink_.follows_local = true;
  }
}

// Somebody gave up who had been in the way of this very step: that is no reason
// to wait.
TEST_F(ReplicationSinkTest, BegunForceThatIsDurableWaitsForNobodysRequest) {
  Open(FlushOrder::kRemoteFirst);
  ReservedRecord first = *log_->Reserve(8, Deadline());
  ReservedRecord second = *log_->Reserve(8, Deadline());
  ASSERT_TRUE(log_->Complete(first).ok());
  bool has_advanced = false;
  sink_.on_advance = [&](const RingEnd&) {
    if (std::exchange(has_advanced, true)) return;
    std::thread([&] {
      EXPECT_TRUE(absl::IsDeadlineExceeded(
          log_->Force(second.lsn, 1, Deadline::AtNanos(0))));
    }).join();
  };
  EXPECT_TRUE(log_->BeginForce(first.lsn).ok());
  EXPECT_EQ(log_->durable_lsn(), first.lsn);
  EXPECT_EQ(waiter_.waits + sink_.waits, 0);
  ASSERT_TRUE(log_->Complete(second).ok());
}

// RF5: somebody polls, finds all idle and the step taken, and goes to sleep;
// the step makes a backup busy, of whose silence nobody would take notice.
TEST_F(ReplicationSinkTest, WhoSleepsAsAllIsIdleIsToldOfWork) {
  Open(FlushOrder::kRemoteFirst);
  const uint32_t seen = log_->progress().Announce();
  EXPECT_EQ(log_->Poll(), Polled::kIdle);
  EXPECT_FALSE(log_->progress().HasMoved(seen));
  sink_.idle = false;
  EXPECT_EQ(log_->Poll(), Polled::kMoved);
  EXPECT_TRUE(log_->progress().HasMoved(seen));
  log_->progress().Withdraw();
  // Once: that it stays so is no news.
  const uint32_t next = log_->progress().Announce();
  log_->Poll();
  EXPECT_FALSE(log_->progress().HasMoved(next));
  log_->progress().Withdraw();
}

}  // namespace
}  // namespace alpheus::testing
