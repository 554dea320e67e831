// SPDX-License-Identifier: Apache-2.0
// The bytes between a client of a node's memory and that node.
#include "recovery/protocol/client_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "log/base/bytes.h"
#include "recovery/protocol/log_group.h"
#include "tests/recovery/protocol/wire_samples.h"

namespace alpheus::testing {

using recovery::ClientMessage;
using recovery::DecodeClientHello;
using recovery::DecodeClientMessage;
using recovery::DecodeClientRejection;
using recovery::DecodeClientWelcome;
using recovery::EncodeClientHello;
using recovery::EncodeClientMessage;
using recovery::EncodeClientRejection;
using recovery::EncodeClientWelcome;

namespace {

using ::testing::HasSubstr;

const recovery::ClientHello kHelloOfClient = {
    {0x0102, 0x0304}, kLog, 0x1122334455667788};
const recovery::ClientWelcome kWelcomeOfNode = {NodeId(7), 0x99, {0xa, 0xb}};

quorum::Digest ClientDigest() {
  quorum::Digest digest{};
  digest.fill(std::byte{0xd1});
  return digest;
}

std::vector<ClientMessage> AllClientMessages() {
  return {
      recovery::ClientProof{{0xc, 0xd}, "masked"},
      recovery::ClientProof{{0xc, 0}, std::string(128, '\0')},
      recovery::ClientProved{ClientDigest()},
      recovery::OpenMemory{"ring", false},
      recovery::OpenMemory{std::string(64, 'n'), true},
      recovery::MemoryOpened{fabric::RegionKey(5), 4096, {}, 0, 0, 0},
      recovery::MemoryOpened{
          fabric::RegionKey(5),
          4096,
          {.domain = replication::PersistenceDomain::kHierarchy,
           .ddio = false,
           .transport = replication::Transport::kInfiniBand},
          0x77,
          4,
          64},
      recovery::ClientRefused{absl::PermissionDeniedError("no")},
      recovery::ClientRefused{
          absl::UnauthenticatedError(std::string(256, 't'))},
  };
}

std::string HexOf(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

TEST(ClientMessagesTest, WhatIsEncodedIsDecoded) {
  const auto hello = DecodeClientHello(EncodeClientHello(kHelloOfClient));
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(*hello, kHelloOfClient);
  const auto welcome = DecodeClientWelcome(EncodeClientWelcome(kWelcomeOfNode));
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(*welcome, kWelcomeOfNode);
  for (const ClientMessage& message : AllClientMessages()) {
    const auto bytes = EncodeClientMessage(kLog, message);
    const auto decoded = DecodeClientMessage(kLog, bytes);
    ASSERT_TRUE(decoded.ok()) << message.index() << ": " << decoded.status();
    EXPECT_EQ(*decoded, message);
  }
}

// The bytes of version 1, for ever: docs/formats/client_wire.md.
TEST(ClientMessagesTest, BytesAreThoseOfTheDocument) {
  EXPECT_EQ(HexOf(AsBytes(EncodeClientHello(kHelloOfClient))),
            "4150434801000000020100000000000004030000000000000700000000000000"
            "0800000000000000887766554433221100000000f1d2a84a");
  EXPECT_EQ(HexOf(AsBytes(EncodeClientWelcome(kWelcomeOfNode))),
            "4150435701000000070000000000000099000000000000000a00000000000000"
            "0b00000000000000000000000000000000000000f03ca5c0");
  EXPECT_EQ(HexOf(AsBytes(EncodeClientRejection(absl::NotFoundError("why")))),
            "415043520100000005000000776879e47b5027");
  const std::string proof =
      "4150434d010000000c000000000000000d00000000000000060000006d61736b"
      "65644ad65c82";
  const std::string proved =
      "4150434d02000000d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1"
      "d1d1d1d1d1d1d1d12baed639";
  const std::string open = "4150434d03000000000000000400000072696e6781abc7f5";
  const std::string opened =
      "4150434d04000000050000000000000000100000000000000101000277000000"
      "000000000400000040000000a0986833";
  const std::string refused = "4150434d0500000007000000020000006e6f4c1d3284";
  const std::string expected[] = {proof, proved, open, opened, refused};
  const std::vector<ClientMessage> all = AllClientMessages();
  const ClientMessage samples[] = {all[0], all[2], all[3], all[6], all[7]};
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(HexOf(EncodeClientMessage(kLog, samples[i])), expected[i]);
  }
}

// CLM1: every turned bit, every cut, and every other log.
TEST(ClientMessagesTest, ChangedBytesAreNone) {
  for (const ClientMessage& message : AllClientMessages()) {
    const auto bytes = EncodeClientMessage(kLog, message);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::vector<std::byte> turned(bytes.begin(), bytes.end());
      turned[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(DecodeClientMessage(kLog, turned).ok());
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(
          DecodeClientMessage(kLog, std::span(bytes).first(size)).ok());
    }
    EXPECT_FALSE(DecodeClientMessage({9, 9}, bytes).ok());
  }
  const auto changes_are_seen = [](const std::string& bytes, auto decode) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string turned = bytes;
      turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_FALSE(decode(turned).ok());
    }
    EXPECT_FALSE(decode(bytes.substr(1)).ok());
    EXPECT_FALSE(decode(bytes + "1").ok());
  };
  changes_are_seen(EncodeClientHello(kHelloOfClient), DecodeClientHello);
  changes_are_seen(EncodeClientWelcome(kWelcomeOfNode), DecodeClientWelcome);
}

