// SPDX-License-Identifier: Apache-2.0
// Ports of one adapter: each has its own, and their threads wait for one
// another's messages.
#include "replication/fabric/shared/shared_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "replication/fabric/tcp/options.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "tests/replication/fabric/conformance.h"
#include "tests/replication/fabric/shared/shared_world.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using fabric::Completion;
using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::Fabric;
using fabric::RegionKey;
using fabric::SharedAdapter;
using fabric::WorkId;

INSTANTIATE_TEST_SUITE_P(
    Shared, FabricConformanceTest,
    ::testing::Values(
        ConformanceParam{"OneSocketEach",
                         [] { return std::make_unique<SharedWorld>(false); }},
        ConformanceParam{"OverTrunks",
                         [] { return std::make_unique<SharedWorld>(true); }}),
    ConformanceParamName);

// An adapter that has what a test gives it.
class FedFabric final : public Fabric {
 public:
  Limits limits() const override { return {}; }
  absl::StatusOr<RegionKey> Register(std::span<std::byte> /*bytes*/,
                                     fabric::RemoteAccess /*access*/) override {
    return RegionKey(++keys_);
  }
  absl::Status Deregister(RegionKey key) override {
    deregistered.push_back(key);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Listen(std::string_view address) override {
    return std::string(address);
  }
  absl::StatusOr<ConnectionId> Connect(std::string_view /*address*/,
                                       std::string_view /*private_data*/,
                                       Deadline /*deadline*/) override {
    return ConnectionId(++connections_);
  }
  absl::Status Accept(ConnectionId /*connection*/,
                      std::string_view /*private_data*/) override {
    return absl::OkStatus();
  }
  absl::Status Reject(ConnectionId connection,
                      std::string_view /*private_data*/) override {
    rejected.push_back(connection);
    return absl::OkStatus();
  }
  // Its work is flushed.
  absl::Status Close(ConnectionId connection) override {
    closed.push_back(connection);
    Feed(connection, WorkId(99));
    return absl::OkStatus();
  }
  absl::Status Post(ConnectionId /*connection*/,
                    const fabric::WorkRequest& /*request*/) override {
    const std::lock_guard lock(mutex_);
    ++unsent_;
    return absl::OkStatus();
  }
  absl::Status PostReceive(ConnectionId /*connection*/, WorkId /*work*/,
                           fabric::LocalBytes /*into*/) override {
    return absl::OkStatus();
  }
  size_t Poll(std::span<Completion> completions,
              std::vector<ConnectionEvent>* events) override {
    std::unique_lock lock(mutex_);
    ++polls_;
    changed_.notify_all();
    changed_.wait_for(lock, 2 * kPatience, [this] { return !holds_polls_; });
    SendAll();
    events->insert(events->end(), events_.begin(), events_.end());
    events_.clear();
    fed_.insert(fed_.end(), unnoticed_.begin(), unnoticed_.end());
    unnoticed_.clear();
    size_t count = 0;
    while (count < completions.size() && !fed_.empty()) {
      completions[count++] = fed_.front();
      fed_.pop_front();
    }
    return count;
  }
  bool RunTurn() override { return false; }
  // No deadline of a test is near, but where all sleep.
  void WaitForActivity(Deadline /*deadline*/) override {
    std::unique_lock lock(mutex_);
    ++waits_;
    SendAll();
    // Longer than a test waits for what should end it.
    changed_.wait_for(lock, 2 * kPatience, [this] {
      return !fed_.empty() || !events_.empty() || is_woken_;
    });
    is_woken_ = false;
    --waits_;
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    changed_.notify_all();
  }

  void Feed(ConnectionId connection, WorkId work) {
    FeedAll({{connection, work}});
  }
  void FeedAll(const std::vector<std::pair<ConnectionId, WorkId>>& all) {
    const std::lock_guard lock(mutex_);
    for (const auto& [connection, work] : all) {
      fed_.push_back({.connection = connection, .work = work});
    }
    changed_.notify_all();
  }
  // One that waits in this sleeps on.
  void FeedUnnoticed(ConnectionId connection, WorkId work) {
    const std::lock_guard lock(mutex_);
    unnoticed_.push_back({.connection = connection, .work = work});
  }
  bool HasUnnoticed() {
    const std::lock_guard lock(mutex_);
    return !unnoticed_.empty();
  }
  void FeedEvent(ConnectionEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // Returns once a thread waits in it; false if none comes.
  bool AwaitWaiter() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return waits_ > 0; });
  }
  // Returns true once all that was posted is sent, false if it is not.
  bool AwaitNothingUnsent() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return unsent_ == 0; });
  }

  // Polls end once they are let go.
  void HoldPolls(bool holds) {
    const std::lock_guard lock(mutex_);
    holds_polls_ = holds;
    changed_.notify_all();
  }
  int polls() {
    const std::lock_guard lock(mutex_);
    return polls_;
  }
  // Returns once there were so many Polls; false if there are none.
  bool AwaitPolls(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [this, count] { return polls_ >= count; });
  }

  std::vector<ConnectionId> closed;
  std::vector<ConnectionId> rejected;
  std::vector<RegionKey> deregistered;

 private:
  void SendAll() {
    unsent_ = 0;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Completion> fed_;
  std::deque<Completion> unnoticed_;
  std::vector<ConnectionEvent> events_;
  bool is_woken_ = false;
  bool holds_polls_ = false;
  int waits_ = 0;
  int polls_ = 0;
  int unsent_ = 0;  // work
  uint64_t keys_ = 0;
  uint64_t connections_ = 0;
};

