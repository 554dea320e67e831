// SPDX-License-Identifier: Apache-2.0
// Parts for peers of the replicated benchmark: messages, processes, quantiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/candidates/copy_server.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/peers/etcd.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/peers/protobuf_fields.h"
#include "bench/replicated/scenarios/contest.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench::replicated {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(ContestTest, SummaryIsQuantilesAndMean) {
  std::vector<double> times;
  for (int i = 1000; i >= 0; --i) times.push_back(i);
  EXPECT_THAT(Summarize(times),
              UnorderedElementsAre(Pair("p50", 500), Pair("p99", 990),
                                   Pair("p99.9", 999), Pair("mean", 500)));
  EXPECT_THAT(Summarize({7}),
              UnorderedElementsAre(Pair("p50", 7), Pair("p99", 7),
                                   Pair("p99.9", 7), Pair("mean", 7)));
}

TEST(ContestTest, ContestantThatIsNotThereIsSkippedAndOthersStopIt) {
  Report report;
  const Contestant absent{"absent", [](const Work&) {
                            return absl::NotFoundError("no such program");
                          }};
  const auto made = MakeCandidates({absent, {kAlpheusName, Alpheus()}}, Work(),
                                   "peers", &report);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->size(), 1u);
  ASSERT_EQ(report.skips.size(), 1u);
  EXPECT_EQ(report.skips[0].what, "absent");
  EXPECT_EQ(report.skips[0].why, "no such program");
  const Contestant broken{
      "broken", [](const Work&) { return absl::UnavailableError("broken"); }};
  EXPECT_FALSE(MakeCandidates({broken}, Work(), "peers", &report).ok());
}

TEST(ContestTest, EtcdIsOnlyAskedForItsMajority) {
  const Work all{.folder = "/dev/shm", .backups = 2, .write_quorum = 3};
  EXPECT_TRUE(absl::IsNotFound(Etcd()(all).status()));
  const Work batches{
      .folder = "/dev/shm", .backups = 2, .write_quorum = 2, .batch = 16};
  EXPECT_TRUE(absl::IsNotFound(Etcd()(batches).status()));
}

// Without backups no process is needed.
TEST(FloorTest, BatchThatNoBackupCouldReceiveIsRefused) {
  const testing::TempDirectory directory;
  const auto floor = Floor()({.folder = directory.path(),
                              .ring_bytes = 1 << 20,
                              .backups = 0,
                              .batch = 1 << 16});
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*floor)->Begin(64, Waiting::kBlock)));
}

TEST(CopyServerTest, AddressThatIsNoPortIsReported) {
  std::vector<std::byte> into(1);
  EXPECT_TRUE(absl::IsUnavailable(FetchCopy("nowhere", into)));
  EXPECT_FALSE(FetchCopy("1", into).ok());
}

// The bytes of etcd's PutRequest{key: "k", value: 300 bytes}.
TEST(ProtobufFieldsTest, BytesAreWrittenAsTheFormatHasThem) {
  std::string message;
  AppendBytesField(1, "k", &message);
  AppendBytesField(2, std::string(300, 'v'), &message);
  // Not by +, of which g++ 12 warns in vain (GCC 105651).
  EXPECT_EQ(message,
            absl::StrCat("\x0a\x01k\x12\xac\x02", std::string(300, 'v')));
}

TEST(ProtobufFieldsTest, LastValueCountsAndOthersAreSteppedOver) {
  // 1: bytes "ab"; 2: 8 bytes; 3: 4 bytes; 4: 300; 4: 5.
  const std::string message(
      "\x0a\x02"
      "ab"
      "\x11"
      "12345678"
      "\x1d"
      "1234"
      "\x20\xac\x02\x20\x05",
      23);
  EXPECT_EQ(*NumberField(message, 4), 5u);
  EXPECT_EQ(*NumberField(std::string("\x20\xac\x02", 3), 4), 300u);
  std::string number;
  AppendNumberField(4, 300, &number);
  EXPECT_EQ(number, std::string("\x20\xac\x02", 3));
  EXPECT_EQ(*BytesField(message, 1), "ab");
  EXPECT_EQ(*NumberField(message, 9), 0u);
  EXPECT_EQ(*BytesField("", 1), "");
}

