// SPDX-License-Identifier: Apache-2.0
// options: how a verbs adapter is set up, and what it counts.
//
// Thread safety: values.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "replication/fabric/fabric.h"

namespace alpheus {

struct VerbsFabricOptions {
  // As `ibv_devices` lists it: "mlx5_0", "rxe0". Empty: the one
  // that has source_host; without that, the first one.
  std::string device;

  // What the adapter has less of is lowered when the fabric is opened. A record
  // goes round all of its connection's queues in turn, so longer ones than are
  // needed cost cache: with the greetings 127 entries, and Soft-RoCE, which
  // leaves one empty, makes 128 of them.
  Fabric::Limits limits = {.sends_max = 125,
                           .receives_max = 125,
                           .message_bytes_max = uint64_t{64} << 20,
                           .private_bytes_max = 4096,
                           .retry_ns = 2'000'000'000,
                           .native_flush = true,
                           .atomic_write = true};

  // How long a write with immediate, or a send, waits for a receive (FB6), as
  // nearly as the adapters' timers can.
  int64_t receiver_wait_ns = 500'000'000;

  // Payloads up to this are copied into the work request, so that the adapter
  // need not fetch them; lowered to what the adapter takes.
  uint32_t inline_bytes_max = 220;

  // Connections from elsewhere that have said nothing yet; for more the oldest
  // makes room.
  uint32_t anonymous_max = 64;

  // The number of the host to connect from; empty: as the kernel chooses.
  std::string source_host;
};

// Since the adapter was opened.
struct VerbsFabricCounters {
  uint64_t posts = 0;               // work requests for sending
  uint64_t signalled = 0;           // of these, with a completion of their own
  uint64_t inlined = 0;             // of these, with their bytes inside
  uint64_t native_flushes = 0;      // of these, FLUSHes; other flushes read
  uint64_t atomic_writes = 0;       // of these
  uint64_t doorbells = 0;           // calls that handed them to the adapter
  uint64_t receives = 0;            // receives posted
  uint64_t completions = 0;         // taken from completion queues
  uint64_t wake_ups = 0;            // of a thread that slept, by a completion
  uint64_t receiver_not_ready = 0;  // requests that failed so
  uint64_t refused = 0;             // peers that were not understood
  uint64_t device_failures = 0;     // times that the adapter told of some
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_
