// SPDX-License-Identifier: Apache-2.0
// greeting: the first message of each side of a new queue pair.
//
// Idea: the connection manager carries at most 56 bytes of its caller's. So
// private data of the two programs travel in a message over the queue pair: one
// from the requester, one in reply. The connection manager's own bytes only say
// that this is a peer that greets.
//
//   requester                          responder
//   kHello(private data)            -> kRequested
//   kEstablished, or kRejected      <- kAccept, or kReject(private data)
//
// Invariants:
//   VG1. A greeting that decodes has this version, a known kind, a length that
//        fits, and nothing after it.
// Thread safety: pure functions.
// References: docs/design/fabric.md; rdma_connect(3).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_GREETING_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace alpheus::fabric::verbs {

// On the wire, never renumber.
enum class GreetingKind : uint32_t { kHello = 1, kAccept = 2, kReject = 3 };

struct Greeting {
  GreetingKind kind = GreetingKind::kHello;
  uint64_t message_bytes_max = 0;  // limit of the sender
  std::string private_data;

  bool operator==(const Greeting&) const = default;
};

inline constexpr size_t kGreetingHeaderBytes = 24;

// Encodes a greeting; returns how many bytes were written. Requires: there is
// room.
size_t EncodeGreeting(const Greeting& greeting, std::span<std::byte> to);
std::optional<Greeting> DecodeGreeting(std::span<const std::byte> bytes);

// The connection manager's private data: 8 bytes.
struct Calling {
  uint32_t magic = 0;
  uint32_t version = 0;

  bool operator==(const Calling&) const = default;
};
inline constexpr Calling kCalling{0x56504c41 /* "ALPV" in memory */, 2};

bool IsCalling(std::span<const std::byte> private_data);

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_GREETING_H_
