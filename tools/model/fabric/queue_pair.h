// SPDX-License-Identifier: Apache-2.0
// queue_pair: what a simulated adapter keeps for one connection.
//
// Plain data: the fabric's control, requester and responder parts work on it.
// Thread safety: none.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_QUEUE_PAIR_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_QUEUE_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "replication/fabric/fabric.h"
#include "tools/model/fabric/landing.h"

namespace alpheus {

// One end of a connection. An adapter that comes back has a new incarnation.
struct QueuePairAddress {
  int host = 0;
  uint64_t incarnation = 0;
  ConnectionId connection;

  bool operator==(const QueuePairAddress&) const = default;
};

// An operation that was posted and has not completed.
struct SendWork {
  WorkId work;
  Operation operation = Operation::kWrite;
  LocalBytes local = {};
  RemoteAddress remote = {};
  uint64_t bytes = 0;  // remote ones
  uint32_t immediate = 0;
  uint64_t expected = 0;  // of a compare-and-swap
  uint64_t operand = 0;   // what is swapped in or added
};

struct ReceiveWork {
  WorkId work;
  LocalBytes into;
};

// What goes to the responder.
struct Request {
  uint64_t sequence = 0;
  SendWork work;                // its local bytes mean nothing there
  std::vector<std::byte> data;  // of a write or send; filled by a read
};

// What comes back. The n-th one answers the n-th request.
struct Response {
  uint64_t sequence = 0;
  CompletionStatus status = CompletionStatus::kOk;
  std::vector<std::byte> data;
};

enum class QueuePairState {
  kConnecting,   // here; the peer has not answered
  kRequested,    // there; this program has not answered
  kAccepted,     // by this program; the peer has not confirmed
  kEstablished,  // both ways
  kBroken,       // nothing completes any more, late bytes may land (FB5)
};

struct QueuePair {
  ConnectionId id;
  QueuePairState state = QueuePairState::kConnecting;
  QueuePairAddress peer;
  bool peer_heard = false;  // its adapter got the request to connect
  bool closed = false;      // only a mutant keeps such a one

  // Requester.
  std::deque<SendWork> sends;   // oldest first
  uint64_t first_sequence = 0;  // of sends.front()
  size_t departed = 0;          // how many of them are on their way
  bool halted = false;          // sends[departed] lost its bytes
  int64_t progress_at = 0;      // when the peer last showed life, or should
  bool watched = false;         // a look at progress_at is scheduled

  // Responder.
  std::deque<ReceiveWork> receives;
  std::deque<Request> inbound;  // the first one is being executed
  Landing landing;              // of inbound.front()
  RegionKey landing_key;
  uint64_t staged_bytes = 0;    // of inbound.front(), already in the stages
  bool awaits_visible = false;  // inbound.front() goes on when the stages have
  bool answered = false;        // inbound.front()
  bool receive_used = false;    // by inbound.front()
  uint32_t retries_left = 0;
  uint64_t late_parts_left = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_QUEUE_PAIR_H_
