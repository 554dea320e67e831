// SPDX-License-Identifier: Apache-2.0
// options: settings and counters of a verbs adapter.
//
// Thread safety: values.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "replication/fabric/fabric.h"

namespace alpheus::fabric::verbs {

struct VerbsFabricOptions {
  // Name as `ibv_devices` lists it: "mlx5_0", "rxe0". Empty: the adapter that
  // has source_host; without that, the first one.
  std::string device;

  // Limits, lowered to the adapter's when the fabric is opened. Records use all
  // entries of their connection's queues in turn, so that longer queues than
  // needed cost cache. With the greetings there are 127 entries, and Soft-RoCE,
  // which leaves one empty, makes 128 of them.
  Fabric::Limits limits = {.sends_max = 125,
                           .receives_max = 125,
                           .message_bytes_max = uint64_t{64} << 20,
                           .private_bytes_max = 4096,
                           .retry_ns = 2'000'000'000,
                           .native_flush = true,
                           .atomic_write = true};

  // Nanoseconds that a write with immediate, or a send, waits for a receive
  // (FB6), as nearly as the adapters' timers can.
  int64_t receiver_wait_ns = 500'000'000;

  // Bytes up to which a payload is copied into the work request, so that the
  // adapter need not fetch it; lowered to the adapter's limit.
  uint32_t inline_bytes_max = 220;

  // Unauthenticated connections that have said nothing yet; if more come, the
  // oldest makes room.
  uint32_t anonymous_max = 64;

  // Number of the host to connect from; empty: the kernel chooses.
  std::string source_host;
};

// Counts since the adapter was opened.
struct VerbsFabricCounters {
  uint64_t posts = 0;           // work requests for sending
  uint64_t signalled = 0;       // of these, with a completion of their own
  uint64_t inlined = 0;         // of these, with their bytes inside
  uint64_t native_flushes = 0;  // of these, FLUSHes; other flushes are READs
  uint64_t atomic_writes = 0;   // of these
  uint64_t doorbells = 0;       // calls that handed chains to the adapter
  uint64_t receives = 0;        // receives posted
  uint64_t completions = 0;     // taken from completion queues
  uint64_t wake_ups = 0;        // of a sleeping thread, by a completion
  uint64_t receiver_not_ready = 0;  // requests that failed with it
  uint64_t rejected = 0;            // peers that were not understood
  uint64_t device_failures = 0;     // times that the adapter reported some
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_OPTIONS_H_