// The real time, which a test may stop.
class StoppableClock final : public Clock {
 public:
  // Called at each look; set while no other thread looks.
  std::function<void()> on_look = [] {};

  int64_t NowNanos() const override {
    on_look();
    const int64_t stopped = stopped_at_;
    return stopped != 0 ? stopped : Clock::Real().NowNanos();
  }
  void Stop() { stopped_at_ = Clock::Real().NowNanos(); }
  void Pass(int64_t nanos) { stopped_at_ += nanos; }

 private:
  std::atomic<int64_t> stopped_at_{0};
};

class SharedAdapterTest : public ::testing::Test {
 protected:
  struct User {
    std::unique_ptr<Fabric> share;
    ConnectionId connection;

    // Waits for so many completions; returns those that came.
    std::vector<WorkId> Take(size_t count) {
      const Deadline end = InPatience();
      std::vector<WorkId> works;
      while (works.size() < count && !IsOver(end)) {
        std::array<Completion, 1> some;
        std::vector<ConnectionEvent> events;
        const size_t taken = share->Poll(some, &events);
        for (size_t i = 0; i < taken; ++i) {
          EXPECT_EQ(some[i].connection, connection);
          works.push_back(some[i].work);
        }
        if (taken == 0 && works.size() < count) share->WaitForActivity(end);
      }
      return works;
    }
    // Waits for an event.
    std::vector<ConnectionEvent> TakeEvents() {
      const Deadline end = InPatience();
      std::vector<ConnectionEvent> events;
      while (events.empty() && !IsOver(end)) {
        std::array<Completion, 1> none;
        EXPECT_EQ(share->Poll(none, &events), 0U);
        if (events.empty()) share->WaitForActivity(end);
      }
      return events;
    }
    // Waits; returns true if something else than the deadline ended it.
    bool Wait() {
      const Deadline end = InPatience();
      share->WaitForActivity(end);
      return !IsOver(end);
    }
    bool HasAny() const {
      std::array<Completion, 4> some;
      std::vector<ConnectionEvent> events;
      return share->Poll(some, &events) != 0 || !events.empty();
    }
  };

  User Connect() {
    User user{.share = adapter_->AddShare(), .connection = {}};
    user.connection = *user.share->Connect("peer", "", Deadline());
    return user;
  }
  static bool IsOver(Deadline end) {
    return end.HasPassed(Clock::Real().NowNanos());
  }

