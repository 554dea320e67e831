// SPDX-License-Identifier: Apache-2.0
// Members change while the log runs: a primary on node 1 of three, with a blank
// replica on node 4.
#include "recovery/resync/epoch_succession.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/region_state.h"
#include "log/core/space/ceiling.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/membership/membership.h"
#include "recovery/replica/openers_replica.h"
#include "tests/recovery/opening/opening_world.h"
#include "tests/recovery/opening/own_log.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using Model = OpeningWorld::Model;
using Primary = OpeningWorld::Primary;

std::vector<NodeId> NodesOf(const std::vector<int>& numbers) {
  std::vector<NodeId> nodes;
  for (const int number : numbers) {
    nodes.push_back(NodeId(static_cast<uint64_t>(number)));
  }
  return nodes;
}

// The own replica of an opening, whose installation may be held up or fail.
class HeldReplica final : public recovery::LocalOpenersReplica<Model> {
 public:
  // Returns true if the installation may go on.
  using Hold = std::function<absl::StatusOr<bool>()>;

  HeldReplica(std::unique_ptr<recovery::LocalReplica<Model>> replica,
              std::function<void()> fence, const Hold& hold)
      : LocalOpenersReplica(*replica, std::move(fence)),
        owned_(std::move(replica)),
        hold_(hold) {}

  absl::Status StartInstall(const recovery::Installation& what) override {
    installs_ = true;
    return LocalOpenersReplica::StartInstall(what);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    if (installs_ && hold_) {
      const Hold hold = hold_;  // it may put another in its place
      ALPHEUS_ASSIGN_OR_RETURN(const bool may_go_on, hold());
      if (!may_go_on) return false;
    }
    return LocalOpenersReplica::Continue(bytes_max);
  }

 private:
  const std::unique_ptr<recovery::LocalReplica<Model>> owned_;
  const Hold& hold_;
  bool installs_ = false;
};

// The primary's log, and its replica on node 1.
class RunningLog final : public recovery::PrimaryReplica,
                         public recovery::SucceedingLog {
 public:
  RunningLog(OpeningWorld& world, Primary& primary)
      : world_(world), primary_(primary) {}

  absl::Status ReleaseRegion() override {
    is_released = true;
    return absl::OkStatus();
  }
  bool IsUsable() const override { return primary_.log->IsUsable(); }
  std::byte* RingOnMedium() const override {
    return primary_.log->RingOnMedium();
  }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    primary_.log->WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return primary_.log->RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override {
    return primary_.log->RepairCopies();
  }

  bool TryHold() override { return !is_closing && primary_.log->TryHold(); }
  bool IsAtRest() const override { return primary_.log->IsAtRest(); }
  bool HasRoomForEpoch() const override {
    return primary_.log->HasRoomForEpoch();
  }
  void HandRegion() override { primary_.log->HandRegion(); }
  absl::Status Continue(const recovery::EpochOpened& opened) override {
    if (!other_epoch.ok()) return other_epoch;
    return primary_.log->Continue(opened.start);
  }
  void Resume() override { primary_.log->Resume(); }
  absl::Status MediumError() const override {
    return primary_.log->MediumError();
  }
  absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>> OpenReplica(
      std::function<void()> fence) override {
    auto replica = recovery::LocalReplica<Model>::Open(
        world_.pmem(1), world_.pmem(1).region(),
        {.name = "own replica", .read_whole_bytes_max = read_whole_bytes_max});
    if (!replica.ok()) return replica.status();
    return std::make_unique<HeldReplica>(*std::move(replica), std::move(fence),
                                         hold_install);
  }

  uint64_t read_whole_bytes_max = kReadWholeBytesMax;
  HeldReplica::Hold hold_install;
  bool is_released = false;
  bool is_closing = false;
  absl::Status other_epoch;  // an error: the epoch is not this log's

 private:
  OpeningWorld& world_;
  Primary& primary_;
};

struct SuccessionSetup {
  // Changes the options with which the first epoch was opened.
  std::function<void(recovery::EpochOpeningOptions&)> opened_with = {};
  uint64_t read_whole_bytes_max = kReadWholeBytesMax;  // of all replicas
};

class EpochSuccessionTest : public ::testing::Test {
 protected:
  explicit EpochSuccessionTest(const SuccessionSetup& setup = {}) {
    options_.real_server = true;
    options_.succeeds = true;
    options_.spares = 1;
    options_.ring_capacity = 8192;
    options_.read_whole_bytes_max = setup.read_whole_bytes_max;
    options_.open_ballots = [this] { return OpenBallots(); };
    world_ = std::make_unique<OpeningWorld>(options_);
    primary_ = world_->Open(0);
    EXPECT_TRUE(primary_->status().ok()) << primary_->status();
    if (setup.opened_with) setup.opened_with(primary_->asked);
    world_->StartLog(*primary_);
    running_ = std::make_unique<RunningLog>(*world_, *primary_);
    running_->read_whole_bytes_max = setup.read_whole_bytes_max;
    succession().ClaimReplica(ClaimHeardByNobody(*primary_), {}, *running_,
                              *running_);
  }

