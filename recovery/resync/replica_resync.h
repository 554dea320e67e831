// SPDX-License-Identifier: Apache-2.0
// replica_resync: brings members that are out of sync back into the open epoch.
//
// Idea: while the log runs, its primary resynchronises members that are out of
// sync, one at a time. It connects, and asks for the promise of the running
// epoch again, which ends all sessions that the replica still has. It compares
// the report with its own ring (join_plan.h), copies what is missing, and
// installs it. Then it hands the session to the replicator. A failure costs the
// log nothing: the member is tried again, after a time that doubles.
//
// Invariants:
//   RSY1. A replica is asked only while it is out of sync: asking fences it.
//   RSY2. The ring from the head on does not change from before the comparison
//         until the session is handed over; then the session holds it
//         (pinned()). The log does not suffer for it: the joining member is
//         given up once more than a quarter of the ring waits for it alone.
//   RSY3. A replica that promised a later epoch is not asked again: it can't
//         join this one any more.
//   RSY4. Nothing of a replica counts before it has installed (P-A5).
//   RSY5. No damage keeps a replica out for good. If a try met some, the next
//         one asks for a whole report, which names what is damaged there. If
//         that one met some, too, the own ring is to be scrubbed (P-C8).
// Thread safety: one thread.
// References: protocol P-A5, P-H12, P-H21; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_RESYNC_REPLICA_RESYNC_H_
#define ALPHEUS_RECOVERY_RESYNC_REPLICA_RESYNC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/read/record_cursor.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/opening/ring_copier.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/resync/join_plan.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct ResyncOptions {
  // Options with which the epoch was opened.
  EpochOpeningOptions opening;
  // Nanoseconds until a member that is out of sync is tried again; doubled with
  // each failure, up to 32 times as long.
  int64_t retry_ns = 1'000'000'000;
  // Bytes of the own ring that one Poll compares. A concurrent append waits for
  // it: some ten microseconds.
  uint64_t slice_bytes = uint64_t{32} << 10;
  // Bytes of a copy in flight; a piece is a quarter of it.
  uint64_t copy_bytes_max = uint64_t{128} << 10;
};

// The open epoch, and the ring of this process.
struct ResyncSource {
  Configuration configuration;
  Epoch epoch;
  EpochTable table;
  LogPosition start;
  Ring ring;
  fabric::RegionKey ring_key;
};

class ReplicaResync {
 public:
  // How far the log is now.
  struct Now {
    RingBounds bounds;
    RingEnd finished;
    Lsn durable_lsn;
  };
  using StatusOf = std::function<absl::Status(const std::string& name)>;
  struct Counters {
    uint64_t tries = 0;  // begun, the present one included
    uint64_t joins = 0;
    uint64_t failures = 0;
    uint64_t records_copied = 0;  // before the sessions began

    bool operator==(const Counters&) const = default;
  };

  // `fabric`, `clock` and `random` must outlive the object.
  ReplicaResync(fabric::Fabric& fabric, const Clock& clock,
                RandomSource& random, ResyncOptions options, ResyncSource log);
  ~ReplicaResync();

  // Notes why the epoch was opened without a member. Call it before Poll.
  void NoteAbsent(const OtherMember& absent);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnCompletion(const fabric::Completion& completion);
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  // Advances, after the caller took everything that the fabric had. Returns
  // kMoved if a member has joined: TakeJoined then returns it. Else kIdle.
  // `status_of`, asked by the name that DescribePeer gives, returns OK for a
  // member in sync, and else why it is not.
  Polled Poll(const Now& now, const StatusOf& status_of);
  // Returns when Poll has something to do although nothing was taken.
  Deadline NextPoll() const;
  // Returns the member that has joined, once; its session now holds what was
  // pinned. Requires: Poll has just returned kMoved.
  OpenedBackup TakeJoined() { return std::move(joined_); }
  // Returns true if the own ring is to be scrubbed, because it may be damaged
  // (RSY5): once for each time that a member is out of sync.
  bool TakeScrubRequest() { return std::exchange(wants_scrub_, false); }
  // Returns true while a member is joining.
  bool is_at_work() const { return joining_ != nullptr; }
  // Returns the offset from which on ring bytes must not change, if any.
  std::optional<RingOffset> pinned() const { return pinned_; }
  // Gives up for good: the log has failed. Poll then only notes who is out of
  // sync.
  void Stop();

  const Counters& counters() const { return counters_; }
  // Returns the members that were not in sync at the last Poll, and why.
  std::vector<OtherMember> OutOfSync() const;

 private:
  struct Member {
    PeerAddress at;
    std::string name;
    bool is_out_of_sync = false;
    int64_t due_nanos = 0;             // when it is tried next
    uint32_t failures = 0;             // number since it was in sync
    bool is_lost = false;              // RSY3
    bool reports_all = false;          // RSY5: in the next try
    bool has_asked_for_scrub = false;  // since it was in sync
    absl::Status why;  // why it is out of sync, or could not join
  };

  void NoteOutOfSync(const StatusOf& status_of);
  Member* NextMember();
  void Begin(Member& member);
  absl::Status Advance(const Now& now);
  absl::Status SendPrepare();
  absl::Status ContinuePlan(const Now& now);
  absl::Status ContinueCopy(const Now& now);
  absl::Status CheckPinned(const Now& now) const;
  void FinishJoin();
  void NoteDamage();
  void Fail(const absl::Status& why);
  void EndTry(int64_t wait_ns);

  fabric::Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  const ResyncOptions options_;
  const ResyncSource log_;
  std::vector<Member> members_;
  Counters counters_;
  bool stopped_ = false;
  bool wants_scrub_ = false;
  int64_t expected_at_;  // when Poll was to be called next

  // The member that is joining; nullptr: none.
  Member* trying_ = nullptr;
  std::optional<RingOffset> pinned_;
  std::unique_ptr<JoinPlanner> planner_;
  std::unique_ptr<RingCopier> copier_;
  std::unique_ptr<OpeningPeer> joining_;  // destroyed first, as it is used
  OpenedBackup joined_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_RESYNC_REPLICA_RESYNC_H_
