// SPDX-License-Identifier: Apache-2.0
// token_proof: how a client shows its token to a node over a link that others
// may hear.
//
// Idea: a node has a digest of each token, and no token (token_file.h). So the
// digest is the key that both have: the client masks its token with a stream
// under that key, which also depends on all that both have said. The node takes
// the mask off and digests what is there. A node that has the digest proves
// that in turn. As in SCRAM,
//
//   mask  = HMAC-SHA256(digest, role, ClientHello, ClientWelcome, nonce, block)
//   token = masked token xor mask; the client has it if SHA256(token) = digest
//
// Invariants:
//   TPF1. A token is not to be had by listening, nor from a client that comes
//         to a false node: the mask is as unknown as the digest.
//   TPF2. The node's list of digests alone lets nobody in: a client has to show
//         a token that has one of them.
//   TPF3. A proof is good on one connection, and in one role: it has both
//         nonces, and the role.
// Not promised: an attacker with the list who hears a client has its token.
// Later bytes are not protected (docs/use/operating.md#security).
// Thread safety: pure functions.
// References: RFC 5802 (SCRAM), RFC 2104 (HMAC); docs/formats/client_wire.md.
#ifndef ALPHEUS_API_REMOTE_TOKEN_PROOF_H_
#define ALPHEUS_API_REMOTE_TOKEN_PROOF_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "quorum/members/cluster_key.h"
#include "recovery/protocol/client_messages.h"

namespace alpheus::remote {

// All that both ends have said before a proof.
struct ClientTranscript {
  recovery::ClientHello hello;
  recovery::ClientWelcome welcome;
  recovery::Nonce nonce;  // of the client
};

// Returns the name by which a client says which token it has; never 0. It shows
// nothing of token and digest.
uint64_t TokenNameOf(const quorum::Digest& digest);

// Puts the mask on a token, or takes it off. Requires: at most
// recovery::kMaskedTokenBytesMax bytes.
std::string MaskToken(std::string_view token, const quorum::Digest& digest,
                      const ClientTranscript& said);

// Returns the node's proof that it has the digest.
quorum::Digest ProofOfNode(const quorum::Digest& digest,
                           const ClientTranscript& said);

}  // namespace alpheus::remote

#endif  // ALPHEUS_API_REMOTE_TOKEN_PROOF_H_