  // Where a change gets its ballots. An error: it counts up from the promises.
  virtual absl::StatusOr<std::unique_ptr<quorum::BallotSource>> OpenBallots() {
    return absl::UnavailableError("there is no service");
  }

  recovery::EpochSuccession& succession() { return *primary_->succession; }
  Epoch epoch() { return succession().change().epoch; }

  // Node 4 takes the place of node 3.
  recovery::SuccessionRequest Request(uint64_t from_id = 1) {
    const quorum::QuorumSizes sizes = *quorum::MakeQuorumSizes(3, 2);
    recovery::SuccessionRequest request;
    request.change = {from_id,     sizes, NodesOf({1, 2, 3}),
                      from_id + 1, sizes, NodesOf({1, 2, 4}),
                      {}};
    for (const int node : {1, 2, 3, 4}) {
      request.peers.push_back(world_->AddressOf(node));
    }
    return request;
  }

  // As an operator asks for it, by the node.
  static recovery::AskChange AskedBy(
      uint64_t id, const recovery::SuccessionRequest& request) {
    return {id, request.change, request.peers};
  }

  void Append(int records) {
    for (int i = 0; i < records; ++i) {
      const std::string text = "record " + std::to_string(++appended_);
      const std::span<const std::byte> part = AsBytes(text);
      const absl::StatusOr<Lsn> lsn = primary_->log->Append({&part, 1}, 1, {});
      ASSERT_TRUE(lsn.ok()) << lsn.status();
      acknowledged_.push_back(text);
    }
  }
  // W of the list changes to and fro, so that the running log has one more
  // epoch.
  void ChangeQuorum() {
    recovery::SuccessionRequest request =
        Request(succession().members().configuration.id);
    request.change.from = succession().members().sizes;
    request.change.to = *quorum::MakeQuorumSizes(
        3, request.change.from.write_quorum == 2 ? 3 : 2);
    request.change.to_nodes = request.change.from_nodes;
    request.peers.pop_back();
    ASSERT_TRUE(succession().Ask(request).ok());
    ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  }
  LogPosition PositionOf(Lsn lsn) {
    RecordCursor cursor(primary_->log->ring(), primary_->log->table(),
                        primary_->log->head(), primary_->log->tail());
    while (cursor.position().lsn < lsn &&
           cursor.Next() == RecordCursor::Step::kRecord) {
    }
    return cursor.position();
  }
  void StepOnce() {
    world_->StepOthers(0);
    primary_->log->Poll();
  }
  bool StepUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 100'000; ++i) {
      if (done()) return true;
      StepOnce();
    }
    return false;
  }
  int64_t now() const { return world_->network().clock().NowNanos(); }
  bool IsDone() {
    const recovery::EpochSuccession::Change change = succession().change();
    return change.done == change.asked;
  }
  // Nodes of the list that clients are told of.
  std::vector<NodeId> MembersTold() {
    std::vector<NodeId> nodes;
    for (const recovery::PeerAddress& at : succession().members().nodes) {
      nodes.push_back(at.node);
    }
    return nodes;
  }
  Configuration ConfigurationOf(int node) {
    return world_->replica(node).superline().configuration;
  }
  // A process without a replica shows all, while node 1 is down.
  void ExpectAllByList(uint64_t id, const std::vector<int>& nodes) {
    primary_.reset();
    world_->Crash(1);
    recovery::EpochOpeningOptions options = world_->OpeningOptions(
        world_->outsider(), id, nodes, *quorum::MakeQuorumSizes(3, 2));
    for (;;) {
      primary_ = world_->Open(world_->outsider(), options);
      if (!primary_->opening->lost_race()) break;
      options.above = primary_->opening->refused_by()->epoch;
    }
    ASSERT_TRUE(primary_->status().ok()) << primary_->status();
    EXPECT_THAT(LivePayloads(primary_->cache_pmem->region()),
                ElementsAreArray(acknowledged_));
  }

  OpeningWorld::Options options_;
  std::unique_ptr<OpeningWorld> world_;
  std::unique_ptr<RunningLog> running_;
  std::unique_ptr<Primary> primary_;
  int appended_ = 0;
  std::vector<std::string> acknowledged_;
};

