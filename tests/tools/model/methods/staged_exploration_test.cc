// SPDX-License-Identifier: Apache-2.0
// Every way of a few words, with a power cut at every state, against tables
// that were made by hand from the taxonomy's prose.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/tools/model/methods/staged_world.h"

namespace alpheus::testing {

using model::StagedMemory;

namespace {

using Images = std::set<std::string>;
// The steps done to the two words, one after the other; the words move on by
// themselves before, between and after the steps.
using Program = std::vector<std::function<void(StagedWorld&)>>;

// The images that a power cut may leave, by the number of steps that were done.
class Exploration {
 public:
  Exploration(const StagedMemory::Options& options, const Program& program)
      : options_(options), program_(program), images_(program.size() + 1) {
    Visit({});
  }

  const Images& AfterStep(size_t steps) const { return images_[steps]; }
  size_t states() const { return seen_.size(); }

 private:
  static constexpr size_t kStep = SIZE_MAX;  // the program's next one

  struct State {
    explicit State(const StagedMemory::Options& options) : world(options) {}
    StagedWorld world;
    size_t steps = 0;
  };

  void Go(State& state, const std::vector<size_t>& way) const {
    for (const size_t choice : way) {
      if (choice == kStep) {
        program_[state.steps++](state.world);
      } else {
        state.world.staged.Make(choice);
      }
    }
  }

  // Models can't be copied; the way to a state is gone again.
  void Visit(const std::vector<size_t>& way) {
    State state(options_);
    Go(state, way);
    if (!seen_.insert(NameOf(state)).second) return;
    const size_t moves = state.world.staged.move_count();
    images_[state.steps].merge(state.world.Cut());
    std::vector<size_t> next = way;
    next.push_back(kStep);
    if (state.steps < program_.size()) Visit(next);
    for (size_t move = 0; move < moves; ++move) {
      next.back() = move;
      Visit(next);
    }
  }

  static std::string NameOf(State& state) {
    StagedWorld& world = state.world;
    std::string name = absl::StrCat(state.steps, " ", world.Visible(), " ",
                                    world.Image(world.model.persistent()));
    for (size_t i = 0; i < world.staged.move_count(); ++i) {
      const StagedMemory::Move move = world.staged.MoveAt(i);
      absl::StrAppend(&name, " ", move.word - world.model.region().data(), ":",
                      static_cast<int>(move.from));
    }
    for (const auto& word : world.model.DirtyWords()) {
      absl::StrAppend(&name, " ", word.offset, "=", word.values.size());
    }
    return name;
  }

