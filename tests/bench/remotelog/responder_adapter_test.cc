// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/responder_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "replication/persist/platform/method_steps.h"

namespace alpheus::bench::remotelog {

using replication::steps::kFlush;
using replication::steps::kWriteA;

namespace {

using ::testing::ElementsAre;

constexpr Costs kFree{.adapter_gap = 0};

// Notes what becomes of operations that arrive together, and when.
class ResponderAdapterTest : public ::testing::Test {
 protected:
  // The times by event: a step, then "answered", "visible" or "message".
  std::map<std::string, double> Times(
      const std::vector<replication::Step>& steps,
      const replication::Platform& platform, const Costs& costs = kFree) {
    std::map<std::string, double> times;
    EventQueue queue;
    const auto note = [&](const Operation& operation, const char* what) {
      const std::string name =
          replication::StepName(operation.step) + " " + what;
      times[name] = queue.now();
      order_.push_back(name);
    };
    ResponderAdapter adapter(
        costs, platform, 1, &queue,
        {.send_back = [&](const Operation& o, double) { note(o, "answered"); },
         .bytes_visible = [&](const Operation& o) { note(o, "visible"); },
         .message_visible = [&](const Operation& o) { note(o, "message"); }});
    for (const replication::Step& step : steps) {
      adapter.Receive({.connection = 0,
                       .step = step,
                       .is_awaited = true,
                       .is_last_of_update = false});
    }
    while (queue.RunOne()) {
    }
    return times;
  }

  std::vector<std::string> order_;
};

constexpr replication::Step kAtomicB = replication::steps::kWriteAtomicB;

TEST_F(ResponderAdapterTest, WriteIsAnsweredBeforeItIsVisible) {
  auto times = Times({kWriteA}, {.ddio = true});
  EXPECT_EQ(times["rq:write(a) answered"], 0);
  EXPECT_EQ(times["rq:write(a) visible"], kFree.pcie + kFree.root_complex);
}

TEST_F(ResponderAdapterTest, WithoutDdioTheWayIsLonger) {
  auto times = Times({kWriteA}, {.ddio = false});
  EXPECT_EQ(times["rq:write(a) visible"],
            kFree.pcie + kFree.root_complex + kFree.without_ddio);
}

// Goal: RA1.
TEST_F(ResponderAdapterTest, CompletionComesBehindItsBytes) {
  Times({kWriteA, replication::steps::kSendAddressA}, {});
  EXPECT_THAT(order_,
              ElementsAre("rq:write(a) answered", "rq:send(&a) answered",
                          "rq:write(a) visible", "rq:send(&a) visible",
                          "rq:send(&a) message"));
}

// Goal: RA2. A FLUSH alone takes two ways over PCIe and through the root
// complex; right behind a write its access waits until that is visible, which
// is half a way through the root complex later.
TEST_F(ResponderAdapterTest, FlushWaitsForWhatWasPostedBefore) {
  auto alone = Times({kFlush}, {.ddio = true});
  EXPECT_EQ(alone["rq:flush answered"], 2 * kFree.pcie + kFree.root_complex);
  auto behind = Times({kWriteA, kFlush}, {.ddio = true});
  EXPECT_EQ(
      behind["rq:flush answered"],
      behind["rq:write(a) visible"] + kFree.root_complex / 2 + kFree.pcie);
  EXPECT_GT(behind["rq:flush answered"], alone["rq:flush answered"]);
}

TEST_F(ResponderAdapterTest, FlushDoesNotWaitForWhatIsPostedBehindIt) {
  auto times = Times({kFlush, kWriteA}, {.ddio = true});
  EXPECT_EQ(times["rq:flush answered"], 2 * kFree.pcie + kFree.root_complex);
}

// Goal: RA3. Method: the same, with a WRITE and with an atomic one.
TEST_F(ResponderAdapterTest, AtomicWriteDoesNotPassFlushAsWriteDoes) {
  auto passing = Times({kFlush, replication::steps::kWriteB}, {.ddio = true});
  EXPECT_LT(passing["rq:write(b) visible"], passing["rq:flush answered"]);
  auto atomic = Times({kFlush, kAtomicB}, {.ddio = true});
  EXPECT_EQ(atomic["rq:writeatomic(b) visible"],
            atomic["rq:flush answered"] + kFree.pcie + kFree.root_complex);
}

// Goal: RA3, the FLUSH behind: it pushes on what was held back.
TEST_F(ResponderAdapterTest, FlushBehindAtomicWritePushesIt) {
  auto times = Times({kWriteA, kFlush, kAtomicB, kFlush}, {.ddio = true});
  EXPECT_GT(times["rq:flush answered"], times["rq:writeatomic(b) visible"]);
}

TEST_F(ResponderAdapterTest, PacketsAreTakenOneAfterTheOther) {
  auto times =
      Times({kWriteA, replication::steps::kWriteB}, {}, {.adapter_gap = 30});
  EXPECT_EQ(times["rq:write(a) answered"], 0);
  EXPECT_EQ(times["rq:write(b) answered"], 30);
}

}  // namespace
}  // namespace alpheus::bench::remotelog
