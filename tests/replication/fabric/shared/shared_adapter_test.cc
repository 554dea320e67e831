// SPDX-License-Identifier: Apache-2.0
// Ports of one adapter: each has its own, and their threads wait for one
// another's messages.
#include "replication/fabric/shared/shared_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/clock.h"
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
  absl::Status Reject(ConnectionId /*connection*/,
                      std::string_view /*private_data*/) override {
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
    const std::lock_guard lock(mutex_);
    ++polls_;
    SendAll();
    events->insert(events->end(), events_.begin(), events_.end());
    events_.clear();
    size_t count = 0;
    while (count < completions.size() && !fed_.empty()) {
      completions[count++] = fed_.front();
      fed_.pop_front();
    }
    return count;
  }
  bool RunTurn() override { return false; }
  void WaitForActivity(Deadline /*deadline*/) override {
    std::unique_lock lock(mutex_);
    ++waits_;
    SendAll();
    changed_.wait(lock, [this] {
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
    fed_.push_back({.connection = connection, .work = work});
  }
  void FeedEvent(ConnectionEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // Returns once a thread waits in it.
  void AwaitWaiter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waits_ > 0; });
  }
  // Returns true once all that was posted is sent, false if it is not.
  bool AwaitNothingUnsent() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return unsent_ == 0; });
  }
  int polls() {
    const std::lock_guard lock(mutex_);
    return polls_;
  }

  std::vector<ConnectionId> closed;
  std::vector<RegionKey> deregistered;

 private:
  void SendAll() {
    unsent_ = 0;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Completion> fed_;
  std::vector<ConnectionEvent> events_;
  bool is_woken_ = false;
  int waits_ = 0;
  int polls_ = 0;
  int unsent_ = 0;  // work
  uint64_t keys_ = 0;
  uint64_t connections_ = 0;
};

class SharedAdapterTest : public ::testing::Test {
 protected:
  struct User {
    std::unique_ptr<Fabric> share;
    ConnectionId connection;

    // Waits for so many completions.
    std::vector<WorkId> Take(size_t count) {
      std::vector<WorkId> works;
      while (works.size() < count) {
        std::array<Completion, 1> some;
        std::vector<ConnectionEvent> events;
        const size_t taken = share->Poll(some, &events);
        for (size_t i = 0; i < taken; ++i) {
          EXPECT_EQ(some[i].connection, connection);
          works.push_back(some[i].work);
        }
        if (taken == 0 && works.size() < count) {
          share->WaitForActivity(Deadline());
        }
      }
      return works;
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

  const std::shared_ptr<FedFabric> fed_ = std::make_shared<FedFabric>();
  const std::shared_ptr<SharedAdapter> adapter_ =
      std::make_shared<SharedAdapter>(fed_, Clock::Real());
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
      for (size_t round = 0; round < kRounds; ++round) {
        EXPECT_EQ(user.Take(1), std::vector{WorkId(round)});
        taken.fetch_add(1);
        taken.notify_all();
      }
    });
  }
  for (size_t round = 0; round < kRounds; ++round) {
    for (const User& user : users) {
      fed_->Feed(user.connection, WorkId(round));
    }
    if (round % 3 != 0) continue;
    // All sleep again, but for one.
    for (size_t so_far = taken; so_far < (round + 1) * kUsers; so_far = taken) {
      taken.wait(so_far);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// SHA2: the thread that watches goes, and what arrives then is taken.
TEST_F(SharedAdapterTest, WatcherThatLeavesWakesAnotherOne) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { a.share->WaitForActivity(Deadline()); });
  fed_->AwaitWaiter();
  std::thread sleeps([&] { EXPECT_EQ(b.Take(1), std::vector{WorkId(5)}); });
  a.share->Wake();
  watches.join();
  fed_->AwaitWaiter();
  fed_->Feed(b.connection, WorkId(5));
  sleeps.join();
}

// SHA5.
TEST_F(SharedAdapterTest, WakeEndsAWaitOfNowOrLater) {
  User a = Connect();
  User b = Connect();
  a.share->Wake();
  a.share->WaitForActivity(Deadline());
  std::thread watches([&] { a.share->WaitForActivity(Deadline()); });
  fed_->AwaitWaiter();
  // One that sleeps beside the watcher.
  b.share->Wake();
  b.share->WaitForActivity(Deadline());
  std::thread sleeps([&] { b.share->WaitForActivity(Deadline()); });
  b.share->Wake();
  sleeps.join();
  a.share->Wake();
  watches.join();
}

TEST_F(SharedAdapterTest, SleeperLeavesAtItsDeadline) {
  User a = Connect();
  User b = Connect();
  std::thread watches([&] { a.share->WaitForActivity(Deadline()); });
  fed_->AwaitWaiter();
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
  fed_->AwaitWaiter();
  fed_->Feed(a.connection, WorkId(1));
  watches.join();
  // The thread of `a` may post at any moment.
  EXPECT_TRUE(b.share->sends_for_waiters());
  EXPECT_FALSE(a.share->sends_for_waiters());
  const int before = fed_->polls();
  EXPECT_FALSE(b.HasAny());  // leaves the turn to it, once
  EXPECT_EQ(fed_->polls(), before);
  EXPECT_FALSE(b.HasAny());
  EXPECT_EQ(fed_->polls(), before + 1);
  // It never came: the next wait gives up.
  std::thread waits([&] { EXPECT_EQ(b.Take(1), std::vector{WorkId(2)}); });
  fed_->AwaitWaiter();
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
  EXPECT_FALSE(b.HasAny());
  sleeps.join();
  EXPECT_FALSE(b.share->sends_for_waiters());
  EXPECT_EQ(c.Take(1), std::vector{WorkId(1)});
  a.share->Wake();
  watches.join();
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

// FB3: its work completes.
TEST_F(SharedAdapterTest, WorkOfAClosedConnectionCompletes) {
  User a = Connect();
  ASSERT_TRUE(a.share->Close(a.connection).ok());
  EXPECT_EQ(a.Take(1), std::vector{WorkId(99)});
}

}  // namespace
}  // namespace alpheus::testing
