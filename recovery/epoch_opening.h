// SPDX-License-Identifier: Apache-2.0
// epoch_opening: the primary's side of opening an epoch of a log that other
// hosts keep, too.
//
// Idea: a state machine that whoever polls the fabric drives. It goes through
// the steps of P-A4, each of which needs so many replicas and does not wait for
// the others longer than it must:
//
//   welcome   OpeningQuorum members tell what they promised: the ballot is
//             above it. R of them would do for EO2; but with W > R those whose
//             promises are needed, too, might refuse what was taken without
//             their word
//   ballot    membership is asked for it (membership.h). Static membership
//             answers at once; a service takes its time, within the deadline.
//             Nothing is promised or written meanwhile, and what others promise
//             by then shows when they are asked
//   promise   all that are there are asked, the own replica first; the answers
//             of OpeningQuorum members are needed, and as many more as come
//             within gather_ns. The own replica scans meanwhile, in slices
//   choose    pure (chooser.h, repair_plan.h); may want to wait for more
//   install   plan_runner.h; over when W have installed, and what else is
//             under way has got gather_ns more since it last got on
//
// It may change the configuration, too (`change`): members of both are asked
// then, and the quorums of both count in each step (opening_quorums.h).
//
// Invariants:
//   EO1. The own replica promises before any other is asked: a process never
//        asks for what its own replica refuses.
//   EO2. Nothing is chosen, and nothing is written, before OpeningQuorum
//        members promised and answered (BA4 of ballot.h, P-A4.4).
//   EO3. The log is shown only after W members have installed (P-A4.6); more,
//        in a change and after one that was cut off (opening_quorums.h).
//   EO4. It may be given up at any moment; another opening with a higher ballot
//        then finds everything that was durable. Nothing was shown.
//   EO5. No peer is given up for what this process did not do: whoever polls
//        later than NextPoll by more than a pause gives the peers their time
//        again.
// Thread safety: one thread.
// References: protocol P-A4, P-H1 to P-H8, P-H12, P-H13, P-H16 to P-H19.
#ifndef ALPHEUS_RECOVERY_EPOCH_OPENING_H_
#define ALPHEUS_RECOVERY_EPOCH_OPENING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/core/ring_log.h"
#include "quorum/ballot.h"
#include "quorum/cluster_key.h"
#include "quorum/membership.h"
#include "quorum/promise.h"
#include "quorum/quorum.h"
#include "recovery/opening_peer.h"
#include "recovery/opening_quorums.h"
#include "recovery/own_replica.h"
#include "recovery/plan_runner.h"
#include "replication/fabric/fabric.h"
#include "replication/registered_bytes.h"
#include "replication/replica_session.h"
#include "replication/session_terms.h"

namespace alpheus {

struct EpochOpeningOptions {
  Uuid cluster_id;
  Uuid log_id;
  PrimaryId self;
  QuorumSizes sizes;
  // Members, without the own replica; in a change, all of before and after.
  std::vector<PeerAddress> peers;
  uint64_t configuration_id = 1;  // of the list of members; in a change, the
                                  // new one, as are `sizes`
  // By a primary without a replica of its own only.
  std::optional<MembersChange> change = std::nullopt;
  ClusterKey key = {};  // not set: nobody proves anything

  // Nanoseconds that more replicas than needed are waited for, once enough are
  // there. A primary that is gone costs nothing of it if its host says so.
  int64_t gather_ns = 500'000'000;
  // Until a replica must have replied to one request. Scanning and reading its
  // whole ring are requests too.
  int64_t step_timeout_ns = 10'000'000'000;
  // Until a replica that could not be reached is tried again, as long as the
  // deadline allows; without a deadline it is not.
  int64_t reconnect_ns = 100'000'000;
  Deadline deadline;

  // Records up to it are cleaned by the opening (opening_cleanup.h); 0: none.
  Lsn cleanup_through{0};