TEST_F(EpochSuccessionTest, AppendsGoOnOverAChangeOfMembers) {
  const Epoch first = epoch();
  EXPECT_EQ(MembersTold(), NodesOf({1, 2, 3}));
  Append(3);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  EXPECT_TRUE(absl::IsUnavailable(succession().Ask(Request())))
      << "one at once";
  for (int i = 0; i < 1000 && !IsDone(); ++i) Append(1);
  ASSERT_TRUE(IsDone());
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_GT(epoch(), first);
  Append(3);
  EXPECT_EQ(MembersTold(), NodesOf({1, 2, 4}));
  EXPECT_EQ(succession().members().configuration.id, 2u);
  // The newcomer joins when its copy is there.
  ASSERT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
  Append(1);
  EXPECT_EQ(ConfigurationOf(2).id, 2u);
  EXPECT_EQ(ConfigurationOf(4).id, 2u);
  EXPECT_EQ(ConfigurationOf(3).id, 1u) << "it left, and is not written to";
  const recovery::EpochSuccession::Members members = succession().members();
  EXPECT_EQ(members.configuration.id, 2u);
  EXPECT_THAT(members.nodes,
              ElementsAre(recovery::PeerAddress{NodeId(1), "sim:9:1"},
                          world_->AddressOf(2), world_->AddressOf(4)))
      << "the own address is that of the claim";
  ExpectAllByList(2, {1, 2, 4});
}

class SuccessionCeilingTest : public EpochSuccessionTest {
 protected:
  SuccessionCeilingTest()
      : EpochSuccessionTest({.opened_with = [](auto& asked) {
          asked.ceiling_step_bytes = 2 * kLineBytes;
        }}) {}
};

// CLG3: the log may have assigned space up to the ceiling of before.
TEST_F(SuccessionCeilingTest, CeilingsDoNotGoBack) {
  Append(3);
  const RingOffset before = world_->replica(2).superline().ceiling;
  ASSERT_EQ(before, RingOffset(8192));
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(world_->replica(2).superline().ceiling, before);
  EXPECT_GE(succession().replication_state().reuse_limit, before);
  Append(3);
}

// A service whose register is far ahead.
class SuccessionBallotsTest : public EpochSuccessionTest {
 protected:
  static constexpr uint64_t kCounter = 1000;

  class Given final : public quorum::BallotRequest {
   public:
    explicit Given(Epoch ballot) : ballot_(ballot) {}

    Polled Poll() override {
      return ++polls_ < 3 ? Polled::kIdle : Polled::kDone;
    }
    Deadline NextPoll() const override { return Deadline::AtNanos(0); }
    absl::StatusOr<Epoch> ballot() const override { return ballot_; }
    bool is_of_register() const override { return true; }

   private:
    const Epoch ballot_;
    int polls_ = 0;
  };

  class Source final : public quorum::BallotSource {
   public:
    explicit Source(SuccessionBallotsTest& test) : test_(test) {
      ++test_.opened_;
      ++test_.open_;
    }
    ~Source() override { --test_.open_; }

    std::unique_ptr<quorum::BallotRequest> Ask(
        const quorum::BallotQuestion& question) override {
      test_.largest_ = std::ranges::max(question.promised);
      return std::make_unique<Given>(quorum::PackBallot(
          {kCounter + ++test_.given_, test_.primary_->asked.self}));
    }

   private:
    SuccessionBallotsTest& test_;
  };

  ~SuccessionBallotsTest() override {
    primary_.reset();  // its sources count here
  }

  absl::StatusOr<std::unique_ptr<quorum::BallotSource>> OpenBallots() override {
    return std::make_unique<Source>(*this);
  }

  int opened_ = 0;
  int open_ = 0;  // at the moment
  uint64_t given_ = 0;
  Epoch largest_;  // promise of the last question
};

