// SPDX-License-Identifier: Apache-2.0
// log_deletion: deletes a log on its members, by one operator's command.
//
// Idea: it begins as an opening does. It takes a ballot and the promises of its
// members, which fences the primary, and learns from their reports which list
// of members they have. Then it goes on in two phases. In the first one each
// member that promised marks its replica as deleted; the records stay. Once an
// opening quorum is marked no opening can ever gather its promises again: the
// deletion is decided (P-D3). Only then, in the second phase, members are told
// to remove their records.
//
//   members of {1,2,3}, W = 2        1          2          3 (down)
//   promise of the ballot            promised   promised
//   mark                             marked     promised
//     cut off here: nothing is lost. 2 and 3 open the log, without 1; or the
//     same command goes on, and 1 counts as marked
//   mark                             marked     marked     decided
//   remove                           removed    removed
//   3 comes back: it opens nothing, since 1 and 2 promise nothing. It asks
//   them, counts two marks of {1,2,3}, and removes its records (P-D5)
//
// Invariants:
//   LDL1. No member is asked for a mark before an opening quorum of one list,
//         each of which has that very list, has promised the ballot or is
//         marked. Only members that have the list are asked: a deletion that
//         can't be decided marks nobody.
//   LDL2. No member is told to remove before the deletion is decided.
//   LDL3. A connection that breaks is made again until the deadline. Its
//         last request may have been carried out: a mark is found again.
//   LDL4. The status is OK exactly if the deletion is decided. Members that did
//         not say so by the deadline may still have their records; they are
//         named by left().
//   LDL5. A member counts as one that removed its records only if it said so
//         when it was told. The decision in its superline does not show it: it
//         is there before the records go.
// Thread safety: one thread.
// References: protocol P-D1 to P-D5; deletion.h, opening_peer.h.
#ifndef ALPHEUS_RECOVERY_DELETION_LOG_DELETION_H_
#define ALPHEUS_RECOVERY_DELETION_LOG_DELETION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "quorum/arithmetic/promise.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/cluster_key.h"
#include "quorum/membership/membership.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/opening_peer.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

struct LogDeletionOptions {
  Uuid cluster_id;
  Uuid log_id;
  quorum::PrimaryId self;  // the asking process
  quorum::QuorumSizes sizes;
  std::vector<PeerAddress> peers;  // all members
  uint64_t configuration_id = 1;   // id of that list
  // The ballot is above this epoch, too: one by which an earlier attempt was
  // refused.
  Epoch above = {};
  int64_t step_timeout_ns = 10'000'000'000;
  // Nanoseconds from the loss of a connection to the next attempt.
  int64_t reconnect_ns = 100'000'000;
  // Nanoseconds that members may take that are not needed, before the first
  // promise and before the end.
  int64_t gather_ns = 2'000'000'000;
  Deadline deadline;            // set
  quorum::ClusterKey key = {};  // not set: no proofs are asked for
};

class LogDeletion {
 public:
  // Starts a deletion. All must outlive it. Errors: InvalidArgument (not N
  // members, no deadline).
  static absl::StatusOr<std::unique_ptr<LogDeletion>> Start(
      fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
      quorum::BallotSource& ballots, const LogDeletionOptions& options);

  // The next four are as in EpochOpening.
  bool OnCompletion(const fabric::Completion& completion);
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  Polled Poll();
  Deadline NextPoll() const;

  bool is_decided() const { return is_decided_; }

  // Requires, for all calls below: it is over. Errors, with nothing lost:
  //   NotFound            no member that can be reached has a replica
  //   FailedPrecondition  the members have another list, or several: a change
  //                       of the members was not completed
  //   Unavailable         too few members could be reached, or another process
  //                       was promised a higher epoch. Members that are marked
  //                       are named; the same command goes on from there
  //   others              the members'
  const absl::Status& status() const { return status_; }
  // Epoch by which it was refused last; 0: none. Another attempt may go above
  // it.
  Epoch refused_by() const { return refused_by_; }
  // Members that have removed their records, and those that have not said so.
  std::vector<NodeId> removed() const;
  std::vector<NodeId> left() const;

 private:
  enum class Phase { kServerHello, kBallot, kPromise, kMark, kRemove, kOver };

  LogDeletion(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
              quorum::BallotSource& ballots, const LogDeletionOptions& options);

  absl::Status Advance();
  void Reconnect(int64_t now);
  bool MayComeYet(const OpeningPeer& peer) const;
  // Returns true once all members are settled or late. Requires: those that
  // are needed are there.
  bool HasGathered();
  absl::Status CheckServerHellos();
  absl::Status AskBallot();
  absl::Status TakeBallot();
  absl::Status Promise();
  absl::Status Mark();
  void Remove();
  void AskPrepares();
  // Members that are marked, and with `promised` those that have promised.
  std::vector<DeletionWitness> Witnesses(bool promised) const;
  // Returns an error if no more than these members may come.
  absl::Status TooFew(const std::string& what) const;
  std::string DescribeMarked() const;
  std::string DescribeFailures() const;
  void Enter(Phase phase);
  void End(const absl::Status& status);

  const Clock& clock_;
  quorum::BallotSource& ballots_;
  const LogDeletionOptions options_;
  Phase phase_ = Phase::kServerHello;
  absl::Status status_;
  std::vector<std::unique_ptr<OpeningPeer>> peers_;
  std::unique_ptr<quorum::BallotRequest> ballot_;
  quorum::Promise promise_;
  Epoch refused_by_;
  std::optional<Configuration> list_;   // of which a quorum is to be marked
  std::optional<int64_t> gathered_at_;  // of this phase
  bool is_decided_ = false;
  std::set<NodeId> told_;     // to remove their records
  std::set<NodeId> removed_;  // that have done so (LDL5)
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_DELETION_LOG_DELETION_H_