// A forger knows how to sum.
TEST(ClientMessagesTest, ImpossibleFieldsAreNone) {
  const auto none = [](const ClientMessage& message, size_t at, auto value) {
    const auto bytes = EncodeClientMessage(kLog, message);
    return absl::IsInvalidArgument(
        DecodeClientMessage(kLog, With(bytes, at, value)).status());
  };
  const std::vector<ClientMessage> all = AllClientMessages();
  EXPECT_TRUE(none(all[0], 4, uint32_t{0}));     // kind
  EXPECT_TRUE(none(all[0], 4, uint32_t{6}));     // kind
  EXPECT_TRUE(none(all[1], 8, uint64_t{0}));     // nonce
  EXPECT_TRUE(none(all[0], 24, uint32_t{129}));  // length of the token
  EXPECT_TRUE(none(all[0], 24, uint32_t{5}));
  EXPECT_TRUE(none(all[3], 8, uint32_t{2}));    // flag
  EXPECT_TRUE(none(all[3], 12, uint32_t{0}));   // length of the name
  EXPECT_TRUE(none(all[5], 8, uint64_t{0}));    // key
  EXPECT_TRUE(none(all[5], 16, uint64_t{0}));   // bytes
  EXPECT_TRUE(none(all[5], 24, uint32_t{1}));   // platform of reads
  EXPECT_TRUE(none(all[5], 36, uint32_t{1}));   // credits of reads
  EXPECT_TRUE(none(all[5], 40, uint32_t{64}));  // messages of reads
  EXPECT_TRUE(none(all[6], 24, uint32_t{3}));   // platform
  EXPECT_TRUE(none(all[6], 28, uint64_t{0}));   // session
  EXPECT_TRUE(none(all[6], 36, uint32_t{1}));   // credits
  EXPECT_TRUE(none(all[6], 40, uint32_t{63}));  // bytes of messages
  EXPECT_TRUE(none(all[6], 40, uint32_t{65537}));
  EXPECT_TRUE(none(all[7], 8, uint32_t{0}));  // code
  EXPECT_TRUE(none(all[7], 8, uint32_t{17}));
  const std::string hello = EncodeClientHello(kHelloOfClient);
  EXPECT_FALSE(DecodeClientHello(With(hello, 48, uint32_t{1})).ok());
  recovery::ClientHello nobody = kHelloOfClient;
  nobody.log_id = {};
  EXPECT_FALSE(DecodeClientHello(EncodeClientHello(nobody)).ok());
  const std::string welcome = EncodeClientWelcome(kWelcomeOfNode);
  EXPECT_FALSE(DecodeClientWelcome(With(welcome, 16, uint64_t{0})).ok());
  EXPECT_FALSE(DecodeClientWelcome(With(welcome, 48, uint32_t{1})).ok());
  recovery::ClientWelcome silent = kWelcomeOfNode;
  silent.nonce = {};
  EXPECT_FALSE(DecodeClientWelcome(EncodeClientWelcome(silent)).ok());
}

TEST(ClientMessagesTest, OtherVersionIsUnimplemented) {
  const std::string hello = EncodeClientHello(kHelloOfClient);
  const absl::Status status =
      DecodeClientHello(With(hello, 4, uint32_t{2})).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("client version 2, here: 1"));
  // Both numbers survive the cut of a rejection.
  const absl::Status cut = DecodeClientRejection(EncodeClientRejection(status));
  EXPECT_THAT(cut.message(), HasSubstr("client version 2, here: 1"));
  EXPECT_TRUE(recovery::IsClientHello(With(hello, 4, uint32_t{2})));
  const std::string welcome = EncodeClientWelcome(kWelcomeOfNode);
  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeClientWelcome(With(welcome, 4, uint32_t{2})).status()));
}

TEST(ClientMessagesTest, RejectionOfEachVersionIsRead) {
  const absl::Status why = absl::ResourceExhaustedError(std::string(100, 'w'));
  const std::string bytes = EncodeClientRejection(why);
  EXPECT_EQ(bytes.size(), recovery::kClientHelloBytes);
  const absl::Status cut = DecodeClientRejection(bytes);
  EXPECT_EQ(cut.code(), why.code());
  EXPECT_EQ(cut.message(), std::string(40, 'w'));
  EXPECT_EQ(DecodeClientRejection(With(bytes, 4, uint32_t{9})), cut);
  for (const std::string& none :
       {std::string(), bytes.substr(1), bytes + "w",
        With(bytes, 8, uint32_t{0}), With(bytes, 8, uint32_t{17}),
        recovery::EncodeRejection(why)}) {
    EXPECT_TRUE(absl::IsUnavailable(DecodeClientRejection(none)));
  }
}

// A node with several threads finds the client's log as it does a primary's.
TEST(ClientMessagesTest, ClientIsOfTheGroupOfItsLog) {
  EXPECT_EQ(recovery::GroupOfHello(EncodeClientHello(kHelloOfClient)),
            recovery::GroupOf(kLog));
  EXPECT_EQ(recovery::GroupOfHello(
                With(EncodeClientHello(kHelloOfClient), 4, uint32_t{2})),
            std::nullopt);
  const recovery::Hello primary = {
      .cluster_id = {}, .log_id = kLog, .primary = {NodeId(1), 1}};
  EXPECT_FALSE(recovery::IsClientHello(recovery::EncodeHello(primary)));
  EXPECT_FALSE(recovery::IsClientHello(""));
}

}  // namespace
}  // namespace alpheus::testing