// EPS9.
TEST_F(SuccessionBallotsTest, BallotsAreOfTheSource) {
  Append(1);
  const Epoch first = epoch();
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(quorum::BallotCounter(epoch()), kCounter + 1);
  EXPECT_EQ(largest_, first);
  EXPECT_EQ(opened_, 1);
  EXPECT_EQ(open_, 0) << "nobody polls its session any more";
  Append(1);
  // The next change has another session.
  ASSERT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
  recovery::SuccessionRequest next = Request(2);
  next.change.from_nodes = next.change.to_nodes;
  next.change.to = *quorum::MakeQuorumSizes(3, 3);
  next.peers.erase(next.peers.begin() + 2);
  ASSERT_TRUE(succession().Ask(next).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(quorum::BallotCounter(epoch()), kCounter + 2);
  EXPECT_EQ(opened_, 2);
  EXPECT_EQ(open_, 0);
}

// EPS1: an open reservation has the change wait, and then not happen.
TEST_F(EpochSuccessionTest, OpenReservationsPutOffTheChange) {
  const Epoch first = epoch();
  absl::StatusOr<ReservedRecord> open = primary_->log->Reserve(8, Deadline());
  ASSERT_TRUE(open.ok());
  primary_->log->Detach(*open);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(absl::IsUnavailable(succession().change().status));
  EXPECT_EQ(epoch(), first);
  primary_->log->Abort(*open);
  Append(1);
}

// EPS8: of two changes at once the second one finds another list.
TEST_F(EpochSuccessionTest, AnotherListIsRefusedAtOnce) {
  const Epoch first = epoch();
  Append(1);
  const recovery::SuccessionRequest request = Request(/*from_id=*/5);
  EXPECT_TRUE(absl::IsFailedPrecondition(succession().Ask(request)));
  const recovery::AskChange asked = AskedBy(7, request);
  const recovery::ChangeState said = succession().AnswerNode(&asked);
  EXPECT_EQ(said.word, recovery::ChangeWord::kRefused);
  EXPECT_TRUE(absl::IsFailedPrecondition(said.why)) << said.why;
  EXPECT_EQ(succession().change().asked, 0u);
  EXPECT_EQ(epoch(), first);
  Append(1);
  EXPECT_EQ(succession().state().in_sync, 3u);
}

// EPS4: nobody has promised, as no other node is where the list says.
TEST_F(EpochSuccessionTest, WrongAddressesCostAPause) {
  const Epoch first = epoch();
  Append(1);
  recovery::SuccessionRequest request = Request();
  for (recovery::PeerAddress& at : request.peers) at.address = "sim:9:1";
  ASSERT_TRUE(succession().Ask(request).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  const recovery::EpochSuccession::Change change = succession().change();
  EXPECT_TRUE(absl::IsUnavailable(change.status)) << change.status;
  EXPECT_EQ(change.word, recovery::ChangeWord::kRefused);
  EXPECT_EQ(epoch(), first);
  Append(2);
  EXPECT_EQ(succession().state().in_sync, 3u);
}

// EPS5. A log that is being closed is not held.
TEST_F(EpochSuccessionTest, ChangeDoesNotWaitForALogThatCloses) {
  Append(1);
  running_->is_closing = true;
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(absl::IsUnavailable(succession().change().status))
      << succession().change().status;
  EXPECT_EQ(succession().change().word, recovery::ChangeWord::kRefused);
  running_->is_closing = false;
  Append(1);
}

// EPS4: a member has the new list, and W of it need the newcomer, which comes
// back after the time of the openings that make the change.
TEST_F(EpochSuccessionTest, HalfMadeChangeIsCompletedIfTimeAllows) {
  Append(3);
  world_->Crash(3);
  recovery::SuccessionRequest request = Request();
  request.change.to = *quorum::MakeQuorumSizes(4, 3);
  request.change.to_nodes = NodesOf({1, 2, 3, 4});
  const int64_t asked_at = now();
  ASSERT_TRUE(succession().Ask(request).ok());
  ASSERT_TRUE(StepUntil([&] {
    return IsDone() || ConfigurationOf(2).id == request.change.to_id;
  }));
  ASSERT_FALSE(IsDone()) << succession().change().status;
  world_->Crash(4);
  ASSERT_TRUE(StepUntil([&] { return now() >= asked_at + 70'000'000; }));
  ASSERT_FALSE(IsDone()) << succession().change().status;
  world_->Restart(4);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(ConfigurationOf(4).id, request.change.to_id);
  Append(1);
}

// EPS4: the newcomer's report is needed, after all have promised.
TEST_F(EpochSuccessionTest, WithoutTheNewcomerTheLogGoesOnByTheOldList) {
  const Epoch first = epoch();
  Append(1);
  world_->Crash(4);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(absl::IsUnavailable(succession().change().status));
  EXPECT_EQ(succession().change().word, recovery::ChangeWord::kRefused)
      << "nobody has the new list";
  EXPECT_GT(epoch(), first) << "an opening without the change";
  Append(2);
  EXPECT_EQ(ConfigurationOf(2).id, 1u);
  ExpectAllByList(1, {1, 2, 3});
}

// EPS2. The replicas that promise end the old sessions; the log is as it was.
TEST_F(EpochSuccessionTest, OwnPromiseEndsWhatTheOldEpochSays) {
  const Epoch first = epoch();
  Append(3);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  bool has_promised = false;
  ASSERT_TRUE(StepUntil([&] {
    has_promised |= world_->replica(2).superline().promised_epoch > first;
    EXPECT_TRUE(succession().status().ok()) << succession().status();
    EXPECT_FALSE(succession().replication_state().has_failed);
    EXPECT_EQ(primary_->log->durable_lsn(), Lsn(3));
    return IsDone();
  }));
  EXPECT_TRUE(has_promised);
  EXPECT_TRUE(succession().change().status.ok());
}

// EPS2. The own replica has promised the next epoch, and no other one opens it
// yet; what the old sessions still say confirms nothing.
TEST_F(EpochSuccessionTest, ConfirmationWaitsForTheNextEpoch) {
  const Epoch first = epoch();
  Append(3);
  std::vector<Epoch> confirmed;  // epoch in which a call was
  const auto ask = [&] {
    EXPECT_TRUE(primary_->log
                    ->OnEpochConfirmed([&](const absl::Status& status) {
                      EXPECT_TRUE(status.ok()) << status;
                      confirmed.push_back(epoch());
                    })
                    .ok());
  };
  bool may_install = false;
  bool is_installing = false;
  running_->hold_install = [&] {
    is_installing = true;
    return may_install;
  };
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return is_installing; }));
  ask();
  ask();
  for (int i = 0; i < 1000; ++i) StepOnce();
  EXPECT_THAT(confirmed, ::testing::IsEmpty());
  may_install = true;
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_GT(epoch(), first);
  EXPECT_THAT(confirmed, ::testing::IsEmpty()) << "nobody was asked yet";
  ASSERT_TRUE(StepUntil([&] { return confirmed.size() == 2; }));
  EXPECT_THAT(confirmed, ElementsAre(epoch(), epoch()));
}

