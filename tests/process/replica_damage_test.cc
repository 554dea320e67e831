// SPDX-License-Identifier: Apache-2.0
// Replicas that are damaged or mixed up, by kind, and what becomes of the log:
// protocol P-A8. Two replicas are whole, so the log always goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log_reader.h"
#include "log/base/clock.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "tests/process/cluster_fixture.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ClusterWriter;
using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;

constexpr int kLines = 40;
// The node whose replica suffers.
constexpr int kVictim = 3;

class ReplicaDamageTest : public ClusterTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartCluster());
    Format();
    Append(1, CountLines(kLines));
    for (int node = 1; node <= 3; ++node) {
      ExpectComesToHold(node, CountLines(kLines));
    }
  }

  // A primary waits for W replicas, and for the others a moment only: what is
  // not there yet comes with the next epoch, or the one after.
  void ExpectComesToHold(int node, const std::string& lines) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    ProgramResult cat = RunOnReplica("cat", node, {});
    while ((cat.end.exit_status != kGood || cat.output != lines) &&
           Clock::Real().NowNanos() < end) {
      Append(1, "");
      cat = RunOnReplica("cat", node, {});
    }
    EXPECT_EQ(cat.end.exit_status, kGood) << cat.error;
    EXPECT_EQ(cat.output, lines) << "node " << node;
  }

  std::string Region(int node = kVictim) const {
    return cluster_->region(node, "main");
  }

  void Stop(int node = kVictim) {
    const absl::Status ended = cluster_->Terminate(node);
    ASSERT_TRUE(ended.ok()) << ended;
  }
  void StartAgain(int node = kVictim) {
    const absl::Status started = cluster_->Start(node);
    ASSERT_TRUE(started.ok()) << started;
  }

  void Change(const std::string& path,
              void (*change)(std::vector<std::byte>* bytes)) {
    std::vector<std::byte> bytes = ReadFile(path);
    change(&bytes);
    WriteFile(path, bytes);
  }
  void FlipBit(const std::string& path, uint64_t offset) {
    std::vector<std::byte> bytes = ReadFile(path);
    bytes[offset] ^= std::byte{1};
    WriteFile(path, bytes);
  }
  // Where the payload of the record at this index is.
  uint64_t PayloadOffset(const std::string& path, size_t index) {
    std::vector<uint64_t> offsets;
    const auto reader = LogReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return 0;
    const absl::Status read = (*reader)->ForEach([&](const ReaderRecord& r) {
      offsets.push_back(r.offset + kRecordHeaderBytes);
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_LT(index, offsets.size());
    return index < offsets.size() ? offsets[index] : 0;
  }

  // The single faults of the victim's replica, as `inspect` names them.
  std::vector<std::string> SingleFaults() {
    const ProgramResult inspected =
        RunOnReplica("inspect", kVictim, {"--json"});
    EXPECT_EQ(inspected.end.exit_status, kGood) << inspected.error;
    return nlohmann::json::parse(inspected.output, nullptr, false)
        .value("single_faults", std::vector<std::string>{"?"});
  }

  // The victim's node serves its replica no more; the others go on with it all,
  // and the file stays as it is.
  void ExpectRefused(const std::string& reason) {
    const std::vector<std::byte> before = ReadFile(Region());
    EXPECT_FALSE(IsServed(kVictim));
    Append(1, CountLines(10, kLines));
    EXPECT_EQ(Cat(), CountLines(kLines + 10));
    EXPECT_TRUE(ReadFile(Region()) == before) << "a refused file was changed";
    EXPECT_THAT(cluster_->Story(), HasSubstr(reason));
  }

  // The next epoch makes it whole again.
  void ExpectRepaired() {
    EXPECT_TRUE(IsServed(kVictim));
    Append(1, CountLines(10, kLines));
    EXPECT_EQ(Cat(), CountLines(kLines + 10));
    ExpectComesToHold(kVictim, CountLines(kLines + 10));
    const ProgramResult verified = RunOnReplica("verify", kVictim, {});
    EXPECT_EQ(verified.end.exit_status, kGood) << verified.error;
  }
};

class TwoNodesDamageTest : public ReplicaDamageTest {
 protected:
  void SetUp() override {
    demo::ClusterOptions options = ThreeNodes(directory_.path());
    options.node_count = 2;
    ASSERT_NO_FATAL_FAILURE(StartCluster(options));
    Format();
  }
};

TEST_F(ReplicaDamageTest, SwappedReplicasAreRefusedAndNothingIsOpened) {
  Stop(2);
  Stop(3);
  std::filesystem::rename(Region(2), directory_.File("aside"));
  std::filesystem::rename(Region(3), Region(2));
  std::filesystem::rename(directory_.File("aside"), Region(3));
  StartAgain(2);
  StartAgain(3);
  EXPECT_FALSE(IsServed(2));
  EXPECT_FALSE(IsServed(3));
  const ProgramResult append = Run("append", {"--node", "1"}, "more\n");
  EXPECT_EQ(append.end.exit_status, kUnavailable) << append.error;
  // Put right, it is all there.
  Stop(2);
  Stop(3);
  std::filesystem::rename(Region(2), directory_.File("aside"));
  std::filesystem::rename(Region(3), Region(2));
  std::filesystem::rename(directory_.File("aside"), Region(3));
  StartAgain(2);
  StartAgain(3);
  Append(1, CountLines(10, kLines));
  EXPECT_EQ(Cat(), CountLines(kLines + 10));
}

TEST_F(ReplicaDamageTest, CloneOfAnotherNodesReplicaIsRefused) {
  Stop(2);
  Stop();
  WriteFile(Region(), ReadFile(Region(2)));
  StartAgain(2);
  StartAgain();
  ExpectRefused("node");
}

TEST_F(ReplicaDamageTest, ZeroedReplicaIsRefused) {
  Stop();
  Change(Region(), [](std::vector<std::byte>* bytes) {
    std::fill(bytes->begin(), bytes->end(), std::byte{0});
  });
  StartAgain();
  ExpectRefused(Region());
}

TEST_F(ReplicaDamageTest, TruncatedReplicaIsRefused) {
  Stop();
  Change(Region(), [](std::vector<std::byte>* bytes) {
    bytes->resize(bytes->size() / 2);
  });
  StartAgain();
  ExpectRefused("truncated");
}

TEST_F(ReplicaDamageTest, ReplicaOfAnotherLogIsRefused) {
  Format("other");
  Append(1, CountLines(5), "other");
  Stop();
  WriteFile(Region(), ReadFile(cluster_->region(kVictim, "other")));
  StartAgain();
  ExpectRefused("other");
}

TEST_F(ReplicaDamageTest, ReplicaOfAnotherCapacityIsNotPartOfTheLog) {
  // The same log formatted again, in other directories, with another size.
  for (int node = 1; node <= 3; ++node) Stop(node);
  for (int node = 1; node <= 3; ++node) {
    std::filesystem::rename(Region(node), Region(node) + ".aside");
  }
  for (int node = 1; node <= 3; ++node) StartAgain(node);
  Format("main", "2MiB");
  for (int node = 1; node <= 3; ++node) Stop(node);
  for (const int node : {1, 2}) {
    std::filesystem::rename(Region(node) + ".aside", Region(node));
  }
  for (int node = 1; node <= 3; ++node) StartAgain(node);
  Append(1, CountLines(10, kLines));
  EXPECT_EQ(Cat(), CountLines(kLines + 10));
}

TEST_F(ReplicaDamageTest, OneCopyOfTheSuperlineIsRepaired) {
  for (const uint64_t offset : {uint64_t{30}, kSuperlineCopyBytes + 30}) {
    SCOPED_TRACE(offset);
    Stop();
    FlipBit(Region(), offset);
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    std::vector<std::string> faults;
    // With the next epoch, or the one after, if it was silent meanwhile.
    do {
      StartAgain();
      EXPECT_TRUE(IsServed(kVictim));
      Append(1, "");
      Stop();
      faults = SingleFaults();
    } while (!faults.empty() && Clock::Real().NowNanos() < end);
    EXPECT_EQ(faults, std::vector<std::string>());
    StartAgain();
  }
  ExpectRepaired();
}

TEST_F(ReplicaDamageTest, BothCopiesOfTheSuperlineLoseTheReplicaOnly) {
  Stop();
  FlipBit(Region(), 30);
  FlipBit(Region(), kSuperlineCopyBytes + 30);
  StartAgain();
  ExpectRefused(Region());
}

TEST_F(ReplicaDamageTest, DamagedRecordsBelowTheWatermarkComeFromAPeer) {
  for (const size_t index : {size_t{0}, size_t{7}, size_t{kLines - 1}}) {
    SCOPED_TRACE(index);
    const uint64_t offset = PayloadOffset(Region(), index);
    Stop();
    FlipBit(Region(), offset);
    StartAgain();
    Append(1, "");
    ExpectComesToHold(kVictim, CountLines(kLines));
  }
  ExpectRepaired();
}

// Each replica has lost another record: together they have them all.
TEST_F(ReplicaDamageTest, EachReplicaIsRepairedFromTheOthers) {
  for (int node = 1; node <= 3; ++node) {
    const uint64_t offset =
        PayloadOffset(Region(node), 10 * static_cast<size_t>(node));
    Stop(node);
    FlipBit(Region(node), offset);
    StartAgain(node);
  }
  Append(1, "");
  for (int node = 1; node <= 3; ++node) {
    ExpectComesToHold(node, CountLines(kLines));
  }
}

TEST_F(ReplicaDamageTest, RecordThatIsDamagedEverywhereIsDataLossAndNoEnd) {
  for (int node = 1; node <= 3; ++node) {
    const uint64_t offset = PayloadOffset(Region(node), 7);
    Stop(node);
    FlipBit(Region(node), offset);
    StartAgain(node);
  }
  const ProgramResult append = Run("append", {"--node", "1"}, "more\n");
  EXPECT_EQ(append.end.exit_status, kDataLoss) << append.error;
  const ProgramResult cat = Run("cat", {});
  EXPECT_EQ(cat.end.exit_status, kDataLoss) << cat.error;
  EXPECT_EQ(cat.output, CountLines(7));
}

// The primary was killed: what its last batch left on one replica may be torn,
// and is taken for that.
TEST_F(ReplicaDamageTest, DamageInTheLastBatchOfOneReplicaLosesNothing) {
  const std::unique_ptr<ClusterWriter> primary = StartWriter();
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 50));
  ASSERT_TRUE(primary->Kill().ok());
  Stop();
  const auto reader = LogReader::Open(Region());
  ASSERT_TRUE(reader.ok()) << reader.status();
  uint64_t last = 0;
  const absl::Status read = (*reader)->ForEach([&](const ReaderRecord& r) {
    last = r.offset + kRecordHeaderBytes;
    return absl::OkStatus();
  });
  ASSERT_TRUE(read.ok()) << read;
  FlipBit(Region(), last);
  StartAgain();
  Append(2, "");
  const std::string lines = Cat();
  ExpectComesToHold(kVictim, lines);
  for (const auto& ack : primary->Facts().acknowledgements) {
    EXPECT_THAT(lines, HasSubstr(feed_.Record(ack.record.number) + "\n"));
  }
}

