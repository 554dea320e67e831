// SPDX-License-Identifier: Apache-2.0
// Changes of members, N, W and incarnations: each kind, cut off everywhere, and
// at random, against what was acknowledged. ALPHEUS_SEED sets the first seed of
// the random ones, ALPHEUS_MEMBERS_CHANGE_RUNS how many follow.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "recovery/opening/opening_quorums.h"
#include "tests/recovery/opening/opening_world.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {

using recovery::CheckChange;
using recovery::EpochOpeningOptions;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Primary = OpeningWorld::Primary;

// A list of members, as an operator gives it to each process.
struct List {
  uint64_t id;
  std::vector<int> nodes;
  uint32_t write_quorum;
};

quorum::QuorumSizes SizesOfList(const List& list) {
  return *quorum::MakeQuorumSizes(static_cast<uint32_t>(list.nodes.size()),
                                  list.write_quorum);
}

std::vector<NodeId> NodesOf(const std::vector<int>& numbers) {
  std::vector<NodeId> nodes;
  for (const int number : numbers) {
    nodes.push_back(NodeId(static_cast<uint64_t>(number)));
  }
  return nodes;
}

recovery::MembersChange ChangeOf(const List& from, const List& to,
                                 const std::vector<int>& replaced = {}) {
  return {from.id,         SizesOfList(from), NodesOf(from.nodes), to.id,
          SizesOfList(to), NodesOf(to.nodes), NodesOf(replaced)};
}

OpeningWorld::Options WorldOf(const List& list, int spares) {
  OpeningWorld::Options options;
  options.members = static_cast<int>(list.nodes.size());
  options.write_quorum = static_cast<int>(list.write_quorum);
  options.spares = spares;
  options.real_server = true;
  return options;
}

const List kThree{1, {1, 2, 3}, 2};

class MembersChangeTest : public ::testing::Test {
 protected:
  void Make(const List& list, int spares, uint64_t seed = 1) {
    OpeningWorld::Options options = WorldOf(list, spares);
    options.seed = seed;
    world_ = std::make_unique<OpeningWorld>(options);
  }

  EpochOpeningOptions Options(const List& list) {
    return world_->OpeningOptions(world_->outsider(), list.id, list.nodes,
                                  SizesOfList(list));
  }
  EpochOpeningOptions Options(const List& from, const List& to,
                              const std::vector<int>& replaced) {
    std::set<int> all(from.nodes.begin(), from.nodes.end());
    all.insert(to.nodes.begin(), to.nodes.end());
    EpochOpeningOptions options = world_->OpeningOptions(
        world_->outsider(), to.id, {all.begin(), all.end()}, SizesOfList(to));
    options.change = ChangeOf(from, to, replaced);
    return options;
  }

  // By a process without a replica, whose ballot is above all before.
  std::unique_ptr<Primary> Open(EpochOpeningOptions options) {
    for (;;) {
      auto primary = world_->Open(world_->outsider(), options);
      if (!primary->opening->lost_race()) return primary;
      options.above = primary->opening->refused_by()->epoch;
    }
  }
  std::unique_ptr<Primary> Change(const List& from, const List& to,
                                  const std::vector<int>& replaced = {}) {
    return Open(Options(from, to, replaced));
  }

  static std::vector<std::string> Shown(const Primary& primary) {
    return LivePayloads(primary.cache_pmem->region());
  }
  // Opens by a list and appends; each record is acknowledged by W.
  void Write(const List& list, int records) {
    auto primary = Open(Options(list));
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    EXPECT_THAT(Shown(*primary), IsSupersetOf(acknowledged_));
    world_->StartLog(*primary);
    for (int i = 0; i < records; ++i) AppendTo(*primary);
    primary.reset();
  }
  bool AppendTo(Primary& primary) {
    const std::string text = "record " + std::to_string(++appended_);
    const std::span<const std::byte> part = AsBytes(text);
    const absl::StatusOr<Lsn> lsn = primary.log->Append({&part, 1}, 1, {});
    if (lsn.ok()) acknowledged_.push_back(text);
    return lsn.ok();
  }
  // Each of them alone, but with so many others down, shows all.
  void ExpectServedBy(const List& list, const std::vector<int>& without) {
    for (const int node : without) world_->Crash(node);
    auto primary = Open(Options(list));
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    EXPECT_EQ(Shown(*primary), acknowledged_);
    primary.reset();
    for (const int node : without) world_->Restart(node);
  }
  Configuration ConfigurationOf(int node) {
    return world_->replica(node).superline().configuration;
  }