// EPS3. The log has ended, and another process may take its replica.
TEST_F(EpochSuccessionTest, EpochThatBeginsElsewhereEndsTheLog) {
  Append(2);
  running_->other_epoch = absl::DataLossError("another end");
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  const recovery::EpochSuccession::Change change = succession().change();
  EXPECT_TRUE(absl::IsAborted(change.status)) << change.status;
  EXPECT_EQ(change.word, recovery::ChangeWord::kCutOff);
  EXPECT_FALSE(primary_->log->IsUsable());
  EXPECT_TRUE(running_->is_released);
}

// The next records need W of the new list.
TEST_F(EpochSuccessionTest, LaterEpochCountsByTheNewList) {
  recovery::SuccessionRequest request = Request();
  request.change.to = *quorum::MakeQuorumSizes(3, 3);
  request.change.to_nodes = request.change.from_nodes;
  request.peers.pop_back();
  ASSERT_TRUE(succession().Ask(request).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_TRUE(succession().change().status.ok())
      << succession().change().status;
  const recovery::EpochSuccession::Members members = succession().members();
  EXPECT_EQ(members.sizes.write_quorum, 3u);
  EXPECT_EQ(members.configuration.id, 2u);
  Append(1);
  world_->Crash(3);
  EXPECT_TRUE(StepUntil([&] { return !primary_->log->IsUsable(); }));
}

// EPS7. The log fails before anybody has promised: nobody here makes the
// change, and no later one.
TEST_F(EpochSuccessionTest, LogMayFailWhileItDrains) {
  absl::StatusOr<ReservedRecord> open = primary_->log->Reserve(8, Deadline());
  ASSERT_TRUE(open.ok());
  primary_->log->Detach(*open);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  StepOnce();
  world_->Crash(2);
  world_->Crash(3);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_FALSE(succession().change().status.ok());
  EXPECT_EQ(succession().change().word, recovery::ChangeWord::kNobody);
  EXPECT_FALSE(primary_->log->IsUsable());
  EXPECT_TRUE(succession().state().has_failed);
  EXPECT_TRUE(absl::IsFailedPrecondition(succession().Ask(Request())));
  const recovery::AskChange asked = AskedBy(7, Request());
  const recovery::ChangeState said = succession().AnswerNode(&asked);
  EXPECT_EQ(said.word, recovery::ChangeWord::kNobody);
  EXPECT_TRUE(absl::IsFailedPrecondition(said.why)) << said.why;
  EXPECT_EQ(succession().change().asked, 1u);
  primary_->log->Abort(*open);
}

// EPS4. The fences that the own replica needs before its promise is told.
class SuccessionMediumTest : public EpochSuccessionTest,
                             public ::testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Fences, SuccessionMediumTest,
                         ::testing::Range(uint64_t{1}, uint64_t{4}));

TEST_P(SuccessionMediumTest, LogWhoseMediumFailsDoesNotGoOn) {
  Append(1);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  world_->pmem(1).FailFence(GetParam());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_EQ(succession().change().word, recovery::ChangeWord::kNobody);
  ASSERT_TRUE(StepUntil([&] { return succession().state().has_failed; }));
  ASSERT_TRUE(StepUntil([&] { return !primary_->log->IsUsable(); }));
}

