// SPDX-License-Identifier: Apache-2.0
// Receives that are there, and receives that are not: FB6, P-R1.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/vm/verbs_guest_test.h"

namespace alpheus::testing {

using fabric::WorkId;

namespace {

using enum fabric::RemoteAccess;
class CreditTest : public VerbsGuestTest {};

constexpr int kAdapters = 3;
constexpr uint64_t kMessageBytes = 64;
constexpr uint64_t kCredits = 32;
constexpr uint64_t kMessages = 3'000;
constexpr uint64_t kPostedMost = 100;

// The adapters' word for it: refusals heard by senders, said by receivers.
constexpr const char* kHeard = "rcvd_rnr_err";
constexpr const char* kSaid = "send_rnr_err";

TEST_P(CreditTest, SenderToAnEmptyQueueIsRefusedATimeAndThenFails) {
  const TestRegion own = MakeRegion(0, kMessageBytes, kNone);
  const TestRegion remote = MakeRegion(1, kMessageBytes, kWrite);
  const TestLink link = Link(0, 1);
  const uint64_t heard = AdapterCounter(0, kHeard);
  const uint64_t said = AdapterCounter(1, kSaid);
  ASSERT_TRUE(fabric(0)
                  .PostWriteImmediate(link.at_host, WorkId(1), own.Local(),
                                      remote.At(0), 1)
                  .ok());
  ASSERT_TRUE(fabric(0)
                  .PostWrite(link.at_host, WorkId(2), own.Local(), remote.At(0))
                  .ok());
  EXPECT_EQ(Next(0, link.at_host).status,
            fabric::CompletionStatus::kReceiverNotReady);
  EXPECT_EQ(Next(0, link.at_host).status, fabric::CompletionStatus::kFlushed);
  ExpectBrokenAtBothEnds(link);
  EXPECT_EQ(verbs(0).counters().receiver_not_ready, 1u);
  const uint64_t refusals = AdapterCounter(0, kHeard) - heard;
  EXPECT_GT(refusals, 1u) << "it was not asked again";
  EXPECT_LE(refusals, 7u) << "it was asked more often than 6 times again";
  EXPECT_GT(AdapterCounter(1, kSaid), said);
  std::printf("[   counts ] %lu refusals, then the failure\n", refusals);
}

// A sender that has no more under way than receives were promised is never
// refused: the adapters count none.
TEST_P(CreditTest, SenderThatKeepsItsCreditsIsNeverRefused) {
  const TestRegion own = MakeRegion(0, kMessageBytes, kNone);
  const TestRegion remote = MakeRegion(1, kMessageBytes, kWrite);
  const TestRegion promised = MakeRegion(0, 8, kWrite);
  const TestRegion promises = MakeRegion(1, 8 * kMessages, kNone);
  const TestLink link = Link(0, 1);
  uint64_t refusals = 0;
  for (int host = 0; host < kAdapters; ++host) {
    refusals += AdapterCounter(host, kHeard) + AdapterCounter(host, kSaid);
  }
  uint64_t posted = 0;  // receives
  uint64_t told = 0;    // of these, to the sender
  uint64_t taken = 0;
  uint64_t sent = 0;
  uint64_t done = 0;
  while (taken < kMessages) {
    for (; posted < taken + kCredits; ++posted) {
      ASSERT_TRUE(fabric(1).PostReceive(link.at_peer, WorkId(posted), {}).ok());
    }
    if (posted - told >= kCredits / 2) {
      const uint64_t at = 8 * (told % kMessages);
      promises.SetWord(at, posted);
      ASSERT_TRUE(fabric(1)
                      .PostWrite(link.at_peer, WorkId(posted),
                                 promises.Local(at, 8), promised.At(0))
                      .ok());
      told = posted;
    }
    for (; sent < std::min(kMessages, promised.Word(0)) &&
           sent - done < kPostedMost;
         ++sent) {
      ASSERT_TRUE(fabric(0)
                      .PostWriteImmediate(link.at_host, WorkId(sent),
                                          own.Local(), remote.At(0),
                                          static_cast<uint32_t>(sent))
                      .ok());
    }
    (void)Pass();
    for (const fabric::Completion& completion :
         std::exchange(completions_[0], {})) {
      ASSERT_EQ(completion.status, fabric::CompletionStatus::kOk);
      ++done;
    }
    for (const fabric::Completion& completion :
         std::exchange(completions_[1], {})) {
      ASSERT_EQ(completion.status, fabric::CompletionStatus::kOk);
      if (completion.operation != fabric::Operation::kReceiveImmediate)
        continue;
      ASSERT_EQ(completion.immediate, taken);
      ++taken;
    }
  }
  for (int host = 0; host < kAdapters; ++host) {
    refusals -= AdapterCounter(host, kHeard) + AdapterCounter(host, kSaid);
  }
  EXPECT_EQ(refusals, 0u) << "P-R1";
  std::printf("[   counts ] %lu immediates, no refusal\n", taken);
}

INSTANTIATE_TEST_SUITE_P(Verbs, CreditTest, ::testing::Values(GuestParam()),
                         ConformanceParamName);

}  // namespace
}  // namespace alpheus::testing