  // Waits once, on a thread of its own.
  static std::future<void> Wait(User& user) {
    return std::async(std::launch::async, [&share = *user.share] {
      share.WaitForActivity(Deadline());
    });
  }

  StoppableClock clock_;
  const std::shared_ptr<FedFabric> fed_ = std::make_shared<FedFabric>();
  std::shared_ptr<SharedAdapter> adapter_ =
      std::make_shared<SharedAdapter>(fed_, clock_);
};

// SHA1.
TEST_F(SharedAdapterTest, EachShareGetsItsOwn) {
  User a = Connect();
  User b = Connect();
  fed_->FeedAll({{a.connection, WorkId(1)},
                 {b.connection, WorkId(2)},
                 {a.connection, WorkId(3)}});
  EXPECT_EQ(b.Take(1), std::vector{WorkId(2)});
  EXPECT_EQ(a.Take(2), (std::vector{WorkId(1), WorkId(3)}));
  EXPECT_FALSE(a.HasAny());
  EXPECT_FALSE(b.HasAny());
}

TEST_F(SharedAdapterTest, RequestsGoToTheShareThatListens) {
  User other = Connect();
  const auto listens = adapter_->AddShare();
  ASSERT_TRUE(listens->Listen("here").ok());
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kRequested, ConnectionId(77), "", "peer"});
  EXPECT_FALSE(other.HasAny());
  std::vector<ConnectionEvent> events;
  std::array<Completion, 1> none;
  EXPECT_EQ(listens->Poll(none, &events), 0U);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].connection, ConnectionId(77));
}

// SHA4, SHA1.
TEST_F(SharedAdapterTest, RequestsAreRejectedOnceTheShareThatListenedIsGone) {
  User other = Connect();
  auto listens = adapter_->AddShare();
  ASSERT_TRUE(listens->Listen("here").ok());
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kRequested, ConnectionId(77), "", "peer"});
  EXPECT_FALSE(other.HasAny());
  listens.reset();
  EXPECT_EQ(fed_->closed, std::vector{ConnectionId(77)});
  EXPECT_THAT(fed_->rejected, ::testing::IsEmpty());
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kRequested, ConnectionId(78), "", "peer"});
  EXPECT_FALSE(other.HasAny());
  EXPECT_EQ(fed_->rejected, std::vector{ConnectionId(78)});
}

// An event that a Poll without room finds is not lost.
TEST_F(SharedAdapterTest, PollWithoutRoomLosesNoEvent) {
  User a = Connect();
  User b = Connect();
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kDisconnected, b.connection, "", "peer"});
  std::vector<ConnectionEvent> events;
  EXPECT_EQ(a.share->Poll({}, &events), 0U);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(b.share->Poll({}, &events), 0U);
  EXPECT_EQ(events.size(), 1U);
}

// SHA1. A peer said why it ends the connection.
TEST_F(SharedAdapterTest, EndOfAConnectionComesNoEarlierThanItsLastMessage) {
  User a = Connect();
  fed_->FeedAll({{a.connection, WorkId(1)}, {a.connection, WorkId(2)}});
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kDisconnected, a.connection, "", "peer"});
  std::vector<ConnectionEvent> events;
  EXPECT_EQ(a.share->Poll({}, &events), 0U);
  EXPECT_TRUE(events.empty());
  std::array<Completion, 1> one;
  EXPECT_EQ(a.share->Poll(one, &events), 1U);
  EXPECT_EQ(one[0].work, WorkId(1));
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(a.share->Poll(one, &events), 1U);
  EXPECT_EQ(one[0].work, WorkId(2));
  EXPECT_EQ(events.size(), 1U);
}

