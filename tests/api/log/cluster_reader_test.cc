// SPDX-License-Identifier: Apache-2.0
// The records that readers of replicas take for durable: from evidence as
// values, and from the nodes of a cluster, over TCP.
#include "alpheus/cluster_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "recovery/follow/durable_range.h"
#include "tests/support/fabrics/silent_node.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestCluster;
using Code = absl::StatusCode;
using Evidence = std::optional<recovery::ReplicaEvidence>;

constexpr Epoch kEpoch{7};

// Evidence from a replica of the epoch, which starts at LSN 1.
Evidence Of(uint64_t watermark, uint64_t end, uint64_t named = 0) {
  return recovery::ReplicaEvidence{.log_epoch = kEpoch,
                                   .watermark_lsn = Lsn(watermark),
                                   .named_lsn = Lsn(named),
                                   .end_lsn = Lsn(end)};
}
Evidence Behind(uint64_t end) {
  Evidence evidence = Of(end, end);
  evidence->log_epoch = Epoch(6);
  return evidence;
}
Evidence Repairing(uint64_t watermark, uint64_t end, uint64_t named = 0) {
  Evidence evidence = Of(watermark, end, named);
  evidence->counts = false;
  return evidence;
}

recovery::DurableRange Find(uint32_t write_quorum,
                            const std::vector<Evidence>& evidence) {
  return recovery::FindDurableRange(write_quorum, evidence);
}

// Goal: DR1. Three replicas, W = 2: node 1 was the only one that got LSN 9.
TEST(DurableRangeTest, RecordsOfOneReplicaAreNotDurable) {
  const recovery::DurableRange range =
      Find(2, {Of(9, 9, 4), Of(5, 5), Of(3, 3)});
  EXPECT_EQ(range.known, Lsn(5));
  EXPECT_EQ(range.possible, Lsn(5));
}

// Goal: DR1, DR2. All have LSN 9, and no fence is known that covers it.
TEST(DurableRangeTest, UnfencedEndsAreNotDurable) {
  const recovery::DurableRange range = Find(2, {Of(5, 9), Of(5, 9), Of(5, 9)});
  EXPECT_EQ(range.known, Lsn(5));
  EXPECT_EQ(range.possible, Lsn(9));
}

// Goal: DR1a. The primary that wrote a header knew, even if the replica with
// that header does not count.
TEST(DurableRangeTest, HeadersAreProofWhereverTheyAre) {
  EXPECT_EQ(Find(2, {Of(3, 9, 8), Of(3, 9), {}}).known, Lsn(8));
  EXPECT_EQ(Find(2, {Repairing(3, 9, 8), Of(3, 9), {}}).known, Lsn(8));
}

// An opening that died after its first installation.
TEST(DurableRangeTest, StartOfAnEpochThatOneReplicaHasProvesNothing) {
  Evidence installed = Of(0, 9);
  installed->start_lsn = Lsn(10);
  EXPECT_EQ(Find(2, {installed, Behind(8), Behind(8)}).known, Lsn(0));
  // The installed log has at least the records that were durable before.
  EXPECT_EQ(Find(2, {installed, Behind(8), Behind(8)}).possible, Lsn(9));
  EXPECT_EQ(Find(2, {installed, installed, Behind(8)}).known, Lsn(9));
  EXPECT_EQ(Find(2, {installed, installed, Behind(8)}).possible, Lsn(9));
}

// Goal: DR1b. Neither is among W.
TEST(DurableRangeTest, RepairingReplicasAndThoseBehindDoNotCount) {
  EXPECT_EQ(Find(2, {Of(9, 9), Repairing(9, 9), Behind(9)}).known, Lsn(0));
  EXPECT_EQ(Find(2, {Of(9, 9), Repairing(9, 9), Of(7, 7)}).known, Lsn(7));
}

// Goal: DR2. A replica that was not reached may be among the W; one that is
// behind is not.
TEST(DurableRangeTest, WhoWasNotReachedMayHaveAcknowledged) {
  EXPECT_EQ(Find(2, {Of(5, 9), Of(5, 5), Behind(4)}).possible, Lsn(5));
  EXPECT_EQ(Find(2, {Of(5, 9), Of(5, 5), {}}).possible, Lsn(9));
  EXPECT_EQ(Find(2, {Of(5, 9), Of(5, 5), Repairing(4, 4)}).possible, Lsn(9));
  EXPECT_EQ(Find(2, {Of(9, 9), {}, {}}).possible, std::nullopt);
  EXPECT_EQ(Find(2, std::vector<Evidence>(3)).possible, std::nullopt);
}