  uint32_t credits = 64;  // receives of each backup
  // Of one that is behind; see SessionTerms.
  uint64_t batch_bytes_max = SessionTerms().batch_bytes_max;
  uint64_t copy_bytes_max = uint64_t{4} << 20;  // under way, of one copy
  // Of the own ring, looked at in one Poll: a millisecond or two of a warm
  // file. Adapters give up one that is silent for two seconds.
  uint64_t slice_bytes = uint64_t{4} << 20;
  // Of Aborted, StandingPromise of an opening before: the ballot is above it.
  Epoch above;
};

struct OpenedBackup {
  NodeId node;
  std::string name;  // address
  ConnectionId connection;
  std::unique_ptr<ReplicaSession> session;
};

struct OtherMember {
  NodeId node;
  std::string why;
};

// The epoch that is open now, and what it took.
struct EpochOpened {
  RingLogStart start;  // of the own replica or the cache
  Epoch epoch;
  Epoch previous_epoch;  // 0 for a new log
  LogPosition head;
  LogPosition end;
  std::vector<std::string> repairs;        // one sentence each
  Configuration configuration;             // of the log, from here on
  std::vector<OtherMember> not_installed;  // and why
  std::vector<OpenedBackup> backups;
  // The own ring, that the sessions send from; it must outlive them. After
  // the connections have been closed it may go.
  std::unique_ptr<RegisteredBytes> ring;
};

// Makes an empty replica of that capacity for a primary without one: a cache.
// It must not be blank, so its own superline names it as the only member.
using CacheFactory = std::function<absl::StatusOr<std::unique_ptr<OwnReplica>>(
    uint64_t ring_capacity, const Configuration& configuration)>;

class EpochOpening {
 public:
  // The own replica is a member; its region's lock is held. `fabric`, `clock`,
  // `random` and `ballots` (of options.self, the same one for all openings of
  // this process) must outlive it. Whoever drives it polls it, too, when the
  // source of its ballots has news. Errors: InvalidArgument (options that can't
  // be); FailedPrecondition (the replica is of another cluster, log or
  // configuration); the fabric's.
  static absl::StatusOr<std::unique_ptr<EpochOpening>> Start(
      Fabric& fabric, const Clock& clock, RandomSource& random,
      BallotSource& ballots, const EpochOpeningOptions& options,
      std::unique_ptr<OwnReplica> own);
  // For a primary that is no member.
  static absl::StatusOr<std::unique_ptr<EpochOpening>> Start(
      Fabric& fabric, const Clock& clock, RandomSource& random,
      BallotSource& ballots, const EpochOpeningOptions& options,
      CacheFactory make_cache);
  // Closes its connections, and gives its memory back.
  ~EpochOpening();

  // False if the connection is none of this opening.
  bool Take(const Completion& completion);
  bool Take(const ConnectionEvent& event);
  // Goes on, after everything was taken that the fabric had. True: it is over.
  bool Poll();
  bool is_over() const { return phase_ == Phase::kOver; }
  // When Poll has something to do, though nothing is taken.
  Deadline NextPoll() const;

  // Requires, of the rest: it is over.
  //   Unavailable         too few replicas could be reached in time, or went
  //                       in the middle; each is named, and why. No ballot
  //                       came in time, or the session of the process is gone.
  //                       Try again
  //   Aborted             another primary was promised a higher ballot. Wait a
  //                       random time, then try again with `above`
  //   ResourceExhausted   the epoch table is full
  //   OutOfRange          cleanup_through was never given
  //   FailedPrecondition  the own replica is no member (blank: its medium was
  //                       replaced); the log has another configuration than
  //                       the list of members, or the change, starts from
  //   others              as Choose, Replica, and the cache's factory
  // Whatever the error, nothing was shown.
  const absl::Status& status() const { return status_; }
  // Whether another opening, with a higher ballot, may have better luck at
  // once: Aborted, or replicas that were there went in the middle, perhaps
  // because another primary fenced them.
  bool may_try_again() const { return may_try_again_; }
  // Of Aborted, the highest that was met.
  const std::optional<Promise>& standing() const { return standing_; }
  // Once, when the status is OK.
  EpochOpened TakeOpened();

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  enum class Phase { kWelcome, kBallot, kPromise, kInstall, kStop, kOver };

