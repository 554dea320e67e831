// SPDX-License-Identifier: Apache-2.0
// cluster_tail: follows the durable records of a replicated log over the
// network, from any host, without taking part.
//
//   auto tail = alpheus::ClusterTail::Open({.cluster_file = "cluster.toml"});
//   for (;;) {
//     auto record = (*tail)->Next(alpheus::Deadline());   // waits
//     if (!record.ok()) return record.status();
//     Apply(**record);
//   }
//
// It asks the nodes how far they are, and reads what is durable from one of
// them. It goes on when nodes come and go, when the primary ends and when
// another one opens the log.
//
// What it may promise (the proofs stand in recovery/follow/remote_tail.h):
//   CT1. Only durable records, each once, in LSN order, with exactly their
//        bytes. LSNs of aborted records are left out.
//   CT2. What was shown is in every later opening of the log, unless it was
//        cleaned. Another tail can go on from LSN + 1, whatever happened since.
//   CT3. It keeps nothing from being cleaned. What was cleaned before it was
//        read is OutOfRange, never passed over in silence.
//   CT4. All that is durable is shown in the end, as long as W replicas of the
//        newest epoch are in reach, or the primary told one that is: of a log
//        that rests it does so within two intervals of
//        LogOptions::idle_force_us.
//
// Thread safety: one thread per tail; any number of tails.
// References: protocol P-A1, P-A6, P-C1, P-C4.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_

#include <cstdint>
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
  // A node that sends nothing for so long is given up, and tried again; so long
  // Next goes on while none is in reach.
  uint32_t timeout_ms = 5'000;
  // How often each node is asked, 1 to 10,000: as late a record is shown.
  uint32_t poll_ms = 10;
};

class ClusterTail {
 public:
  // Connects to nobody yet. Errors: as LoadClusterFile and CheckLogName;
  // NotFound (no such node); InvalidArgument (poll_ms).
  static absl::StatusOr<std::unique_ptr<ClusterTail>> Open(
      const ClusterTailOptions& options);
  ~ClusterTail();

  // The next durable record; nothing if there was none until the deadline.
  // Errors: OutOfRange (it was cleaned: begin anew at the LSN that the message
  // names; what lies between is gone); DataLoss (no replica in reach can read
  // it); after both the tail is of no more use. Unavailable (no node is in
  // reach; calling again tries again); NotFound, FailedPrecondition (what all
  // nodes say: no such log, another cluster, other N and W than the cluster
  // file says); FailedPrecondition for good, as soon as one node shows a newer
  // configuration than the cluster file: the members changed, and others may
  // have the rest of the log. Begin anew by the newest file, at next_lsn().
  absl::StatusOr<std::optional<TailRecord>> Next(Deadline deadline);

  // Highest LSN that is known to be durable. Never goes back.
  Lsn durable_lsn() const;
  // To be shown next: from where another tail would go on; 0: not known yet.
  Lsn next_lsn() const;
  // Where the log begins, by what the nodes in reach said; 0: not known yet.
  Lsn head_lsn() const;
  // Lets the following calls of Next ask every node in reach at once, and not
  // only when poll_ms say so.
  void AskAnew();
  // Every node has answered, or can't be reached, since the last AskAnew, or
  // the beginning: by what they said then, durable_lsn() is not older than that
  // call.
  bool is_settled() const;
  // And all that was found to be durable has been shown, and nothing is in
  // doubt.
  bool is_caught_up() const;
  // OK, or Unavailable: so few nodes are in reach that more may be durable than
  // all of them know of, in a newer epoch than theirs; which nodes are missing,
  // and why. Of a tail that asks one node: that one promised a newer epoch.
  absl::Status doubt() const;
  // Whose replica is read; 0: none yet.
  uint64_t node() const;

 private:
  class Impl;
  explicit ClusterTail(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_TAIL_H_
