// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/core/ring/region_state.h"
#include "tests/recovery/protocol/wire_samples.h"
#include "tests/replication/persist/platform/all_platforms.h"

namespace alpheus::testing {

using fabric::RegionKey;
using recovery::DecodeHello;
using recovery::DecodeMessage;
using recovery::DecodeRejection;
using recovery::DecodeServerHello;
using recovery::EncodeHello;
using recovery::EncodeMessage;
using recovery::EncodeRejection;
using recovery::EncodeServerHello;
using recovery::Fetched;
using recovery::kHelloBytes;
using recovery::Message;
using recovery::ServerHello;

namespace {

using ::testing::HasSubstr;

constexpr quorum::PrimaryId kPrimary{NodeId(2), 0x1234};
constexpr quorum::Promise kPromise{Epoch(9), kPrimary};

quorum::Digest DigestOf(unsigned char byte) {
  quorum::Digest digest{};
  digest.fill(std::byte{byte});
  return digest;
}

recovery::AskChange ChangeAsked() {
  const std::vector<NodeId> from = {NodeId(1), NodeId(2), NodeId(3)};
  const std::vector<NodeId> to = {NodeId(1), NodeId(2), NodeId(4)};
  return {7,
          {1, {3, 2, 2}, from, 2, {3, 3, 1}, to, {NodeId(2)}},
          {{NodeId(1), "127.0.0.1:7401"}, {NodeId(4), ""}}};
}

recovery::ChangeState ChangeSaid() {
  return {7,
          recovery::ChangeWord::kCutOff,
          Epoch(9),
          Lsn(2),
          Lsn(8),
          {NodeId(4), NodeId(1)},
          absl::UnavailableError("node 4 is away")};
}

std::vector<Message> AllMessages() {
  const recovery::Installation installation{Epoch(9),
                                            TableOf(3),
                                            {Lsn(2), RingOffset(64), 3},
                                            {Lsn(5), RingOffset(640), 4},
                                            RingOffset(1024),
                                            TwoMembers()};
  return {
      recovery::Format{1 << 20, TwoMembers(), "orders.wal-1"},
      recovery::Formatted{},
      recovery::Prepare{kPromise, 7, Epoch(8)},
      recovery::Prepare{kPromise, 7, std::nullopt, true},
      recovery::Promised{RegionKey(3), 4096, RegionKey(4)},
      recovery::Refused{kPromise},
      recovery::OpenForRepair{Epoch(9), true, RingOffset(640)},
      recovery::OpenForRepair{Epoch(9), false},
      recovery::RepairOpened{RegionKey(5)},
      recovery::Install{installation, replication::SessionId(77), 16},
      recovery::Installed{},
      recovery::Failed{
          absl::DataLossError("LSN 4 at offset 192 can't be read")},
      recovery::View{},
      recovery::Viewed{RegionKey(7), 1 << 20, {1, 2, 3}, {4, 5, 6, 7, 8}},
      recovery::Release{},
      recovery::Released{},
      recovery::Challenge{{1, 2}},
      recovery::Challenged{{3, 0}, DigestOf(4)},
      recovery::Prove{DigestOf(5)},
      recovery::Proved{},
      recovery::Claim{kPromise},
      recovery::Claim{kPromise,
                      {3,
                       true,
                       false,
                       {9, 8, 7, 6, 1},
                       {1, 2, 3, 4, 5},
                       {{Lsn(4), Lsn(6)}}}},
      recovery::Wanted{kPromise},
      recovery::Follow{Epoch(9)},
      recovery::Followed{Epoch(9),
                         true,
                         true,
                         false,
                         3,
                         2,
                         4,
                         kPromise,
                         {Lsn(2), RingOffset(64), 3},
                         Lsn(8),
                         Lsn(7),
                         RingOffset(128),
                         1'800'000'000,
                         TableOf(3)},
      recovery::Scrub{true},
      recovery::Scrubbed{3,
                         true,
                         false,
                         {1, 2, 3, 4, 5},
                         {6, 7, 8, 9, 10},
                         {{Lsn(4), Lsn(5)}, {Lsn(8), Lsn(9)}}},
      recovery::Fetch{RingOffset(640), recovery::kFetchBytesMax},
      Fetched{RingOffset(640), {}},
      Fetched{RingOffset(640), {std::byte{1}, std::byte{2}}},
      recovery::Changed{},
      recovery::AskCreation{},
      recovery::Created{TwoMembers(), true},
      recovery::Hear{},
      recovery::Hear{recovery::Standing::kDrained, 1000, 3, Epoch(8), 150, 500,
                     recovery::PrimaryWord::kClaimed, Epoch(9), 17, 21},
      recovery::Heard{},
      recovery::Heard{recovery::PrimaryWord::kSilent,
                      kPromise,
                      Epoch(9),
                      Lsn(2),
                      Lsn(8),
                      {{kPrimary, recovery::Standing::kReady, 7, Epoch(9)},
                       {{NodeId(3), 5}, recovery::Standing::kDrained, 0, {}}},
                      recovery::Instruction{recovery::InstructionKind::kDrain,
                                            NodeId(2), 18},
                      4},
      recovery::Instruct{{recovery::InstructionKind::kElect, NodeId(3), 19}},
      recovery::Prepare{kPromise, 7},
      recovery::Release{Epoch(8)},
      ChangeAsked(),
      recovery::ChangeState{},
      ChangeSaid(),
      recovery::Claim{kPromise, {}, ChangeSaid()},
      recovery::Mark{Epoch(9)},
      recovery::Remove{},
      recovery::AskDeletion{},
      recovery::DeletionState{Deletion::kDecided, TwoMembers()}};
}

// Returns the first of AllMessages of its kind.
template <class Kind>
Message Sample() {
  for (const Message& message : AllMessages()) {
    if (std::holds_alternative<Kind>(message)) return message;
  }
  ADD_FAILURE() << "AllMessages has none of this kind";
  return Kind{};
}

bool Decodes(std::span<const std::byte> bytes) {
  return DecodeMessage(kLog, bytes).ok();
}

// Magic and kind.
constexpr size_t kBody = 8;

TEST(MessagesTest, ComeBackAsTheyWere) {
  for (const Message& message : AllMessages()) {
    const auto bytes = EncodeMessage(kLog, message);
    const auto again = DecodeMessage(kLog, bytes);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, message) << message.index();
  }
}

TEST(MessagesTest, ShorterOrLongerOnesAreNone) {
  for (const Message& message : AllMessages()) {
    auto bytes = EncodeMessage(kLog, message);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(Decodes(std::span(bytes).first(size)))
          << message.index() << ", " << size;
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(Decodes(bytes)) << message.index();
  }
}

// MSG1. If any bit of a message is turned, nothing of it is decoded, and the
// error says that it may be tried again.
TEST(MessagesTest, EveryTurnedBitIsSeenAsChangedOnItsWay) {
  for (const Message& message : AllMessages()) {
    const auto bytes = EncodeMessage(kLog, message);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      auto changed = bytes;
      changed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      const absl::Status status = DecodeMessage(kLog, changed).status();
      ASSERT_TRUE(absl::IsUnavailable(status))
          << message.index() << ", " << bit;
      ASSERT_THAT(status.message(), HasSubstr("was damaged on the way"));
      ASSERT_THAT(status.message(), HasSubstr("Try again"));
    }
  }
}