  std::unique_ptr<OpeningWorld> world_;
  std::vector<std::string> acknowledged_;
  int appended_ = 0;
};

TEST_F(MembersChangeTest, LostReplicaIsReplaced) {
  Make(kThree, 0);
  Write(kThree, 5);
  world_->Replace(3, /*like=*/1);
  EXPECT_TRUE(world_->replica(3).is_blank());
  const uint64_t incarnation = world_->replica(3).superline().incarnation;
  const auto changed = Change(kThree, kThree, {3});
  ASSERT_TRUE(changed->status().ok()) << changed->status();
  EXPECT_EQ(changed->opened->backups.size(), 3u);
  for (const int node : {1, 2, 3}) {
    EXPECT_TRUE(Names(ConfigurationOf(node), {NodeId(3), incarnation}));
    EXPECT_EQ(world_->Payloads(node), acknowledged_) << node;
  }
  ExpectServedBy(kThree, {1});
  ExpectServedBy(kThree, {2});
}

// OPQ3: nobody counts on what its predecessor had.
TEST_F(MembersChangeTest, BlankReplicaMakesNoQuorumBeforeItIsInstalled) {
  Make(kThree, 0);
  Write(kThree, 3);
  world_->Replace(3, 1);
  world_->Crash(2);
  for (const bool is_change : {false, true}) {
    const auto opened =
        is_change ? Change(kThree, kThree, {3}) : Open(Options(kThree));
    EXPECT_TRUE(absl::IsUnavailable(opened->status()) ||
                absl::IsFailedPrecondition(opened->status()))
        << opened->status();
  }
  world_->Restart(2);
  const auto changed = Change(kThree, kThree, {3});
  ASSERT_TRUE(changed->status().ok()) << changed->status();
  ExpectServedBy(kThree, {2});
}

TEST_F(MembersChangeTest, EachKindOfChangeKeepsAllAndEndsTheListBefore) {
  struct Case {
    List from;
    List to;
    std::vector<int> down;  // of the new list, while it is read
  };
  for (const Case& c : std::vector<Case>{
           {kThree, {2, {1, 2, 3, 4}, 3}, {1}},
           {kThree, {2, {1, 2, 4}, 2}, {1}},
           {{1, {1, 2, 3, 4}, 3}, {2, {1, 2, 3}, 2}, {2}},
           {kThree, {2, {1, 2, 3}, 3}, {}},
           {{1, {1, 2, 3}, 3}, {2, {1, 2, 3}, 2}, {3}},
           {kThree, {2, {1, 2, 3}, 1}, {}},
           {{1, {1}, 1}, {2, {1, 2}, 2}, {}},
           {{1, {1, 2}, 2}, {2, {1, 2, 3}, 2}, {1}},
       }) {
    Make(c.from, 4 - static_cast<int>(c.from.nodes.size()));
    acknowledged_.clear();
    Write(c.from, 4);
    const auto changed = Change(c.from, c.to);
    ASSERT_TRUE(changed->status().ok()) << changed->status();
    EXPECT_EQ(Shown(*changed), acknowledged_);
    const auto old = Open(Options(c.from));
    EXPECT_TRUE(absl::IsFailedPrecondition(old->status())) << old->status();
    EXPECT_THAT(old->status().message(), HasSubstr("newer than 1"));
    Write(c.to, 3);
    ExpectServedBy(c.to, c.down);
  }
}

TEST_F(MembersChangeTest, ListThatTheLogDoesNotHaveYetIsRefused) {
  Make(kThree, 1);
  Write(kThree, 2);
  const List four{2, {1, 2, 3, 4}, 3};
  const Epoch before = world_->replica(1).superline().promised_epoch;
  const auto opened = Open(Options(four));
  EXPECT_TRUE(absl::IsFailedPrecondition(opened->status())) << opened->status();
  EXPECT_THAT(opened->status().message(), HasSubstr("reconfigure"));
  // A primary that runs the log would not be disturbed.
  EXPECT_EQ(world_->replica(1).superline().promised_epoch, before);
}

