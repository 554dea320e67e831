// SPDX-License-Identifier: Apache-2.0
// scrubbing: a node verifies the records of its replicas while they are served,
// and repairs damage with bytes of its peers.
//
// Idea: one pass runs after the other, each over one log, in slices; between
// two slices the sessions of all logs are served. A pass that the clock began
// is limited to a rate; a pass that was asked for is not. The process that
// writes a replica repairs it: the node, or a primary for its own. Between two
// slices the head may move, more may be persisted, and a primary's records may
// be cleaned. Within a slice nothing changes from the head to the last record
// that was persisted before the pass began. The reason: a primary reuses a byte
// only after the replica has published a head past it (P-A3.1).
//
// Invariants:
//   SCR1. Only records between the replica's head and the last LSN that it has
//         persisted in its log epoch are read or written. A record that the
//         head has passed is no damage.
//   SCR2. From a promise until its session has begun, or its connection has
//         ended, nothing is read or written: the ring belongs to the promise
//         owner (OSV2 of opening_service.h). Then the pass begins again.
//   SCR3. Nothing of a `repairing` replica is read.
//   SCR4. Only bytes that record_repair.h has checked are written (RR1). They
//         count as repaired once they were persisted and read again here.
//   SCR5. A damaged place is read again before it is overwritten: no CLEANED
//         word is set back to 0.
//   SCR6. A record that no peer has whole stays as it is, and is reported. The
//         log is not shortened.
//   SCR7. While a peer's bytes are on their way the damaged place is not read
//         again: that would take a checksum of the whole record.
//   SCR8. The medium itself is read. Where the ring is a copy of it in memory,
//         that copy is the first source of good bytes.
// Crash states, of each repair: any part of the new bytes may be persisted.
// They only replace bytes that were not good, or equal ones. The record is as
// damaged as before, or whole.
// Thread safety: one thread.
// References: protocol P-A8; docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_SCRUB_SCRUBBING_H_
#define ALPHEUS_RECOVERY_SCRUB_SCRUBBING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/protocol/handshake.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/protocol/scrub_counts.h"
#include "recovery/scrub/record_repair.h"
#include "recovery/scrub/ring_scrub.h"
#include "recovery/scrub/scrubbed_replica.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct ScrubbingOptions {
  // Rate of passes that the clock begins; 0: only what is asked for is
  // scrubbed.
  uint64_t bytes_per_second = 0;
  // Nanoseconds from the end of a pass, or from when the log was first seen, to
  // the next.
  int64_t interval_ns = 24 * int64_t{3'600'000'000'000};
  // Bytes that one Poll reads; more than 0.
  uint64_t slice_bytes = uint64_t{256} << 10;
  // Nodes with replicas of the same logs; this node is skipped.
  std::vector<PeerAddress> peers;
  // Bytes first read from a peer for a finding; then eight times as many each
  // time, until a record is whole.
  uint64_t read_bytes = uint64_t{1} << 20;
  // Nanoseconds in which a peer must answer.
  int64_t reply_timeout_ns = 3'000'000'000;
};

class Scrubbing {
 public:
  struct Node {
    Uuid cluster_id;
    NodeId node;
    Credentials credentials;
    std::function<void(const std::string&)> warn;
    // Names a log in messages; not set: by its id.
    std::function<std::string(Uuid log_id)> name_of = {};
  };

  // Fabric and clock must outlive the object.
  Scrubbing(fabric::Fabric& fabric, const Clock& clock, Node node,
            ScrubbingOptions options);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Adds the replica, which must live until Forget.
  void Watch(ScrubbedReplica& replica);
  // Removes the replica, and ends a pass over it.
  void Forget(Uuid log_id);

  // Returns true while an opening or a joiner has the log's ring (SCR2).
  using IsBusy = std::function<bool(Uuid log_id)>;

  // Does one slice.
  void Poll(const IsBusy& is_busy);
  // Returns when Poll has something to do by itself; not set: never.
  Deadline NextPoll() const;

  // Asks for a whole pass soon. A running pass that was asked for will do.
  void Ask(Uuid log_id);

  Scrubbed StateOf(Uuid log_id) const;

  // Notes that an opening could not read these LSNs of `epoch`, the log epoch.
  void NoteDamage(Uuid log_id, Epoch epoch, const std::vector<LsnRun>& damage);

  // Ends the pass after memory ran out in Poll. The next one is due as usual.
  void AbandonPass();
  // Changes the options; a running pass begins again.
  void Reconfigure(const Credentials& credentials, ScrubbingOptions options);

 private:
  struct LogState {
    ScrubbedReplica* replica = nullptr;  // nullptr: removed
    uint64_t incarnation = 0;            // incarnation of the last replica
    Scrubbed said;
    // Known damage, from the last whole pass or opening. The next epoch is
    // installed only where all of it could be read.
    std::vector<LsnRun> damage;
    Epoch damage_epoch;
    bool is_asked = false;
    int64_t due_at = 0;  // when the clock begins the next pass
  };
  struct Pass {
    Uuid log_id;
    bool is_asked = false;
    Epoch epoch;
    std::unique_ptr<RingScrub> scrub;  // nullptr: not begun
    ScrubCounts found;                 // counts of damage
    std::vector<LsnRun> unrepairable;
    std::set<size_t> silent;  // peers that are asked no more in this pass
    // For the present finding:
    std::set<size_t> tried;   // peers
    uint64_t read_bytes = 0;  // asked of the present peer
  };
  // The peer that is read from.
  struct Source {
    size_t peer = 0;
    int64_t until = 0;  // deadline of its answer
    std::unique_ptr<PeerRing> ring;
  };

  bool HasFinding() const {
    return pass_ != nullptr && pass_->scrub != nullptr &&
           pass_->scrub->has_finding();
  }
  // Returns true if there is nothing to do. Called between any two batches of a
  // session, so it must be cheap.
  bool IsIdle(int64_t now) const;
  void ChoosePass(const IsBusy& is_busy);
  void Begin(ScrubbedReplica& replica, const Followed& said);
  void Repair(ScrubbedReplica& replica);
  void ContinueWalk(ScrubbedReplica& replica);
  void ContinueRepair(ScrubbedReplica& replica);
  bool IsReading() const;
  // Returns false if good bytes are not known yet.
  bool RepairWith(ScrubbedReplica& replica,
                  absl::FunctionRef<RepairedRecords()> find);
  void ContinueReading(ScrubbedReplica& replica);
  // Returns the next range to read: from the finding's first byte, longer than
  // the last one.
  PeerRing::Range NextRange();
  void Connect();
  void LeaveSource(const std::string& why);
  void TryNextPeer();
  void Restore(ScrubbedReplica& replica, const RepairedRecords& repaired);
  void Abandon(const std::string& why);
  void EndFinding();
  void EndPass();
  // Ends the pass. Its verified and repaired records stay counted.
  void DropPass();
  std::vector<LsnRun> DamageOf(const LogState& state) const;
  ScrubCounts CountsOf(const Pass& pass) const;
  void Report(const std::string& what) const;

  fabric::Fabric& fabric_;
  const Clock& clock_;
  Node node_;
  ScrubbingOptions options_;
  std::map<Uuid, LogState> logs_;
  std::unique_ptr<Pass> pass_;  // nullptr: none

  std::unique_ptr<Source> source_;
  int64_t next_slice_at_ = 0;
  int64_t recheck_at_ = 0;   // when the logs are checked next
  bool is_waiting_ = false;  // a log is due, and its ring is busy (SCR2)
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SCRUB_SCRUBBING_H_