// MSG1: the sum is of the log, and of what the bytes are.
TEST(MessagesTest, SumOfAnotherLogOrKindDoesNotPass) {
  const auto bytes = EncodeMessage(kLog, recovery::View{});
  EXPECT_TRUE(absl::IsUnavailable(DecodeMessage({7, 9}, bytes).status()));
  EXPECT_TRUE(absl::IsUnavailable(DecodeMessage({8, 8}, bytes).status()));
  const std::string hello = EncodeHello({{1, 2}, kLog, kPrimary});
  EXPECT_TRUE(Decodes(Resummed(bytes, bytes, kLog)));
  EXPECT_FALSE(Decodes(Resummed(bytes, AsBytes(hello), kLog)));
  // The body of one under the name of another.
  auto other = bytes;
  other[4] = std::byte{14};
  EXPECT_FALSE(Decodes(other));
  EXPECT_TRUE(Decodes(Resummed(other, bytes, kLog)));
}

TEST(MessagesTest, OtherKindsAndOtherBytesAreNone) {
  const auto bytes = EncodeMessage(kLog, recovery::Formatted{});
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, 0, 0)));
  const auto behind = static_cast<uint32_t>(std::variant_size_v<Message> + 1);
  for (const uint32_t kind : {0u, behind, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, 4, kind))) << kind;
  }
}

TEST(MessagesTest, FullTableFits) {
  recovery::Install install;
  install.installation = {
      Epoch(kEpochTableCapacity), TableOf(kEpochTableCapacity), {}, {}, {}};
  install.installation.configuration.replica_count = kMembersMax;
  install.installation.configuration.members.resize(kMembersMax);
  install.credits = 1;
  const auto bytes = EncodeMessage(kLog, install);
  EXPECT_LE(bytes.size(), recovery::kMessageBytesMax);
  const auto again = DecodeMessage(kLog, bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Message(install));
  // A buffer that is longer than any message is none, whatever it holds.
  EXPECT_FALSE(Decodes(std::vector<std::byte>(recovery::kMessageBytesMax + 1)));
}