// SHA2. One of the threads waits in the adapter, the others sleep; each gets
// what is its own, whoever that is.
TEST_F(SharedAdapterTest, ThreadsThatSleepAreWokenForTheirOwn) {
  constexpr size_t kUsers = 8;
  constexpr size_t kRounds = 200;
  std::vector<User> users;
  for (size_t i = 0; i < kUsers; ++i) users.push_back(Connect());
  std::vector<std::thread> threads;
  std::atomic<size_t> taken{0};
  for (User& user : users) {
    threads.emplace_back([&user, &taken] {
      for (size_t round = 0; round < kRounds && !HasFailure(); ++round) {
        EXPECT_EQ(user.Take(1), std::vector{WorkId(round)});
        taken.fetch_add(1);
      }
    });
  }
  for (size_t round = 0; round < kRounds; ++round) {
    for (const User& user : users) {
      fed_->Feed(user.connection, WorkId(round));
    }
    if (round % 3 != 0) continue;
    // All sleep again, but for one.
    while (taken < (round + 1) * kUsers && !HasFailure()) {
      std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// SHA2: the thread that watches goes, and what arrives then is taken. The other
// one sleeps by then in one round or the other.
TEST_F(SharedAdapterTest, WatcherThatLeavesWakesAnotherOne) {
  User a = Connect();
  User b = Connect();
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(4)}); });
    EXPECT_TRUE(fed_->AwaitWaiter());
    std::atomic<bool> is_there{false};
    std::thread sleeps([&] {
      is_there = true;
      EXPECT_EQ(b.Take(1), std::vector{WorkId(5)});
    });
    while (!is_there) std::this_thread::yield();
    for (int yields = round; yields > 0; --yields) std::this_thread::yield();
    fed_->Feed(a.connection, WorkId(4));
    watches.join();
    EXPECT_TRUE(fed_->AwaitWaiter());
    fed_->Feed(b.connection, WorkId(5));
    sleeps.join();
  }
}

// SHA2: so does one that leaves because of its own news, and the next one.
TEST_F(SharedAdapterTest, EachWatcherThatLeavesWakesAnotherOne) {
  constexpr size_t kUsers = 4;
  std::vector<User> users;
  for (size_t i = 0; i < kUsers; ++i) users.push_back(Connect());
  std::vector<std::thread> threads;
  for (User& user : users) {
    threads.emplace_back(
        [&user] { EXPECT_EQ(user.Take(1), std::vector{WorkId(3)}); });
  }
  for (const User& user : users) {
    EXPECT_TRUE(fed_->AwaitWaiter());
    fed_->Feed(user.connection, WorkId(3));
  }
  for (std::thread& thread : threads) thread.join();
}