// EPS7. It is asked before it notices.
TEST_F(EpochSuccessionTest, FailedLogMakesNoChange) {
  Append(1);
  world_->Crash(2);
  world_->Crash(3);
  const recovery::AskChange asked = AskedBy(7, Request());
  EXPECT_EQ(succession().AnswerNode(&asked).word,
            recovery::ChangeWord::kRunning);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_EQ(succession().AnswerNode(&asked).word,
            recovery::ChangeWord::kNobody);
  EXPECT_TRUE(succession().state().has_failed);
}

// EPS6.
TEST_F(EpochSuccessionTest, OperatorWhoAsksAgainHearsOfTheSameChange) {
  using recovery::ChangeWord;
  EXPECT_EQ(succession().AnswerNode(nullptr).id, 0u);
  Append(3);
  const recovery::AskChange asked = AskedBy(7, Request());
  for (int i = 0; i < 2; ++i) {
    const recovery::ChangeState said = succession().AnswerNode(&asked);
    EXPECT_EQ(said.id, 7u);
    EXPECT_EQ(said.word, ChangeWord::kRunning);
  }
  EXPECT_EQ(succession().change().asked, 1u);
  // Another operator is to ask again.
  const recovery::AskChange other = AskedBy(8, Request());
  EXPECT_EQ(succession().AnswerNode(&other).word, ChangeWord::kWaiting);
  EXPECT_TRUE(absl::IsUnavailable(succession().AnswerNode(&other).why));
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  recovery::ChangeState said = succession().AnswerNode(&asked);
  EXPECT_EQ(said.word, ChangeWord::kInstalled);
  EXPECT_TRUE(said.why.ok());
  EXPECT_EQ(said.epoch, epoch());
  EXPECT_EQ(said.head_lsn, Lsn(1));
  EXPECT_EQ(said.next_lsn, Lsn(4));
  EXPECT_EQ(succession().AnswerNode(nullptr).id, 7u);
  EXPECT_EQ(succession().change().asked, 1u);
  // The newcomer is named until its copy is there.
  ASSERT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
  EXPECT_TRUE(succession().AnswerNode(&asked).missing.empty());
}

// EPS6: their number is bounded, and the oldest one is forgotten.
TEST_F(EpochSuccessionTest, OutcomesAreKeptForAWhile) {
  using recovery::ChangeWord;
  absl::StatusOr<ReservedRecord> open = primary_->log->Reserve(8, Deadline());
  ASSERT_TRUE(open.ok());
  primary_->log->Detach(*open);
  const recovery::SuccessionRequest request = Request();
  constexpr uint64_t kMax = recovery::EpochSuccession::kOutcomesMax;
  for (uint64_t id = 1; id <= kMax + 1; ++id) {
    const recovery::AskChange asked = AskedBy(id, request);
    EXPECT_EQ(succession().AnswerNode(&asked).word, ChangeWord::kRunning);
    ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
    const recovery::ChangeState said = succession().AnswerNode(&asked);
    EXPECT_EQ(said.word, ChangeWord::kRefused);
    EXPECT_TRUE(absl::IsUnavailable(said.why)) << said.why;
  }
  const recovery::AskChange second = AskedBy(2, request);
  EXPECT_EQ(succession().AnswerNode(&second).word, ChangeWord::kRefused);
  const recovery::AskChange first = AskedBy(1, request);
  EXPECT_EQ(succession().AnswerNode(&first).word, ChangeWord::kRunning);
  primary_->log->Abort(*open);
}

TEST_F(EpochSuccessionTest, PrimaryThatLeavesChangesNothing) {
  using recovery::ChangeWord;
  recovery::SuccessionRequest leaves = Request();
  leaves.change.to_nodes = NodesOf({2, 3, 4});
  recovery::SuccessionRequest is_replaced = Request();
  is_replaced.change.to_id = 1;
  is_replaced.change.to_nodes = NodesOf({1, 2, 3});
  is_replaced.change.replaced = NodesOf({1});
  uint64_t id = 0;
  for (const recovery::SuccessionRequest& request : {leaves, is_replaced}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(succession().Ask(request)));
    const recovery::AskChange asked = AskedBy(++id, request);
    const recovery::ChangeState said = succession().AnswerNode(&asked);
    EXPECT_EQ(said.word, ChangeWord::kNobody);
    EXPECT_TRUE(absl::IsFailedPrecondition(said.why)) << said.why;
  }
  EXPECT_EQ(succession().change().asked, 0u);
}

TEST_F(EpochSuccessionTest, ChangeThatIsNoneIsRefusedAtOnce) {
  recovery::SuccessionRequest same = Request();
  same.change.to_id = same.change.from_id;
  same.change.to_nodes = same.change.from_nodes;
  EXPECT_TRUE(absl::IsInvalidArgument(succession().Ask(same)));
  const recovery::AskChange asked = AskedBy(7, same);
  const recovery::ChangeState said = succession().AnswerNode(&asked);
  EXPECT_EQ(said.word, recovery::ChangeWord::kRefused);
  EXPECT_TRUE(absl::IsInvalidArgument(said.why)) << said.why;
  EXPECT_EQ(succession().change().asked, 0u);
}