  const StagedMemory::Options options_;
  const Program program_;
  std::vector<Images> images_;
  std::set<std::string> seen_;
};

// A row: what may be left once so many steps are done, by platform.
struct Row {
  size_t steps;
  const char* images[6];  // DMP+DDIO, DMP, MHP+DDIO, MHP, WSP+DDIO, WSP
};

void ExpectTable(const Program& program, const std::vector<Row>& rows) {
  const auto platforms = StagedPlatforms();
  for (size_t i = 0; i < platforms.size(); ++i) {
    SCOPED_TRACE(StagedPlatformName(platforms[i]));
    const Exploration explored(platforms[i], program);
    EXPECT_GE(explored.states(), 9u);
    for (const Row& row : rows) {
      const Images expected =
          absl::StrSplit(row.images[i], ' ', absl::SkipEmpty());
      EXPECT_EQ(explored.AfterStep(row.steps), expected)
          << "after " << row.steps << " steps";
    }
  }
}

constexpr const char* kAny = "00 01 10 11";

const auto kReceiveBoth = [](StagedWorld& world) { world.Receive(0, 2); };
const auto kReceiveA = [](StagedWorld& world) { world.Receive(0, 1); };
const auto kReceiveB = [](StagedWorld& world) { world.Receive(1, 1); };
// The requester has the completion of its FLUSH.
const auto kFlush = [](StagedWorld& world) { world.staged.PushForRead(1); };
// The responder's program has a completion of what came behind the writes.
const auto kNotice = [](StagedWorld& world) { world.staged.PushForReceive(1); };
const auto kResponderFlush = [](StagedWorld& world) { world.FlushAndFence(); };

// One write of two words, which tears; then FLUSH. §3.2: with DMP and DDIO "it
// is clear that remote persistence is not reliably possible with just one-sided
// operations"; with DDIO off it "becomes possible", on completion of the FLUSH;
// so it is with MHP; with WSP "receipt of just the completion notification of
// RDMA WRITE [...] is sufficient" (InfiniBand: step 1).
TEST(StagedExplorationTest, SingletonWriteThenFlush) {
  ExpectTable({kReceiveBoth, kFlush},
              {{0, {"00", "00", "00", "00", "00", "00"}},
               {1, {kAny, kAny, kAny, kAny, "11", "11"}},
               {2, {kAny, "11", "11", "11", "11", "11"}}});
}

// The same with a notice to the responder, whose program flushes: enough
// everywhere, and the notice by itself where the caches are kept.
TEST(StagedExplorationTest, SingletonWriteThenNoticeThenResponderFlush) {
  ExpectTable({kReceiveBoth, kNotice, kResponderFlush},
              {{0, {"00", "00", "00", "00", "00", "00"}},
               {1, {kAny, kAny, kAny, kAny, "11", "11"}},
               {2, {kAny, kAny, "11", "11", "11", "11"}},
               {3, {"11", "11", "11", "11", "11", "11"}}});
}

// A responder that flushes without having been told flushes what happens to be
// visible: not enough unless the adapter is in the domain.
TEST(StagedExplorationTest, ResponderFlushWithoutANoticeIsNotEnough) {
  ExpectTable({kReceiveBoth, kResponderFlush},
              {{2, {kAny, kAny, kAny, kAny, "11", "11"}}});
}

// a, then b, back to back. §3.3: with MHP "two dependent updates can be
// pipelined back-to-back"; with DMP they "may become persistent out-of-order"
// (§2), DDIO on or off.
TEST(StagedExplorationTest, CompoundWritesBackToBack) {
  ExpectTable({kReceiveA, kReceiveB, kFlush},
              {{1, {"00 10", "00 10", "00 10", "00 10", "10", "10"}},
               {2, {kAny, kAny, "00 10 11", "00 10 11", "11", "11"}},
               {3, {kAny, "11", "11", "11", "11", "11"}}});
}

// "The RDMA FLUSH after the first RDMA WRITE ensures that the write will be
// flushed": with DDIO off a is persistent before b is there, with it on not.
TEST(StagedExplorationTest, CompoundWritesWithAFlushBetween) {
  ExpectTable({kReceiveA, kFlush, kReceiveB, kFlush},
              {{2, {"00 10", "10", "10", "10", "10", "10"}},
               {3, {kAny, "10 11", "10 11", "10 11", "11", "11"}},
               {4, {kAny, "11", "11", "11", "11", "11"}}});
}

// With DDIO they "must be separated by a message exchange", and a flush of the
// responder.
TEST(StagedExplorationTest, CompoundWritesWithAResponderFlushBetween) {
  ExpectTable({kReceiveA, kNotice, kResponderFlush, kReceiveB, kNotice,
               kResponderFlush},
              {{3, {"10", "10", "10", "10", "10", "10"}},
               {5, {"10 11", "10 11", "11", "11", "11", "11"}},
               {6, {"11", "11", "11", "11", "11", "11"}}});
}

// P-R4: with relaxed ordering b may be there without a, also where all that is
// visible is kept. WSP keeps what was received.
TEST(StagedExplorationTest, RelaxedOrderingBreaksBackToBackWrites) {
  const Program program = {kReceiveA, kReceiveB, kFlush};
  for (StagedMemory::Options options : StagedPlatforms()) {
    options.relaxed_ordering = true;
    SCOPED_TRACE(StagedPlatformName(options));
    const Exploration explored(options, program);
    const bool is_whole =
        options.domain == replication::PersistenceDomain::kSystem;
    EXPECT_EQ(explored.AfterStep(2),
              is_whole ? Images{"11"} : (Images{"00", "01", "10", "11"}));
    const bool is_open =
        options.domain == replication::PersistenceDomain::kMemory &&
        options.ddio;
    EXPECT_EQ(explored.AfterStep(3),
              is_open ? (Images{"00", "01", "10", "11"}) : Images{"11"});
  }
}

// Two connections have no order with each other.
TEST(StagedExplorationTest, WritesOfTwoConnectionsHaveNoOrder) {
  const Program program = {kReceiveA, [](StagedWorld& world) {
                             world.Receive(1, 1, /*channel=*/2);
                           }};
  const Exploration explored(
      {.domain = replication::PersistenceDomain::kHierarchy, .ddio = true},
      program);
  EXPECT_EQ(explored.AfterStep(2), (Images{"00", "01", "10", "11"}));
}

}  // namespace
}  // namespace alpheus::testing
