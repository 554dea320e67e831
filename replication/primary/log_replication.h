// SPDX-License-Identifier: Apache-2.0
// log_replication: the sink of a log whose backups are reached over a fabric.
//
// Idea: joins what each knows: the log what is finished, the Replicator who has
// it, the fabric what arrives. Poll hands what arrives to the Replicator, and
// what is of no backup of this log to somebody else: the adapter may serve
// others, too. Who waits for an ack polls again and again: where nothing came,
// nothing was told and little time has passed, the Replicator has nothing to do
// and is not asked.
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
  // Takes what arrives and is of no backup of the log.
  class Others {
   public:
    virtual ~Others() = default;
    virtual void Take(const Completion& completion) = 0;
    virtual void Take(const ConnectionEvent& event) = 0;
  };

  // All records up to `start` are durable. `fabric`, `clock` and `others` must
  // outlive it; without `others` what they would get is dropped.
  LogReplication(Fabric& fabric, const Clock& clock,
                 const Replicator::Options& options, const RingEnd& start,
                 Others* others = nullptr);

  // As Replicator::Add; before the log is made.
  void Add(std::string name, ConnectionId connection,
           std::unique_ptr<ReplicaSession> session) {
    replicator_.Add(std::move(name), connection, std::move(session));
  }

  // As those of Replicator; under the log's lock, as Poll.
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
    fabric_.HandOver();  // before the Poll, which has more to do
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
  // Replicas, the own one included.
  uint32_t in_sync() const { return replicator_.in_sync(); }
  absl::Status status() const override { return replicator_.status(); }
  bool has_failed() const { return !replicator_.status().ok(); }
  void WaitForActivity(Deadline deadline) override {
    fabric_.WaitForActivity(LookBy(deadline));
  }
  // When Poll last looked at the clock.
  int64_t looked_at_ns() const { return replicator_.looked_at_ns(); }
  // Until when whoever has that deadline may wait for activity. A backup that
  // falls silent does nothing, and who waits may be the only one to notice: of
  // the time between two looks no more counts than lies between these.
  Deadline LookBy(Deadline deadline) const;
  void Wake() override { fabric_.Wake(); }

 private:
  // What arrived: completions, and news of connections.
  struct Arrived {
    size_t completions = 0;
    size_t events = 0;
  };
  // True if there may be more, or something was posted, which is to leave.
  // Adds to `arrived`.
  bool TakeSome(Arrived* arrived);
  bool IsLookDue() const;

  Fabric& fabric_;
  const Clock& clock_;
  const int64_t silence_ns_;
  const bool has_local_replica_;
  Others* const others_;
  Replicator replicator_;
  uint32_t busy_polls_ = 0;  // in which something was taken
  bool is_told_ = true;      // something, since the Replicator was last polled
  // Of the last Poll; here, as to make them anew costs more than to ask.
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;  // that are not taken yet
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PRIMARY_LOG_REPLICATION_H_
