// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/handshake.h"

#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/reject_counters.h"

namespace alpheus::recovery {
namespace {

// Equal lengths, as of all parts: no two transcripts are signed alike.
constexpr std::string_view kPrimaryRole = "alpheus primary proof 1\n";
constexpr std::string_view kReplicaRole = "alpheus replica proof 1\n";
static_assert(kPrimaryRole.size() == kReplicaRole.size());

// HSK2.
Nonce DrawNonce(const Credentials& credentials) {
  ALPHEUS_CHECK(credentials.random != nullptr,
                "a process with a key needs a nonce source");
  Nonce nonce;
  // 0 means no nonce.
  while (nonce == Nonce()) {
    nonce.high = credentials.random->Next();
    nonce.low = credentials.random->Next();
  }
  return nonce;
}

quorum::Digest ProofOf(const quorum::ClusterKey& key, std::string_view role,
                       const Transcript& said) {
  ByteWriter text;
  // HSK3.
  text.Raw(AsBytes(role));
  text.Raw(AsBytes(said.hello));
  text.Raw(AsBytes(said.server_hello));
  for (const Nonce& nonce : {said.primary, said.replica}) {
    text.U64(nonce.high);
    text.U64(nonce.low);
  }
  return key.Sign(text.bytes());
}

}  // namespace

// --- Primary -----------------------------------------------------------------

Challenge PrimaryHandshake::Begin(const Hello& hello,
                                  const ServerHello& server_hello) {
  said_ = {EncodeHello(hello), EncodeServerHello(server_hello),
           DrawNonce(credentials_), Nonce()};
  return {said_.primary};
}

absl::StatusOr<Prove> PrimaryHandshake::Reply(const Challenged& challenged) {
  said_.replica = challenged.nonce;
  const quorum::Digest expected =
      ProofOf(credentials_.key, kReplicaRole, said_);
  if (!quorum::AreSame(challenged.proof, expected)) {
    return absl::UnauthenticatedError(
        "has another cluster key than this process: it is of another cluster, "
        "or its key_file is an old one. Its messages are ignored");
  }
  return Prove{ProofOf(credentials_.key, kPrimaryRole, said_)};
}

// --- Replica -----------------------------------------------------------------

ReplicaHandshake::ReplicaHandshake(const Credentials& credentials,
                                   const Hello& hello,
                                   const ServerHello& server_hello)
    : credentials_(credentials),
      stage_(credentials.key.is_set() ? Stage::kChallenge : Stage::kOver),
      said_{EncodeHello(hello), EncodeServerHello(server_hello), Nonce(),
            Nonce()} {}

absl::StatusOr<Message> ReplicaHandshake::Reply(const Message& message) {
  if (const auto* challenge = std::get_if<Challenge>(&message)) {
    return OnChallenge(*challenge);
  }
  if (const auto* prove = std::get_if<Prove>(&message)) return OnProve(*prove);
  return Rejection(
      RejectReason::kNoProof,
      absl::UnauthenticatedError(
          "this node requires a proof of the cluster's key first, and the peer "
          "gave none. Name the key (key_file) in the peer's cluster file"));
}

absl::StatusOr<Message> ReplicaHandshake::OnChallenge(
    const Challenge& challenge) {
  if (!credentials_.key.is_set()) {
    return Rejection(
        RejectReason::kNoKeyHere,
        absl::FailedPreconditionError(
            "this node has no cluster key, and the peer asks for a "
            "proof of it. Name the key (key_file) in the node's "
            "cluster file and start it again"));
  }
  if (stage_ != Stage::kChallenge) {
    return Rejection(RejectReason::kOutOfTurn,
                     absl::InvalidArgumentError("a second challenge came"));
  }
  said_.primary = challenge.nonce;
  said_.replica = DrawNonce(credentials_);
  stage_ = Stage::kProve;
  return Challenged{said_.replica,
                    ProofOf(credentials_.key, kReplicaRole, said_)};
}

absl::StatusOr<Message> ReplicaHandshake::OnProve(const Prove& prove) {
  if (stage_ != Stage::kProve) {
    return Rejection(
        RejectReason::kOutOfTurn,
        absl::InvalidArgumentError("a proof came that was not asked "
                                   "for"));
  }
  const quorum::Digest expected =
      ProofOf(credentials_.key, kPrimaryRole, said_);
  if (!quorum::AreSame(prove.proof, expected)) {
    return Rejection(RejectReason::kWrongKey,
                     absl::UnauthenticatedError(
                         "the peer's proof does not match this cluster's key. "
                         "Give all nodes and primaries the same key_file"));
  }
  stage_ = Stage::kOver;
  return Proved{};
}

}  // namespace alpheus::recovery