// --- Scrubbing ---------------------------------------------------------------

// While its node serves it.
void FlipInPlace(const std::string& path, uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
  file.flush();
  ASSERT_TRUE(file.good()) << path;
}

TEST_F(ReplicaDamageTest, ScrubRepairsWhatIsDamagedWhileItIsServed) {
  const uint64_t payload = PayloadOffset(Region(), 20);
  const uint64_t header = PayloadOffset(Region(), 30) - kRecordHeaderBytes;
  FlipInPlace(Region(), payload);
  FlipInPlace(Region(), header + 8);
  FlipInPlace(Region(), header + kLineBytes);  // the next one's LSN
  FlipInPlace(Region(), kSuperlineCopyBytes + 40);
  EXPECT_EQ(RunOnReplica("verify", kVictim, {}).end.exit_status, kDataLoss);
  const std::string text = RunWell("scrub", {});
  EXPECT_THAT(text, HasSubstr("4 damaged, 4 repaired\n"));
  EXPECT_THAT(text, HasSubstr("40 records verified"));
  EXPECT_EQ(CatReplica(kVictim), CountLines(kLines));
  EXPECT_EQ(RunOnReplica("verify", kVictim, {}).end.exit_status, kGood);
  EXPECT_EQ(Status()[kVictim - 1]["scrubbed"]["repaired"], 4);
  EXPECT_THAT(RunWell("scrub", {"--node", "3"}), HasSubstr("; no damage\n"));
  EXPECT_THAT(cluster_->Story(), HasSubstr("repaired: 2"));
  // Alone, too: the nodes that it had the bytes from are gone.
  Stop(1);
  Stop(2);
  EXPECT_EQ(CatReplica(kVictim), CountLines(kLines));
}