  EpochOpening(Fabric& fabric, const Clock& clock, RandomSource& random,
               BallotSource& ballots, const EpochOpeningOptions& options);

  // Of whom so many must promise.
  struct Electorate {
    std::vector<NodeId> nodes;
    QuorumSizes sizes;
  };

  absl::Status CheckOptions() const;
  absl::Status CheckOwn() const;
  void MakeElectorates();
  void MakePeers();

  void RenewTimeAfterAPause(int64_t now);
  absl::Status GoOn();
  void Reconnect();
  absl::Status CheckWelcomes();
  absl::Status AskBallot();
  // The list of members is newer than the log's configuration.
  absl::Status NotYet(uint64_t found, uint64_t expected) const;
  absl::Status TakeBallot();
  absl::Status PromiseItself();
  void AskForPromises();
  absl::Status ScanOn();
  absl::Status Gather();
  absl::Status ChooseFromAnswers();
  absl::Status CheckList(const std::vector<Answer>& answers) const;
  QuorumSizes SizesToChooseBy(const std::vector<Answer>& answers) const;
  absl::StatusOr<Configuration> Target(const Decision& decision,
                                       const std::vector<Answer>& answers);
  absl::Status CheckAnyoneIsLeft();
  bool OwnPromisedAnother();
  absl::Status Begin(Decision decision, const Promises& promises,
                     std::vector<Answer> answers,
                     std::vector<OpeningPeer*> peers);
  absl::Status MakeCache(const Decision& decision,
                         const std::vector<Answer>& answers);
  absl::Status RegisterOwnRing();
  absl::Status InstallOn();
  bool IsLeaving(NodeId node) const;
  void Finish();
  void End(const absl::Status& status);

  bool MayComeYet(const OpeningPeer& peer) const;
  // The members of the electorate whose peers are so, and the own replica.
  uint32_t Count(const Electorate& electorate,
                 const std::function<bool(const OpeningPeer&)>& is_so) const;
  absl::Status CheckPossible();
  absl::Status TooFew(const std::string& what) const;
  void NoteStanding(const Promise& standing);
  std::string WhatWasPromised() const;
  std::string DescribePeers() const;
  bool DeadlineHasPassed() const {
    return options_.deadline.HasPassed(clock_.NowNanos());
  }

  Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  BallotSource& ballots_;
  const EpochOpeningOptions options_;

  std::vector<Electorate> electorates_;
  Phase phase_ = Phase::kWelcome;
  absl::Status status_;
  bool may_try_again_ = false;
  std::optional<Promise> standing_;
  std::unique_ptr<BallotRequest> ballot_;  // on its way
  Promise promise_;                        // that is asked for

  std::unique_ptr<OwnReplica> own_;  // or the cache
  bool is_cache_ = false;
  CacheFactory cache_factory_;
  std::optional<Answer> own_answer_;
  std::unique_ptr<RegisteredBytes> own_ring_;

  // When there were enough, of answers or of installed replicas, or when the
  // rest last got on.
  std::optional<int64_t> gathered_at_;
  int64_t wake_at_ = kNever;      // when that time is over; until it is noticed
  int64_t expected_at_ = kNever;  // the next Poll
  uint64_t progress_ = 0;         // of the runner, at gathered_at_
  // Whose answers were too few to choose from, last time.
  std::optional<std::vector<const OpeningPeer*>> tried_with_;
  std::string wait_reason_;
  Configuration configuration_;  // that is installed
  std::unique_ptr<PlanRunner> runner_;
  // Destroyed first: closed connections use no memory any more.
  std::vector<std::unique_ptr<OpeningPeer>> peers_;
  std::optional<EpochOpened> opened_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_EPOCH_OPENING_H_
