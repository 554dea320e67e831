// SPDX-License-Identifier: Apache-2.0
// handshake: how the two ends of a connection prove to each other that they
// have the cluster's key.
//
// Idea: each draws a nonce and signs all that both have said so far, with its
// own role in front. The replica proves first, so that a primary believes
// nothing of somebody who only stands at its address; then the primary, before
// anything that it asks for is done. The key itself is never sent.
//
//   primary                               replica
//   Challenge(nonce)                  ->  Challenged(nonce, proof)
//   Prove(proof)                      ->  Proved
//
//   proof = HMAC-SHA256(key, role, Hello, Welcome, both nonces)
//
// Hello and Welcome are signed byte by byte as they were sent: protocol
// version, cluster, log, primary process, node, replica, all of it.
//
// Invariants:
//   HSK1. Without the key there is no promise, no formatting, no view, no
//         release and no region key (replica_server.h), and no welcome that
//         counts.
//   HSK2. A proof is good on one connection: it signs a nonce that the other
//         end has just drawn, 128 bits that nobody foresees. What was recorded
//         proves nothing later.
//   HSK3. A proof is good for one role: sent back it proves nothing.
// What follows is neither signed nor encrypted
// (docs/use/operating.md#security).
// Thread safety: one thread.
// References: protocol P-H17; messages.h; ISO/IEC 9798-4 (mutual, three pass).
#ifndef ALPHEUS_RECOVERY_HANDSHAKE_H_
#define ALPHEUS_RECOVERY_HANDSHAKE_H_

#include <string>

#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "quorum/cluster_key.h"
#include "recovery/messages.h"

namespace alpheus {

// What a process proves itself by.
struct Credentials {
  ClusterKey key = {};  // not set: nothing is proved, and nothing asked for
  // Of nonces; must outlive whoever has it. Requires: set if the key is.
  RandomSource* random = nullptr;
};

// What both ends sign.
struct Transcript {
  std::string hello;
  std::string welcome;
  Nonce primary;
  Nonce replica;
};

class PrimaryHandshake {
 public:
  explicit PrimaryHandshake(const Credentials& credentials)
      : credentials_(credentials) {}

  bool is_needed() const { return credentials_.key.is_set(); }
  // For a new connection. Requires: is_needed.
  Challenge Begin(const Hello& hello, const Welcome& welcome);
  // Errors: Unauthenticated (the replica has another key, or none).
  absl::StatusOr<Prove> Take(const Challenged& challenged);

 private:
  Credentials credentials_;
  Transcript said_;
};

class ReplicaHandshake {
 public:
  ReplicaHandshake(const Credentials& credentials, const Hello& hello,
                   const Welcome& welcome);

  // Whether the peer may ask for anything else.
  bool is_over() const { return stage_ == Stage::kOver; }
  // What is replied to whatever comes before that, and to Challenge and Prove
  // at any time. Errors: Unauthenticated (another key; something else is asked
  // for before a proof); FailedPrecondition (this node has no key);
  // InvalidArgument (out of turn). Each says why (refusals.h).
  absl::StatusOr<Message> Take(const Message& message);

 private:
  enum class Stage { kChallenge, kProve, kOver };

  absl::StatusOr<Message> OnChallenge(const Challenge& challenge);
  absl::StatusOr<Message> OnProve(const Prove& prove);

  Credentials credentials_;
  Stage stage_;
  Transcript said_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_HANDSHAKE_H_