TEST(MessagesTest, TableIsOfTheLogThatIsSpokenOf) {
  constexpr Uuid kOther{1, 1};
  const auto bytes = EncodeMessage(kLog, Sample<recovery::Install>());
  const auto other = DecodeMessage(kOther, Resummed(bytes, bytes, kOther));
  ASSERT_TRUE(other.ok());
  EXPECT_NE(*other, Sample<recovery::Install>());
}

// Format: region bytes at 0, configuration id 8, N 16, W 20, members 24, what
// it was made from 56, incarnation 120, what it replaces 128, length of the
// name 136.
TEST(MessagesTest, FormatThatCannotBeIsNone) {
  const auto bytes = EncodeMessage(kLog, Sample<recovery::Format>());
  for (const uint32_t n : {0u, 1u, 3u, 17u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 16, n))) << "N " << n;
  }
  for (const uint32_t w : {0u, 3u}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 20, w))) << "W " << w;
  }
  for (const uint32_t length : {0u, 11u, 65u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 136, length))) << length;
  }
  for (const char c : {'/', '\0', ' ', '\\', '\x80'}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 140 + 2, c))) << c;
  }
  EXPECT_FALSE(Decodes(With(bytes, kBody + 140, '.')));
}

TEST(MessagesTest, PromiseOfNobodyIsNone) {
  for (const Message& message : {Message(recovery::Prepare{kPromise}),
                                 Message(recovery::Refused{kPromise})}) {
    const auto bytes = EncodeMessage(kLog, message);
    EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody, 0)));
    EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 16, 0)));
  }
}

TEST(MessagesTest, ConfigurationThatIsNoneIsNone) {
  const auto bytes = EncodeMessage(kLog, recovery::Prepare{kPromise, 1});
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 24, 0)));
}

// Prepare: 1 if it is set at 32, the epoch 36; Release: at 0 and 4.
TEST(MessagesTest, LatestKnownPromiseThatCannotBeIsNone) {
  const auto prepare = EncodeMessage(kLog, recovery::Prepare{kPromise, 1});
  const auto release = EncodeMessage(kLog, recovery::Release{Epoch(0)});
  EXPECT_TRUE(Decodes(prepare));
  EXPECT_TRUE(Decodes(release));
  EXPECT_FALSE(Decodes(With<uint32_t>(prepare, kBody + 32, 2)));
  EXPECT_FALSE(Decodes(With<uint64_t>(prepare, kBody + 36, 1)));
  EXPECT_FALSE(Decodes(With<uint32_t>(release, kBody, 2)));
  EXPECT_TRUE(Decodes(With<uint32_t>(release, kBody, 0)));
}

TEST(MessagesTest, DigestOfCandidatesIsOfAllThatIsSaidOfThem) {
  using recovery::CandidateState;
  using recovery::Standing;
  const CandidateState one{kPrimary, Standing::kReady, 1, Epoch(2)};
  const CandidateState two{{NodeId(3), 5}, Standing::kDrained, 0, Epoch(0)};
  const auto digest = [](std::vector<CandidateState> states) {
    return recovery::DigestOf(states);
  };
  EXPECT_EQ(digest({}), 0u);
  EXPECT_EQ(digest({one, two}), digest({two, one}));
  std::set<uint64_t> digests = {digest({one}), digest({two}),
                                digest({one, two}), digest({one, one})};
  CandidateState other = one;
  other.candidate.node = NodeId(4);
  digests.insert(digest({other}));
  other = one;
  other.candidate.incarnation += 1;
  digests.insert(digest({other}));
  other = one;
  other.standing = Standing::kDrained;
  digests.insert(digest({other}));
  other = one;
  other.priority = 2;
  digests.insert(digest({other}));
  other = one;
  other.holds = Epoch(3);
  digests.insert(digest({other}));
  EXPECT_EQ(digests.size(), 9u);
}

TEST(MessagesTest, NonceThatWasNotDrawnIsNone) {
  for (const Message& message :
       {Message(recovery::Challenge{{0, 1}}),
        Message(recovery::Challenged{{0, 1}, DigestOf(2)})}) {
    const auto bytes = EncodeMessage(kLog, message);
    EXPECT_TRUE(Decodes(bytes));
    EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 8, 0)));
  }
}

TEST(MessagesTest, KeysThatAreNeverIssuedAreNone) {
  const auto promised =
      EncodeMessage(kLog, recovery::Promised{RegionKey(3), 4096, RegionKey(4)});
  for (const size_t at : {0, 8, 16}) {
    EXPECT_FALSE(Decodes(With<uint64_t>(promised, kBody + at, 0))) << at;
  }
  const auto opened = EncodeMessage(kLog, recovery::RepairOpened{RegionKey(5)});
  EXPECT_FALSE(Decodes(With<uint64_t>(opened, kBody, 0)));
}