TEST_F(MembersChangeTest, ChangeFromAnotherConfigurationIsRefused) {
  Make(kThree, 1);
  Write(kThree, 2);
  const List other{1, {1, 2, 3}, 3};
  const auto changed = Change(other, {2, {1, 2, 3, 4}, 3});
  EXPECT_TRUE(absl::IsFailedPrecondition(changed->status()))
      << changed->status();
  ExpectServedBy(kThree, {});
}

TEST_F(MembersChangeTest, ChangeIsNotMadeWithoutTheNewcomersItNeeds) {
  Make(kThree, 1);
  Write(kThree, 2);
  world_->Crash(4);
  const List four{2, {1, 2, 3, 4}, 4};
  const auto changed = Change(kThree, four);
  EXPECT_TRUE(absl::IsUnavailable(changed->status())) << changed->status();
  world_->Restart(4);
  const auto again = Change(kThree, four);
  ASSERT_TRUE(again->status().ok()) << again->status();
  ExpectServedBy(four, {});
}

// The newcomer goes when it has answered: it is a member, and holds nothing. It
// joins whoever opens the log then, as any other member that was away.
TEST_F(MembersChangeTest, NewcomerThatMissedItsChangeJoins) {
  OpeningWorld::Options options = WorldOf(kThree, 0);
  options.resyncs = true;
  world_ = std::make_unique<OpeningWorld>(options);
  Write(kThree, 5);
  world_->Replace(3, 1);
  const uint64_t incarnation = world_->replica(3).superline().incarnation;
  auto change = world_->Begin(world_->outsider(), Options(kThree, kThree, {3}));
  const auto is_installing = [&] {
    return ConfigurationOf(1).members[2].incarnation == incarnation ||
           ConfigurationOf(2).members[2].incarnation == incarnation;
  };
  while (!is_installing()) ASSERT_TRUE(world_->Step({change.get()}));
  world_->Crash(3);
  world_->Drive({change.get()});
  ASSERT_TRUE(change->status().ok()) << change->status();
  change.reset();

  auto primary = Open(Options(kThree));
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world_->StartLog(*primary);
  AppendTo(*primary);
  world_->Restart(3);
  EXPECT_TRUE(world_->replica(3).is_blank());
  for (int i = 0; i < 30'000 && primary->upkeep->replicator().in_sync() < 3;
       ++i) {
    world_->StepOthers(world_->outsider());
    primary->log->Poll();
  }
  EXPECT_EQ(primary->upkeep->replicator().in_sync(), 3u);
  EXPECT_FALSE(world_->replica(3).is_blank());
  AppendTo(*primary);
  for (int i = 0; i < 1'000; ++i) {
    world_->StepOthers(world_->outsider());
    primary->log->Poll();
  }
  EXPECT_EQ(world_->Payloads(3), acknowledged_);
}

// A list of five, of which the last is replaced: three others are enough.
class MemberThatFailsTest : public MembersChangeTest {
 protected:
  static constexpr int64_t kGatherNanos = 50'000'000;
  const List five_{1, {1, 2, 3, 4, 5}, 3};

  void SetUp() override {
    Make(five_, 0);
    Write(five_, 3);
  }
  EpochOpeningOptions Patient(const List& to,
                              const std::vector<int>& replaced) {
    EpochOpeningOptions options = Options(five_, to, replaced);
    options.gather_ns = kGatherNanos;
    options.deadline = Deadline::AtNanos(Now() + 20 * kGatherNanos);
    return options;
  }
  int64_t Now() { return world_->network().clock().NowNanos(); }
};

// It promises, and its connection breaks before its report, as when a primary
// on that node steps down. The change waits until the node is there again.
TEST_F(MemberThatFailsTest, IsInTheChangeIfItComesBack) {
  world_->Replace(5, /*like=*/1);
  const EpochOpeningOptions options = Patient(five_, {5});
  const Epoch before = world_->replica(1).superline().promised_epoch;
  const auto change = world_->Begin(world_->outsider(), options);
  while (world_->replica(1).superline().promised_epoch == before) {
    ASSERT_TRUE(world_->Step({change.get()}));
  }
  world_->Crash(1, /*power_cut=*/false);
  // The others have reported.
  const int64_t back_at = Now() + kGatherNanos / 2;
  while (Now() < back_at) ASSERT_TRUE(world_->Step({change.get()}));
  world_->Restart(1);
  world_->Drive({change.get()});
  ASSERT_TRUE(change->status().ok()) << change->status();
  EXPECT_EQ(change->opened->backups.size(), 5u);
  EXPECT_LT(Now(), back_at + kGatherNanos / 2);
}

