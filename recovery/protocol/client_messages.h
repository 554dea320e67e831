// SPDX-License-Identifier: Apache-2.0
// client_messages: what a client of a node's memory and that node say to each
// other, before and between one-sided operations.
//
// Idea: a client is no node: it has no cluster key, gets no promise and opens
// no log. It has a token, which says what it may do with the memory of one log.
// Its request to connect has a magic of its own, so that a node tells it from a
// primary's by the first word, and a node without memory for clients refuses
// it. Everything has a sum, as all bytes of wire_parts.h.
//
//   client                               node
//   ClientHello (private data)       ->  ClientWelcome (private data)
//   ClientProof                      ->  ClientProved
//   OpenMemory, for each region      ->  MemoryOpened
//   reads, compare-and-swaps, writes     none of its program
//
// The token is masked (api/remote/token_proof.h), so nothing that was heard on
// the way shows it.
//
// Invariants:
//   CLM1. Bytes that decode are the encoding of what they say: of this version,
//         of this log, and as they were sent.
// Thread safety: pure functions.
// References: docs/formats/client_wire.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_CLIENT_MESSAGES_H_
#define ALPHEUS_RECOVERY_PROTOCOL_CLIENT_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/members/cluster_key.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::recovery {

inline constexpr uint32_t kClientProtocolVersion = 1;
inline constexpr size_t kClientHelloBytes = 56;
inline constexpr size_t kClientWelcomeBytes = 56;
// Most bytes of a token, of a region's name, and of a reason.
inline constexpr size_t kMaskedTokenBytesMax = 128;
inline constexpr size_t kMemoryNameBytesMax = 64;
inline constexpr size_t kClientReasonBytesMax = 256;
// Most bytes of a message.
inline constexpr size_t kClientMessageBytesMax = 512;

// Private data of the client's Connect.
struct ClientHello {
  Uuid cluster_id;
  Uuid log_id;              // not 0
  uint64_t token_name = 0;  // which token it has (token_proof.h)

  bool operator==(const ClientHello&) const = default;
};

// Private data of the node's Accept.
struct ClientWelcome {
  NodeId node;
  uint64_t incarnation = 0;  // of the process whose memory it is; not 0
  Nonce nonce = {};          // of the node; not 0

  bool operator==(const ClientWelcome&) const = default;
};

// Returns true if these private data are a client's, of any version.
bool IsClientHello(std::string_view private_data);

std::string EncodeClientHello(const ClientHello& hello);
// Errors: Unimplemented (another version), InvalidArgument (no hello),
// Unavailable (changed on the way).
absl::StatusOr<ClientHello> DecodeClientHello(std::string_view bytes);
std::string EncodeClientWelcome(const ClientWelcome& welcome);
// Errors: as DecodeClientHello.
absl::StatusOr<ClientWelcome> DecodeClientWelcome(std::string_view bytes);

// Private data of the node's Reject: a reason, whose text is cut so that all
// fits into kClientHelloBytes. Means the same in all versions. Requires:
// !why.ok(). A decoded one is never OK: bytes that are none, or were changed on
// the way, are Unavailable.
std::string EncodeClientRejection(const absl::Status& why);
absl::Status DecodeClientRejection(std::string_view bytes);

struct ClientProof {
  Nonce nonce;               // of the client; not 0
  std::string masked_token;  // 1 to kMaskedTokenBytesMax bytes

  bool operator==(const ClientProof&) const = default;
};

// The node has the token's digest, and the client may do something here.
struct ClientProved {
  quorum::Digest proof = {};

  bool operator==(const ClientProved&) const = default;
};

struct OpenMemory {
  std::string name;          // as offered; 1 to kMemoryNameBytesMax bytes
  bool for_updates = false;  // else for reads only

  bool operator==(const OpenMemory&) const = default;
};

struct MemoryOpened {
  fabric::RegionKey key;  // not 0
  uint64_t bytes = 0;     // not 0
  // All below are zeros unless it was opened for updates. From here on the
  // client's messages are those of updates.
  replication::Platform platform = {};  // of the region
  uint64_t session = 0;
  uint32_t credits = 0;            // receives that are posted
  uint32_t message_bytes_max = 0;  // of each

  bool operator==(const MemoryOpened&) const = default;
};

// The node ends the connection behind it.
struct ClientRefused {
  absl::Status why;  // not OK; its text is cut to kClientReasonBytesMax

  bool operator==(const ClientRefused&) const = default;
};

using ClientMessage = std::variant<ClientProof, ClientProved, OpenMemory,
                                   MemoryOpened, ClientRefused>;

// Requires: the message's bounds.
std::vector<std::byte> EncodeClientMessage(Uuid log_id,
                                           const ClientMessage& message);
// Errors: InvalidArgument (no message), Unavailable (changed on the way).
absl::StatusOr<ClientMessage> DecodeClientMessage(
    Uuid log_id, std::span<const std::byte> bytes);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_CLIENT_MESSAGES_H_
