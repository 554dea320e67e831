// SPDX-License-Identifier: Apache-2.0
// replica_hold: a primary's word to its own node: "I have this replica's
// region; tell me when somebody wants a promise of it".
//
// Idea: a replica is served by whoever holds its region's lock (P-A7). The
// node's daemon hears of those who open a new epoch, and a primary does not
// listen; so the primary asks its daemon one question (Hold), which is replied
// to when somebody with the cluster's key wants a promise above the primary's
// (Wanted). Then the primary ends its epoch and gives the region up, and the
// daemon serves it. A daemon that is away is tried again.
//
// Invariants:
//   RH1. Only a promise above the own replica's is a reason to give way.
//   RH2. Nothing is done while nothing arrives: what a log pays for it is to
//        look at one word.
//   RH3. What somebody wants scrubbed is begun, and the node hears how it is.
//   RH4. What somebody wants to see of the ring is shown in pieces of 32 KiB,
//        with time for the log between two of them.
// Thread safety: one thread at a time.
// References: protocol P-A4.2, P-A7; docs/design/replication.md.
#ifndef ALPHEUS_RECOVERY_REPLICA_HOLD_H_
#define ALPHEUS_RECOVERY_REPLICA_HOLD_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "log/base/clock.h"
#include "quorum/promise.h"
#include "recovery/handshake.h"
#include "recovery/inquiry.h"
#include "recovery/messages.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct ReplicaHoldOptions {
  std::string address;  // of the own node
  NodeId node;
  Hello hello;
  Credentials credentials = {};
  Promise promise;  // that the own replica gave
  // How its scrubbing is; first begins a pass, if `start`. Not set: it is not
  // scrubbed.
  std::function<Scrubbed(bool start)> scrub = {};
  // What may be shown of its ring. Not set: nothing.
  std::function<Fetched(const Fetch& fetch)> show = {};
  // Nanoseconds: between two tries to reach the node, longer and longer where
  // it says that it has no such replica; and of each try.
  int64_t retry_ns = 1'000'000'000;
  int64_t connect_ns = 10'000'000'000;
  // From one piece of the ring that is shown to the next (RH4).
  int64_t between_pieces_ns = 100'000;
};

class ReplicaHold {
 public:
  // Fabric and clock must outlive it.
  ReplicaHold(Fabric& fabric, const Clock& clock, ReplicaHoldOptions options);

  // False if it is of another connection.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // When Poll has something to do by itself, in nanoseconds; kNever: when
  // something was taken.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  int64_t next_poll_ns() const { return next_poll_ns_; }
  // The promise for which the primary is to give way. Once it was returned this
  // is of no more use; its connection stays until it goes.
  std::optional<Promise> Poll();

 private:
  void Connect();
  std::optional<Promise> TryLater(bool is_refused);
  Hold Question(bool start_scrub) const;
  // Of the question's reply.
  std::optional<Promise> TakeReply();
  void Show(const Fetch& fetch);

  Fabric& fabric_;
  const Clock& clock_;
  const ReplicaHoldOptions options_;
  std::optional<Inquiry> inquiry_;  // not set: tried again at next_poll_ns_
  int64_t next_poll_ns_ = 0;
  int64_t next_piece_ns_ = 0;
  int refusals_ = 0;  // since it was last away
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REPLICA_HOLD_H_
