// SPDX-License-Identifier: Apache-2.0
// queue_pair: the state of one connection in a simulated adapter.
//
// Plain data: the parts of the adapter (sim_fabric.h) work on it.
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

namespace alpheus::model {

// One end of a connection. An adapter that restarts has a new incarnation.
struct QueuePairAddress {
  int host = 0;
  uint64_t incarnation = 0;
  fabric::ConnectionId connection;

  bool operator==(const QueuePairAddress&) const = default;
};

struct ReceiveWork {
  fabric::WorkId work;
  fabric::LocalBytes into;
};

// A message to the responder.
struct Request {
  uint64_t sequence = 0;
  fabric::WorkRequest work;     // its local bytes lie at the requester
  std::vector<std::byte> data;  // for a write or send; filled by a read
};

// A message to the requester. The n-th one answers the n-th request.
struct Response {
  uint64_t sequence = 0;
  fabric::CompletionStatus status = fabric::CompletionStatus::kOk;
  std::vector<std::byte> data;
};

enum class QueuePairState {
  kConnecting,   // at this end; the peer has not answered
  kRequested,    // at the other end; this program has not answered
  kAccepted,     // by this program; the peer has not confirmed
  kEstablished,  // both ways
  kBroken,       // nothing completes; late bytes may land (FB5)
};

// Whether the peer is told that this end broke the connection.
enum class Break { kNotifyPeer, kSilent };

struct QueuePair {
  fabric::ConnectionId id;
  QueuePairState state = QueuePairState::kConnecting;
  QueuePairAddress peer;
  bool peer_heard = false;  // its adapter got the connect request
  bool closed = false;      // true only with a mutant

  // Requester.
  std::deque<fabric::WorkRequest> sends;  // oldest first
  uint64_t first_sequence = 0;            // number of sends.front()
  size_t departed = 0;                    // how many of them are in flight
  bool halted = false;                    // sends[departed] lost its bytes
  int64_t progress_at = 0;                // when the peer last showed life
  bool watched = false;                   // a check of progress_at is scheduled

  // Responder.
  std::deque<ReceiveWork> receives;
  std::deque<Request> inbound;  // the first one is being executed
  Landing landing;              // of inbound.front()
  fabric::RegionKey landing_key;
  uint64_t staged_bytes = 0;    // of inbound.front(), already in the stages
  bool awaits_visible = false;  // inbound.front() waits for the stages
  bool answered = false;        // inbound.front()
  bool receive_used = false;    // inbound.front() has used a receive
  uint32_t retries_left = 0;
  uint64_t late_parts_left = 0;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_QUEUE_PAIR_H_