TEST(MessagesTest, OpenForRepairThatCannotBeIsNone) {
  const auto bytes =
      EncodeMessage(kLog, recovery::OpenForRepair{Epoch(9), true});
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody, 0)));
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 8, 2)));
  EXPECT_TRUE(Decodes(With<uint64_t>(bytes, kBody + 12, 640)));
  for (const uint64_t ceiling : {uint64_t{63}, uint64_t{1} << 62, kHuge}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 12, ceiling))) << ceiling;
  }
}

// Prepare: 1 at 44 if the report shall begin at the head.
TEST(MessagesTest, PrepareWithAnotherFlagIsNone) {
  const auto bytes = EncodeMessage(kLog, recovery::Prepare{kPromise, 1});
  EXPECT_TRUE(Decodes(With<uint32_t>(bytes, kBody + 44, 1)));
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 44, 2)));
}

// Followed: flags at 8, N 12, W 16, configuration 20, head 52, persisted 76,
// durable 84, end 92, end of the certificate 100.
TEST(MessagesTest, FollowedThatCannotBeIsNone) {
  const std::vector<Message> all = AllMessages();
  const auto followed = std::ranges::find_if(all, [](const Message& message) {
    return std::holds_alternative<recovery::Followed>(message);
  });
  const auto bytes = EncodeMessage(kLog, *followed);
  ASSERT_TRUE(Decodes(bytes));
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 8, 16)));
  // An end that is said to be none.
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 8, 1)));
  for (const uint32_t n : {1u, 17u}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 12, n))) << "N " << n;
  }
  for (const uint32_t w : {0u, 4u}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 16, w))) << "W " << w;
  }
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 20, 0)));
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 52, 0)));
  for (const size_t at : {76, 84, 92, 100}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + at, kHuge))) << at;
  }
  for (const uint64_t end : {0, 129}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 92, end))) << "end " << end;
  }
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(MessagesTest, FollowedHasTheBytesOfTheDocument) {
  recovery::Followed followed;
  followed.log_epoch = Epoch(9);
  followed.in_session = true;
  followed.replica_count = 3;
  followed.write_quorum = 2;
  followed.configuration_id = 4;
  followed.promised = {Epoch(9), {NodeId(2), 0x21}};
  followed.head = {Lsn(2), RingOffset(64), 7};
  followed.persisted_lsn = Lsn(8);
  followed.durable_lsn = Lsn(7);
  followed.end = RingOffset(128);
  followed.certificate_end_s = 0x6b49d200;
  const std::string expected(
      "APMS\x14\0\0\0"
      "\11\0\0\0\0\0\0\0\12\0\0\0\3\0\0\0\2\0\0\0"
      "\4\0\0\0\0\0\0\0"
      "\11\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
      "\10\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
      "\200\0\0\0\0\0\0\0"
      "\0\322\111\153\0\0\0\0"
      "\0\0\0\0"
      "\51\324\167\272",
      124);
  EXPECT_EQ(AsText(EncodeMessage(kLog, followed)), expected);
}

// AskChange: id at 0; sizes at 16, 12 bytes; number of nodes at 28, three of
// them; the list after at 56, with sizes at 64 and nodes at 76; number of
// replaced ones at 104, one; number of peers at 116; the first one's address at
// 128.
TEST(MessagesTest, AskedChangeThatCannotBeIsNone) {
  const auto bytes = EncodeMessage(kLog, ChangeAsked());
  ASSERT_TRUE(Decodes(bytes));
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody, 0))) << "no id";
  for (const size_t sizes : {16u, 64u}) {
    for (const uint32_t n : {0u, 17u, 0xffffffffu}) {
      EXPECT_FALSE(Decodes(With(bytes, kBody + sizes, n))) << "N " << n;
    }
    for (const uint32_t quorum : {0u, 4u, 0xffffffffu}) {
      EXPECT_FALSE(Decodes(With(bytes, kBody + sizes + 4, quorum)));
      EXPECT_FALSE(Decodes(With(bytes, kBody + sizes + 8, quorum)));
    }
  }
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 24, 1))) << "W + R = N";
  for (const size_t count : {28u, 76u, 104u, 116u}) {
    for (const uint32_t other : {0u, 2u, 17u, 33u, 0xffffffffu}) {
      if (count == 116 && other == 2) continue;
      EXPECT_FALSE(Decodes(With(bytes, kBody + count, other)))
          << other << " at " << count;
    }
  }
  for (const uint32_t length : {0u, 15u, 257u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 128, length))) << length;
  }
}

// As many as there may be, each with the longest address.
TEST(MessagesTest, LargestAskedChangeFits) {
  recovery::AskChange asked = ChangeAsked();
  asked.change.from_nodes.assign(kMembersMax, NodeId(1));
  asked.change.to_nodes = asked.change.from_nodes;
  asked.change.replaced = asked.change.from_nodes;
  asked.peers.assign(2 * kMembersMax,
                     {NodeId(1), std::string(recovery::kAddressBytesMax, 'a')});
  const auto again = DecodeMessage(kLog, EncodeMessage(kLog, asked));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Message(asked));
  asked.peers.push_back(asked.peers.front());
  EXPECT_FALSE(Decodes(EncodeMessage(kLog, asked)));
}