// EPS10: each opening of the change would fail, after the own promise.
TEST_F(EpochSuccessionTest, FullEpochTableCostsAPause) {
  const std::span<const std::byte> nothing;
  const auto append = [&] {
    const absl::StatusOr<Lsn> lsn = primary_->log->Append({&nothing, 1}, 1, {});
    ASSERT_TRUE(lsn.ok()) << lsn.status();
  };
  ASSERT_NO_FATAL_FAILURE(append());
  while (primary_->log->HasRoomForEpoch()) {
    ASSERT_NO_FATAL_FAILURE(ChangeQuorum());
    ASSERT_TRUE(succession().change().status.ok())
        << succession().change().status;
    ASSERT_NO_FATAL_FAILURE(append());
  }
  const Epoch last = epoch();
  ASSERT_NO_FATAL_FAILURE(ChangeQuorum());
  const recovery::EpochSuccession::Change change = succession().change();
  EXPECT_TRUE(absl::IsResourceExhausted(change.status)) << change.status;
  EXPECT_EQ(change.word, recovery::ChangeWord::kRefused);
  EXPECT_EQ(epoch(), last);
  ASSERT_NO_FATAL_FAILURE(append());
  // The remedy that it names.
  ASSERT_TRUE(primary_->log->CleanupAll().ok());
  ASSERT_NO_FATAL_FAILURE(ChangeQuorum());
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_GT(epoch(), last);
}

// P-A5.4: node 3 has a head that the primary before this epoch told it alone.
TEST_F(EpochSuccessionTest, MemberWithALaterHeadDoesNotEndTheLog) {
  const Epoch first = epoch();
  Append(6);
  const LogPosition fourth = PositionOf(Lsn(4));
  world_->Crash(3, /*power_cut=*/false);
  world_->Crash(4);
  // Nodes 1 and 2 go on in an epoch that node 3 does not know.
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_GT(epoch(), first);
  Append(1);
  {
    const auto away = recovery::LocalReplica<Model>::Open(
        world_->pmem(3), world_->pmem(3).region(), {.name = "node 3"});
    ASSERT_TRUE(away.ok()) << away.status();
    const RingBounds later = {fourth, (*away)->superline().ceiling};
    ASSERT_TRUE((*away)->PublishBounds(first, later).ok());
  }
  ASSERT_EQ(primary_->log->head_lsn(), Lsn(1));
  ASSERT_TRUE(succession().Ask(Request()).ok());
  world_->Restart(3);
  world_->Restart(4);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(primary_->log->head_lsn(), Lsn(4));
  EXPECT_EQ(succession().replication_state().durable_head_lsn, Lsn(4));
  Append(2);
  ASSERT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
  acknowledged_.erase(acknowledged_.begin(), acknowledged_.begin() + 3);
  ExpectAllByList(2, {1, 2, 4});
}

// A replacement keeps the number of its list. Node 2 has the new one when the
// own replica fails, so the opening without the change makes the change.
TEST_F(EpochSuccessionTest, ReplacementThatWasHalfMadeIsCompletedAndSaid) {
  Append(3);
  const Configuration before = succession().members().configuration;
  world_->Replace(3, /*like=*/2);
  recovery::SuccessionRequest request = Request();
  request.change.to_id = request.change.from_id;
  request.change.to_nodes = request.change.from_nodes;
  request.change.replaced = NodesOf({3});
  request.peers.pop_back();
  running_->hold_install = [&]() -> absl::StatusOr<bool> {
    if (ConfigurationOf(2).members == before.members) return false;
    running_->hold_install = {};
    return absl::DataLossError("a record that can't be read");
  };
  ASSERT_TRUE(succession().Ask(request).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_FALSE(running_->hold_install) << "it failed";
  const recovery::EpochSuccession::Change change = succession().change();
  EXPECT_EQ(change.word, recovery::ChangeWord::kInstalled) << change.status;
  EXPECT_TRUE(change.status.ok()) << change.status;
  EXPECT_NE(succession().members().configuration.members, before.members);
  Append(1);
  EXPECT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
}

// Options of the first opening that a later one must not take over.
class SuccessionOptionsTest : public EpochSuccessionTest {
 protected:
  SuccessionOptionsTest()
      : EpochSuccessionTest({.opened_with = [](auto& asked) {
          asked.cleanup_through = Lsn(2);
          asked.promised_max = Epoch(0);
          asked.report_ns = 1;
        }}) {}
};

// The newcomer is started late, and yet its report is waited for.
TEST_F(SuccessionOptionsTest, ThoseOfTheFirstOpeningAreOver) {
  Append(3);
  world_->Crash(4);
  const int64_t asked_at = now();
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return now() > asked_at + 2'000'000; }));
  ASSERT_FALSE(IsDone()) << succession().change().status;
  world_->Restart(4);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(primary_->log->head_lsn(), Lsn(1)) << "nothing is cleaned again";
  Append(1);
}

