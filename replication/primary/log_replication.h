// SPDX-License-Identifier: Apache-2.0
// log_replication: the replication sink of a log whose backups are reached over
// a fabric.
//
// Idea: joins the log, which knows what is finished, the Replicator, which
// knows what backups have, and the fabric. Poll gives what arrives to the
// Replicator; events of other connections go to `others`, as the adapter may
// serve more than this log. A caller that waits for an ack polls again and
// again. If nothing arrived, nothing new was to send and little time has
// passed, Poll skips the Replicator.
//
// Thread safety: as ReplicationSink. `others` is called under the lock of the
// log that polls, and must not call that log.
// References: protocol P-A3.3; replication_sink.h, replicator.h.
#ifndef ALPHEUS_REPLICATION_PRIMARY_LOG_REPLICATION_H_
#define ALPHEUS_REPLICATION_PRIMARY_LOG_REPLICATION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/core/durability/replication_sink.h"
#include "replication/fabric/fabric.h"
#include "replication/primary/replicator.h"
#include "replication/session/replica_session.h"

namespace alpheus {

class LogReplication final : public ReplicationSink {
 public:
  // Takes events that are of no backup of this log.
  class Others {
   public:
    virtual ~Others() = default;
    virtual void Take(const Completion& completion) = 0;
    virtual void Take(const ConnectionEvent& event) = 0;
  };

  // Requires: all records up to `start` are durable. `fabric`, `clock` and
  // `others` must outlive the object. Without `others` their events are
  // dropped.
  LogReplication(Fabric& fabric, const Clock& clock,
                 const Replicator::Options& options, const RingEnd& start,
                 Others* others = nullptr);

  // Adds a backup, as Replicator::Add; before the log is made.
  void Add(std::string name, ConnectionId connection,
           std::unique_ptr<ReplicaSession> session) {
    replicator_.Add(std::move(name), connection, std::move(session));
  }

  // The three below are as those of Replicator. Like Poll, they run under the
  // log's lock.
  void Join(std::string name, ConnectionId connection,
            std::unique_ptr<ReplicaSession> session) {
    is_told_ = true;
    replicator_.Join(std::move(name), connection, std::move(session));
  }
  absl::Status StatusOf(const std::string& name) const {
    return replicator_.StatusOf(name);
  }
  void End(const absl::Status& why) {
    is_told_ = true;
    replicator_.End(why);
  }

  void Advance(const RingEnd& finished) override {
    is_told_ = true;
    replicator_.Advance(finished);
    fabric_.FlushSends();  // sends now; Poll comes later
  }
  void LocalPersisted(Lsn lsn) override {
    if (has_local_replica_) replicator_.LocalPersisted(lsn);
  }
  void AdvanceHead(const LogPosition& head) override {
    is_told_ = true;
    replicator_.AdvanceHead(head);
  }
  void TellDurable() override {
    is_told_ = true;
    replicator_.TellDurable();
  }
  bool Poll() override;
  ReplicationState replication_state() const override;
  Lsn durable_lsn() const { return replicator_.durable_lsn(); }
  bool is_idle() const { return replicator_.is_idle(); }
  // Returns the number of replicas in sync, the own one included.
  uint32_t in_sync() const { return replicator_.in_sync(); }
  absl::Status status() const override { return replicator_.status(); }
  bool has_failed() const { return !replicator_.status().ok(); }
  void WaitForActivity(Deadline deadline) override {
    fabric_.WaitForActivity(LookBy(deadline));
  }
  // Returns when Poll last read the clock, in nanoseconds.
  int64_t looked_at_ns() const { return replicator_.looked_at_ns(); }
  // Returns until when a caller with that deadline may wait for activity: at
  // most silence_ns / 4, so that all the time is charged (RPR4). A silent
  // backup causes no activity, and the caller may be the only one to notice.
  Deadline LookBy(Deadline deadline) const;
  void Wake() override { fabric_.Wake(); }

 private:
  // Counts of what arrived: completions and connection events.
  struct Arrived {
    size_t completions = 0;
    size_t events = 0;
  };
  // Takes what arrived, and adds to `arrived`. Returns true if there may be
  // more, or if something was posted that must be sent.
  bool TakeSome(Arrived* arrived);
  bool IsLookDue() const;

  Fabric& fabric_;
  const Clock& clock_;
  const int64_t silence_ns_;
  const bool has_local_replica_;
  Others* const others_;
  Replicator replicator_;
  uint32_t busy_polls_ = 0;  // polls in which something was taken
  bool is_told_ = true;      // new input since the Replicator's last Poll
  // Scratch of Poll; a member, as to construct it costs more than to poll.
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;  // not taken yet
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PRIMARY_LOG_REPLICATION_H_
