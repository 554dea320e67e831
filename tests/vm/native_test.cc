// SPDX-License-Identifier: Apache-2.0
// Native FLUSH and atomic WRITE are what goes out: NS1 to NS3, FB4. For a guest
// whose kernel and libraries have both (native.py); a region is in its
// persistent memory, and each case has ordinary memory beside it.
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "replication/fabric/verbs/native_sends.h"
#include "replication/fabric/verbs/region_key_parts.h"
#include "tests/vm/verbs_guest_test.h"

namespace alpheus::testing {
namespace {

using enum fabric::RemoteAccess;
constexpr auto kOk = fabric::CompletionStatus::kOk;

class NativeTest : public VerbsGuestTest {
 protected:
  void SetUp() override {
    VerbsGuestTest::SetUp();
    ASSERT_NE(std::getenv("ALPHEUS_VERBS_DEVICE"), nullptr);
    for (const int host : {0, 1}) {
      ASSERT_TRUE(fabric(host).limits().native_flush);
      ASSERT_TRUE(fabric(host).limits().atomic_write);
    }
    link_ = Link(0, 1);
    own_ = MakeRegion(0, kBytes, kNone);
    persistent_ = MakeRegion(1, kBytes, kReadWrite);
    const auto key = fabric(1).Register(ordinary_, kReadWrite);
    ASSERT_TRUE(key.ok()) << key.status();
    ordinary_key_ = *key;
  }

  uint64_t Flushes() { return verbs(0).counters().native_flushes; }
  uint64_t AtomicWrites() { return verbs(0).counters().atomic_writes; }
  void Write(fabric::RemoteAddress to, uint64_t bytes) {
    ASSERT_TRUE(fabric(0)
                    .PostWrite(link_.at_host, fabric::WorkId(1),
                               own_.Local(0, bytes), to)
                    .ok());
  }
  void Flush(fabric::RemoteAddress range, uint64_t bytes) {
    ASSERT_TRUE(fabric(0)
                    .PostFlush(link_.at_host, fabric::WorkId(2), range, bytes)
                    .ok());
  }
  fabric::CompletionStatus NextStatus() {
    return Next(0, link_.at_host).status;
  }

  static constexpr uint64_t kBytes = uint64_t{1} << 16;
  TestLink link_;
  TestRegion own_;
  TestRegion persistent_;
  alignas(8) std::array<std::byte, 4096> ordinary_{};
  fabric::RegionKey ordinary_key_;
};

TEST_P(NativeTest, PersistentMemoryIsFlushedNatively) {
  own_.Fill(5);
  Write(persistent_.At(0), 100);
  Write(persistent_.At(kBytes - 3000), 3000);
  Flush(persistent_.At(0), 8);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NextStatus(), kOk);
  EXPECT_EQ(persistent_.bytes.front(), std::byte{5});
  EXPECT_EQ(persistent_.bytes.back(), std::byte{5});
  EXPECT_EQ(Flushes(), 1u);
}

// Soft-RoCE takes no FLUSH for memory that is not persistent.
TEST_P(NativeTest, OtherMemoryIsFlushedByARead) {
  EXPECT_TRUE(fabric::verbs::PartsOf(persistent_.key).grants_flush);
  EXPECT_FALSE(fabric::verbs::PartsOf(ordinary_key_).grants_flush);
  own_.Fill(6);
  Write({ordinary_key_, 0}, 4096);
  Flush({ordinary_key_, 0}, 4096);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(NextStatus(), kOk);
  EXPECT_EQ(ordinary_[4095], std::byte{6});
  EXPECT_EQ(Flushes(), 0u);
}

// A READ would have been answered: what went out was a FLUSH, with the
// placement that the region was not registered for.
TEST_P(NativeTest, AdapterRefusesAFlushThatTheRegionDoesNotGrant) {
  fabric::verbs::RegionKeyParts parts = fabric::verbs::PartsOf(ordinary_key_);
  parts.grants_flush = true;
  Flush({fabric::verbs::MakeRegionKey(parts), 0}, 8);
  EXPECT_EQ(NextStatus(), fabric::CompletionStatus::kRemoteAccess);
  ExpectBrokenAtBothEnds(link_);
}

TEST_P(NativeTest, LongestRangeIsFlushedBeforeThePeerCountsAsGone) {
  const TestRegion large =
      MakeRegion(1, fabric::verbs::kFlushBytesMax, kReadWrite);
  own_.Fill(7);
  Write(large.At(0), 8);
  Write(large.At(fabric::verbs::kFlushBytesMax - 8), 8);
  Flush(large.At(0), 8);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NextStatus(), kOk);
  EXPECT_EQ(large.Word(fabric::verbs::kFlushBytesMax - 8), own_.Word(0));
  EXPECT_EQ(Flushes(), 1u);
}

// A record, then the word that names it, in one chain: write, FLUSH, atomic
// WRITE, FLUSH. The processor of the responder looks on.
TEST_P(NativeTest, WordIsThereBehindItsRecord) {
  constexpr int kRounds = 100;
  constexpr uint64_t kWord = kBytes - 8;
  for (int round = 1; round <= kRounds; ++round) {
    own_.Fill(round);
    Write(persistent_.At(0), kWord);
    Flush(persistent_.At(0), kWord);
    ASSERT_TRUE(fabric(0)
                    .PostWriteAtomic(link_.at_host, fabric::WorkId(3),
                                     own_.Local(0, 8), persistent_.At(kWord))
                    .ok());
    Flush(persistent_.At(kWord), 8);
    ASSERT_TRUE(Until([&] { return persistent_.Word(kWord) == own_.Word(0); }));
    ASSERT_TRUE(persistent_.IsAll(round));
    for (int i = 0; i < 4; ++i) ASSERT_EQ(NextStatus(), kOk);
  }
  EXPECT_EQ(Flushes(), 2u * kRounds);
  EXPECT_EQ(AtomicWrites(), uint64_t{kRounds});
}

INSTANTIATE_TEST_SUITE_P(Verbs, NativeTest, ::testing::Values(GuestParam()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
