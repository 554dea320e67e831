// SPDX-License-Identifier: Apache-2.0
// handshake: the proof of the two ends of a connection that they have the
// cluster's key.
//
// Idea: each end draws a nonce and signs all that both have said, preceded by
// its own role. The replica proves first, so that a primary believes nothing of
// a process that only stands at the replica's address. The primary proves next,
// before anything that it asks for is done. The key itself is never sent.
//
//   primary                               replica
//   Challenge(nonce)                  ->  Challenged(nonce, proof)
//   Prove(proof)                      ->  Proved
//
//   proof = HMAC-SHA256(key, role, Hello, ServerHello, both nonces)
//
// Hello and ServerHello are signed byte by byte as they were sent: protocol
// version, cluster, log, primary process, node, replica, everything.
//
// Invariants:
//   HSK1. Without the key there is no promise, no formatting, no view, no
//         release and no region key (replica_server.h), and no server hello
//         counts.
//   HSK2. A proof is good on one connection: it signs a nonce that the other
//         end has just drawn, 128 bits that nobody can predict. A recorded
//         proof proves nothing later.
//   HSK3. A proof is good for one role: sent back it proves nothing.
// Later messages are neither signed nor encrypted
// (docs/use/operating.md#security).
// Thread safety: one thread.
// References: protocol P-H17; messages.h; ISO/IEC 9798-4 (mutual, three pass).
#ifndef ALPHEUS_RECOVERY_PROTOCOL_HANDSHAKE_H_
#define ALPHEUS_RECOVERY_PROTOCOL_HANDSHAKE_H_

#include <string>

#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "quorum/members/cluster_key.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

// The key of a process, and its source of nonces.
struct Credentials {
  quorum::ClusterKey key = {};  // not set: no proofs are given or asked for
  // Source of nonces; must outlive the object. Requires: set if the key is.
  RandomSource* random = nullptr;
};

// The words that both ends sign.
struct Transcript {
  std::string hello;
  std::string server_hello;
  Nonce primary;
  Nonce replica;
};

class PrimaryHandshake {
 public:
  explicit PrimaryHandshake(const Credentials& credentials)
      : credentials_(credentials) {}

  bool is_needed() const { return credentials_.key.is_set(); }
  // Begins on a new connection. Requires: is_needed.
  Challenge Begin(const Hello& hello, const ServerHello& server_hello);
  // Checks the replica's proof. Errors: Unauthenticated (the replica has
  // another key, or none).
  absl::StatusOr<Prove> Reply(const Challenged& challenged);

 private:
  Credentials credentials_;
  Transcript said_;
};

class ReplicaHandshake {
 public:
  ReplicaHandshake(const Credentials& credentials, const Hello& hello,
                   const ServerHello& server_hello);

  // Returns true if the peer may make other requests.
  bool is_over() const { return stage_ == Stage::kOver; }
  // Returns the reply to Challenge and Prove, and to anything that comes before
  // is_over(). Errors: Unauthenticated (another key; another request before a
  // proof); FailedPrecondition (this node has no key); InvalidArgument (out of
  // turn). Each says why (reject_counters.h).
  absl::StatusOr<Message> Reply(const Message& message);

 private:
  enum class Stage { kChallenge, kProve, kOver };

  absl::StatusOr<Message> OnChallenge(const Challenge& challenge);
  absl::StatusOr<Message> OnProve(const Prove& prove);

  Credentials credentials_;
  Stage stage_;
  Transcript said_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_HANDSHAKE_H_
