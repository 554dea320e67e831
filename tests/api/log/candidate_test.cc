// SPDX-License-Identifier: Apache-2.0
// Processes that stand for primary of a log, as threads of the test, with nodes
// on loopback. None waits for a time to pass; each waits for what must come.
#include "alpheus/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "log/base/clock.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

// Returns whether that becomes true in time.
template <class Condition>
bool Becomes(const Condition& condition) {
  const Deadline end = InPatience();
  while (!condition()) {
    if (end.HasPassed(Clock::Real().NowNanos())) return false;
    std::this_thread::yield();
  }
  return true;
}

// The sentences that a candidate says, on its thread.
class Sentences {
 public:
  void Note(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    all_.push_back(sentence);
  }
  // Returns how many have that part.
  int CountOf(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(
        std::ranges::count_if(all_, [&](const std::string& sentence) {
          return sentence.find(part) != std::string::npos;
        }));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

class CandidateTest : public ::testing::Test {
 protected:
  CandidateTest() : cluster_(3) {
    FormatOptions format;
    format.cluster_file = cluster_.file();
    format.region_bytes = 1 << 20;
    const auto formatted = Log::Format(format);
    EXPECT_TRUE(formatted.ok()) << formatted.status();
  }

  CandidateOptions Options(int node, bool has_replica = true) {
    CandidateOptions options;
    options.log.replication.cluster_file = cluster_.file();
    options.log.replication.node = static_cast<uint64_t>(node);
    if (has_replica) options.log.path = cluster_.ReplicaPath(node);
    // A busy machine must not decide.
    options.log.replication.open_timeout_ms = 60'000;
    options.log.replication.ack_timeout_ms = 60'000;
    options.silence_ms = 5'000;
    options.silence_ms_max = 20'000;
    options.hand_over_ms = kPatienceMs;
    return options;
  }
  // As Options, for a candidate that says what it does.
  CandidateOptions Saying(int node, Sentences& said) {
    CandidateOptions options = Options(node);
    options.say = [&said](const std::string& sentence) { said.Note(sentence); };
    return options;
  }
  std::unique_ptr<Candidate> Stand(const CandidateOptions& options) {
    auto candidate = Candidate::Stand(options);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    return candidate.ok() ? *std::move(candidate) : nullptr;
  }
  static std::shared_ptr<Log> LogOf(Candidate& candidate) {
    auto log = candidate.WaitForLog(InPatience());
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  ElectOptions At(int node) {
    ElectOptions options;
    options.cluster_file = cluster_.file();
    options.node = static_cast<uint64_t>(node);
    options.timeout_ms = kPatienceMs;
    return options;
  }
  // As At, for a word that nobody can obey: that is said after a third of it.
  ElectOptions AtOnce(int node) {
    ElectOptions options = At(node);
    options.timeout_ms = 15'000;
    return options;
  }
  static std::vector<std::string> Recovered(const Log& log) {
    std::vector<std::string> texts;
    const absl::Status read =
        log.ForEachRecovered([&](const RecoveredRecord& record) {
          texts.emplace_back(
              reinterpret_cast<const char*>(record.payload.data()),
              record.payload.size());
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return texts;
  }

  TestCluster cluster_;
};

TEST_F(CandidateTest, LoneCandidateBecomesPrimaryAndKeepsTheLog) {
  std::atomic<int> changes = 0;
  CandidateOptions options = Options(1);
  options.on_change = [&] { ++changes; };
  const auto candidate = Stand(options);
  const auto log = LogOf(*candidate);
  ASSERT_NE(log, nullptr);
  // The log may have been taken before the call came.
  EXPECT_TRUE(Becomes([&] { return changes == 1; }));
  EXPECT_TRUE(log->Append("a").ok());
  EXPECT_FALSE(candidate->must_give_back());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      candidate->WaitToGiveBack(Deadline::In(std::chrono::milliseconds(1)))));
  // It is handed out once.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      candidate->WaitForLog(Deadline::In(std::chrono::milliseconds(1)))
          .status()));
  EXPECT_EQ(changes, 1);
}

// They begin together, as after a power cut, and one begins while the others
// elect the next primary, as a supervisor restarts it. Whichever opens the log
// keeps it, although they may not know of each other.
TEST_F(CandidateTest, OneOfThreeBecomesPrimaryAndTheOthersFollow) {
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (int node = 1; node <= 3; ++node) {
    candidates.push_back(Stand(Options(node)));
  }
  std::vector<std::string> said;
  for (size_t round = 0; round < 3; ++round) {
    std::shared_ptr<Log> log;
    size_t primary = 0;
    const Deadline end = InPatience();
    while (log == nullptr && !end.HasPassed(Clock::Real().NowNanos())) {
      for (size_t i = 0; i < candidates.size() && log == nullptr; ++i) {
        auto taken = candidates[i]->WaitForLog(
            Deadline::In(std::chrono::milliseconds(1)));
        if (!taken.ok()) continue;
        log = *std::move(taken);
        primary = i;
      }
    }
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(Recovered(*log), said);
    said.push_back("record " + std::to_string(round));
    ASSERT_TRUE(log->Append(said.back()).ok());
    // It ends as a process does that is killed: without a word.
    log.reset();
    candidates[primary].reset();
    candidates[primary] = Stand(Options(static_cast<int>(primary) + 1));
  }
}

TEST_F(CandidateTest, EndOfThePrimaryIsTheBeginningOfTheNext) {
  auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  Sentences said;
  const auto second = Stand(Saying(2, said));
  ASSERT_TRUE(log->Append("a").ok());
  // It has heard all nodes, and leaves the log where it is.
  EXPECT_TRUE(Becomes([&] { return said.CountOf("stands for primary") == 1; }));
  EXPECT_TRUE(log->Append("b").ok());
  EXPECT_EQ(said.CountOf("is primary"), 0);
  EXPECT_FALSE(first->must_give_back());
  log.reset();
  first.reset();
  const auto next = LogOf(*second);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(Recovered(*next), (std::vector<std::string>{"a", "b"}));
}

// The cluster's file is read when it begins to stand: what reads it may wait
// for a name server, which may be away when the primary dies.
TEST_F(CandidateTest, LogIsOpenedWithoutReadingTheFileAgain) {
  auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  const auto second = Stand(Options(2));
  ASSERT_TRUE(log->Append("a").ok());
  ASSERT_TRUE(std::filesystem::remove(cluster_.file()));
  log.reset();
  first.reset();
  const auto next = LogOf(*second);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(Recovered(*next), std::vector<std::string>{"a"});
}

TEST_F(CandidateTest, ProcessWithoutAReplicaMayStand) {
  const auto candidate = Stand(Options(2, /*has_replica=*/false));
  const auto log = LogOf(*candidate);
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->Append("a").ok());
}