// SHA5: of now or later, of the thread that watches and of one that sleeps.
TEST_F(SharedAdapterTest, EarlyWakeEndsTheNextWait) {
  User a = Connect();
  User b = Connect();
  a.share->Wake();
  ASSERT_TRUE(a.Wait());
  std::thread watches([&] { EXPECT_TRUE(a.Wait()); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  b.share->Wake();
  EXPECT_TRUE(b.Wait());
  a.share->Wake();
  watches.join();
}

TEST_F(SharedAdapterTest, WakeEndsTheWaitOfTheThreadThatWatches) {
  User a = Connect();
  std::thread watches([&] { EXPECT_TRUE(a.Wait()); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  a.share->Wake();
  watches.join();
}

// The thread may not wait yet when it is woken: then the wake is early.
TEST_F(SharedAdapterTest, WakeEndsTheWaitOfAThreadThatSleeps) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { EXPECT_TRUE(a.Wait()); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> is_there{false};
    std::thread sleeps([&] {
      is_there = true;
      EXPECT_TRUE(b.Wait());
    });
    while (!is_there) std::this_thread::yield();
    for (int yields = round; yields > 0; --yields) std::this_thread::yield();
    b.share->Wake();
    sleeps.join();
    if (HasFailure()) break;
  }
  a.share->Wake();
  watches.join();
}

// SHA5. One wake ends the waits of all threads of a share.
TEST_F(SharedAdapterTest, WakeEndsTheWaitsOfAllThreadsOfAShare) {
  User a = Connect();
  std::atomic<int> left{0};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(a.Wait());
      ++left;
    });
  }
  EXPECT_TRUE(fed_->AwaitWaiter());
  // Threads that come to wait after a wake need another one.
  const Deadline end = InPatience();
  while (left < 3 && !IsOver(end)) {
    a.share->Wake();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SharedAdapterTest, SleeperLeavesAtItsDeadline) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { EXPECT_TRUE(a.Wait()); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  b.share->WaitForActivity(
      Deadline::AtNanos(Clock::Real().NowNanos() + 1'000'000));
  a.share->Wake();
  watches.join();
}

// SHA6, SHA3. A thread that was woken is expected until it waits again.
TEST_F(SharedAdapterTest, WorkWaitsForThoseThatWereWoken) {
  User a = Connect();
  User b = Connect();
  EXPECT_FALSE(b.share->sends_for_waiters());
  std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(1)}); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
  // The thread of `a` may post at any moment.
  EXPECT_TRUE(b.share->sends_for_waiters());
  EXPECT_FALSE(a.share->sends_for_waiters());
  // It never came: the next wait gives up.
  std::thread waits([&] { EXPECT_EQ(b.Take(1), std::vector{WorkId(2)}); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  EXPECT_FALSE(b.share->sends_for_waiters());
  fed_->Feed(b.connection, WorkId(2));
  waits.join();
}

// SHA3. The watcher has sent what it will, and sleeps on.
TEST_F(SharedAdapterTest, ThreadThatSleepsBesideAWatcherHasSent) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { a.share->WaitForActivity(Deadline()); });
  fed_->AwaitWaiter();
  ASSERT_TRUE(b.share->Post(b.connection, {}).ok());
  EXPECT_FALSE(b.share->sends_for_waiters());
  std::thread sleeps([&] { b.share->WaitForActivity(Deadline()); });
  EXPECT_TRUE(fed_->AwaitNothingUnsent());
  b.share->Wake();
  sleeps.join();
  a.share->Wake();
  watches.join();
}

// SHA3. The watcher sleeps on, though another thread woke one that is expected.
TEST_F(SharedAdapterTest, WorkIsNotLeftToAWatcherThatHasSent) {
  User a = Connect();
  User b = Connect();
  User c = Connect();
  std::thread watches([&] { a.share->WaitForActivity(Deadline()); });
  fed_->AwaitWaiter();
  ASSERT_TRUE(c.share->Post(c.connection, {}).ok());
  std::thread sleeps([&] { c.share->WaitForActivity(Deadline()); });
  EXPECT_TRUE(fed_->AwaitNothingUnsent());
  fed_->FeedUnnoticed(c.connection, WorkId(1));
  // The thread of `c` may still have the turn.
  while (fed_->HasUnnoticed()) EXPECT_FALSE(b.HasAny());
  sleeps.join();
  EXPECT_FALSE(b.share->sends_for_waiters());
  EXPECT_EQ(c.Take(1), std::vector{WorkId(1)});
  a.share->Wake();
  watches.join();
}

// SHA7. A timer of the adapter, or memory that a peer wrote.
TEST_F(SharedAdapterTest, WaitsEndWhenTheAdaptersEndsAndNobodyGotAnything) {
  User a = Connect();
  User b = Connect();
  std::future<void> watches = Wait(a);
  fed_->AwaitWaiter();
  ASSERT_TRUE(b.share->Post(b.connection, {}).ok());
  std::future<void> sleeps = Wait(b);
  EXPECT_TRUE(fed_->AwaitNothingUnsent());
  fed_->Wake();
  EXPECT_EQ(watches.wait_for(kPatience), std::future_status::ready);
  // It may have begun to sleep only now, and watches.
  a.share->Wake();
  fed_->Wake();
  EXPECT_EQ(sleeps.wait_for(kPatience), std::future_status::ready);
  b.share->Wake();
}

