// SPDX-License-Identifier: Apache-2.0
// replication_sink: interface between a log and the code that copies it to
// other hosts.
//
// Idea: the log knows no network. It gives the sink the end of its finished
// records, the LSN that its own replica has persisted, and its head. The sink
// has backups write the same records. It reports the LSN that W replicas have
// persisted, and the ring bytes that no replica needs any more.
//
// Invariants that an implementation keeps:
//   RSK1. durable_lsn is at most the W-th largest persisted LSN over the
//         replicas in sync (P-INV-22), and never goes back. The log's own
//         replica counts with the LSN that LocalPersisted was given. Example: W
//         = 2 and persisted LSNs 9, 7 and 4 allow a durable_lsn of 7.
//   RSK2. reuse_limit is at most the ceiling that each replica in sync has in
//         its persisted superline (P-L4, P-A3.7).
//   RSK3. Once status() is not OK it stays so, and durable_lsn stays where it
//         is (P-H20).
//   RSK4. in_sync_lsn is at most durable_lsn, and at most the lowest persisted
//         LSN over the replicas in sync at that moment: 4 in the example. It
//         goes back when a member joins that is behind, and to 0 once status()
//         is not OK. The log keeps the highest one.
//   RSK5. A confirmation ends, and is_confirming becomes false, only once two
//         things hold. (a) At a moment after BeginConfirmation no later epoch
//         was open. (b) durable_lsn has reached the end that was given to
//         Advance before BeginConfirmation. A sink that has failed ends none
//         (P-A3.8).
// Thread safety: any thread may call WaitForActivity and Wake at any time; one
// thread at a time calls the other members.
// Called under: step_mutex_ of the log's ReplicatedForcer, except for
// WaitForActivity and Wake. So a member that takes long keeps all threads of
// the log from stepping, and no member may call the log's Step or Poll.
// May block: only WaitForActivity waits for another host. The other members may
// wait for the fabric's lock (fabric.h) and for page faults of the own ring.
// Poll may also do a slice of upkeep, with locks and fences of its own
// (member_upkeep.h).
// References: protocol P-A3.3, P-A3.6, P-A3.8, P-A6, P-L4, P-H20 to P-H23.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_
#define ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/core/space/ceiling.h"

namespace alpheus {

// End of the finished records in a ring: the last LSN, and the offset after it.
struct RingEnd {
  Lsn lsn;
  RingOffset offset;
};

// State of a sink, in one struct because each step needs all of it.
struct ReplicationState {
  Lsn durable_lsn;
  Lsn in_sync_lsn = {};
  // Ring offset below which bytes may be assigned. 0: not reported yet; the log
  // then uses the ceiling with which it was opened, which every replica has
  // (P-A4.5).
  RingOffset reuse_limit;
  // Largest head, of those given to AdvanceBounds, that W replicas have in
  // their persisted superlines; LSN 0 before.
  Lsn durable_head_lsn;
  // Nothing is in flight: another Poll changes nothing until a call or a
  // message comes.
  bool is_idle = true;
  // A replica is catching up: each arrival lets Poll continue with that, even
  // if no caller waits for a record.
  bool is_catching_up = false;
  // True if status() is not OK.
  bool has_failed = false;
  // A confirmation is under way (RSK5).
  bool is_confirming = false;
  // True after a Poll that let calls continue that were held: they look again.
  bool has_resumed = false;
};

class ReplicationSink {
 public:
  virtual ~ReplicationSink() = default;

  // Notes the end of the finished records; their bytes no longer change.
  // Requires: does not go back.
  virtual void Advance(const RingEnd& finished) = 0;

  // Notes that the log's own replica has persisted all records up to `lsn`;
  // after its fence, not before (P-H22). Ignored if the log's own memory is no
  // replica.
  virtual void LocalPersisted(Lsn lsn) = 0;

  // Notes head and ceiling in the log's own superline. Requires: neither goes
  // back.
  virtual void AdvanceBounds(const RingBounds& bounds) = 0;

  // Notes that the log is idle: nothing is exposed. The backups then get the
  // durable LSN, for readers that follow the log there. A sink without readers
  // does nothing.
  virtual void AnnounceDurable() {}

  // Begins to confirm that no later epoch is open (RSK5). Messages that a
  // later Poll or Advance sends ask the backups. Requires: none is under way.
  virtual void BeginConfirmation() = 0;

  // Ends the sink, because the log has failed: its sessions end, so that the
  // other nodes know, and no further record becomes durable. status() is not OK
  // any more. Requires: !why.ok().
  virtual void End(const absl::Status& why) = 0;

  // Returns true if a caller that has posted and is going to wait had better
  // leave the sending to its wait, since others are about to post.
  virtual bool sends_for_waiters() const { return false; }

  // Processes what arrived and posts what waits. Waits for no arrival. Returns
  // kIdle if replication_state() is unchanged, and else kMoved.
  virtual Polled Poll() = 0;

  virtual ReplicationState replication_state() const = 0;
  // Returns OK, or Aborted: the outcome of every record that is not durable is
  // unknown (P-A3.6).
  virtual absl::Status status() const = 0;

  // Waits until Poll may have something, until the deadline, or until a Wake
  // that came since the last return. May return without a reason.
  virtual void WaitForActivity(Deadline deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_
