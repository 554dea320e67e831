// SPDX-License-Identifier: Apache-2.0
// scrubbing: a node verifies the records of its replicas while they are served,
// and mends what is damaged with bytes of its peers.
//
// Idea: one pass after the other, each over one log, in slices between which
// the sessions of all logs are served. A pass that the clock began is slow, by
// a rate; one that somebody asked for is not. What a slice finds is mended by
// the process that writes the damaged replica: a node, or a primary, of its
// own. Between two slices the head may move, what is persisted may grow, and a
// primary's records may be cleaned; within one nothing changes from the head to
// the last record that was persisted before the pass began, as a primary reuses
// no byte behind the head that the replica has published (P-A3.1).
//
// Invariants:
//   SCR1. Only records between the replica's head and the last LSN that it has
//         persisted in its log epoch are looked at or written. A record that
//         the head has passed is no damage.
//   SCR2. From a promise on until its session has begun, or its connection
//         ended, nothing is looked at or written: the ring is somebody else's
//         (RS2 of replica_server.h). The pass begins anew then.
//   SCR3. Nothing of a `repairing` replica is looked at.
//   SCR4. What is written is what record_repair.h has checked (RR1), and counts
//         as repaired when it was persisted and read again here.
//   SCR5. What is damaged is looked at again before bytes are written over it:
//         no CLEANED word is written back to 0.
//   SCR6. A record that no peer gives stays as it is, and is told; the log is
//         not shortened.
//   SCR7. While a peer's bytes are on their way the damaged place is left
//         alone: to look at it takes a checksum of the whole record.
//   SCR8. What is looked at is what the medium holds. Where the ring is a copy
//         of it in memory, the copy is the first that is asked for good bytes.
// Crash states, of each repair: any part of the bytes may be persisted, all of
// them in places that held no good byte, or equal ones. The record is as
// damaged as before, or whole.
// Thread safety: one thread.
// References: protocol P-A8; docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_SCRUBBING_H_
#define ALPHEUS_RECOVERY_SCRUBBING_H_

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
#include "recovery/handshake.h"
#include "recovery/messages.h"
#include "recovery/opening_peer.h"
#include "recovery/record_repair.h"
#include "recovery/ring_scrub.h"
#include "recovery/scrub_counts.h"
#include "recovery/scrubbed_replica.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct ScrubbingOptions {
  // Of what the clock began; 0: only what is asked for is scrubbed.
  uint64_t bytes_per_second = 0;
  // From the end of a pass, or from when the log was first seen, to the next.
  int64_t interval_ns = 24 * int64_t{3'600'000'000'000};
  // Looked at in one Poll; more than 0.
  uint64_t slice_bytes = uint64_t{256} << 10;
  // Who has replicas of the same logs; this node is passed over.
  std::vector<PeerAddress> peers;
  // Of a finding, read from a peer at first; then eight times as much, until a
  // record is whole.
  uint64_t read_bytes = uint64_t{1} << 20;
  // Until a peer must have answered.
  int64_t silence_ns = 3'000'000'000;
};

class Scrubbing {
 public:
  struct Node {
    Uuid cluster_id;
    NodeId node;
    Credentials credentials;
    std::function<void(const std::string&)> report;
    // Names a log in messages; not set: by its id.
    std::function<std::string(Uuid log_id)> name_of = {};
  };

  // Fabric and clock must outlive it.
  Scrubbing(Fabric& fabric, const Clock& clock, Node node,
            ScrubbingOptions options);

  // False if it is of no connection of its own.
  bool Take(const ConnectionEvent& event);
  bool Take(const Completion& completion);

  // It may work on the replica, until it is to forget it.
  void Watch(ScrubbedReplica& replica);
  // The replica is served no more: the pass over it ends.
  void Forget(Uuid log_id);

  // Whether somebody opens or joins an epoch of a log (SCR2).
  using IsBusy = std::function<bool(Uuid log_id)>;

  // One slice.
  void Poll(const IsBusy& is_busy);
  // When Poll has something to do by itself; not set: never.
  Deadline NextDeadline() const;

  // A whole pass soon; one that was asked for and runs is as good.
  void Ask(Uuid log_id);

  Scrubbed StateOf(Uuid log_id) const;

  // An opening read the replica, and could not read these LSNs of `epoch`, its
  // log epoch.
  void NoteDamage(Uuid log_id, Epoch epoch, const std::vector<LsnRun>& damage);

  // Memory ran out in Poll: the pass ends, and the next one is due as ever.
  void GiveUpPass();
  // A pass that runs begins anew.
  void Reconfigure(const Credentials& credentials, ScrubbingOptions options);

 private:
  struct LogState {
    ScrubbedReplica* replica = nullptr;  // nullptr: it was forgotten
    uint64_t incarnation = 0;            // of the last replica
    Scrubbed said;
    // Known damage, from the last whole pass or opening. The next epoch is
    // installed only where all of it was read.
    std::vector<LsnRun> damage;
    Epoch damage_epoch;
    bool is_asked = false;
    int64_t due_at = 0;  // of the next pass by the clock
  };
  struct Pass {
    Uuid log_id;
    bool is_asked = false;
    Epoch epoch;
    std::unique_ptr<RingScrub> scrub;  // nullptr: not begun
    ScrubCounts found;                 // of damage
    std::vector<LsnRun> unrepairable;
    std::set<size_t> silent;  // peers that are not asked any more
    // Of the finding:
    std::set<size_t> tried;   // peers
    uint64_t read_bytes = 0;  // asked of the present one
  };
  // Of the peer that is read from.
  struct Source {
    size_t peer = 0;
    int64_t until = 0;  // it must have said something
    std::unique_ptr<PeerRing> ring;
  };

  bool HasFinding() const {
    return pass_ != nullptr && pass_->scrub != nullptr &&
           pass_->scrub->has_finding();
  }
  // Nothing is to be done: this is asked between any two batches of a session.
  bool IsIdle(int64_t now) const;
  void ChoosePass(const IsBusy& is_busy);
  void Begin(ScrubbedReplica& replica, const Followed& said);
  void Mend(ScrubbedReplica& replica);
  void WalkOn(ScrubbedReplica& replica);
  void RepairOn(ScrubbedReplica& replica);
  bool IsReading() const;
  // False: what it is to be mended with is not known yet.
  bool MendWith(ScrubbedReplica& replica,
                absl::FunctionRef<MendedRecords()> find);
  void ReadOn(ScrubbedReplica& replica);
  // From the finding's first byte on: more than was read last.
  PeerRing::Range NextRange();
  void Connect();
  void LeaveSource(const std::string& why);
  void TryNextPeer();
  void Restore(ScrubbedReplica& replica, const MendedRecords& mended);
  void GiveUp(const std::string& why);
  void EndFinding();
  void EndPass();
  // Its verified and repaired records stay counted.
  void DropPass();
  std::vector<LsnRun> DamageOf(const LogState& state) const;
  ScrubCounts CountsOf(const Pass& pass) const;
  void Tell(const std::string& what) const;

  Fabric& fabric_;
  const Clock& clock_;
  Node node_;
  ScrubbingOptions options_;
  std::map<Uuid, LogState> logs_;
  std::unique_ptr<Pass> pass_;  // nullptr: none

  std::unique_ptr<Source> source_;
  int64_t next_slice_at_ = 0;
  int64_t look_again_at_ = 0;  // at the logs
  bool is_waiting_ = false;    // a log is due, and its ring somebody else's
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_SCRUBBING_H_