// ChangeState: word at 8, epoch 12, LSNs 20 and 28, number of nodes 36, two of
// them; code at 56, then the text.
TEST(MessagesTest, ChangeStateThatCannotBeIsNone) {
  const auto bytes = EncodeMessage(kLog, ChangeSaid());
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 8, 6)));
  for (const size_t lsn : {20u, 28u}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + lsn, kLsnMax + 1)));
  }
  for (const uint32_t count : {0u, 1u, 3u, 17u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 36, count))) << count;
  }
  for (const uint32_t code : {0u, 17u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 56, code))) << code;
  }
  for (const uint32_t length : {0u, 13u, 4097u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 60, length))) << length;
  }
}

// Scrubbed: running at 8, empty 12, count of the runs 96, runs from 104 on.
TEST(MessagesTest, ImpossibleScrubsAreNone) {
  const auto scrub = EncodeMessage(kLog, recovery::Scrub{true});
  EXPECT_FALSE(Decodes(With<uint32_t>(scrub, kBody, 2)));
  recovery::Scrubbed scrubbed;
  scrubbed.unrepairable = {{Lsn(4), Lsn(6)}};
  const auto bytes = EncodeMessage(kLog, scrubbed);
  ASSERT_TRUE(Decodes(bytes));
  for (const size_t flag : {8, 12}) {
    EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + flag, 2))) << flag;
  }
  for (const uint64_t count : {uint64_t{0}, uint64_t{2}, kHuge}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 96, count))) << count;
  }
  for (const uint64_t end : {uint64_t{4}, kHuge}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 112, end))) << end;
  }
}

// Hear: standing at 0, silence 24, wait 32, word 40. Heard: word at 0,
// persisted 44, count 52, candidates of 32 from 56 on, each with its
// incarnation at 8 and its standing at 16; then the instruction: 1, kind, node,
// id.
TEST(MessagesTest, ImpossibleWordsOfAnElectionAreNone) {
  const auto hear = EncodeMessage(kLog, recovery::Hear{});
  EXPECT_TRUE(Decodes(With<uint32_t>(hear, kBody, 2)));
  EXPECT_FALSE(Decodes(With<uint32_t>(hear, kBody, 3)));
  for (const size_t at : {24, 32}) {
    EXPECT_TRUE(
        Decodes(With<uint64_t>(hear, kBody + at, recovery::kHearNanosMax)));
    EXPECT_FALSE(
        Decodes(With<uint64_t>(hear, kBody + at, recovery::kHearNanosMax + 1)));
  }
  EXPECT_TRUE(Decodes(With<uint32_t>(hear, kBody + 40, 3)));
  EXPECT_FALSE(Decodes(With<uint32_t>(hear, kBody + 40, 4)));
  recovery::Heard said;
  said.candidates = {{kPrimary, recovery::Standing::kReady, 1, Epoch(2)}};
  said.instruction =
      recovery::Instruction{recovery::InstructionKind::kElect, NodeId(1), 5};
  const auto heard = EncodeMessage(kLog, said);
  ASSERT_TRUE(Decodes(heard));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody, 4)));
  EXPECT_FALSE(Decodes(With<uint64_t>(heard, kBody + 44, kLsnMax + 1)));
  for (const uint32_t count : {0u, 2u, 65u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 52, count))) << count;
  }
  EXPECT_FALSE(Decodes(With<uint64_t>(heard, kBody + 64, 0)));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 72, 0)));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 72, 3)));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 88, 2)));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 92, 0)));
  EXPECT_FALSE(Decodes(With<uint32_t>(heard, kBody + 92, 3)));
  EXPECT_FALSE(Decodes(With<uint64_t>(heard, kBody + 104, 0)));
}

