// SPDX-License-Identifier: Apache-2.0
// platform: what decides when bytes that were written to a replica from
// elsewhere are persistent there.
//
// Idea: nothing of it can be proven while a program runs (P-R7), so the
// operator declares it where the replica is kept, and the primary hears of it
// in the handshake. What is not declared is the weakest, for which the
// replica's own program flushes; a claim that is not true loses records that
// were acknowledged.
//
// Thread safety: values and pure functions.
// References: remote persistence taxonomy, Table 1 and §3.1; protocol P-B6
// P-R7.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus {

// What keeps its content when the power goes. On the wire, never renumber.
enum class PersistenceDomain : uint8_t {
  kMemory = 0,     // DMP: modules and memory controllers (ADR)
  kHierarchy = 1,  // MHP: caches, too (eADR)
  kSystem = 2,     // WSP: the adapter's buffers, too
};

// Where the buffers lie that sends fill. On the wire, never renumber.
enum class ReceiveBuffers : uint8_t { kDram = 0, kPmem = 1 };

// What a completion of a write says. On the wire, never renumber.
enum class Transport : uint8_t {
  kTcp = 0,         // no more than with iWARP: the adapter is a program
  kIwarp = 1,       // the write may not even have left the requester
  kInfiniBand = 2,  // also RoCE: it is in the responder's adapter at least
};

struct Platform {
  PersistenceDomain domain = PersistenceDomain::kMemory;
  bool ddio = true;  // what arrives goes into the processor's cache
  ReceiveBuffers receive_buffers = ReceiveBuffers::kDram;
  Transport transport = Transport::kTcp;
  // What the adapter can do.
  bool native_flush = false;
  bool atomic_write = false;

  bool operator==(const Platform&) const = default;
};

// The 12 rows of Table 1: domain, DDIO, receive buffers.
inline constexpr size_t kConfigurationCount = 12;
// In the order of the table, from 0.
constexpr size_t ConfigurationIndex(const Platform& platform) {
  return static_cast<size_t>(platform.domain) * 4 + (platform.ddio ? 0 : 2) +
         static_cast<size_t>(platform.receive_buffers);
}

// Of memory that only a call persists, as pages of a plain file: whatever the
// machine keeps, it keeps no such memory.
Platform WithoutPersistentMemory(const Platform& platform);

// Words with commas between them, one for each axis, then what the adapter can
// do: "dmp,ddio,dram,tcp",
// "mhp,no-ddio,pm,infiniband,native-flush,atomic-write".
std::string PlatformToString(const Platform& platform);
// Takes these words in any order; an axis without one is the weakest, and so is
// an empty text. Errors: InvalidArgument (a word that is unknown, or a second
// one of its axis).
absl::StatusOr<Platform> ParsePlatform(std::string_view text);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_H_