TEST(DurableRangeTest, WithoutRecordsThereIsNoBound) {
  Evidence evidence = Of(5, 5);
  evidence->end_lsn.reset();
  EXPECT_EQ(Find(2, {evidence, evidence, evidence}).known, Lsn(5));
  EXPECT_EQ(Find(2, {evidence, evidence, evidence}).possible, std::nullopt);
}

TEST(DurableRangeTest, OneReplicaIsEnoughIfWIsOne) {
  EXPECT_EQ(Find(1, {Of(9, 9), Of(5, 5), {}}).known, Lsn(9));
}

// Goal: DR1 and DR2 against a cluster that is known whole. Method: replicas get
// prefixes of one epoch's log, fence some of it, store watermarks behind their
// fences, and name in headers what was durable then; any of them are not
// reached.
TEST(DurableRangeTest, RandomClustersAreNeverOverstated) {
  const uint64_t seed = EntropyRandom().Next();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  const auto below = [&](uint64_t n) { return random.Below(n); };
  for (int round = 0; round < 20'000; ++round) {
    const size_t n = 1 + below(5);
    const uint32_t w = 1 + static_cast<uint32_t>(below(n));
    std::vector<uint64_t> fenced(n);
    for (uint64_t& lsn : fenced) lsn = below(20);
    std::vector<uint64_t> sorted = fenced;
    std::ranges::sort(sorted, std::greater<>());
    const uint64_t durable = sorted[w - 1];
    std::vector<Evidence> evidence(n);
    for (size_t i = 0; i < n; ++i) {
      if (below(3) == 0) continue;
      evidence[i] = Of(fenced[i] - below(fenced[i] + 1), fenced[i] + below(3),
                       durable - below(durable + 1));
      evidence[i]->counts = below(5) != 0;
    }
    const recovery::DurableRange range =
        recovery::FindDurableRange(w, evidence);
    ASSERT_LE(range.known, Lsn(durable)) << "N " << n << " W " << w;
    if (range.possible) {
      ASSERT_GE(*range.possible, Lsn(durable)) << "N " << n << " W " << w;
    }
  }
}

class ClusterReaderTest : public ::testing::Test {
 protected:
  ClusterReaderTest() {
    FormatOptions options;
    options.region_bytes = 256 * 1024;
    options.cluster_file = cluster_.file();
    EXPECT_TRUE(Log::Format(options).ok());
  }