// The caller may wait no more at any time, and hears whether anybody was told.
TEST_F(CandidateTest, CallerThatGivesUpHearsWhetherAnybodyWasTold) {
  ElectOptions nobody = At(1);
  nobody.gives_up = [] { return true; };
  const absl::Status untold = Candidate::Elect(nobody).status();
  EXPECT_TRUE(absl::IsCancelled(untold)) << untold;
  EXPECT_THAT(std::string(untold.message()), HasSubstr("Nobody was told"));
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  const auto second = Stand(Options(2));
  ElectOptions drain = At(1);
  drain.gives_up = [&] { return first->must_give_back(); };
  const absl::Status told = Candidate::Drain(drain).status();
  EXPECT_TRUE(absl::IsCancelled(told)) << told;
  EXPECT_THAT(std::string(told.message()), HasSubstr("may obey yet"));
  // They do.
  EXPECT_TRUE(first->GiveBack(std::move(log)).ok());
  EXPECT_NE(LogOf(*second), nullptr);
}

// CAN2.
TEST_F(CandidateTest, DrainedPrimaryHandsOverWithoutAnUnknownOutcome) {
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  const auto second = Stand(Options(2));
  std::jthread drained([&] {
    const auto report = Candidate::Drain(At(1));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->node, 2u);
  });
  std::vector<std::string> appended;
  const Deadline end = InPatience();
  while (!first->must_give_back()) {
    ASSERT_FALSE(end.HasPassed(Clock::Real().NowNanos()));
    appended.push_back(std::to_string(appended.size()));
    ASSERT_TRUE(log->Append(appended.back()).ok());
    if (appended.size() % 500 == 0) {
      ASSERT_TRUE(log->CleanupAll().ok());
    }
    if (appended.size() % 500 == 0) appended.clear();
  }
  EXPECT_TRUE(absl::IsCancelled(first->WaitToGiveBack(end)));
  // All calls still work.
  appended.push_back("the last");
  EXPECT_TRUE(log->Append(appended.back()).ok());
  EXPECT_TRUE(first->GiveBack(std::move(log)).ok());
  const auto next = LogOf(*second);
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(Recovered(*next), appended);
  drained.join();
  // ELE5: it stands no more.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      first->WaitForLog(Deadline::In(std::chrono::milliseconds(1))).status()));
}