// SHA7.
TEST_F(SharedAdapterTest, WaitEndsWhenAnotherThreadOfTheShareTakesWhatCame) {
  User a = Connect();
  std::future<void> watches = Wait(a);
  fed_->AwaitWaiter();
  fed_->FeedUnnoticed(a.connection, WorkId(1));
  while (!a.HasAny()) std::this_thread::yield();
  EXPECT_EQ(watches.wait_for(kPatience), std::future_status::ready);
  a.share->Wake();
}

// SHA8. Once, and not while what was read is old.
TEST_F(SharedAdapterTest, PollLeavesTheTurnToThoseThatWereWoken) {
  clock_.Stop();
  User a = Connect();
  User b = Connect();
  User c = Connect();
  std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(1)}); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
  const int before = fed_->polls();
  EXPECT_FALSE(b.HasAny());
  EXPECT_EQ(fed_->polls(), before);
  EXPECT_FALSE(b.HasAny());
  EXPECT_EQ(fed_->polls(), before + 1);
  clock_.Pass(kNanosPerMs);
  EXPECT_FALSE(c.HasAny());
  EXPECT_EQ(fed_->polls(), before + 2);
}

// SHA8. A thread was paused in the midst of its turn, say.
TEST_F(SharedAdapterTest, PollAwaitsATurnOnceTheLastOneIsOld) {
  clock_.Stop();
  User a = Connect();
  User b = Connect();
  EXPECT_FALSE(a.HasAny());
  fed_->HoldPolls(true);
  const int before = fed_->polls();
  std::future<bool> turns = std::async([&] { return a.HasAny(); });
  EXPECT_TRUE(fed_->AwaitPolls(before + 1));
  EXPECT_FALSE(b.HasAny());
  clock_.Pass(kNanosPerMs);
  fed_->Feed(b.connection, WorkId(1));
  // The turn ends once it is found to be old.
  clock_.on_look = [&] { fed_->HoldPolls(false); };
  EXPECT_TRUE(b.HasAny());
  fed_->HoldPolls(false);
  EXPECT_FALSE(turns.get());
}

// SHA6. A thread that was woken and has posted is not waited for.
TEST_F(SharedAdapterTest, ThreadThatHasPostedIsExpectedNoLonger) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(1)}); });
  fed_->AwaitWaiter();
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
  ASSERT_TRUE(b.share->sends_for_waiters());
  ASSERT_TRUE(a.share->Post(a.connection, {}).ok());
  EXPECT_FALSE(b.share->sends_for_waiters());
}

// SHA4.
TEST_F(SharedAdapterTest, DestroyedShareLeavesNothing) {
  User a = Connect();
  User b = Connect();
  std::array<std::byte, 8> memory{};
  const auto key = a.share->Register(memory, fabric::RemoteAccess::kReadWrite);
  ASSERT_TRUE(key.ok());
  a.share.reset();
  EXPECT_EQ(fed_->closed, std::vector{a.connection});
  EXPECT_EQ(fed_->deregistered, std::vector{*key});
  fed_->FeedAll({{a.connection, WorkId(1)}, {b.connection, WorkId(2)}});
  EXPECT_EQ(b.Take(1), std::vector{WorkId(2)});
}