// The newcomer is needed for no quorum, and gets its copy while the log runs.
TEST_F(EpochSuccessionTest, NobodyIsWaitedForWhoIsNotNeeded) {
  Append(3);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_TRUE(succession().change().status.ok())
      << succession().change().status;
  EXPECT_EQ(succession().state().in_sync, 2u);
}

// Replicas name nothing before their places.
class SuccessionShortReportsTest : public EpochSuccessionTest {
 protected:
  SuccessionShortReportsTest()
      : EpochSuccessionTest({.read_whole_bytes_max = 0}) {}
};

// P-C8: the newcomer is needed, and gets a record from the own ring that is
// damaged before the place. The next opening asks for whole reports.
TEST_F(SuccessionShortReportsTest, DamageThatANewcomerMeetsIsLookedFor) {
  Append(4);
  ASSERT_TRUE(
      StepUntil([&] { return succession().replication_state().is_idle; }));
  const RegionState own = *ReadRegionState(world_->pmem(1).region(), "own");
  ASSERT_GT(own.proven_place().lsn, Lsn(1));
  world_->Damage(1, PositionOf(Lsn(1)));
  recovery::SuccessionRequest request = Request();
  request.change.to = *quorum::MakeQuorumSizes(3, 3);
  ASSERT_TRUE(succession().Ask(request).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_TRUE(succession().change().status.ok())
      << succession().change().status;
  for (const int node : {1, 2, 4}) {
    EXPECT_THAT(world_->Payloads(node), ElementsAreArray(acknowledged_));
  }
}

// Crash states of the succession: the power of node 1 goes at a fence of any
// node. It keeps nothing or all of what it had not persisted.
TEST_F(EpochSuccessionTest, CutAtAnyFenceLosesNothing) {
  Append(3);
  std::vector<std::vector<std::vector<std::byte>>> cuts;
  const auto note_cuts = [&](const model::ModelPersistence::Event& event) {
    if (event.primitive != model::ModelPersistence::Primitive::kFence) return;
    for (const bool keeps_all : {false, true}) {
      auto& images = cuts.emplace_back();
      for (const int node : {1, 2, 3, 4}) {
        const Model& pmem = world_->pmem(node);
        images.push_back(keeps_all || node != 1 ? pmem.CutKeepingAll()
                                                : pmem.CutKeepingNone());
      }
    }
  };
  for (const int node : {1, 2, 3, 4}) world_->pmem(node).SetHook(note_cuts);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  ASSERT_TRUE(StepUntil([&] { return succession().state().in_sync == 3; }));
  for (const int node : {1, 2, 3, 4}) world_->pmem(node).SetHook({});
  ASSERT_TRUE(succession().change().status.ok());
  EXPECT_GT(cuts.size(), 20u);
  for (size_t i = 0; i < cuts.size() && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    OpeningWorld world(options_, cuts[i]);
    uint64_t id = 0;
    for (const int node : {1, 2, 3, 4}) {
      world.Restart(node);
      id = std::max(id, world.replica(node).superline().configuration.id);
    }
    const std::vector<int> nodes = {1, 2, id == 1 ? 3 : 4};
    const std::unique_ptr<Primary> next = world.Open(
        0, world.OpeningOptions(0, id, nodes, *quorum::MakeQuorumSizes(3, 2)));
    ASSERT_TRUE(next->status().ok()) << next->status();
    EXPECT_THAT(world.Payloads(1), ElementsAreArray(acknowledged_));
  }
}

// EPS5. All records are durable, and the next primary finds them.
TEST_F(EpochSuccessionTest, WithoutAQuorumTheLogEndsInOrder) {
  Append(2);
  ASSERT_TRUE(succession().Ask(Request()).ok());
  ASSERT_TRUE(StepUntil(
      [&] { return world_->replica(2).superline().promised_epoch > epoch(); }));
  world_->Crash(2);
  world_->Crash(3);
  ASSERT_TRUE(StepUntil([&] { return IsDone(); }));
  EXPECT_FALSE(primary_->log->IsUsable());
  EXPECT_TRUE(succession().state().has_failed);
  EXPECT_TRUE(running_->is_released);
  EXPECT_EQ(primary_->log->Exposed(), 0u);
  world_->Restart(2);
  world_->Restart(3);
  ExpectAllByList(1, {1, 2, 3});
}

}  // namespace
}  // namespace alpheus::testing
