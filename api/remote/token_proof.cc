// SPDX-License-Identifier: Apache-2.0
#include "api/remote/token_proof.h"

#include <cstddef>
#include <cstring>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "recovery/protocol/byte_stream.h"

namespace alpheus::remote {
namespace {

// Equal lengths: no two texts are signed alike.
constexpr std::string_view kTokenNameRole = "alpheus token name 1\n";
constexpr std::string_view kTokenMaskRole = "alpheus token mask 1\n";
constexpr std::string_view kTokenNodeRole = "alpheus token node 1\n";
static_assert(kTokenNameRole.size() == kTokenMaskRole.size());
static_assert(kTokenNameRole.size() == kTokenNodeRole.size());

quorum::Digest SignSaid(const quorum::Digest& digest, std::string_view role,
                        const ClientTranscript& said, uint32_t block) {
  recovery::ByteWriter text;
  // TPF3.
  text.Raw(AsBytes(role));
  text.Raw(AsBytes(recovery::EncodeClientHello(said.hello)));
  text.Raw(AsBytes(recovery::EncodeClientWelcome(said.welcome)));
  text.U64(said.nonce.high);
  text.U64(said.nonce.low);
  text.U32(block);
  return quorum::ClusterKey(digest).Sign(text.bytes());
}

}  // namespace

uint64_t TokenNameOf(const quorum::Digest& digest) {
  const quorum::Digest named =
      quorum::ClusterKey(digest).Sign(AsBytes(kTokenNameRole));
  uint64_t name = 0;
  std::memcpy(&name, named.data(), sizeof(name));
  return name == 0 ? 1 : name;
}

std::string MaskToken(std::string_view token, const quorum::Digest& digest,
                      const ClientTranscript& said) {
  ALPHEUS_CHECK(token.size() <= recovery::kMaskedTokenBytesMax,
                "a token fits into a proof");
  std::string masked(token);
  for (size_t at = 0; at < masked.size(); at += quorum::kDigestBytes) {
    const auto block = static_cast<uint32_t>(at / quorum::kDigestBytes);
    const quorum::Digest mask = SignSaid(digest, kTokenMaskRole, said, block);
    for (size_t i = at; i < masked.size() && i < at + mask.size(); ++i) {
      masked[i] =
          static_cast<char>(masked[i] ^ static_cast<char>(mask[i - at]));
    }
  }
  return masked;
}

quorum::Digest ProofOfNode(const quorum::Digest& digest,
                           const ClientTranscript& said) {
  return SignSaid(digest, kTokenNodeRole, said, 0);
}

}  // namespace alpheus::remote
