// SPDX-License-Identifier: Apache-2.0
// Holes of the protocol as whole scenarios: primaries that know nothing of each
// other, clients that write what looks like records, lost quorums.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/core/ring/region_state.h"
#include "log/format/record.h"
#include "tests/crash/cluster_cuts.h"
#include "tests/crash/cluster_run.h"

namespace alpheus::testing {
namespace {

using Primary = OpeningWorld::Primary;

absl::StatusOr<Lsn> AppendText(Primary& primary, std::string_view text) {
  const std::span<const std::byte> part = AsBytes(text);
  return primary.log->Append({&part, 1}, 1, Deadline());
}

// The payloads of the log as the primary got it.
std::vector<std::string> Texts(OpeningWorld& world, const Primary& primary) {
  std::vector<std::byte> image = world.pmem(primary.host + 1).CutKeepingAll();
  return LivePayloads(image);
}

// P-H23, P-H24, P-H5: a primary stands still in the middle of an append,
// whatever it was about to hear. Others open the next epoch without it and
// write there; it never hears of that but from its replicas. If its append then
// succeeds, the new log has the record; and no append of it succeeds any more.
void PauseAt(int members, int w, int event, bool* finished) {
  OpeningWorld::Options options;
  options.members = members;
  options.write_quorum = w;
  options.seed = static_cast<uint64_t>(event) + 1;
  options.real_server = true;
  OpeningWorld world(options);
  auto old = world.Begin(0, world.OpeningOptions(0));
  world.Drive({old.get()});
  ASSERT_TRUE(old->status().ok()) << old->status();
  world.StartLog(*old);
  ASSERT_TRUE(AppendText(*old, "first").ok());
  std::unique_ptr<Primary> next;
  std::vector<std::string> shown;
  int events = 0;
  world.on_event = [&] {
    if (events++ != event) return;
    world.paused_host = 0;
    next = world.Begin(1, world.OpeningOptions(1));
    world.Drive({next.get()});
    ASSERT_TRUE(next->status().ok()) << next->status();
    shown = Texts(world, *next);
    world.StartLog(*next);
    ASSERT_TRUE(AppendText(*next, "new").ok());
  };
  const absl::StatusOr<Lsn> second = AppendText(*old, "second");
  world.on_event = nullptr;
  if (next == nullptr) {
    *finished = true;
    return;
  }
  const std::vector<std::string> with = {"first", "second"};
  const std::vector<std::string> without = {"first"};
  if (second.ok()) {
    EXPECT_EQ(shown, with);
  } else {
    EXPECT_TRUE(absl::IsAborted(second.status())) << second.status();
    EXPECT_TRUE(shown == with || shown == without);
  }
  const absl::StatusOr<Lsn> third = AppendText(*old, "third");
  EXPECT_TRUE(absl::IsAborted(third.status())) << third.status();
  ASSERT_TRUE(AppendText(*next, "newer").ok());
  // The old primary changed no record that the new one acknowledged.
  std::vector<std::string> expected = shown;
  expected.emplace_back("new");
  expected.emplace_back("newer");
  // W replicas had them at once; the others get them, too.
  for (int i = 0; i < 200; ++i) world.StepOthers(0);
  for (int node = 2; node <= members; ++node) {
    EXPECT_EQ(world.Payloads(node), expected) << "node " << node;
  }
}

class PausedPrimaryTest : public ::testing::TestWithParam<std::pair<int, int>> {
};

TEST_P(PausedPrimaryTest, PausedPrimaryIsPushedAsideByItsReplicas) {
  bool finished = false;
  int event = 0;
  for (; !finished && event < 1000; ++event) {
    SCOPED_TRACE(event);
    PauseAt(GetParam().first, GetParam().second, event, &finished);
    if (HasFailure()) return;
  }
  EXPECT_GT(event, 5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PausedPrimaryTest,
                         ::testing::Values(std::pair(3, 2), std::pair(5, 3)));

// P-H14, P-INV-14: a client knows, or guesses, which epochs will come, where
// its bytes lie and what records look like. It can't guess nonces. Its record
// is dropped on the replica that has it; the next one ends in the middle of it.
TEST(ClusterScenarioTest, PayloadThatImitatesALaterEpochIsNoRecord) {
  Epoch last_epoch;
  // In the first run it learns; openings are repeatable.
  for (const bool knows : {false, true}) {
    OpeningWorld world({.real_server = true});
    std::string payload(4 * kLineBytes - sizeof(RecordHeader), 'p');
    if (knows) {
      RecordHeader forged{};
      forged.lsn = 3;
      forged.epoch = last_epoch.value;
      forged.magic = kRecordMagic;
      forged.type = static_cast<uint8_t>(RecordType::kData);
      const RingOffset at(2 * kLineBytes);
      const uint64_t seed =
          EpochKey(kOpeningLog, last_epoch, /*nonce=*/1).Seed(Lsn(3), at);
      forged.payload_crc = PayloadChecksum(seed, Crc32c(kCrcStart, {}));
      forged.header_crc = HeaderChecksum(seed, forged);
      // Payloads begin behind the header; the next line is the place.
      std::memcpy(payload.data() + kLineBytes - sizeof(forged), &forged,
                  sizeof(forged));
    }
    auto primary = world.Open(0);
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    world.Append(*primary, "", {1, 2, 3});
    world.Append(*primary, payload, {1});
    primary.reset();
    world.Crash(1);
    primary = world.Open(1);  // without what node 1 alone has
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    world.Append(*primary, "", {2, 3});
    primary.reset();
    world.Restart(1);
    primary = world.Open(1);
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    ASSERT_EQ(primary->opened->end.lsn, Lsn(3));
    ASSERT_EQ(primary->opened->end.offset, RingOffset(2 * kLineBytes));
    last_epoch = primary->opened->epoch;
    primary.reset();
    const auto next = world.Open(2);
    ASSERT_TRUE(next->status().ok()) << next->status();
    EXPECT_EQ(next->opened->end.lsn, Lsn(3)) << "knows: " << knows;
  }
}

// P-H20, P-INV-20: both backups are out of reach for a while. A record in doubt
// stays so until the log is opened again, whichever members can be reached by
// then.
TEST(ClusterScenarioTest, LostQuorumStaysLostWhenItsMembersComeBack) {
  OpeningWorld world({.real_server = true});
  auto primary = world.Begin(0, world.OpeningOptions(0));
  world.Drive({primary.get()});
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.StartLog(*primary);
  ASSERT_TRUE(AppendText(*primary, "durable").ok());
  for (const int host : {1, 2}) world.network().Cut(0, host);
  EXPECT_TRUE(absl::IsAborted(AppendText(*primary, "doubt").status()));
  for (const int host : {1, 2}) world.network().Heal(0, host);
  for (int i = 0; i < 1000; ++i) world.Step({primary.get()});
  EXPECT_TRUE(absl::IsAborted(AppendText(*primary, "more").status()));
  EXPECT_TRUE(absl::IsAborted(primary->log->Force(Lsn(2), 1, Deadline())));
  EXPECT_TRUE(absl::IsAborted(primary->log->Close()));
  EXPECT_EQ(primary->log->durable_lsn(), Lsn(1));
  primary.reset();
  world.Crash(1);
  world.Restart(1);
  const auto next = world.Open(1);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_GE(next->opened->end.lsn, Lsn(2));
  EXPECT_LE(next->opened->end.lsn, Lsn(3));
}

}  // namespace
}  // namespace alpheus::testing