TEST_F(MemberThatFailsTest, IsNotWaitedForIfItStaysAway) {
  world_->Replace(5, /*like=*/1);
  world_->Crash(1, /*power_cut=*/false);
  const int64_t start = Now();
  const auto change = world_->Open(world_->outsider(), Patient(five_, {5}));
  ASSERT_TRUE(change->status().ok()) << change->status();
  EXPECT_EQ(change->opened->backups.size(), 4u);
  ASSERT_EQ(change->opened->not_installed.size(), 1u);
  EXPECT_EQ(change->opened->not_installed[0].node, NodeId(1));
  EXPECT_GE(Now() - start, kGatherNanos);
  EXPECT_LT(Now() - start, 2 * kGatherNanos);
}

TEST_F(MemberThatFailsTest, IsNotWaitedForUntilTheDeadline) {
  world_->Replace(5, /*like=*/1);
  world_->Crash(1, /*power_cut=*/false);
  EpochOpeningOptions options = Patient(five_, {5});
  options.deadline = Deadline::AtNanos(Now() + kGatherNanos / 2);
  const auto change = world_->Open(world_->outsider(), options);
  ASSERT_TRUE(change->status().ok()) << change->status();
  EXPECT_EQ(change->opened->backups.size(), 4u);
}

TEST_F(MemberThatFailsTest, IsNotWaitedForIfItLeaves) {
  world_->Crash(1, /*power_cut=*/false);
  const int64_t start = Now();
  const auto change =
      world_->Open(world_->outsider(), Patient({2, {2, 3, 4, 5}, 3}, {}));
  ASSERT_TRUE(change->status().ok()) << change->status();
  EXPECT_EQ(change->opened->backups.size(), 4u);
  EXPECT_LT(Now() - start, kGatherNanos);
}

TEST_F(MembersChangeTest, ChangeThatCannotBeMadeAtOnceIsRefused) {
  const List five{1, {1, 2, 3, 4, 5}, 3};
  struct Case {
    List from;
    List to;
    std::vector<int> replaced;
    const char* why;
  };
  for (const Case& c : std::vector<Case>{
           {kThree, {2, {1, 4, 5}, 2}, {}, "1 members stay, W = 2 must"},
           {kThree, kThree, {2, 3}, "1 members stay, W = 2 must"},
           {kThree, {2, {1}, 1}, {}, "1 members stay, W = 2 must"},
           {five,
            {2, {1, 2, 3}, 2},
            {},
            "by the new list 2 members are enough to open the log, and the old "
            "list ends only when 3 members have the new one"},
       }) {
    const absl::Status status = CheckChange(ChangeOf(c.from, c.to, c.replaced));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(c.why));
  }
  // docs/use/operating.md#five-members-become-three, and back at once.
  const List four = {2, {1, 2, 3, 4}, 3};
  const List three = {3, {1, 2, 3}, 2};
  EXPECT_TRUE(CheckChange(ChangeOf(five, four)).ok());
  EXPECT_TRUE(CheckChange(ChangeOf(four, three)).ok());
  EXPECT_TRUE(CheckChange(ChangeOf(three, {4, {1, 2, 3, 4, 5}, 3})).ok());
  EXPECT_TRUE(CheckChange(ChangeOf(five, {2, {1, 2, 3, 4, 6}, 3})).ok());
}

// The numbers that members say at their server hello are enough.
TEST_F(MembersChangeTest, ChangeOfAListThatIsToComeAsksForNoPromise) {
  Make(kThree, 0);
  Write(kThree, 2);
  const Epoch promised = world_->replica(1).superline().promised_epoch;
  const auto refused = Change({3, {1, 2, 3}, 2}, {4, {1, 2, 3}, 3});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused->status()))
      << refused->status();
  EXPECT_THAT(refused->status().message(),
              AllOf(HasSubstr("the log has configuration 1, the list of "
                              "members before the change is 3"),
                    Not(HasSubstr("promised this epoch"))));
  EXPECT_EQ(world_->replica(1).superline().promised_epoch, promised);
}

