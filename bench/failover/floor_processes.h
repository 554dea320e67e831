// SPDX-License-Identifier: Apache-2.0
// floor_processes: processes that pass messages on as those of the log do, and
// do nothing else (floor.h).
//
//   node     echoes. It hears a primary by the records on its connection. It
//            tells a candidate that waits when that connection ends, or when
//            the primary was silent for the candidate's silence. It passes an
//            operator's word on to the primary.
//   primary  sends each record to all nodes, and the next one once one of them
//            has answered, as with W = 2 and a replica of its own. An
//            operator's word ends it.
//
// Both yield the core for as many turns as the log's processes do, before they
// sleep.
//
// Thread safety: one thread each.
#ifndef ALPHEUS_BENCH_FAILOVER_FLOOR_PROCESSES_H_
#define ALPHEUS_BENCH_FAILOVER_FLOOR_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/raw_socket.h"

namespace alpheus::bench::failover {

inline constexpr const char* kFloorNodeKind = "floor-node";
inline constexpr const char* kFloorPrimaryKind = "floor-primary";

// The first byte of a message says what is to be done with it.
enum class FloorWord : char {
  kEcho = 'e',    // sent back at once
  kRecord = 'r',  // sent back, too; the connection is then the primary's
  kHear = 'h',    // sent back when the primary is no longer heard
  kDrain = 'd',   // sent back, and passed on to the primary, which ends
};
inline constexpr size_t kFloorMessageBytes = 64;

// Connects to a node, with one round trip: the log's processes need it to prove
// the cluster's key. Errors: Unavailable.
absl::StatusOr<replicated::RawSocket> JoinFloorNode(uint16_t port);
// Sends a message that begins with that word. Errors: Unavailable.
absl::Status SendWord(const replicated::RawSocket& socket, FloorWord word);
// Waits for the answer to one message. Sleeps at once, as a candidate does.
// Errors: Unavailable, OutOfRange (the connection ended).
absl::Status AwaitAnswer(const replicated::RawSocket& socket);

// Serves until it is killed. Says its port. Errors: Unavailable.
absl::Status ServeFloorNode();
// Writes to the nodes of these ports until it is killed or drained. Says that
// it works. Errors: Unavailable.
absl::Status ServeFloorPrimary(const std::vector<uint16_t>& ports);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_FLOOR_PROCESSES_H_