// Offset at 0, number of bytes 8, in Fetched the bytes from 12 on.
TEST(MessagesTest, ImpossibleFetchesAreNone) {
  const auto fetch = EncodeMessage(kLog, recovery::Fetch{RingOffset(640), 100});
  const auto fetched = EncodeMessage(
      kLog, Fetched{RingOffset(640), std::vector<std::byte>(100)});
  ASSERT_TRUE(Decodes(fetch));
  ASSERT_TRUE(Decodes(fetched));
  for (const uint64_t offset :
       {uint64_t{1}, uint64_t{639}, uint64_t{1} << 62, kHuge - 63}) {
    EXPECT_FALSE(Decodes(With(fetch, kBody, offset))) << offset;
    EXPECT_FALSE(Decodes(With(fetched, kBody, offset))) << offset;
  }
  for (const uint32_t bytes : {0u, recovery::kFetchBytesMax + 1, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(fetch, kBody + 8, bytes))) << bytes;
  }
  for (const uint32_t bytes : {0u, 99u, 101u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(fetched, kBody + 8, bytes))) << bytes;
  }
  // The message has as many bytes as it says, and these are too many.
  Fetched longest{RingOffset(0),
                  std::vector<std::byte>(recovery::kFetchBytesMax)};
  EXPECT_TRUE(Decodes(EncodeMessage(kLog, longest)));
  longest.bytes.push_back(std::byte{0});
  EXPECT_FALSE(Decodes(EncodeMessage(kLog, longest)));
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(MessagesTest, FetchHasTheBytesOfTheDocument) {
  const std::string fetch(
      "APMS\x19\0\0\0"
      "\x80\2\0\0\0\0\0\0\0\x10\0\0"
      "\332\101\176\353",
      24);
  EXPECT_EQ(AsText(EncodeMessage(kLog, recovery::Fetch{RingOffset(640), 4096})),
            fetch);
  const std::string fetched(
      "APMS\x1a\0\0\0"
      "\x80\2\0\0\0\0\0\0\2\0\0\0\5\6"
      "\305\222\314\014",
      26);
  EXPECT_EQ(AsText(EncodeMessage(
                kLog, Fetched{RingOffset(640), {std::byte{5}, std::byte{6}}})),
            fetched);
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(MessagesTest, ChangeOfTheMembersHasTheBytesOfTheDocument) {
  const std::string asked(
      "APMS\x21\0\0\0"
      "\7\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0\3\0\0\0\2\0\0\0\2\0\0\0"
      "\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\3\0\0\0\3\0\0\0\1\0\0\0"
      "\3\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"
      "\1\0\0\0\2\0\0\0\0\0\0\0"
      "\2\0\0\0"
      "\1\0\0\0\0\0\0\0\16\0\0\0"
      "127.0.0.1:7401"
      "\4\0\0\0\0\0\0\0\0\0\0\0"
      "\030\152\147\237",
      170);
  EXPECT_EQ(AsText(EncodeMessage(kLog, ChangeAsked())), asked);
  const std::string said(
      "APMS\x22\0\0\0"
      "\7\0\0\0\0\0\0\0\5\0\0\0\11\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0"
      "\2\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
      "\16\0\0\0\16\0\0\0"
      "node 4 is away"
      "\041\250\330\102",
      90);
  EXPECT_EQ(AsText(EncodeMessage(kLog, ChangeSaid())), said);
}

// Install: epoch at 0, session 8, credits 16, head 20, end 44, ceiling 68,
// configuration of two members 76, made from one of three at 124, count of the
// table's entries 188, entries of 40 bytes from 192 on.
TEST(MessagesTest, InstallThatCannotBeIsNone) {
  const auto bytes = EncodeMessage(kLog, Sample<recovery::Install>());
  ASSERT_TRUE(Decodes(bytes));
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody, 0)));
  EXPECT_FALSE(Decodes(With<uint32_t>(bytes, kBody + 16, 0)));
  for (const size_t position : {20, 44}) {
    EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + position, 0)));
    for (const uint64_t offset : {uint64_t{63}, uint64_t{1} << 62, kHuge}) {
      EXPECT_FALSE(Decodes(With(bytes, kBody + position + 8, offset)));
    }
  }
  for (const uint64_t ceiling : {uint64_t{63}, uint64_t{1} << 62, kHuge}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 68, ceiling))) << ceiling;
  }
  for (const uint32_t members : {0u, 1u, 3u, 17u}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 84, members))) << members;
  }
  for (const uint32_t count : {0u, 2u, 4u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody + 188, count))) << count;
  }
  // ET1: epochs increase, start LSNs never decrease.
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 192 + 40, 1)));
  EXPECT_FALSE(Decodes(With<uint64_t>(bytes, kBody + 192 + 40 + 16, 0)));
}

TEST(MessagesTest, FailureThatIsNoneIsNone) {
  const auto bytes =
      EncodeMessage(kLog, recovery::Failed{absl::InternalError("x")});
  for (const uint32_t code : {0u, 17u, 0xffffffffu}) {
    EXPECT_FALSE(Decodes(With(bytes, kBody, code))) << code;
  }
  EXPECT_FALSE(Decodes(With(bytes, kBody + 4, 0xffffffffu)));
}

