// SPDX-License-Identifier: Apache-2.0
// Do simulated threads run in an order that the seed decides, one at a time,
// and end as threads of a killed process end?
#include "tools/sim/world/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/core/write/own_reservations.h"

namespace alpheus::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes what runs, in order.
class ThreadsTest : public ::testing::Test {
 protected:
  explicit ThreadsTest(uint64_t seed = 1) : random_(seed) {}

  void Say(const std::string& what) { said_.push_back(what); }
  int64_t now() const { return network_.clock().NowNanos(); }
  void RunAll() {
    while (network_.Step()) {
    }
  }
  // Says its name so often, and lets others go on in between.
  std::function<void()> Talker(const std::string& name, int times) {
    return [this, name, times] {
      for (int i = 0; i < times; ++i) {
        Say(absl::StrCat(name, i));
        threads_.Yield();
      }
    };
  }

  model::SimNetwork network_{model::SimOptions{}};
  Random random_;
  Threads threads_{network_, random_, /*delay_ns_max=*/100};
  std::vector<std::string> said_;
};

class Rerun : public ThreadsTest {
 public:
  explicit Rerun(uint64_t seed) : ThreadsTest(seed) {}
  void TestBody() override {}

  std::vector<std::string> Order() {
    const ProcessId process = threads_.NewProcess();
    for (const char* name : {"a", "b", "c"}) {
      threads_.Start(process, Talker(name, 6));
    }
    RunAll();
    return said_;
  }
};