  std::unique_ptr<Log> OpenLog(bool openers_replica = false) {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    if (openers_replica) options.path = cluster_.ReplicaPath(1);
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  static void Append(Log& log, const std::string& text) {
    const auto lsn = log.Append(text);
    EXPECT_TRUE(lsn.ok()) << lsn.status();
  }

  std::unique_ptr<ClusterReader> OpenReader(uint64_t node = 0) {
    auto reader = ClusterReader::Open(
        {.cluster_file = cluster_.file(), .node = node, .timeout_ms = 60'000});
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  static std::vector<std::string> Durable(ClusterReader& reader) {
    std::vector<std::string> payloads;
    const absl::Status read =
        reader.ForEachDurable([&](const ReaderRecord& record) {
          payloads.emplace_back(AsText(record.payload));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return payloads;
  }

  // The files of nodes 2 and 3 go back to what they were after "one".
  void LeaveTwoOnNodeOneOnly() {
    std::vector<std::byte> second;
    std::vector<std::byte> third;
    {
      const auto log = OpenLog();
      Append(*log, "one");
      // All watermarks are there once all say so.
      for (;;) {
        const auto reader = OpenReader();
        const auto& all = reader->replicas();
        if (std::ranges::all_of(all, [](const ReplicaReading& replica) {
              return replica.info && replica.info->watermark_lsn == Lsn(1);
            })) {
          break;
        }
      }
      second = testing::ReadFile(cluster_.ReplicaPath(2));
      third = testing::ReadFile(cluster_.ReplicaPath(3));
      Append(*log, "two");
      EXPECT_TRUE(log->Close().ok());
    }
    cluster_.Stop(2);
    cluster_.Stop(3);
    testing::WriteFile(cluster_.ReplicaPath(2), second);
    testing::WriteFile(cluster_.ReplicaPath(3), third);
    cluster_.Start(2);
    cluster_.Start(3);
  }

  TestCluster cluster_{3};
};

// Goal: DR1, as it was found: the watermark of one replica passed for durable,
// and the next opening, without that replica, dropped what had been shown.
TEST_F(ClusterReaderTest, RecordsOfOneReplicaAreNotDurable) {
  LeaveTwoOnNodeOneOnly();
  const auto reader = OpenReader();
  ASSERT_EQ(reader->replicas()[0].info->watermark_lsn, Lsn(2));
  EXPECT_EQ(reader->durable_lsn(), Lsn(1));
  EXPECT_FALSE(reader->durable_is_lower_bound());
  EXPECT_THAT(Durable(*reader), ElementsAre("one"));
  cluster_.Stop(1);
  EXPECT_EQ(OpenLog()->report().end_lsn, Lsn(1));
}

// Goal: LR1. The replica itself shows both, and which of them is proven.
TEST_F(ClusterReaderTest, OneReplicaIsNoProof) {
  LeaveTwoOnNodeOneOnly();
  cluster_.Stop(1);
  const auto reader = LogReader::Open(cluster_.ReplicaPath(1));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<RecordState> states;
  ASSERT_TRUE((*reader)
                  ->ForEach([&](const ReaderRecord& record) {
                    states.push_back(record.state);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(states,
              ElementsAre(RecordState::kDurable, RecordState::kCompleted));
  const VerifyReport report = (*reader)->Verify();
  EXPECT_EQ(report.proven_lsn, Lsn(2));
  EXPECT_EQ(report.durable_lsn, Lsn(1));
}

// Goal: LR1, LR2. Beside its writer a replica shows what is fenced there:
// nothing in it says that a backup has "two".
TEST_F(ClusterReaderTest, LiveReplicaTellsWhatHeadersName) {
  const auto log = OpenLog(/*openers_replica=*/true);
  Append(*log, "one");
  Append(*log, "two");
  const auto reader = LogReader::Open(cluster_.ReplicaPath(1));
  ASSERT_TRUE(reader.ok()) << reader.status();
  // The idle log's own watermark names "two" in the end.
  while ((*reader)->Verify().proven_lsn < Lsn(2)) std::this_thread::yield();
  std::vector<RecordState> states;
  ASSERT_TRUE((*reader)
                  ->ForEach([&](const ReaderRecord& record) {
                    states.push_back(record.state);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(states,
              ElementsAre(RecordState::kDurable, RecordState::kCompleted));
  const VerifyReport report = (*reader)->Verify();
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.durable_lsn, Lsn(1));
}

// Goal: CR2. While a primary has its own replica, others prove less than it
// acknowledged, and say so; when it has gone all is known.
TEST_F(ClusterReaderTest, BoundIsExactWhenTheLogIsClosedAndAllAnswer) {
  {
    const auto log = OpenLog(/*openers_replica=*/true);
    for (const char* text : {"one", "two", "three"}) Append(*log, text);
    cluster_.Stop(3);
    const auto reader = OpenReader();
    EXPECT_GE(reader->durable_lsn(), Lsn(2));
    EXPECT_TRUE(reader->durable_is_lower_bound());
    EXPECT_EQ(reader->durable_lsn_max(), std::nullopt);
    cluster_.Start(3);
    ASSERT_TRUE(log->Close().ok());
  }
  for (;;) {
    const auto reader = OpenReader();
    if (!reader->replicas()[0].status.ok()) continue;  // not taken over yet
    EXPECT_EQ(reader->durable_lsn(), Lsn(3));
    EXPECT_THAT(Durable(*reader), ElementsAre("one", "two", "three"));
    break;
  }
}

// Two of the three lines of a cluster file were exchanged.
TEST_F(ClusterReaderTest, NodesThatWereMixedUpAreNamed) {
  std::ifstream in(cluster_.file());
  std::string text((std::istreambuf_iterator<char>(in)),
                   std::istreambuf_iterator<char>());
  const std::string first = "node = 1\n";
  const std::string second = "node = 2\n";
  text.replace(text.find(first), first.size(), "node = X\n");
  text.replace(text.find(second), second.size(), first);
  text.replace(text.find("node = X\n"), first.size(), second);
  const testing::TempDirectory directory;
  const std::string file = directory.File("exchanged.toml");
  std::ofstream(file) << text;
  const auto reader =
      ClusterReader::Open({.cluster_file = file, .timeout_ms = 60'000});
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::Status& status = (*reader)->replicas()[0].status;
  EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("node 2 answers, not node 1"));
  EXPECT_TRUE((*reader)->replicas()[2].status.ok());
}

// A W that is too small would let too much pass for durable.
TEST_F(ClusterReaderTest, OtherQuorumsThanTheLogHasAreRefused) {
  Append(*OpenLog(), "one");
  std::ifstream in(cluster_.file());
  const std::string text((std::istreambuf_iterator<char>(in)),
                         std::istreambuf_iterator<char>());
  const testing::TempDirectory directory;
  const std::string file = directory.File("other.toml");
  std::ofstream(file) << "write_quorum = 1\nread_quorum = 3\n" << text;
  const auto reader =
      ClusterReader::Open({.cluster_file = file, .timeout_ms = 60'000});
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const ReplicaReading& replica : (*reader)->replicas()) {
    EXPECT_EQ(replica.status.code(), Code::kFailedPrecondition);
    EXPECT_THAT(std::string(replica.status.message()), HasSubstr("W = 2"));
  }
  EXPECT_EQ((*reader)->durable_lsn(), Lsn(0));
  const absl::Status read = (*reader)->ForEachDurable(
      [](const ReaderRecord&) { return absl::OkStatus(); });
  EXPECT_EQ(read.code(), Code::kFailedPrecondition) << read;
}

// Somebody listens at the address of node 3, and says nothing.
class ClusterReaderSilenceTest : public ClusterReaderTest {
 protected:
  ClusterReaderSilenceTest() {
    Append(*OpenLog(), "one");
    std::ifstream in(cluster_.file());
    std::string text((std::istreambuf_iterator<char>(in)),
                     std::istreambuf_iterator<char>());
    text.replace(text.rfind("address = "), std::string::npos,
                 absl::StrCat("address = \"", address_, "\"\n"));
    std::ofstream(file_) << text;
  }

  const testing::TempDirectory directory_;
  const std::string file_ = directory_.File("mute.toml");
  std::unique_ptr<testing::SilentNode> silent_ =
      std::make_unique<testing::SilentNode>();
  const std::string address_ = silent_->address();
};

TEST_F(ClusterReaderSilenceTest, NodeThatIsSilentIsAbandoned) {
  const auto reader =
      ClusterReader::Open({.cluster_file = file_, .timeout_ms = 500});
  // On a busy machine the others may be silent for that time, too.
  if (!reader.ok()) {
    EXPECT_THAT(reader.status().ToString(),
                AllOf(HasSubstr("node 1 at"), HasSubstr("node 2 at"),
                      HasSubstr(address_ + ": silent for 500 ms")));
    return;
  }
  const auto& replicas = (*reader)->replicas();
  EXPECT_EQ(replicas[2].status.code(), Code::kUnavailable);
  EXPECT_THAT(replicas[2].status.ToString(),
              HasSubstr(address_ + ": silent for 500 ms"));
  if (replicas[0].status.ok() && replicas[1].status.ok()) {
    EXPECT_THAT(Durable(**reader), ElementsAre("one"));
  }
}

// The others are read all the same, in their own time: its silence ends with
// it, once it has been asked.
TEST_F(ClusterReaderSilenceTest, NodeThatIsSilentHindersNoOther) {
  std::thread silence(
      [silent = std::move(silent_)] { silent->AwaitConnection(); });
  const auto reader = ClusterReader::Open(
      {.cluster_file = file_, .timeout_ms = testing::kPatienceMs});
  silence.join();
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::Status& status = (*reader)->replicas()[2].status;
  EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  EXPECT_THAT(status.ToString(), HasSubstr(address_));
  EXPECT_THAT(Durable(**reader), ElementsAre("one"));
}

TEST_F(ClusterReaderTest, UnknownLogIsSaidToBeUnknown) {
  const auto reader = ClusterReader::Open({.cluster_file = cluster_.file(),
                                           .log_name = "nosuch",
                                           .timeout_ms = 60'000});
  EXPECT_EQ(reader.status().code(), Code::kNotFound) << reader.status();
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("nosuch"));
}

}  // namespace
}  // namespace alpheus