TEST_F(MembersChangeTest, ChangeThatIsNoneIsRefused) {
  recovery::MembersChange unsorted = ChangeOf(kThree, {2, {1, 2, 3, 4}, 3});
  std::swap(unsorted.to_nodes[0], unsorted.to_nodes[1]);
  recovery::MembersChange wrong_count = ChangeOf(kThree, {2, {1, 2, 3, 4}, 3});
  wrong_count.from_nodes.pop_back();
  for (const recovery::MembersChange& change :
       {ChangeOf(kThree, kThree), unsorted, wrong_count,
        ChangeOf(kThree, kThree, {4}), ChangeOf(kThree, {1, {1, 2, 3}, 3}),
        ChangeOf({2, {1, 2, 3}, 2}, kThree)}) {
    const absl::Status status = CheckChange(change);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

// The replica that node 4 had when it left is refused when it comes back.
TEST_F(MembersChangeTest, NodeThatLeftComesBackBlankOnly) {
  const List four{1, {1, 2, 3, 4}, 3};
  const List without{2, {1, 2, 3}, 2};
  const List again{3, {1, 2, 3, 4}, 3};
  Make(four, 0);
  Write(four, 2);
  ASSERT_TRUE(Change(four, without)->status().ok());
  Write(without, 2);
  const auto refused = Change(without, again);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused->status()))
      << refused->status();
  EXPECT_THAT(refused->status().message(), HasSubstr("Remove it there"));
  world_->Replace(4, /*like=*/1);
  const auto changed = Change(without, again);
  ASSERT_TRUE(changed->status().ok()) << changed->status();
  ExpectServedBy(again, {2});
}

// OPQ1, OPQ2: whatever the moment, if a newcomer has the epoch then W of the
// members before have it, too.
TEST_F(MembersChangeTest, OldMembersInstallBeforeNewOnes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Make(kThree, 1, seed);
    acknowledged_.clear();
    // Without a record nothing has to be copied, so that all could be at once.
    Write(kThree, seed % 2 == 0 ? 3 : 0);
    auto primary = world_->Begin(world_->outsider(),
                                 Options(kThree, {2, {1, 2, 4}, 2}, {}));
    const auto has_it = [&](int node) {
      return ConfigurationOf(node).id == 2 ? 1 : 0;
    };
    do {
      EXPECT_GE(has_it(1) + has_it(2), 2 * has_it(4)) << seed;
    } while (world_->Step({primary.get()}));
    ASSERT_TRUE(primary->status().ok()) << primary->status();
  }
}

// After each event: it is made again, and nothing is missing. Or it is not,
// and either list may be tried.
TEST_F(MembersChangeTest, ChangeThatIsCutOffAnywhereIsMadeAgain) {
  struct Case {
    List to;
    std::vector<int> replaced;
  };
  for (const Case& c : std::vector<Case>{{kThree, {3}},
                                         {{2, {1, 2, 3, 4}, 3}, {}},
                                         {{2, {1, 2, 4}, 2}, {}},
                                         {{2, {1, 2, 3}, 1}, {}},
                                         {{2, {1, 2}, 2}, {}}}) {
    for (int events = 0;; events += 3) {
      Make(kThree, 1);
      acknowledged_.clear();
      Write(kThree, 3);
      for (const int node : c.replaced) world_->Replace(node, 1);
      auto primary =
          world_->Begin(world_->outsider(), Options(kThree, c.to, c.replaced));
      int done = 0;
      while (done < events && world_->Step({primary.get()})) ++done;
      primary.reset();
      // A process that still has the old list may go on, if it can.
      auto old = Open(Options(kThree));
      if (old->status().ok() && old->opened->backups.size() >= 2) {
        EXPECT_EQ(Shown(*old), acknowledged_) << events;
        world_->StartLog(*old);
        AppendTo(*old);
      }
      old.reset();
      const auto again = Change(kThree, c.to, c.replaced);
      ASSERT_TRUE(again->status().ok()) << events << ": " << again->status();
      EXPECT_EQ(Shown(*again), acknowledged_) << events;
      if (done < events) break;
    }
  }
}