// CAN2.
TEST_F(CandidateTest, LogWithAnOpenReservationStaysWithItsOwner) {
  const auto candidate = Stand(Options(1));
  auto log = LogOf(*candidate);
  ASSERT_NE(log, nullptr);
  auto open = log->Reserve(1);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(candidate->GiveBack(std::move(log))));
  ASSERT_NE(log, nullptr);
  open->Abort();
  EXPECT_TRUE(log->Append("a").ok());
  EXPECT_TRUE(candidate->GiveBack(std::move(log)).ok());
  EXPECT_EQ(log, nullptr);
  // It stands again.
  const auto again = LogOf(*candidate);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Recovered(*again), std::vector<std::string>{"a"});
}

TEST_F(CandidateTest, ElectedCandidateTakesTheLogOver) {
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  const auto second = Stand(Options(2));
  const auto third = Stand(Options(3));
  std::jthread elected([&] {
    const auto report = Candidate::Elect(At(3));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->node, 3u);
    EXPECT_THAT(report->ToString(), HasSubstr("node 3 is primary, in epoch "));
  });
  EXPECT_TRUE(absl::IsCancelled(first->WaitToGiveBack(InPatience())));
  EXPECT_TRUE(first->GiveBack(std::move(log)).ok());
  // It keeps the log while the operator looks who has it.
  const auto next = LogOf(*third);
  EXPECT_NE(next, nullptr);
  elected.join();
}

// It does not listen: the log is taken from it.
TEST_F(CandidateTest, DeposedPrimaryIsToldAndStandsAgain) {
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  ASSERT_TRUE(log->Append("a").ok());
  CandidateOptions impatient = Options(2);
  impatient.hand_over_ms = 1'000;
  const auto second = Stand(impatient);
  std::jthread elected([&] { EXPECT_TRUE(Candidate::Elect(At(2)).ok()); });
  auto next = LogOf(*second);
  elected.join();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(Recovered(*next), std::vector<std::string>{"a"});
  EXPECT_FALSE(log->Append("b").ok());
  // First it was asked to give the log back.
  const Deadline end = InPatience();
  absl::Status why = first->WaitToGiveBack(end);
  while (absl::IsCancelled(why) && !end.HasPassed(Clock::Real().NowNanos())) {
    why = first->WaitToGiveBack(end);
  }
  EXPECT_TRUE(absl::IsAborted(why)) << why;
  EXPECT_TRUE(first->must_give_back());
  log.reset();
  // Its replica comes back as a backup by itself.
  while (next->replication_status().in_sync < 3) {
    ASSERT_FALSE(end.HasPassed(Clock::Real().NowNanos()))
        << next->replication_status().ToString();
  }
  // And it becomes primary again.
  std::jthread again([&] { EXPECT_TRUE(Candidate::Elect(At(1)).ok()); });
  EXPECT_TRUE(absl::IsCancelled(second->WaitToGiveBack(InPatience())));
  EXPECT_TRUE(second->GiveBack(std::move(next)).ok());
  const auto last = LogOf(*first);
  EXPECT_NE(last, nullptr);
  again.join();
}

TEST_F(CandidateTest, NodeThatIsDownDoesNotKeepOthersFromOpening) {
  cluster_.Stop(3);
  Sentences said;
  const auto candidate = Stand(Saying(1, said));
  const auto log = LogOf(*candidate);
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->Append("a").ok());
  EXPECT_EQ(said.CountOf("node 3 is not reached: "), 1)
      << "an operator sees which nodes are down";
}

// An operator's word has it try: nodes that are down say nothing.
TEST_F(CandidateTest, WithoutAQuorumNobodyBecomesPrimary) {
  cluster_.Stop(2);
  cluster_.Stop(3);
  Sentences said;
  const auto candidate = Stand(Saying(1, said));
  std::jthread elected([&] { EXPECT_TRUE(Candidate::Elect(At(1)).ok()); });
  EXPECT_TRUE(Becomes([&] { return said.CountOf("not opened: ") != 0; }));
  EXPECT_EQ(said.CountOf("is primary"), 0);
  const absl::Status why =
      candidate->WaitForLog(Deadline::In(std::chrono::milliseconds(1)))
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(why)) << why;
  EXPECT_THAT(why.message(), HasSubstr("its last opening failed: "));
  cluster_.Start(2);
  const auto log = LogOf(*candidate);
  EXPECT_NE(log, nullptr);
  elected.join();
}

