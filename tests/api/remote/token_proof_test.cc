// SPDX-License-Identifier: Apache-2.0
// The proof of a token: what hides it, and what it is good for.
#include "api/remote/token_proof.h"

#include <gtest/gtest.h>

#include <string>

#include "api/grpc/access/crypto.h"

namespace alpheus::testing {
namespace {

using remote::ClientTranscript;
using remote::MaskToken;
using remote::ProofOfNode;
using remote::TokenNameOf;

const std::string kProvedToken =
    "alph_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

ClientTranscript SaidByBoth() {
  return {{{1, 2}, {3, 4}, 5}, {NodeId(6), 7, {8, 9}}, {10, 11}};
}

TEST(TokenProofTest, MaskComesOffWithTheDigestOnly) {
  const quorum::Digest digest = rpc::Sha256(kProvedToken);
  const std::string masked = MaskToken(kProvedToken, digest, SaidByBoth());
  EXPECT_EQ(masked.size(), kProvedToken.size());
  EXPECT_EQ(MaskToken(masked, digest, SaidByBoth()), kProvedToken);
  // No byte run of the token shows (TPF1).
  for (size_t at = 0; at + 4 <= kProvedToken.size(); ++at) {
    EXPECT_EQ(masked.find(kProvedToken.substr(at, 4)), std::string::npos);
  }
  EXPECT_NE(MaskToken(masked, rpc::Sha256("other"), SaidByBoth()),
            kProvedToken);
}

// The mask does not repeat itself: else equal parts of a token would show.
TEST(TokenProofTest, BlocksOfTheMaskDiffer) {
  const std::string zeros(128, '\0');
  const std::string mask =
      MaskToken(zeros, rpc::Sha256(kProvedToken), SaidByBoth());
  for (size_t a = 0; a < 128; a += 32) {
    for (size_t b = a + 32; b < 128; b += 32) {
      EXPECT_NE(mask.substr(a, 32), mask.substr(b, 32));
    }
  }
}

// TPF3: each part of what was said is in the mask, and in the node's proof.
TEST(TokenProofTest, ProofIsOfOneConversation) {
  const quorum::Digest digest = rpc::Sha256(kProvedToken);
  const std::string masked = MaskToken(kProvedToken, digest, SaidByBoth());
  const quorum::Digest proof = ProofOfNode(digest, SaidByBoth());
  ClientTranscript others[7];
  for (ClientTranscript& other : others) other = SaidByBoth();
  ++others[0].hello.cluster_id.low;
  ++others[1].hello.log_id.high;
  ++others[2].hello.token_name;
  ++others[3].welcome.node.value;
  ++others[4].welcome.incarnation;
  ++others[5].welcome.nonce.low;
  ++others[6].nonce.low;
  for (const ClientTranscript& other : others) {
    EXPECT_NE(MaskToken(kProvedToken, digest, other), masked);
    EXPECT_NE(ProofOfNode(digest, other), proof);
  }
  EXPECT_NE(ProofOfNode(rpc::Sha256("other"), SaidByBoth()), proof);
  // A node's proof is no mask, and shows none.
  const std::string zeros(32, '\0');
  EXPECT_NE(MaskToken(zeros, digest, SaidByBoth()),
            std::string(reinterpret_cast<const char*>(proof.data()), 32));
}

// For ever: clients and nodes of other versions compute the same.
TEST(TokenProofTest, NameIsThatOfTheDocument) {
  EXPECT_EQ(TokenNameOf(rpc::Sha256(kProvedToken)), 0x18b7a1300d8e8011U);
  EXPECT_NE(TokenNameOf(rpc::Sha256("other")),
            TokenNameOf(rpc::Sha256(kProvedToken)));
}

}  // namespace
}  // namespace alpheus::testing
