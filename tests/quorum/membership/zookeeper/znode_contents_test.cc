// SPDX-License-Identifier: Apache-2.0
// Is what a znode says read back as it was written, and nothing else taken?
#include "quorum/membership/zookeeper/znode_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace alpheus::quorum {
namespace {

constexpr PrimaryId kProcess{NodeId(2), 0x4f3a000000000001};
const Epoch kBallot = PackBallot({17, kProcess});

// The bytes, as docs/design/zookeeper.md shows them: other versions read them.
TEST(ZnodeContentsTest, EachSaysWhatOperatorsAreTold) {
  EXPECT_EQ(EncodeFormat(), "alpheus format 1\n");
  EXPECT_EQ(EncodeBallot(kBallot),
            "alpheus ballot 1\nepoch 0000001100024f3a\ncounter 17\nnode 2\n");
  EXPECT_EQ(EncodeNode({"orders", {NodeId(2), 9, "10.0.0.2:7400", kBallot}}),
            "alpheus node 1\nnode 2\nincarnation 0000000000000009\n"
            "log orders\naddress 10.0.0.2:7400\n"
            "log_epoch 0000001100024f3a\n");
  EXPECT_EQ(NodeName({NodeId(2), 9, "", Epoch(0)}), "2-0000000000000009");
  EXPECT_EQ(EncodeMerits({Lsn(80), 3, kBallot}),
            "alpheus candidate 1\nlog_epoch 0000001100024f3a\n"
            "persisted_lsn 80\npriority 3\n");
  EXPECT_EQ(CandidatePrefix(kProcess, 5),
            "2-4f3a000000000001-0000000000000005-");
  EXPECT_EQ(EncodePrimary({kBallot, kProcess, "10.0.0.2:7400"}),
            "alpheus primary 1\nepoch 0000001100024f3a\nnode 2\n"
            "incarnation 4f3a000000000001\naddress 10.0.0.2:7400\n");
  EXPECT_EQ(PrimaryName(kBallot), "primary-0000001100024f3a");
  EXPECT_EQ(EncodeMembers({4, 2, 2, {{NodeId(1), "a:1"}, {NodeId(2), "b:2"}}}),
            "alpheus members 1\nconfiguration 4\nwrite_quorum 2\n"
            "read_quorum 2\nmember 1 a:1\nmember 2 b:2\n");
}

// ZC1.
TEST(ZnodeContentsTest, WhatWasWrittenIsReadBack) {
  EXPECT_TRUE(CheckFormat(EncodeFormat()).ok());
  EXPECT_EQ(*DecodeBallot(EncodeBallot(kBallot)), kBallot);
  const RegisteredNode node{"orders", {NodeId(2), 9, "a:1", kBallot}};
  EXPECT_EQ(*DecodeNode(EncodeNode(node)), node);
  const Merits merits{Lsn(80), 3, kBallot};
  EXPECT_EQ(*DecodeMerits(EncodeMerits(merits)), merits);
  const LivePrimary primary{kBallot, kProcess, ""};
  EXPECT_EQ(*DecodePrimary(EncodePrimary(primary)), primary);
  const MembersCopy members{4, 2, 1, {{NodeId(1), "a:1"}}};
  EXPECT_EQ(*DecodeMembers(EncodeMembers(members)), members);
  EXPECT_EQ(ParseCandidateName(CandidatePrefix(kProcess, 5) + "0000000042"),
            (CandidateName{kProcess, 5, 42}));
  EXPECT_EQ(ParsePrimaryName(PrimaryName(kBallot)), kBallot);
}

TEST(ZnodeContentsTest, KeysOfALaterProgramAreSkipped) {
  EXPECT_EQ(*DecodeBallot(EncodeBallot(kBallot) + "colour blue\n\nodd"),
            kBallot);
}

TEST(ZnodeContentsTest, AnAddressWithALineInItStaysALine) {
  const LivePrimary primary{kBallot, kProcess, "a\nepoch 0"};
  EXPECT_EQ(DecodePrimary(EncodePrimary(primary))->address, "a epoch 0");
}

TEST(ZnodeContentsTest, AnotherVersionIsUnimplemented) {
  EXPECT_TRUE(absl::IsUnimplemented(CheckFormat("alpheus format 2\n")));
  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeBallot("alpheus ballot 2\nepoch 0000001100024f3a\n").status()));
}