TEST_F(ReplicaDamageTest, ScrubSaysWhatNobodyHasWhole) {
  const uint64_t everywhere = PayloadOffset(Region(), 5);
  FlipInPlace(Region(), PayloadOffset(Region(), 7));
  for (int node = 1; node <= 3; ++node) FlipInPlace(Region(node), everywhere);
  const std::vector<std::byte> before = ReadFile(Region(1));
  const ProgramResult result = Run("scrub", {"--json"});
  EXPECT_EQ(result.end.exit_status, kDataLoss) << result.error;
  EXPECT_THAT(result.output, HasSubstr("\"damaged\":2,\"repaired\":1"));
  EXPECT_THAT(result.output, HasSubstr("\"unrepairable_lsns\":[[6,6]]"));
  EXPECT_THAT(result.error, HasSubstr("could not be repaired"));
  EXPECT_TRUE(ReadFile(Region(1)) == before);
  Stop(2);
  const ProgramResult without = Run("scrub", {"--node", "2"});
  EXPECT_EQ(without.end.exit_status, kUnavailable) << without.error;
}

// A primary appends without end.
TEST_F(ReplicaDamageTest, ScrubRepairsWhileThePrimaryWrites) {
  const std::unique_ptr<ClusterWriter> primary = StartWriter();
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 200));
  FlipInPlace(Region(), PayloadOffset(Region(), 3));
  EXPECT_THAT(RunWell("scrub", {"--node", "3"}),
              HasSubstr("1 damaged, 1 repaired"));
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 400));
  ASSERT_TRUE(primary->Kill().ok());
  EXPECT_EQ(RunOnReplica("verify", kVictim, {}).end.exit_status, kGood);
  Append(2, "");
  const std::string lines = Cat();
  for (const auto& ack : primary->Facts().acknowledgements) {
    EXPECT_THAT(lines, HasSubstr(feed_.Record(ack.record.number) + "\n"));
  }
}