TEST_F(CandidateTest, LogIsDrainedToSomebodyOnly) {
  const auto candidate = Stand(Options(1));
  const auto log = LogOf(*candidate);
  ASSERT_NE(log, nullptr);
  const auto report = Candidate::Drain(AtOnce(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  EXPECT_THAT(report.status().message(),
              HasSubstr("nobody but node 1 stands for primary"));
  EXPECT_FALSE(candidate->must_give_back());
  EXPECT_TRUE(log->Append("a").ok());
}

TEST_F(CandidateTest, NobodyIsElectedWhoDoesNotStand) {
  const auto report = Candidate::Elect(AtOnce(2));
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  EXPECT_THAT(report.status().message(),
              HasSubstr("nobody stands for primary at node 2"));
  EXPECT_TRUE(absl::IsInvalidArgument(Candidate::Elect(At(9)).status()));
}

TEST_F(CandidateTest, LogThatNoNodeHasIsSaidAtOnce) {
  ElectOptions options = At(1);
  options.log_name = "other";
  const absl::Status elected = Candidate::Elect(options).status();
  EXPECT_TRUE(absl::IsNotFound(elected)) << elected;
  EXPECT_THAT(elected.message(), HasSubstr("none has a replica"));
}

TEST_F(CandidateTest, DrainNamesThoseThatWereDrainedBefore) {
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  ASSERT_NE(log, nullptr);
  const auto second = Stand(Options(2));
  std::jthread drained([&] { EXPECT_TRUE(Candidate::Drain(At(1)).ok()); });
  EXPECT_TRUE(absl::IsCancelled(first->WaitToGiveBack(InPatience())));
  EXPECT_TRUE(first->GiveBack(std::move(log)).ok());
  const auto next = LogOf(*second);
  ASSERT_NE(next, nullptr);
  drained.join();
  const absl::Status last = Candidate::Drain(AtOnce(2)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(last)) << last;
  EXPECT_THAT(last.message(), HasSubstr("(`alpheus elect`): node 1."));
}

TEST_F(CandidateTest, WhoWithdrawsWaitsNoMore) {
  const auto first = Stand(Options(1));
  auto log = LogOf(*first);
  const auto second = Stand(Options(2));
  std::jthread waits(
      [&] { EXPECT_TRUE(absl::IsCancelled(second->WaitForLog().status())); });
  second->Withdraw();
  waits.join();
  first->Withdraw();
  EXPECT_TRUE(first->must_give_back());
  EXPECT_TRUE(absl::IsCancelled(first->WaitToGiveBack()));
  // The log is its owner's still.
  EXPECT_TRUE(log->Append("a").ok());
}

// A command that only looks at options says the same as one that stands.
TEST_F(CandidateTest, ImpossibleOptionsAreRefused) {
  const auto refused = [](const CandidateOptions& options) {
    absl::Status status = Candidate::Check(options);
    EXPECT_EQ(Candidate::Stand(options).status(), status);
    return status;
  };
  CandidateOptions options = Options(1);
  options.log.replication.cluster_file.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(7);
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  // A log's name is one part of a path.
  options = Options(1);
  options.log.replication.log_name = "a/b";
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(1);
  options.heartbeat_ms = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(1);
  options.silence_ms = 50;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(1);
  options.silence_ms_max = options.silence_ms - 1;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(1);
  options.silence_ms_max = 3'600'001;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  // The log's own heartbeat is the one that others hear.
  options = Options(1);
  options.log.replication.heartbeat_ms = options.silence_ms / 2;
  EXPECT_TRUE(absl::IsInvalidArgument(refused(options)));
  options = Options(1);
  options.log.replication.cluster_file += ".missing";
  EXPECT_TRUE(absl::IsNotFound(refused(options)));
}

TEST_F(CandidateTest, CheckConnectsToNothing) {
  for (int node = 1; node <= 3; ++node) cluster_.Stop(node);
  EXPECT_TRUE(Candidate::Check(Options(1)).ok());
}

}  // namespace
}  // namespace alpheus::testing
