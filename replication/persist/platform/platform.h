// SPDX-License-Identifier: Apache-2.0
// platform: the properties that decide when bytes that another host wrote to a
// replica are persistent there.
//
// Idea: a running program can't prove any of it (P-R7). So the operator
// declares it where the replica is kept, and the primary hears of it in the
// handshake. An undeclared platform is the weakest: the replica's own program
// flushes. A false claim loses acknowledged records.
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

namespace alpheus::replication {

// The parts that keep their content in a power cut. On the wire, never
// renumber.
enum class PersistenceDomain : uint8_t {
  kMemory = 0,     // DMP: modules and memory controllers (ADR)
  kHierarchy = 1,  // MHP: caches, too (eADR)
  kSystem = 2,     // WSP: the adapter's buffers, too
};

// The place of the buffers that sends fill. On the wire, never renumber.
enum class ReceiveBuffers : uint8_t { kDram = 0, kPmem = 1 };

// The meaning of a write's completion. On the wire, never renumber.
enum class Transport : uint8_t {
  kTcp = 0,         // no more than on iWARP: the adapter is a program
  kIwarp = 1,       // the write may still be at the requester
  kInfiniBand = 2,  // also RoCE: it is at least in the responder's adapter
};

struct Platform {
  PersistenceDomain domain = PersistenceDomain::kMemory;
  bool ddio = true;  // arriving bytes go into the processor's cache
  ReceiveBuffers receive_buffers = ReceiveBuffers::kDram;
  Transport transport = Transport::kTcp;
  // Abilities of the adapter.
  bool native_flush = false;
  bool atomic_write = false;

  bool operator==(const Platform&) const = default;
};

// The 12 rows of Table 1: domain, DDIO, receive buffers.
inline constexpr size_t kConfigurationCount = 12;
// Returns the row in the table, from 0.
constexpr size_t ConfigurationIndex(const Platform& platform) {
  return static_cast<size_t>(platform.domain) * 4 + (platform.ddio ? 0 : 2) +
         static_cast<size_t>(platform.receive_buffers);
}

// Returns the platform of memory that only a system call persists, as pages of
// a plain file: it persists nothing by itself, whatever the machine does.
Platform WithoutPersistentMemory(const Platform& platform);

// Returns words with commas between them, one for each axis, then the adapter's
// abilities: "dmp,ddio,dram,tcp",
// "mhp,no-ddio,pm,infiniband,native-flush,atomic-write".
std::string PlatformToString(const Platform& platform);
// Parses these words in any order. An axis without a word is the weakest, and
// so is an empty text. Errors: InvalidArgument (a word that is unknown, or a
// second one of its axis).
absl::StatusOr<Platform> ParsePlatform(std::string_view text);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_H_