// SHA4, in each order: of three shares and of what made them. In the end the
// adapter is gone, too.
TEST_F(SharedAdapterTest, SharesMayBeDestroyedInAnyOrder) {
  std::array<size_t, 4> order = {0, 1, 2, 3};
  do {
    auto fed = std::make_shared<FedFabric>();
    const std::weak_ptr<FedFabric> is_there = fed;
    auto adapter = std::make_shared<SharedAdapter>(fed, Clock::Real());
    FedFabric& kept = *fed;
    fed.reset();
    std::array<std::byte, 8> memory{};
    std::array<User, 3> users;
    std::array<RegionKey, 3> keys;
    for (size_t i = 0; i < users.size(); ++i) {
      users[i].share = adapter->AddShare();
      users[i].connection = *users[i].share->Connect("peer", "", Deadline());
      keys[i] = *users[i].share->Register(memory, fabric::RemoteAccess::kRead);
    }
    size_t left = order.size();
    for (const size_t one : order) {
      if (one == users.size()) {
        adapter.reset();
      } else {
        // Work of all is there when it goes.
        for (const User& user : users) {
          if (user.share != nullptr) kept.Feed(user.connection, WorkId(1));
        }
        users[one].share.reset();
        const bool is_last = left == 1;
        if (!is_last) {
          EXPECT_EQ(kept.closed.back(), users[one].connection);
          EXPECT_EQ(kept.deregistered.back(), keys[one]);
        }
      }
      --left;
      for (User& user : users) {
        if (user.share == nullptr) continue;
        kept.Feed(user.connection, WorkId(2));
        EXPECT_TRUE(user.HasAny());
      }
    }
    EXPECT_TRUE(is_there.expired());
  } while (std::ranges::next_permutation(order).found);
}

// SHA4, SHA2. Its threads have left; those of others watch and sleep.
TEST_F(SharedAdapterTest, ShareMayBeDestroyedWhileOthersWait) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(1)}); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  std::thread sleeps([&] { EXPECT_EQ(b.Take(1), std::vector{WorkId(2)}); });
  for (int i = 0; i < 100; ++i) {
    User c = Connect();
    c.share->Wake();
    EXPECT_TRUE(c.Wait());
    fed_->FeedAll({{c.connection, WorkId(9)}});
  }
  fed_->Feed(b.connection, WorkId(2));
  sleeps.join();
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
}

// SHA1, SHA2. The thread of the other share goes on waiting.
TEST_F(SharedAdapterTest, BrokenConnectionIsItsOwnSharesNews) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { EXPECT_EQ(a.Take(1), std::vector{WorkId(1)}); });
  EXPECT_TRUE(fed_->AwaitWaiter());
  std::thread sleeps([&] {
    const auto events = b.TakeEvents();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].kind, ConnectionEvent::Kind::kDisconnected);
    EXPECT_EQ(events[0].connection, b.connection);
    EXPECT_TRUE(b.share->Close(b.connection).ok());
  });
  fed_->FeedEvent(
      {ConnectionEvent::Kind::kDisconnected, b.connection, "", "peer"});
  sleeps.join();
  EXPECT_EQ(fed_->closed, std::vector{b.connection});
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
}

// FB3: its work completes.
TEST_F(SharedAdapterTest, WorkOfAClosedConnectionCompletes) {
  User a = Connect();
  ASSERT_TRUE(a.share->Close(a.connection).ok());
  EXPECT_EQ(a.Take(1), std::vector{WorkId(99)});
}

// ---- Over sockets

// One host's shares, of as many threads, and a peer whose thread serves them.
class SharedSocketsTest : public ::testing::Test {
 protected:
  static constexpr size_t kUsers = 6;
  static constexpr size_t kBytes = 4096;

  static fabric::tcp::TcpFabricOptions Options() {
    fabric::tcp::TcpFabricOptions options;
    options.shares_sockets = true;
    // A thread of a busy machine may be kept waiting.
    options.limits.retry_ns = kPatienceNanos;
    return options;
  }

  SharedSocketsTest() {
    remote_ = *peer_->Register(std::as_writable_bytes(std::span(peer_memory_)),
                               fabric::RemoteAccess::kWrite);
    address_ = *peer_->Listen("127.0.0.2:0");
    serves_ = std::thread([this] { Serve(); });
  }
  ~SharedSocketsTest() override { StopServing(); }
  void StopServing() {
    if (!serves_.joinable()) return;
    is_over_ = true;
    peer_->Wake();
    serves_.join();
  }

