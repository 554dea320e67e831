// SPDX-License-Identifier: Apache-2.0
// replication_sink: what a log tells those who copy it to other hosts, and what
// it asks them.
//
// Idea: the log knows no network. It says up to where its ring holds finished
// records, what of them its own replica has persisted and where its head is;
// whoever implements this has backups write the same, and says which LSN W
// replicas have persisted and which ring bytes no replica needs any more.
//
// Invariants that an implementation keeps:
//   RSK1. durable_lsn is at most the W-th largest persisted LSN over the
//         replicas in sync, the log's own among them as LocalPersisted told it
//         (P-INV-22), and never goes back.
//   RSK2. reuse_head is at most the head that each replica in sync has in its
//         persisted superline (P-L4).
//   RSK3. Once status() is not OK it stays so, and durable_lsn with it (P-H20).
// Thread safety: WaitForActivity and Wake by any thread at any time; the other
// members by one thread at a time, under a lock of the log.
// References: protocol P-A3.3, P-A3.6, P-A6, P-L4, P-H20 to P-H22.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_
#define ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"

namespace alpheus {

// Up to where a ring holds finished records: the last one, and behind it.
struct RingEnd {
  Lsn lsn;
  RingOffset offset;
};

// What a sink says; in one answer, as each step asks for all of it.
struct ReplicationState {
  Lsn durable_lsn;
  // 0 until a replica has said more; the log then goes by the head with which
  // it was opened, which every replica has (P-A4.5).
  RingOffset reuse_head;
  // The largest head that W replicas have in their persisted superlines, of
  // those that AdvanceHead told; LSN 0 before.
  Lsn durable_head_lsn;
  // Nothing is under way: without a new call, or something that arrives,
  // another Poll changes nothing.
  bool is_idle = true;
  // A replica gets what it missed: what arrives lets Poll go on with that,
  // though no record of the log waits for it.
  bool is_catching_up = false;
  // status() is not OK.
  bool has_failed = false;
};

class ReplicationSink {
 public:
  virtual ~ReplicationSink() = default;

  // The ring holds finished records up to `finished`, whose bytes stay as they
  // are. Requires: does not go back.
  virtual void Advance(const RingEnd& finished) = 0;

  // The log's own replica has persisted all up to `lsn`: after its fence, not
  // before (P-H22). Ignored where the log's own memory is no replica.
  virtual void LocalPersisted(Lsn lsn) = 0;

  // The log's own superline has this head. Requires: does not go back.
  virtual void AdvanceHead(const LogPosition& head) = 0;

  // The log rests: nothing is exposed. Backups are to hear what is durable, for
  // those who follow the log there; who keeps nobody informed does nothing.
  virtual void TellDurable() {}

  // Takes what arrived, posts what waits. Does not block. False if nothing of
  // what replication_state() says has changed by it.
  virtual bool Poll() = 0;

  virtual ReplicationState replication_state() const = 0;
  // OK, or Aborted: the outcome of what is not durable is unknown (P-A3.6).
  virtual absl::Status status() const = 0;

  // Returns when Poll may have something, or at the deadline, or after a Wake
  // that came since the last return; or for no reason.
  virtual void WaitForActivity(Deadline deadline) = 0;
  virtual void Wake() = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_REPLICATION_SINK_H_