// Two nodes, and the primary has the replica of one of them: the other one's
// damage can be repaired from it alone, header or payload.
TEST_F(TwoNodesDamageTest, ScrubRepairsFromThePrimaryThatRuns) {
  const std::unique_ptr<ClusterWriter> primary =
      StartWriter({.node = 1, .has_own_replica = true});
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 200));
  // Its node knows of it, as soon as it hands a scrub on.
  int tries = 0;
  while (Run("scrub", {"--node", "1"}).end.exit_status != kGood) {
    ASSERT_LT(++tries, 1000);
  }
  const uint64_t early = PayloadOffset(Region(2), 10);
  const uint64_t payload = PayloadOffset(Region(2), 20);
  const uint64_t header = PayloadOffset(Region(2), 30) - kRecordHeaderBytes;
  FlipInPlace(Region(2), payload);
  FlipInPlace(Region(2), header + 8);
  EXPECT_THAT(RunWell("scrub", {"--node", "2"}),
              HasSubstr("2 damaged, 2 repaired"));
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 400));
  // A primary that is stopped shows nothing, and nothing hangs. Once it has
  // ended its node shows the replica.
  FlipInPlace(Region(2), early);
  primary->Pause();
  const ProgramResult stopped = Run("scrub", {"--node", "2"});
  EXPECT_EQ(stopped.end.exit_status, kDataLoss) << stopped.error;
  ASSERT_TRUE(primary->Kill().ok());
  ProgramResult after = Run("scrub", {"--node", "2"});
  for (tries = 0; after.end.exit_status != kGood; ++tries) {
    ASSERT_LT(tries, 1000) << after.error;
    after = Run("scrub", {"--node", "2"});
  }
  EXPECT_THAT(after.output, HasSubstr("1 damaged, 1 repaired"));
  EXPECT_EQ(RunOnReplica("verify", 2, {}).end.exit_status, kGood);
  ASSERT_TRUE(cluster_->AwaitServed("main").ok());
  Append(2, "");
  CheckLog({primary.get()});
}

}  // namespace
}  // namespace alpheus::testing
