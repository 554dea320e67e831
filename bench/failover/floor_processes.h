// SPDX-License-Identifier: Apache-2.0
// floor_processes: processes that pass messages on as those of the log do, and
// do nothing else (floor.h).
//
//   node     echoes. It hears a primary by the records on its connection, and
//            answers whoever waits for its end: when the connection ends, or
//            after a candidate's silence. An operator's word goes on to the
//            primary.
//   primary  sends each record to all nodes, and the next one once one of them
//            has answered, as W = 2 with its own replica. An operator's word
//            ends it.
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
  kRecord = 'r',  // as well: it is of the primary, whose connection this is
  kHear = 'h',    // sent back when nobody hears the primary any more
  kDrain = 'd',   // sent back, and passed on to the primary, which ends
};
inline constexpr size_t kFloorMessageBytes = 64;

// Connects to a node, with a round trip, in which the log's processes prove
// the cluster's key. Errors: Unavailable.
absl::StatusOr<replicated::RawSocket> JoinFloorNode(uint16_t port);
// Sends such a message. Errors: Unavailable.
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