// ZC2, and all that is no ballot at all.
TEST(ZnodeContentsTest, WhatIsNoBallotIsRefused) {
  const std::string first = "alpheus ballot 1\n";
  const std::string bad[] = {
      "",
      "17",
      "alpheus ballot",
      "alpheus ballot x\n",
      "alpheus primary 1\nepoch 0000001100024f3a\ncounter 17\nnode 2\n",
      "Alpheus ballot 1\nepoch 0000001100024f3a\ncounter 17\nnode 2\n",
      first + "epoch 0000001100024f3a\ncounter 17\n",
      first + "epoch 0000001100024f3a\ncounter 18\nnode 2\n",
      first + "epoch 0000001100024f3a\ncounter 17\nnode 3\n",
      first + "epoch 0000001100024f3a\ncounter 017\nnode 2\n",
      first + "epoch 0000001100024f3a\ncounter -17\nnode 2\n",
      first + "epoch 1100024f3a\ncounter 17\nnode 2\n",
      first + "epoch 0000001100024F3A\ncounter 17\nnode 2\n",
      first + "epoch 0000001100024f3a\ncounter 17\ncounter 17\nnode 2\n",
      first + "epoch 0000000000024f3a\ncounter 0\nnode 2\n",
      first + "epoch 0000001100004f3a\ncounter 17\nnode 0\n",
      first + "epoch ffffffff00024f3a\ncounter 4294967295\nnode 2\n",
      first + "counter 99999999999999999999999\n",
      std::string(kZnodeBytesMax + 1, ' '),
  };
  for (const std::string& text : bad) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeBallot(text).status()))
        << text.substr(0, 80);
  }
}

TEST(ZnodeContentsTest, MembersBeyondWhatALogHasAreRefused) {
  const std::string first =
      "alpheus members 1\nconfiguration 1\nwrite_quorum 1\nread_quorum 1\n";
  EXPECT_TRUE(DecodeMembers(first).ok());
  for (const char* bad : {"member\n", "member 1\n", "member 0 a:1\n",
                          "member 65536 a:1\n", "member x a:1\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeMembers(first + bad).status()))
        << bad;
  }
  std::string many = first;
  for (int i = 0; i < 17; ++i) many += "member 1 a:1\n";
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeMembers(many).status()));
}

TEST(ZnodeContentsTest, NamesThatNoCandidateHasAreNone) {
  for (const char* name : {"", "-", "2", "2-4f3a000000000001-0000000000000005",
                           "2-4f3a000000000001-0000000000000005-",
                           "2-4f3a000000000001-0000000000000005-42",
                           "2-4f3a000000000001-0000000000000005-00000000042",
                           "2-4f3a000000000001-0000000000000005-000000000x",
                           "2-4f3a000000000001-0000000000000005--000000042",
                           "2-4f3a00000000001-0000000000000005-0000000042",
                           "0-4f3a000000000001-0000000000000005-0000000042",
                           "65536-4f3a000000000001-0000000000000005-0000000042",
                           "02-4f3a000000000001-0000000000000005-0000000042"}) {
    EXPECT_EQ(ParseCandidateName(name), std::nullopt) << name;
  }
}

TEST(ZnodeContentsTest, NamesThatNoPrimaryHasAreNone) {
  for (const char* name :
       {"", "primary", "primary-", "primary-11", "0000001100024f3a",
        "primary-0000001100024F3A", "primary-0000001100024f3a0",
        "Primary-0000001100024f3a"}) {
    EXPECT_EQ(ParsePrimaryName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace alpheus::quorum
