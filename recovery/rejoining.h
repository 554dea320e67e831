// SPDX-License-Identifier: Apache-2.0
// rejoining: lets members that are away join the epoch that is open.
//
// Idea: while the log runs, its primary tries those that are out of sync, one
// at a time: connects, asks for the promise of the running epoch again, which
// ends whatever sessions the replica still has, compares what it answers with
// its own ring (join_plan.h), has what is missing copied and installed, and
// hands the session on to whoever replicates. Whatever fails on the way costs
// the log nothing; it is tried again later, and later each time.
//
// Invariants:
//   RJ1. A replica is asked only while it is out of sync: asking fences it.
//   RJ2. The ring from the head on stays as it is from before the comparison
//        until the session is handed on, which then holds it (pinned()); but
//        not at the cost of the log: when it holds more than a quarter of the
//        ring that the log needs no more, it is given up.
//   RJ3. A replica that promised a later epoch is not asked again: it can't be
//        of this one any more.
//   RJ4. Nothing of a replica counts before it has installed (P-A5).
// Thread safety: one thread.
// References: protocol P-A5, P-H12, P-H21; docs/design/recovery.md.
#ifndef ALPHEUS_RECOVERY_REJOINING_H_
#define ALPHEUS_RECOVERY_REJOINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/core/record_cursor.h"
#include "log/core/replication_sink.h"
#include "recovery/epoch_opening.h"
#include "recovery/join_plan.h"
#include "recovery/opening_peer.h"
#include "recovery/ring_copier.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

struct RejoiningOptions {
  // As the epoch was opened with.
  EpochOpeningOptions opening;
  // Until a member that is away is tried again; doubled with each failure, up
  // to 32 times that.
  int64_t retry_ns = 1'000'000'000;
  // Of the own ring, compared in one Poll. Whoever appends meanwhile pays for
  // it with its latency: some ten microseconds.
  uint64_t slice_bytes = uint64_t{32} << 10;
  // Under way of a copy; pieces are a quarter of that.
  uint64_t copy_bytes_max = uint64_t{128} << 10;
};

// The epoch, and the ring of this process.
struct RejoinedLog {
  Configuration configuration;
  Epoch epoch;
  EpochTable table;
  LogPosition start;
  Ring ring;
  RegionKey ring_key;
};

class Rejoining {
 public:
  // How far the log is, in this moment.
  struct Now {
    LogPosition head;
    RingEnd finished;
    Lsn durable_lsn;
  };
  using StatusOf = std::function<absl::Status(const std::string& name)>;
  struct Counters {
    uint64_t tries = 0;  // begun; the one under way included
    uint64_t joins = 0;
    uint64_t failures = 0;
    uint64_t records_copied = 0;  // before the sessions began

    bool operator==(const Counters&) const = default;
  };

  // `fabric`, `clock` and `random` must outlive it.
  Rejoining(Fabric& fabric, const Clock& clock, RandomSource& random,
            RejoiningOptions options, RejoinedLog log);
  ~Rejoining();

  // Why the epoch was opened without a member. Before the first Poll.
  void NoteAbsent(const OtherMember& absent);

  // False if the connection is none of its own.
  bool Take(const Completion& completion);
  bool Take(const ConnectionEvent& event);
  // Goes on, after everything was taken that the fabric had. Returns a member
  // that has joined: from then on its session holds what was pinned.
  // `status_of` a member, by the name that DescribePeer gives, is OK if it is
  // in sync, and else says why it is not.
  std::optional<OpenedBackup> Poll(const Now& now, const StatusOf& status_of);
  // When Poll has something to do, though nothing is taken.
  Deadline NextPoll() const;
  // A member is on its way.
  bool is_at_work() const { return joining_ != nullptr; }
  // Ring bytes from here on must stay as they are.
  std::optional<RingOffset> pinned() const { return pinned_; }
  // Gives up, for good: the log has failed. Poll then only asks who is away.
  void Stop();

  const Counters& counters() const { return counters_; }
  // Those that are not in sync, as of the last Poll, and why.
  std::vector<OtherMember> Away() const;

 private:
  struct Member {
    PeerAddress at;
    std::string name;
    bool is_away = false;
    int64_t due_nanos = 0;  // of the next try
    uint32_t failures = 0;  // since it was in sync
    bool is_lost = false;   // RJ3
    absl::Status why;       // it is away, or could not join
  };

  void NoteWhoIsAway(const StatusOf& status_of);
  Member* NextMember();
  void Begin(Member& member);
  absl::Status GoOn(const Now& now);
  absl::Status AskForThePromise();
  absl::Status PlanOn(const Now& now);
  absl::Status CopyOn();
  absl::Status CheckHeld(const Now& now) const;
  OpenedBackup HandOn();
  void Fail(const absl::Status& why);
  void EndTry(int64_t wait_ns);

  Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  const RejoiningOptions options_;
  const RejoinedLog log_;
  std::vector<Member> members_;
  Counters counters_;
  bool stopped_ = false;
  int64_t expected_at_;  // the next Poll

  // Of the member that is on its way.
  Member* trying_ = nullptr;
  std::optional<RingOffset> pinned_;
  std::unique_ptr<JoinPlanner> planner_;
  std::unique_ptr<RingCopier> copier_;
  std::unique_ptr<OpeningPeer> joining_;  // destroyed first, as it is used
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_REJOINING_H_