TEST(MessagesTest, VeryLongFailureIsCut) {
  const recovery::Failed failed{absl::InternalError(std::string(100'000, 'x'))};
  const auto message = DecodeMessage(kLog, EncodeMessage(kLog, failed));
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::get<recovery::Failed>(*message).status,
            absl::InternalError(std::string(4096, 'x')));
}

// --- Private data ------------------------------------------------------------

constexpr recovery::Hello kHello{{1, 2}, kLog, kPrimary};
constexpr ServerHello kServerHello{NodeId(3), 33, 1 << 20, Epoch(4), 5};

TEST(HandshakeTest, ComesBackAsItWasWithinItsBytes) {
  const std::string hello = EncodeHello(kHello);
  EXPECT_EQ(hello.size(), kHelloBytes);
  EXPECT_EQ(*DecodeHello(hello), kHello);
  const std::string server_hello = EncodeServerHello(kServerHello);
  EXPECT_LE(server_hello.size(), kHelloBytes);
  EXPECT_EQ(*DecodeServerHello(server_hello), kServerHello);
  const ServerHello none{NodeId(3), 0, 0, Epoch(0), 0};
  EXPECT_EQ(*DecodeServerHello(EncodeServerHello(none)), none);
}

TEST(HandshakeTest, ShorterOrLongerOnesAreNone) {
  const std::string hello = EncodeHello(kHello) + "x";
  const std::string server_hello = EncodeServerHello(kServerHello) + "x";
  for (size_t size = 0; size <= hello.size(); ++size) {
    if (size == hello.size() - 1) continue;
    EXPECT_FALSE(DecodeHello(hello.substr(0, size)).ok()) << size;
  }
  for (size_t size = 0; size <= server_hello.size(); ++size) {
    if (size == server_hello.size() - 1) continue;
    EXPECT_FALSE(DecodeServerHello(server_hello.substr(0, size)).ok()) << size;
  }
  EXPECT_TRUE(absl::IsUnavailable(DecodeHello(server_hello).status()));
  EXPECT_TRUE(absl::IsUnavailable(DecodeServerHello(hello).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeHello("hello").status()));
}

TEST(HandshakeTest, OtherVersionsAreNamed) {
  for (const absl::Status& status :
       {DecodeHello(With<uint32_t>(EncodeHello(kHello), 4, 27)).status(),
        DecodeHello(With<uint32_t>(EncodeHello(kHello) + "new", 4, 27))
            .status(),
        DecodeServerHello(
            With<uint32_t>(EncodeServerHello(kServerHello), 4, 27))
            .status()}) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("version 27"));
    EXPECT_THAT(status.message(), HasSubstr("version 26"));
  }
}

// A program that knew no sums is told by its version.
TEST(HandshakeTest, VersionsWithoutSumsAreNamed) {
  for (uint32_t version = 1; version < 8; ++version) {
    std::string hello = EncodeHello(kHello);
    std::memcpy(hello.data() + 4, &version, sizeof(version));
    hello.back() = 'x';
    const absl::Status status = DecodeHello(hello).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("version ", version)));
  }
}

// MSG1, of what is said before there is a connection.
TEST(HandshakeTest, EveryTurnedBitIsSeenAsChangedOnItsWay) {
  const std::string hello = EncodeHello(kHello);
  const std::string server_hello = EncodeServerHello(kServerHello);
  const auto turned = [](std::string bytes, size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    return bytes;
  };
  for (size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    for (const absl::Status& status :
         {DecodeHello(turned(hello, bit)).status(),
          DecodeServerHello(turned(server_hello, bit)).status()}) {
      EXPECT_TRUE(absl::IsUnavailable(status)) << bit << ": " << status;
      EXPECT_THAT(status.message(), HasSubstr("was damaged on the way"));
    }
  }
  // A rejection tells it.
  const absl::Status why = DecodeHello(turned(hello, 0)).status();
  EXPECT_THAT(DecodeRejection(EncodeRejection(why)).message(),
              HasSubstr("a hello was damaged on the way"));
}

// A turned bit makes no other reason of it, whatever its length.
TEST(HandshakeTest, EveryTurnedBitOfARejectionIsSeen) {
  for (size_t length = 0; length <= 44; ++length) {
    const std::string bytes =
        EncodeRejection(absl::NotFoundError(std::string(length, 'x')));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string turned = bytes;
      turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ 1 << bit % 8);
      const absl::Status status = DecodeRejection(turned);
      EXPECT_TRUE(absl::IsUnavailable(status)) << bit << ": " << status;
    }
  }
}

// Hello: log id at 24 and 32, incarnation at 40. ServerHello: incarnation at
// 16, capacity at 24.
TEST(HandshakeTest, ValuesThatCannotBeAreRefused) {
  recovery::Hello hello = kHello;
  hello.log_id = {};
  EXPECT_FALSE(DecodeHello(EncodeHello(hello)).ok());
  hello = kHello;
  hello.primary.incarnation = 0;
  EXPECT_FALSE(DecodeHello(EncodeHello(hello)).ok());
  const std::string server_hello = EncodeServerHello(kServerHello);
  EXPECT_FALSE(DecodeServerHello(With<uint64_t>(server_hello, 16, 0)).ok());
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{65}, kHuge - 63}) {
    EXPECT_FALSE(DecodeServerHello(With(server_hello, 24, capacity)).ok())
        << capacity;
  }
}

