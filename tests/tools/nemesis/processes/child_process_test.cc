// SPDX-License-Identifier: Apache-2.0
// Processes that don't do what they should must not keep their starter waiting;
// those that are fed get whole records.
#include "tools/nemesis/processes/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/writers/fed_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {
namespace {

using ::alpheus::testing::kPatienceMs;
using ::alpheus::testing::kPatienceNanos;
using ::testing::HasSubstr;

Program Shell(const std::string& script) {
  Program program;
  program.argv = {"/bin/sh", "-c", script};
  return program;
}

// The error quotes what the program said in its time; it is given more time
// until it has come to speak.
TEST(ChildProcessTest, ProgramThatDoesNotEndIsKilledAndQuoted) {
  std::string message;
  for (int64_t millis = 100; millis <= kPatienceMs; millis *= 2) {
    const auto result = RunProgram(Shell("echo this is all >&2; kill -STOP $$"),
                                   /*input=*/{}, millis * 1'000'000);
    ASSERT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
    message = std::string(result.status().message());
    if (absl::StrContains(message, "this is all")) break;
  }
  EXPECT_THAT(message, HasSubstr("this is all"));
}

// It has closed its streams, and runs on.
TEST(ChildProcessTest, ProgramThatEndsItsOutputOnlyIsKilledToo) {
  const auto result = RunProgram(Shell("exec >&- 2>&-; kill -STOP $$"),
                                 /*input=*/{}, /*timeout_nanos=*/100'000'000);
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
}

TEST(ChildProcessTest, WaitForTellsARunningProcessFromOneThatEnded) {
  auto child = ChildProcess::Start(Shell("read line; exit 7"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE(child->WaitFor(0).has_value());
  child->input().Close();
  const auto end = child->WaitFor(kPatienceNanos);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_status, 7);
}

TEST(ChildProcessTest, PausedProcessDoesNothingUntilItGoesOn) {
  auto child = ChildProcess::Start(Shell("read line; exit 7"));
  ASSERT_TRUE(child.ok()) << child.status();
  child->Pause();
  child->input().Close();
  EXPECT_FALSE(child->WaitFor(50'000'000).has_value());
  child->Continue();
  EXPECT_TRUE(child->WaitFor(kPatienceNanos).has_value());
}

TEST(ChildProcessTest, PauseOfAProcessThatHasEndedReturns) {
  auto child = ChildProcess::Start(Shell("exit 7"));
  ASSERT_TRUE(child.ok()) << child.status();
  std::string output;
  while (ReadSome(child->output().get(), &output)) {
  }
  child->Pause();
  const auto end = child->WaitFor(kPatienceNanos);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_status, 7);
}

// The end of a process, whatever caused it, ends that thread, too.
TEST(ChildProcessTest, DiesWithTheThreadThatStartedIt) {
  if (access("/usr/bin/setpriv", X_OK) != 0) {
    GTEST_SKIP() << "skipped because there is no setpriv";
  }
  Program program = Shell("echo; read line");
  program.dies_with_starter = true;
  std::optional<ChildProcess> child;
  std::thread starter([&] {
    auto started = ChildProcess::Start(program);
    ASSERT_TRUE(started.ok()) << started.status();
    child.emplace(*std::move(started));
    pollfd said = {child->output().get(), POLLIN, 0};
    EXPECT_EQ(poll(&said, 1, -1), 1);
  });
  starter.join();
  const auto end = child->WaitFor(kPatienceNanos);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->signal, SIGKILL);
}

class FedWriterTest : public ::testing::Test {
 protected:
  const alpheus::testing::TempDirectory directory_;
  const Feed feed_ =
      Feed::FromText("alpha\nbravo\ngamma\n" + std::string(3000, 'x') + "\n");
};

// The reader stands still while its pipe fills up to somewhere in the middle of
// a record.
TEST_F(FedWriterTest, InputEndsBehindAWholeRecord) {
  const std::string path = directory_.File("got");
  auto child = ChildProcess::Start(Shell("exec tee " + path));
  ASSERT_TRUE(child.ok()) << child.status();
  child->Pause();
  FedWriter writer(&*child, &feed_, 5, {.ring_bytes_max = 64 << 20});
  writer.FillInput();
  EXPECT_GT(writer.fed_count(), 100u);
  child->Continue();
  writer.EndInput();
  while (writer.ListenAndFeed(kPatienceNanos)) {
  }
  ASSERT_TRUE(child->WaitFor(kPatienceNanos).has_value());
  std::string expected;
  for (uint64_t i = 0; i < writer.fed_count(); ++i) {
    expected += feed_.Record(5 + i) + "\n";
  }
  std::string got;
  for (const std::byte byte : alpheus::testing::ReadFile(path)) {
    got.push_back(static_cast<char>(byte));
  }
  EXPECT_TRUE(got == expected) << got.size() << " of " << expected.size();
}

TEST_F(FedWriterTest, NoMoreIsFedThanMayBeUnacknowledged) {
  auto child = ChildProcess::Start(
      Shell("read a; read b; read c; echo 1 0 0; echo 2 1 1; read d; read e;"
            "echo 3 2 0; read f; echo durable 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  FedWriter writer(&*child, &feed_, 0,
                   {.ring_bytes_max = 1 << 20, .unacknowledged_max = 3});
  writer.FillInput();
  EXPECT_EQ(writer.fed_count(), 3u);
  while (writer.ListenAndFeed(kPatienceNanos)) {
    ASSERT_TRUE(writer.ReadAcknowledgements().ok());
  }
  ASSERT_TRUE(writer.ReadAcknowledgements().ok());
  EXPECT_EQ(writer.acknowledgements().size(), 3u);
  EXPECT_EQ(writer.fed_count(), 6u);
  EXPECT_EQ(writer.durable_lsn(), 3u);
}

// The second one is acknowledged late, and was settled already.
TEST_F(FedWriterTest, SettledRecordsMakeRoomForOthers) {
  auto child = ChildProcess::Start(
      Shell("read a; read b; read c; read d; read e; echo 1 1 0; echo 2 3 0; "
            "read f; echo durable 2"));
  ASSERT_TRUE(child.ok()) << child.status();
  FedWriter writer(&*child, &feed_, 0,
                   {.ring_bytes_max = 1 << 20, .unacknowledged_max = 3});
  writer.FillInput();
  EXPECT_EQ(writer.fed_count(), 3u);
  writer.Settle(2);
  writer.FillInput();
  EXPECT_EQ(writer.fed_count(), 5u);
  while (writer.ListenAndFeed(kPatienceNanos)) {
    ASSERT_TRUE(writer.ReadAcknowledgements().ok());
  }
  ASSERT_TRUE(writer.ReadAcknowledgements().ok());
  EXPECT_EQ(writer.acknowledgements().size(), 2u);
  EXPECT_EQ(writer.fed_count(), 6u);
}

TEST_F(FedWriterTest, LineThatIsNoAcknowledgementIsAnError) {
  auto child = ChildProcess::Start(Shell("echo 1 0 0 more"));
  ASSERT_TRUE(child.ok()) << child.status();
  FedWriter writer(&*child, &feed_, 0, {.ring_bytes_max = 1 << 20});
  while (writer.ListenAndFeed(kPatienceNanos)) {
  }
  EXPECT_TRUE(absl::IsDataLoss(writer.ReadAcknowledgements()));
}

}  // namespace
}  // namespace alpheus::demo