// Lists that follow each other, processes with any of them, nodes that go and
// come back, changes that are cut off: what was acknowledged is always there.
class RandomChanges : public MembersChangeTest {
 protected:
  void Run(uint64_t seed) {
    random_.emplace(seed);
    lists_ = {kThree};
    changes_.clear();
    story_.clear();
    lost_ = 0;
    acknowledged_.clear();
    Make(kThree, 2, seed);
    for (int turn = 0; turn < 14 && !HasFailure(); ++turn) Turn();
    for (int node = 1; node <= 5; ++node) {
      if (!world_->IsUp(node)) world_->Restart(node);
    }
    // With everybody there, one of the lists is the log's, or becomes it when
    // the change to it is made again.
    if (AnyListOpens()) return;
    ++half_done_;
    for (const auto& [from, to] : changes_) {
      auto primary = Open(Options(from, to, {}));
      Tell(absl::StrCat("again ", Describe(from), " to ", Describe(to)),
           *primary);
      primary.reset();
      if (AnyListOpens()) return;
    }
    // Where all must promise, nothing can be done without a medium.
    EXPECT_NE(lost_, 0) << "no list opens the log\n" << story_;
  }

  bool AnyListOpens() {
    bool any = false;
    for (const List& list : lists_) {
      auto primary = Open(Options(list));
      Tell(absl::StrCat("at the end ", Describe(list)), *primary);
      if (!primary->status().ok()) continue;
      any = true;
      EXPECT_THAT(Shown(*primary), IsSupersetOf(acknowledged_));
    }
    return any;
  }

  void Turn() {
    switch (random_->Below(6)) {
      case 0:
        return CrashOrRestart();
      case 3:
        return Replace();
      case 1:
      case 2:
        TryOpen(AnyList(), static_cast<int>(random_->Below(3)));
        return;
      default:
        return TryChange();
    }
  }
  const List& AnyList() { return lists_[random_->Below(lists_.size())]; }

  void CrashOrRestart() {
    const int node = 1 + static_cast<int>(random_->Below(5));
    if (world_->IsUp(node)) {
      // Three at least stay.
      int up = 0;
      for (int other = 1; other <= 5; ++other) up += world_->IsUp(other);
      if (up > 3) world_->Crash(node);
    } else {
      world_->Restart(node);
    }
  }

  void Tell(const std::string& what, const Primary& primary) {
    absl::StrAppend(&story_, what, ": ", primary.status().ToString(), "\n");
  }
  static std::string Describe(const List& list) {
    return absl::StrCat(list.id, " {", absl::StrJoin(list.nodes, ","), "}/",
                        list.write_quorum);
  }

  bool TryOpen(const List& list, int records) {
    const std::set<int> silent = SomeAreSilent();
    EpochOpeningOptions options = Options(list);
    options.step_timeout_ns = 1'000'000;
    std::set<int> lost_on_the_way;
    auto primary = OpenDisturbed(options, &lost_on_the_way);
    Tell(absl::StrCat("open ", Describe(list)), *primary);
    const bool is_open = primary->status().ok();
    if (is_open) {
      ++opened_;
      EXPECT_THAT(Shown(*primary), IsSupersetOf(acknowledged_)) << story_;
      LoseSome(&lost_on_the_way);
      world_->StartLog(*primary);
      for (int i = 0; i < records && AppendTo(*primary); ++i) {
      }
    }
    primary.reset();
    HearAll(lost_on_the_way);
    HearAll(silent);
    return is_open;
  }

  // Nodes go in the middle of it.
  std::unique_ptr<Primary> OpenDisturbed(EpochOpeningOptions options,
                                         std::set<int>* lost) {
    for (;;) {
      auto primary = world_->Begin(world_->outsider(), options);
      const uint64_t events = random_->Below(150);
      for (uint64_t i = 0; i < events && world_->Step({primary.get()}); ++i) {
      }
      LoseSome(lost);
      world_->Drive({primary.get()});
      if (!primary->opening->lost_race()) return primary;
      options.above = primary->opening->refused_by()->epoch;
    }
  }
  void LoseSome(std::set<int>* lost) {
    const uint64_t one_in = 2 + random_->Below(4);
    for (int node = 1; node <= 5; ++node) {
      if (world_->IsUp(node) && random_->Below(one_in) == 0) {
        world_->Crash(node, /*power_cut=*/false);
        lost->insert(node);
      }
    }
  }