  // The peer accepts all, and has no other business.
  void Serve() {
    std::array<Completion, 16> some;
    while (!is_over_) {
      std::vector<ConnectionEvent> events;
      const size_t count = peer_->Poll(some, &events);
      for (const ConnectionEvent& event : events) {
        if (event.kind == ConnectionEvent::Kind::kRequested) {
          peer_->Accept(event.connection, "").IgnoreError();
        } else if (event.kind == ConnectionEvent::Kind::kDisconnected) {
          peer_->Close(event.connection).IgnoreError();
        }
      }
      if (count == 0 && events.empty()) peer_->WaitForActivity(Deadline());
    }
  }
  // One user's: connects, writes, and waits for each write.
  void Use(size_t user, size_t writes) {
    const std::unique_ptr<Fabric> share = adapter_->AddShare();
    std::vector<uint64_t> memory(8, user);
    const auto bytes = std::as_writable_bytes(std::span(memory));
    const RegionKey own = *share->Register(bytes, fabric::RemoteAccess::kNone);
    const ConnectionId id = *share->Connect(address_, "", InPatience());
    EXPECT_TRUE(Until(*share, [](const ConnectionEvent* event,
                                 const Completion* /*completion*/) {
      return event != nullptr &&
             event->kind == ConnectionEvent::Kind::kEstablished;
    }));
    for (size_t write = 0; write < writes; ++write) {
      ASSERT_TRUE(share
                      ->PostWrite(id, WorkId(write), {own, bytes},
                                  {remote_, user * bytes.size()})
                      .ok());
      ASSERT_TRUE(Until(
          *share,
          [&](const ConnectionEvent* /*event*/, const Completion* completion) {
            return completion != nullptr && completion->work == WorkId(write) &&
                   completion->status == fabric::CompletionStatus::kOk;
          }))
          << "write " << write << " of user " << user;
    }
  }
  // Takes what comes until one is it.
  template <class IsIt>
  static bool Until(Fabric& share, const IsIt& is_it) {
    const Deadline end = InPatience();
    while (!end.HasPassed(Clock::Real().NowNanos())) {
      std::array<Completion, 1> some;
      std::vector<ConnectionEvent> events;
      const size_t count = share.Poll(some, &events);
      bool is_found = count > 0 && is_it(nullptr, some.data());
      for (const ConnectionEvent& event : events) {
        is_found |= is_it(&event, nullptr);
      }
      if (is_found) return true;
      if (count == 0 && events.empty()) share.WaitForActivity(end);
    }
    return false;
  }

  EntropyRandom random_;
  std::vector<uint64_t> peer_memory_ = std::vector<uint64_t>(kBytes / 8);
  const std::shared_ptr<fabric::tcp::TcpFabric> peer_ =
      std::make_shared<fabric::tcp::TcpFabric>(Options(), Clock::Real(),
                                               random_);
  const std::shared_ptr<fabric::tcp::TcpFabric> host_ =
      std::make_shared<fabric::tcp::TcpFabric>(Options(), Clock::Real(),
                                               random_);
  const std::shared_ptr<SharedAdapter> adapter_ =
      std::make_shared<SharedAdapter>(host_, Clock::Real());
  RegionKey remote_;
  std::string address_;
  std::atomic<bool> is_over_{false};
  std::thread serves_;
};

// SHA1 to SHA4: each write is sent and answered, whoever watches, while shares
// come and go.
TEST_F(SharedSocketsTest, ThreadsOfManySharesWriteAndLeave) {
  constexpr size_t kRounds = 5;
  constexpr size_t kWrites = 60;
  std::vector<std::thread> threads;
  threads.reserve(kUsers);
  for (size_t user = 1; user <= kUsers; ++user) {
    threads.emplace_back([this, user] {
      for (size_t round = 0; round < kRounds && !HasFailure(); ++round) {
        Use(user, kWrites + user * round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  StopServing();
  for (size_t user = 1; user <= kUsers; ++user) {
    EXPECT_EQ(peer_memory_[user * 8], user);
  }
}

}  // namespace
}  // namespace alpheus::testing
