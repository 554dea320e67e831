// SPDX-License-Identifier: Apache-2.0
// region_claim: a primary's request to its own node: "I have this replica's
// region; notify me when an opener wants its promise".
//
// Idea: only the lock holder of a region can promise with its replica (P-A7).
// While a primary is that, openers still connect to the node's daemon, as a
// primary listens for no connections. So the primary sends the daemon one
// question, Claim. The daemon replies with Wanted when a process with the
// cluster's key wants a promise above the primary's. Then the primary ends its
// epoch and releases the region, and the daemon serves the replica. A daemon
// that can't be reached is tried again.
//
// Invariants:
//   RGC1. The primary steps down only for a promise above its own replica's.
//   RGC2. While nothing arrives and no time is due, Poll of the log pays one
//         load for this.
//   RGC3. A scrub that is asked for is begun, and the node hears of its
//         progress.
//   RGC4. Bytes of the ring are shown in pieces of 32 KiB, with time for the
//         log between two of them.
//   RGC5. A change of the members that is asked for is begun once, however
//         often the node asks, and each Claim says what has become of the last
//         one.
// Thread safety: one thread at a time.
// References: protocol P-A4.2, P-A7; docs/design/replication.md.
#ifndef ALPHEUS_RECOVERY_RESYNC_REGION_CLAIM_H_
#define ALPHEUS_RECOVERY_RESYNC_REGION_CLAIM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct RegionClaimOptions {
  std::string address;  // address of the own node
  NodeId node;
  Hello hello;
  Credentials credentials = {};
  quorum::Promise promise;  // the own replica's promise
  // Returns the state of the replica's scrubbing; begins a pass first if
  // `start`. Not set: it is not scrubbed.
  std::function<Scrubbed(bool start)> scrub = {};
  // Returns bytes of the ring that may be shown. Not set: nothing is shown.
  std::function<Fetched(const Fetch& fetch)> show = {};
  // Begins a change of the members unless it was begun, and returns what has
  // become of it; nullptr: of the last one. Not set: nothing can be changed.
  std::function<ChangeState(const AskChange* asked)> change = {};
  // Nanoseconds between two tries to reach the node (doubled while the node
  // says that it has no such replica), and nanoseconds for each try.
  int64_t retry_ns = 1'000'000'000;
  int64_t connect_ns = 10'000'000'000;
  // Nanoseconds between two pieces of the ring (RGC4).
  int64_t between_pieces_ns = 100'000;
};

class RegionClaim {
 public:
  // Fabric and clock must outlive the object.
  RegionClaim(fabric::Fabric& fabric, const Clock& clock,
              RegionClaimOptions options);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Advances. Returns kIdle, or kDone once the primary is to step down. The
  // object is then of no more use; its connection stays until it is destroyed.
  Polled Poll();
  // Returns when Poll has something to do although nothing was taken.
  Deadline NextPoll() const { return Deadline::AtNanos(next_poll_ns_); }
  // Returns the promise for which the primary is to step down. Requires: Poll
  // has returned kDone.
  const quorum::Promise& wanted() const { return *wanted_; }

 private:
  void Connect();
  void TryLater(bool is_refused);
  Claim Question(bool start_scrub, const AskChange* change = nullptr) const;
  // Acts on the reply to the question.
  void OnReply();
  void Show(const Fetch& fetch);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  const RegionClaimOptions options_;
  std::optional<ControlCall>
      control_call_;  // empty: tried again at next_poll_ns_
  int64_t next_poll_ns_ = 0;
  std::optional<quorum::Promise> wanted_;
  int64_t next_piece_ns_ = 0;
  int refusals_ = 0;  // since the node was last not reached
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_RESYNC_REGION_CLAIM_H_
