// SPDX-License-Identifier: Apache-2.0
// cluster_tail: follows the durable records of a replicated log over the
// network, from any machine, without taking part.
//
//   auto tail = alpheus::ClusterTail::Open({.cluster_file = "cluster.toml"});
//   for (;;) {
//     auto record = (*tail)->Next(alpheus::Deadline());   // waits
//     if (!record.ok()) return record.status();
//     Apply(**record);
//   }
//
// A tail asks the nodes which records are durable, and reads those from one of
// them. It continues when nodes come and go, when the primary ends, and when
// another primary opens the log.
//
// Guarantees (proofs: recovery/follow/remote_tail.h):
//   CT1. Only durable records are shown, each once, in LSN order, with exactly
//        their bytes. LSNs of aborted records are left out.
//   CT2. Every record that was shown is in every later opening of the log,
//        unless it was cleaned. Another tail can continue at LSN + 1 at any
//        later time.
//   CT3. A tail keeps no record from being cleaned. A record that was cleaned
//        before it was read gives OutOfRange; it is never skipped silently.
//   CT4. Every durable record is shown in the end, as long as W replicas of the
//        newest epoch can be reached, or one replica that the primary notified.
//        The primary of an idle log does so within two intervals of
//        LogOptions::idle_force_us.
//
// Thread safety: one thread per tail; any number of tails.
// References: protocol P-A1, P-A6, P-C1, P-C4.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/tail_record.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"

namespace alpheus {

struct ClusterTailOptions {
  std::string cluster_file;       // see tools/samples/cluster.toml
  std::string log_name = "main";  // as in ReplicationOptions
  uint64_t node = 0;              // ask only the replica of this node; 0: all
  Lsn from{0};                    // first LSN to show; 0: the oldest there is
  // Time without a byte, in milliseconds, after which a node is given up and
  // tried again; also the time for which Next tries while no node can be
  // reached.
  uint32_t timeout_ms = 5'000;
  // Interval between questions to each node, in milliseconds, 1 to 10,000; a
  // record is shown up to this late.
  uint32_t poll_ms = 10;
  // As ReplicationOptions::say.
  std::function<void(const std::string&)> say = {};
};

class ClusterTail {
 public:
  // Makes a tail; connects to no node yet. Errors: those of the cluster file
  // (ReplicationOptions::cluster_file); NotFound (no such node);
  // InvalidArgument (poll_ms).
  static absl::StatusOr<std::unique_ptr<ClusterTail>> Open(
      const ClusterTailOptions& options);
  ~ClusterTail();

  // Returns the next durable record; nothing if there was none until the
  // deadline.
  // Errors, after which the tail is of no more use: OutOfRange (the record was
  // cleaned: begin again at the LSN that the message names; the records between
  // are gone); DataLoss (no reachable replica can read it); FailedPrecondition
  // (one node shows a newer configuration than the cluster file, so other
  // members may have the rest of the log: begin again with the newest file, at
  // next_lsn()).
  // Errors, after which calling again tries again: Unavailable (no node can be
  // reached); NotFound, FailedPrecondition (the common answer of all nodes: no
  // such log, another cluster, or other N and W than in the cluster file).
  absl::StatusOr<std::optional<TailRecord>> Next(Deadline deadline);

  // Returns the highest LSN that is known to be durable. Never goes back.
  Lsn durable_lsn() const;
  // Returns the LSN to be shown next, where another tail would continue; 0: not
  // known yet.
  Lsn next_lsn() const;
  // Returns the LSN where the log begins, as reachable nodes report it; 0: not
  // known yet.
  Lsn head_lsn() const;
  // Makes the following calls of Next ask every reachable node at once, without
  // waiting for poll_ms.
  void AskAgain();
  // Returns true if every node has answered, or could not be reached, since the
  // last AskAgain (or since Open). Then durable_lsn() is not older than that
  // call, as far as the nodes know.
  bool is_settled() const;
  // Returns true if is_settled(), all records that were found durable have been
  // shown, and nothing is in doubt.
  bool is_caught_up() const;
  // Returns OK, or Unavailable: too few nodes can be reached, and a newer
  // epoch, which these don't know, may have durable records. The message names
  // the missing nodes, and why they are missing. For a tail that asks one node:
  // that node has promised a newer epoch.
  absl::Status doubt() const;
  // Returns the node whose replica is read; 0: none yet.
  uint64_t node() const;

 private:
  class Impl;
  explicit ClusterTail(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_