TEST(ProtobufFieldsTest, MessageThatIsNoneIsAnError) {
  EXPECT_TRUE(absl::IsInvalidArgument(NumberField("\x0a\x01k", 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(BytesField("\x20\x05", 4).status()));
  for (const std::string& cut :
       {std::string("\x0a\x05"
                    "abc"),
        std::string("\x0a"), std::string("\x20\xac"), std::string("\x11\x01"),
        std::string("\x0b"), std::string(11, '\xff')}) {
    EXPECT_TRUE(absl::IsDataLoss(NumberField(cut, 4).status()));
    EXPECT_TRUE(absl::IsDataLoss(BytesField(cut, 1).status()));
  }
}

TEST(PeerProcessTest, ProgramIsFoundInPathOrItsPackageIsNamed) {
  const auto found = FindProgram("sh", "dash");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(std::filesystem::exists(*found));
  const auto missing = FindProgram("no-such-program", "its-package");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("its-package"));
}

class PeerProcessRunTest : public ::testing::Test {
 protected:
  absl::StatusOr<PeerProcess> Run(const std::string& script) {
    return PeerProcess::Start("/bin/sh", {"-c", script},
                              directory_.File("log"));
  }

  const testing::TempDirectory directory_;
};

TEST_F(PeerProcessRunTest, ProcessThatEndsIsToldWithWhatItWroteLast) {
  auto process = Run("echo one; echo the reason >&2; exit 1");
  ASSERT_TRUE(process.ok()) << process.status();
  std::vector<PeerProcess> processes;
  processes.push_back(*std::move(process));
  const absl::Status status = AwaitReady(processes, testing::kPatience, [] {
    return absl::UnavailableError("not yet");
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the reason"));
}

TEST_F(PeerProcessRunTest, WaitEndsAtItsTimeoutWithTheLastReason) {
  auto process = Run("exec sleep 600");
  ASSERT_TRUE(process.ok()) << process.status();
  std::vector<PeerProcess> processes;
  processes.push_back(*std::move(process));
  int asked = 0;
  EXPECT_TRUE(AwaitReady(processes, testing::kPatience, [&] {
                return ++asked < 3 ? absl::UnavailableError("not yet")
                                   : absl::OkStatus();
              }).ok());
  const absl::Status status = AwaitReady(processes, milliseconds(0), [] {
    return absl::UnavailableError("not yet");
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not yet"));
}

TEST_F(PeerProcessRunTest, WaitTellsWhetherItEndedWithSuccess) {
  auto good = Run("exit 0");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_TRUE(good->Wait().ok());
  auto bad = Run("echo the reason; exit 3");
  ASSERT_TRUE(bad.ok()) << bad.status();
  const absl::Status status = bad->Wait();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the reason"));
}

TEST_F(PeerProcessRunTest, LogThatCannotBeWrittenIsReported) {
  EXPECT_TRUE(
      absl::IsUnavailable(PeerProcess::Start("/bin/sh", {"-c", "exit"},
                                             directory_.File("nowhere/log"))
                              .status()));
}

TEST(PeerProcessTest, PeersAreStartedAgainAtMostTwice) {
  for (const int failures : {0, 2, 3}) {
    int starts = 0;
    int ends = 0;
    const absl::Status status = StartPeers(
        [&] {
          return ++starts <= failures ? absl::UnavailableError("taken")
                                      : absl::OkStatus();
        },
        [&] {
          ++ends;
          return absl::OkStatus();
        });
    EXPECT_EQ(status.ok(), failures < 3);
    EXPECT_EQ(starts, failures < 3 ? failures + 1 : 3);
    EXPECT_EQ(ends, starts - 1);
  }
}

TEST(ClusterFolderTest, FolderGoesWithWhatIsInIt) {
  const testing::TempDirectory parent;
  {
    const auto made = ClusterFolder::Make({.parent = parent.path(),
                                           .ring_bytes = 1 << 20,
                                           .nodes = 3,
                                           .write_quorum = 2});
    ASSERT_TRUE(made.ok()) << made.status();
    for (uint64_t node = 1; node <= 3; ++node) {
      EXPECT_TRUE(std::filesystem::exists(
          ClusterFolder::ReplicaOf(made->path(), node)));
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  EXPECT_TRUE(absl::IsUnavailable(
      ClusterFolder::Make({.parent = "/nowhere"}).status()));
}

}  // namespace
}  // namespace alpheus::bench::replicated