TEST(HandshakeTest, RejectionSaysWhyWithinItsBytes) {
  const absl::Status why = absl::NotFoundError("log 7 is not kept here");
  EXPECT_EQ(DecodeRejection(EncodeRejection(why)), why);
  const std::string cut =
      EncodeRejection(absl::NotFoundError(std::string(200, 'x')));
  EXPECT_EQ(cut.size(), kHelloBytes);
  EXPECT_EQ(DecodeRejection(cut), absl::NotFoundError(std::string(44, 'x')));
  // One of another version can be read too, and by another version.
  const std::string plain = EncodeRejection(why, recovery::RejectionSum::kNone);
  EXPECT_EQ(plain.substr(8, 4), std::string("\5\0\0\0", 4));
  EXPECT_TRUE(absl::IsUnavailable(DecodeRejection(plain)));
  std::string older = plain;
  older[4] = 7;
  EXPECT_EQ(DecodeRejection(older), why);
}

TEST(HandshakeTest, RejectionThatSaysNothingIsUnavailable) {
  const std::string bytes = EncodeRejection(absl::NotFoundError(""));
  EXPECT_EQ(DecodeRejection(bytes), absl::NotFoundError(""));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsUnavailable(DecodeRejection(bytes.substr(0, size))));
  }
  for (const char code : {0, 17}) {
    std::string other =
        EncodeRejection(absl::NotFoundError(""), recovery::RejectionSum::kNone);
    other[4] = 7;
    other[8] = code;
    EXPECT_TRUE(absl::IsUnavailable(DecodeRejection(other)));
  }
  EXPECT_TRUE(absl::IsUnavailable(
      DecodeRejection(bytes + std::string(kHelloBytes, 'x'))));
}

// Byte 48 to 51: an axis each; that of DDIO with what the adapter can do.
TEST(HandshakeTest, ServerHelloTellsThePlatform) {
  for (const replication::Platform& platform : AllPlatforms()) {
    ServerHello server_hello = kServerHello;
    server_hello.platform = platform;
    const auto decoded = DecodeServerHello(EncodeServerHello(server_hello));
    ASSERT_TRUE(decoded.ok()) << replication::PlatformToString(platform);
    EXPECT_EQ(*decoded, server_hello)
        << replication::PlatformToString(platform);
  }
  // Undeclared is zeros; each axis has its own byte.
  const std::string undeclared = EncodeServerHello(kServerHello);
  EXPECT_EQ(undeclared.substr(48, 4), std::string(4, '\0'));
  ServerHello strong = kServerHello;
  strong.platform = *replication::ParsePlatform(
      "wsp,no-ddio,pm,infiniband,native-flush,atomic-write");
  EXPECT_EQ(EncodeServerHello(strong).substr(48, 4), std::string("\2\7\1\2"));
}

TEST(HandshakeTest, PlatformThatCannotBeIsRefused) {
  const std::string server_hello = EncodeServerHello(kServerHello);
  const uint8_t largest[] = {2, 7, 1, 2};
  for (size_t i = 0; i < std::size(largest); ++i) {
    EXPECT_TRUE(DecodeServerHello(With(server_hello, 48 + i, largest[i])).ok())
        << i;
    const auto more = static_cast<uint8_t>(largest[i] + 1);
    EXPECT_FALSE(DecodeServerHello(With(server_hello, 48 + i, more)).ok()) << i;
  }
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(HandshakeTest, HelloHasTheBytesOfTheDocument) {
  const std::string expected(
      "APHE\32\0\0\0"
      "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
      "\7\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0"
      "\x34\x12\0\0\0\0\0\0\2\0\0\0"
      "\160\202\040\336",
      56);
  EXPECT_EQ(EncodeHello(kHello), expected);
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(HandshakeTest, RejectionHasTheBytesOfTheDocument) {
  const std::string expected(
      "APRE\32\0\0\0"
      "\5\333\155\231"
      "no",
      14);
  EXPECT_EQ(EncodeRejection(absl::NotFoundError("no")), expected);
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(HandshakeTest, ServerHelloHasTheBytesOfTheDocument) {
  ServerHello server_hello{NodeId(3), 0x21, 1 << 20, Epoch(4), 5};
  server_hello.platform.domain = replication::PersistenceDomain::kHierarchy;
  const std::string expected(
      "APWE\32\0\0\0"
      "\3\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0"
      "\0\0\x10\0\0\0\0\0\4\0\0\0\0\0\0\0"
      "\5\0\0\0\0\0\0\0\1\0\0\0"
      "\307\354\032\311",
      56);
  EXPECT_EQ(EncodeServerHello(server_hello), expected);
}

}  // namespace
}  // namespace alpheus::testing