  // Another member, one more, one fewer, another W; from any list.
  void TryChange() {
    const List from = AnyList();
    List to = from;
    to.id = 1 + static_cast<uint64_t>(lists_.size());
    const int node = 1 + static_cast<int>(random_->Below(5));
    const auto at = std::find(to.nodes.begin(), to.nodes.end(), node);
    if (at != to.nodes.end() && to.nodes.size() > 1) {
      to.nodes.erase(at);
    } else if (at == to.nodes.end()) {
      to.nodes.push_back(node);
    }
    if (random_->Below(3) == 0) {
      const int other = 1 + static_cast<int>(random_->Below(5));
      if (std::find(to.nodes.begin(), to.nodes.end(), other) ==
          to.nodes.end()) {
        to.nodes.push_back(other);
      }
    }
    std::sort(to.nodes.begin(), to.nodes.end());
    to.write_quorum =
        1 + static_cast<uint32_t>(random_->Below(to.nodes.size()));
    if (!CheckChange(ChangeOf(from, to)).ok()) return;
    lists_.push_back(to);
    changes_.emplace_back(from, to);
    MakeOrCut(from, to, {});
  }

  // Where W = 1 was never enough, one medium may be lost.
  void Replace() {
    const bool any_alone =
        std::any_of(lists_.begin(), lists_.end(),
                    [](const List& list) { return list.write_quorum == 1; });
    if (any_alone) return;
    const List list = AnyList();
    if (lost_ == 0) {
      const int node = list.nodes[random_->Below(list.nodes.size())];
      const int like = 1 + static_cast<int>(random_->Below(5));
      if (node == like || !world_->IsUp(like) || !world_->IsUp(node)) return;
      lost_ = node;
      ++lost_media_;
      world_->Replace(node, like);
      absl::StrAppend(&story_, "lost: node ", node, "\n");
    }
    if (std::find(list.nodes.begin(), list.nodes.end(), lost_) ==
        list.nodes.end()) {
      return;
    }
    if (CheckChange(ChangeOf(list, list, {lost_})).ok() &&
        MakeOrCut(list, list, {lost_})) {
      lost_ = 0;
    }
  }

  bool MakeOrCut(const List& from, const List& to,
                 const std::vector<int>& replaced) {
    const std::set<int> silent = SomeAreSilent();
    bool is_made = false;
    EpochOpeningOptions options = Options(from, to, replaced);
    options.step_timeout_ns = 1'000'000;
    if (random_->Below(2) == 0) {
      auto primary = world_->Begin(world_->outsider(), options);
      const uint64_t events = random_->Below(120);
      for (uint64_t i = 0; i < events && world_->Step({primary.get()}); ++i) {
      }
      absl::StrAppend(&story_, "cut off: ", Describe(from), " to ",
                      Describe(to), "\n");
      primary.reset();
    } else {
      std::set<int> lost_on_the_way;
      auto primary = OpenDisturbed(options, &lost_on_the_way);
      HearAll(lost_on_the_way);
      Tell(absl::StrCat("change ", Describe(from), " to ", Describe(to)),
           *primary);
      is_made = primary->status().ok();
      if (is_made) {
        ++changed_;
        EXPECT_THAT(Shown(*primary), IsSupersetOf(acknowledged_));
      }
      primary.reset();
    }
    HearAll(silent);
    return is_made;
  }

  // Nodes that a process can't reach, but others can.
  std::set<int> SomeAreSilent() {
    std::set<int> silent;
    for (int node = 1; node <= 5; ++node) {
      if (world_->IsUp(node) && random_->Below(4) == 0) {
        world_->Crash(node, /*power_cut=*/false);
        silent.insert(node);
      }
    }
    return silent;
  }
  void HearAll(const std::set<int>& silent) {
    for (const int node : silent) world_->Restart(node);
  }

  std::optional<Random> random_;
  std::vector<List> lists_;
  std::vector<std::pair<List, List>> changes_;
  std::string story_;
  int lost_ = 0;  // the node whose medium was lost, until it is replaced
  int opened_ = 0;
  int changed_ = 0;
  int half_done_ = 0;
  int lost_media_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

TEST_F(RandomChanges, NothingAcknowledgedIsEverMissing) {
  const uint64_t first = FromEnvironment("ALPHEUS_SEED", 1);
  const uint64_t runs = FromEnvironment("ALPHEUS_MEMBERS_CHANGE_RUNS", 500);
  for (uint64_t i = 0; i < runs && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("ALPHEUS_SEED=", first + i));
    Run(first + i);
  }
  std::cout << "[   counts ] " << opened_ << " openings, " << changed_
            << " changes, " << lost_media_ << " media lost, " << half_done_
            << " logs left in the middle of a change\n";
}

}  // namespace
}  // namespace alpheus::testing
