// SPDX-License-Identifier: Apache-2.0
// requester: the sending half of a connection: posted requests, and how far the
// peer has executed them.
//
// Invariants (FB3 of fabric.h):
//   TRQ1. Requests are numbered from 1 in the order of posting, and are sent
//         and completed in that order.
//   TRQ2. Bytes in flight (payloads out and replies awaited) stay within the
//         peer's window, unless only one request is in flight: the peer may
//         have to keep them.
//   TRQ3. A request completes only after all of its bytes have left the outbox:
//         its memory is the application's again.
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_REQUESTER_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_REQUESTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/outbox.h"
#include "replication/fabric/tcp/wire.h"

namespace alpheus::fabric::tcp {

class Requester {
 public:
  Requester(ConnectionId connection, const RegionTable& regions,
            std::deque<Completion>* completions)
      : connection_(connection), regions_(regions), completions_(completions) {}

  void set_window_bytes(uint64_t bytes) { window_bytes_ = bytes; }

  void Post(const WorkRequest& request) { requests_.push_back({request, 0}); }
  size_t posted() const { return requests_.size(); }
  size_t unsent() const { return requests_.size() - in_flight_; }
  size_t in_flight() const { return in_flight_; }

  // Hands to the outbox what the window allows. Returns false if the memory of
  // a request is no longer registered.
  bool Send(Outbox* outbox);

  // Take the peer's answers. All return false for an impossible one, from a
  // broken peer.
  bool OnAck(uint64_t sequence, const Outbox& outbox);
  bool OnNak(uint64_t sequence, const Outbox& outbox);  // then Fail follows
  bool OnReply(const WireHeader& header, const Outbox& outbox);
  // Takes bytes of the reply, in whole words until its end. Returns how many.
  // Sets `*gone` if the target is no longer registered.
  size_t OnReplyPayload(std::span<const std::byte> bytes, bool* gone);

  // Returns how the front fails if memory of this host was deregistered.
  CompletionStatus LocalFailure() const;
  // Completes all: the first in flight with `first`, the rest with kFlushed.
  void Fail(CompletionStatus first);

 private:
  struct Posted {
    WorkRequest request;
    uint64_t end_position = 0;  // its end in the outbox, once in flight
  };

  static uint64_t FlightBytes(const WorkRequest& request);
  void CompleteFront(CompletionStatus status);
  bool IsSent(const Outbox& outbox) const;
  // Completes requests in flight before `sequence`.
  bool CompleteBefore(uint64_t sequence, const Outbox& outbox);

  const ConnectionId connection_;
  const RegionTable& regions_;
  std::deque<Completion>* const completions_;

  std::deque<Posted> requests_;
  size_t in_flight_ = 0;         // requests in flight, from the front
  uint64_t front_sequence_ = 1;  // number of requests_.front()
  uint64_t flight_bytes_ = 0;
  uint64_t window_bytes_ = 0;
  uint64_t reply_landed_ = 0;  // bytes of the reply that is coming in
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_REQUESTER_H_