TEST(ThreadsOrderTest, TheSeedDecidesWhoRuns) {
  std::set<std::vector<std::string>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<std::string> order = Rerun(seed).Order();
    EXPECT_EQ(order.size(), 18u);
    EXPECT_EQ(order, Rerun(seed).Order()) << seed;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST_F(ThreadsTest, NothingElseRunsBetweenTwoSwitchPoints) {
  int shared = 0;
  const ProcessId process = threads_.NewProcess();
  for (int i = 0; i < 4; ++i) {
    threads_.Start(process, [&] {
      for (int round = 0; round < 50; ++round) {
        const int before = shared;
        EXPECT_TRUE(threads_.InThread());
        shared = before + 1;
        threads_.Yield();
      }
    });
  }
  RunAll();
  EXPECT_EQ(shared, 200);
  EXPECT_FALSE(threads_.InThread());
}

TEST_F(ThreadsTest, APausedProcessRunsNothingAndThenGoesOn) {
  const ProcessId process = threads_.NewProcess();
  threads_.Start(process, Talker("a", 3));
  threads_.Pause(process);
  RunAll();
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_TRUE(threads_.IsPaused(process));
  threads_.Continue(process);
  RunAll();
  EXPECT_THAT(said_, ElementsAre("a0", "a1", "a2"));
}

TEST_F(ThreadsTest, PausesThatOverlapEndWithTheLast) {
  const ProcessId process = threads_.NewProcess();
  threads_.Pause(process);
  threads_.Pause(process);
  threads_.Continue(process);
  EXPECT_TRUE(threads_.IsPaused(process));
  threads_.Continue(process);
  EXPECT_FALSE(threads_.IsPaused(process));
  threads_.Pause(process);
  threads_.Pause(process);
  threads_.EndPauses(process);
  EXPECT_FALSE(threads_.IsPaused(process));
}

TEST_F(ThreadsTest, AWakeDuringAPauseIsRemembered) {
  int key = 0;
  const ProcessId process = threads_.NewProcess();
  threads_.Start(process, [&] {
    threads_.WaitFor(&key, Deadline());
    Say("awake");
  });
  RunAll();
  threads_.Pause(process);
  threads_.Wake(&key);
  RunAll();
  EXPECT_THAT(said_, IsEmpty());
  threads_.ContinueAll();
  RunAll();
  EXPECT_THAT(said_, ElementsAre("awake"));
}

TEST_F(ThreadsTest, AWaitEndsByItsKeyOnlyOrAtItsDeadline) {
  int key = 0;
  int other_key = 0;
  const ProcessId process = threads_.NewProcess();
  threads_.Start(process, [&] {
    threads_.WaitFor(&key, Deadline());
    Say("woken");
  });
  threads_.Start(process, [&] {
    threads_.WaitFor(&other_key, Deadline::AtNanos(5000));
    Say("late");
    EXPECT_GE(now(), 5000);
  });
  RunAll();
  EXPECT_THAT(said_, ElementsAre("late"));
  threads_.Wake(&other_key);
  RunAll();
  EXPECT_THAT(said_, ElementsAre("late"));
  threads_.Wake(&key);
  RunAll();
  EXPECT_THAT(said_, ElementsAre("late", "woken"));
}

TEST_F(ThreadsTest, ADeadlineThatWasNotNeededWakesNobody) {
  int key = 0;
  threads_.Start(threads_.NewProcess(), [&] {
    threads_.WaitFor(&key, Deadline::AtNanos(100'000));
    Say("woken");
    threads_.WaitFor(&key, Deadline());
    Say("woken again");
  });
  network_.Run(1000);
  threads_.Wake(&key);
  network_.Run(1'000'000);
  EXPECT_THAT(said_, ElementsAre("woken"));
}

TEST_F(ThreadsTest, SleepTakesVirtualTime) {
  threads_.Start(threads_.NewProcess(), [&] {
    threads_.SleepUntil(7'000'000);
    EXPECT_EQ(now(), 7'000'000);
    threads_.SleepUntil(1);  // is over
    EXPECT_EQ(now(), 7'000'000);
    Say("slept");
  });
  RunAll();
  EXPECT_THAT(said_, ElementsAre("slept"));
}

TEST_F(ThreadsTest, ASlowProcessGoesOnLater) {
  const ProcessId slow = threads_.NewProcess();
  threads_.SetDelay(slow, 1'000'000);
  threads_.Start(slow, Talker("slow", 20));
  RunAll();
  EXPECT_GT(now(), 2'000'000);
  const int64_t before = now();
  threads_.SetDelay(slow, 0);
  threads_.Start(slow, Talker("quick", 20));
  RunAll();
  EXPECT_LE(now(), before + 21 * 100);
}

// Tells when it is destroyed.
struct Witness {
  bool& destroyed;
  ~Witness() { destroyed = true; }
};

TEST_F(ThreadsTest, AKilledThreadNeverRunsAgainAndDestroysNothing) {
  bool on_stack = false;
  bool in_body = false;
  int key = 0;
  const ProcessId process = threads_.NewProcess();
  auto held = std::make_shared<Witness>(in_body);
  threads_.Start(process, [&, held = std::move(held)] {
    const Witness witness{on_stack};
    Say("before");
    threads_.WaitFor(&key, Deadline::AtNanos(1'000'000));
    Say("after");
  });
  const ProcessId other = threads_.NewProcess();
  threads_.Start(other, [&] {
    threads_.SleepUntil(500'000);
    threads_.Kill(process);
    Say("killed");
    threads_.Wake(&key);
  });
  RunAll();
  EXPECT_THAT(said_, ElementsAre("before", "killed"));
  EXPECT_FALSE(on_stack);
  EXPECT_FALSE(in_body);
}

TEST_F(ThreadsTest, AThreadThatEndsByItselfDestroysWhatItHad) {
  bool on_stack = false;
  threads_.Start(threads_.NewProcess(),
                 [&] { const Witness witness{on_stack}; });
  RunAll();
  EXPECT_TRUE(on_stack);
}

TEST_F(ThreadsTest, KillingItsOwnProcessDoesNotReturn) {
  bool on_stack = false;
  const ProcessId process = threads_.NewProcess();
  threads_.Start(process, [&] {
    const Witness witness{on_stack};
    EXPECT_EQ(threads_.running_process(), process);
    threads_.Kill(process);
    Say("never");
  });
  threads_.Start(process, Talker("neither", 100));
  RunAll();
  EXPECT_THAT(said_, ::testing::Not(::testing::Contains("never")));
  EXPECT_LT(said_.size(), 100u);
  EXPECT_FALSE(on_stack);
}

TEST_F(ThreadsTest, NumbersAreNeverUsedAgainThoughStacksAre) {
  std::vector<uint32_t> numbers;
  threads_.SetOnSwitch([&](uint32_t number) { numbers.push_back(number); });
  for (int i = 0; i < 3; ++i) {
    threads_.Start(threads_.NewProcess(), [] {});
    RunAll();
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST_F(ThreadsTest, AWaiterReturnsAtOnceIfSomethingHasHappened) {
  std::atomic<uint32_t> generation = 1;
  const ProcessClock clock(network_.clock(), 0);
  ThreadsWaiter waiter(threads_, clock);
  const ProcessId process = threads_.NewProcess();
  threads_.Start(process, [&] {
    waiter.Wait(generation, 0, Deadline());
    Say("at once");
    waiter.Wait(generation, 1, Deadline());
    Say("woken");
  });
  threads_.Start(process, [&] {
    threads_.SleepUntil(1'000'000);
    generation = 2;
    waiter.WakeAll(generation);
  });
  network_.Run(500'000);
  EXPECT_THAT(said_, ElementsAre("at once"));
  RunAll();
  EXPECT_THAT(said_, ElementsAre("at once", "woken"));
}

TEST_F(ThreadsTest, EachThreadHasTheCountOfItsOwnReservations) {
  const ProcessId process = threads_.NewProcess();
  for (const uint64_t count : {1, 2}) {
    threads_.Start(process, [this, count] {
      EXPECT_EQ(OwnReservationsMax(), 0u);
      OwnReservationsMax() = count;
      threads_.Yield();
      EXPECT_EQ(OwnReservationsMax(), count);
      Say("done");
    });
  }
  RunAll();
  // A thread that takes over the stack of another one begins with none.
  threads_.Start(process, [this] {
    EXPECT_EQ(OwnReservationsMax(), 0u);
    Say("done");
  });
  RunAll();
  EXPECT_EQ(OwnReservationsMax(), 0u);
  EXPECT_EQ(said_.size(), 3u);
}

TEST_F(ThreadsTest, AProcessIsSteadySinceItWasPausedOrSlow) {
  constexpr int64_t kEver = std::numeric_limits<int64_t>::max();
  const ProcessId process = threads_.NewProcess();
  EXPECT_EQ(threads_.SteadySince(process), 0);
  network_.Run(50);
  threads_.Pause(process);
  EXPECT_EQ(threads_.SteadySince(process), kEver);
  network_.Run(50);
  threads_.Continue(process);
  EXPECT_EQ(threads_.SteadySince(process), now());
  threads_.SetDelay(process, 1000);
  EXPECT_EQ(threads_.SteadySince(process), kEver);
  network_.Run(50);
  threads_.SetDelay(process, 0);
  EXPECT_EQ(threads_.SteadySince(process), now());
}

// Deeper than any stack; what it returns is used, so that it stays a call.
int Deep(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == 1 << 20 ? frame[0] : Deep(depth + 1) + frame[0];
}

using ThreadsDeathTest = ThreadsTest;

TEST_F(ThreadsDeathTest, AThreadThatOverflowsItsStackDies) {
  EXPECT_DEATH(
      {
        threads_.Start(threads_.NewProcess(),
                       [this] { Say(absl::StrCat(Deep(0))); });
        RunAll();
      },
      "");
}

}  // namespace
}  // namespace alpheus::sim
