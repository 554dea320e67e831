// SPDX-License-Identifier: Apache-2.0
// epoch_opening: the primary's side of opening an epoch of a replicated log.
//
// Idea: an opening is a state machine, driven by the loop that polls the
// fabric. It takes the steps of P-A4. Each step needs a number of replicas, and
// waits for the others no longer than it must:
//
//   hello     OpeningQuorum members report their promises; the ballot is above
//             all of these (P-A4.1). OpeningQuorum, not R: R members know every
//             installed epoch (BallotSequence::Next), but with W > R the
//             promise step needs more members, and the additional ones might
//             refuse a ballot that ignores their promises
//   ballot    the membership gives it (membership.h). Static membership answers
//             at once. A service may take until the deadline. Nothing is
//             promised or written for this opening meanwhile. Promises to
//             others show when the replicas are asked
//   promise   all members that are there are asked, the own replica first. The
//             reports of OpeningQuorum members are needed, and others are taken
//             for gather_ns more. The own replica scans meanwhile, in slices
//   choose    pure (opening_choice.h, repair_plan.h); may want to wait for more
//   install   epoch_install.h; over when W have installed, and the others have
//             made no progress for gather_ns
//
// An opening may change the configuration, too (`change`). Then members of both
// lists are asked, and the quorums of both count in each step
// (opening_quorums.h).
//
// Invariants:
//   EO1. The own replica promises before any other is asked. So a process never
//        asks others for a promise that its own replica refuses.
//   EO2. Nothing is chosen, and nothing is written, before OpeningQuorum
//        members promised and reported (BA4 of ballot.h, P-A4.4).
//   EO3. The log is shown only after W members have installed (P-A4.6). A
//        change, and the opening after one that was cut off, need more
//        (opening_quorums.h).
//   EO4. An opening may be given up at any moment: nothing was shown. Another
//        one with a higher ballot then finds everything that was durable.
//   EO5. No peer is given up for time in which this process did nothing. A
//        caller that polls much later than NextPoll has paused: the peers get
//        their time again.
//   EO6. In a change the own replica is a member before and after. So it counts
//        once in the quorums of both lists.
//   EO7. It ends with NotFound once the replies show that the log's deletion is
//        decided (P-D3); the caller need not try again. A member that is only
//        marked is one that can't promise.
// Thread safety: one thread.
// References: protocol P-A4, P-H1 to P-H8, P-H12, P-H13, P-H16 to P-H19.
#ifndef ALPHEUS_RECOVERY_OPENING_EPOCH_OPENING_H_
#define ALPHEUS_RECOVERY_OPENING_EPOCH_OPENING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/core/ring/ring_log.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/promise.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/members/cluster_key.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_install.h"
#include "recovery/opening/opening_choice.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/replica/openers_replica.h"
#include "replication/fabric/fabric.h"
#include "replication/session/primary_session.h"
#include "replication/session/session_terms.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus::recovery {

struct EpochOpeningOptions {
  Uuid cluster_id;
  Uuid log_id;
  quorum::PrimaryId self;
  quorum::QuorumSizes sizes;
  // Members, without the own replica; in a change, all of both lists.
  std::vector<PeerAddress> peers;
  // Id of the list of members. In a change, id and `sizes` are the new list's.
  uint64_t configuration_id = 1;
  // Change of members. An own replica must stay a member (EO6).
  std::optional<MembersChange> change = std::nullopt;
  quorum::ClusterKey key = {};  // not set: no proofs are asked for

  // Nanoseconds that an opening waits for more replicas than it needs, once it
  // has enough. It does not wait for a process whose host says that it is gone.
  // A change waits for that process, too, if the member stays. Half of the time
  // that is left until the deadline is kept for the steps that follow.
  int64_t gather_ns = 500'000'000;
  // Reports are waited for no longer than so many times what those that are
  // needed took; 0: that does not matter. Replicas that are well take about the
  // same time, and a log whose users wait leaves the others to the resync.
  uint32_t gather_factor = 0;
  // The same once enough have installed, for the others; not set: gather_ns. A
  // log whose users wait leaves a copy of the whole log to the resync.
  std::optional<int64_t> install_gather_ns = std::nullopt;
  // Nanoseconds in which a replica must reply to one request. To scan and to
  // read its whole ring are requests, too.
  int64_t step_timeout_ns = 10'000'000'000;
  // Nanoseconds until an unreachable replica is tried again, up to the
  // deadline. Without a deadline it is not tried again.
  int64_t reconnect_ns = 100'000'000;
  Deadline deadline;
  // Nanoseconds in which enough replicas must report, beside those in which one
  // may read its ring; 0: until the deadline. An opener keeps its own replica
  // from others while it waits for theirs.
  int64_t report_ns = 0;

  // The opening cleans records up to this one (opening_cleanup.h); 0: none.
  Lsn cleanup_through{0};

  // Reports name all records from the head on, and so what is damaged before
  // their places: an opening before this one asks for it (wants_whole_reports).
  bool whole_reports = false;

  uint32_t credits = 64;  // receives of each backup
  // How often the primary will be heard, in milliseconds, as it promises to its
  // backups; 0: it promises nothing (election.h).
  uint32_t heartbeat_ms = 0;
  // Bytes of a batch to a backup that is behind; see SessionTerms.
  uint64_t batch_bytes_max = replication::SessionTerms().batch_bytes_max;
  uint64_t copy_bytes_max = uint64_t{4} << 20;  // bytes in flight, per copy
  // Bytes of the own ring that one Poll reads: a millisecond or two of a warm
  // file. Adapters give up a connection that is silent for two seconds.
  uint64_t slice_bytes = uint64_t{4} << 20;
  // Bytes that the ceilings lie after the end of the log that is installed.
  uint64_t ceiling_step_bytes = kCeilingStepBytes;
  // The log that opened the epoch before goes on in this one: the ceilings are
  // at least that of the own replica, below which it may have assigned space.
  bool keeps_ceiling = false;
  // The ballot is above this epoch, which refused an earlier opening that lost
  // the race for the promises.
  Epoch above;
  // Latest promise that the opener knew of when it decided to open. If it is
  // set, the opening has lost the race (lost_race) before anybody promises,
  // once it sees a later one: another primary came since. Replicas are told it,
  // and refuse where they have gone further by then (Prepare).
  std::optional<Epoch> promised_max = std::nullopt;
};

struct OpenedBackup {
  NodeId node;
  std::string name;  // address
  fabric::ConnectionId connection;
  std::unique_ptr<replication::PrimarySession> session;
};

struct OtherMember {
  NodeId node;
  std::string why;
};

// The open epoch, and how it was opened.
struct EpochOpened {
  RingLogStart
      start;  // start of the log in the own replica or the working copy
  Epoch epoch;
  Epoch previous_epoch;  // 0 for a new log
  // Moments by the opening's clock, in nanoseconds: enough members had promised
  // and reported; the log was chosen; enough had installed it, and the others
  // were waited for no more.
  int64_t promised_ns = 0;
  int64_t chosen_ns = 0;
  int64_t installed_ns = 0;
  LogPosition head;
  LogPosition end;
  std::vector<std::string> repairs;        // one sentence each
  Configuration configuration;             // configuration of the log now
  std::vector<OtherMember> not_installed;  // members left out, with the reason
  std::vector<OpenedBackup> backups;
  // The own ring, from which the sessions send. It must outlive them, and may
  // go once the connections are closed.
  std::unique_ptr<replication::RegisteredBytes> ring;
};

// Makes a *working copy*: an empty replica of that capacity in memory, for a
// primary without a replica. Its superline names it as the only member: it must
// not be blank.
using WorkingCopyFactory =
    std::function<absl::StatusOr<std::unique_ptr<OpenersReplica>>(
        uint64_t ring_capacity, const Configuration& configuration)>;

class EpochOpening {
 public:
  // For a primary whose own replica is a member; its region's lock is held.
  // `fabric`, `clock`, `random` and `ballots` must outlive the opening.
  // `ballots` is of options.self, and one for all openings of this process that
  // have no own replica in common. The caller polls the opening also when the
  // source of ballots has news. Errors:
  // InvalidArgument (impossible options); FailedPrecondition (the replica is of
  // another cluster, log or configuration, or does not stay a member); the
  // fabric's.
  static absl::StatusOr<std::unique_ptr<EpochOpening>> Start(
      fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
      quorum::BallotSource& ballots, const EpochOpeningOptions& options,
      std::unique_ptr<OpenersReplica> own);
  // For a primary that is no member.
  static absl::StatusOr<std::unique_ptr<EpochOpening>> Start(
      fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
      quorum::BallotSource& ballots, const EpochOpeningOptions& options,
      WorkingCopyFactory make_working_copy);
  // Closes all connections and frees their memory.
  ~EpochOpening();

  // Takes what the fabric brought. Returns false if the connection is not one
  // of this opening.
  bool OnCompletion(const fabric::Completion& completion);
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  // Advances, after the caller took everything that the fabric had. Returns
  // kIdle, or kDone once the opening is over.
  Polled Poll();
  bool is_over() const { return phase_ == Phase::kOver; }
  // Returns when Poll has something to do although nothing was taken.
  Deadline NextPoll() const;

  // Requires, for all calls below: the opening is over. Errors:
  //   NotFound            the log was deleted (EO7)
  //   Unavailable         too few replicas could be reached in time, or some
  //                       went meanwhile; names each, and why. No ballot came
  //                       in time, or the membership session of the process is
  //                       gone. Or another primary was promised a higher ballot
  //                       (lost_race). Try again
  //   ResourceExhausted   the epoch table is full
  //   OutOfRange          cleanup_through is an LSN that was never assigned
  //   FailedPrecondition  the own replica is no member (blank: its medium was
  //                       replaced); the log's configuration is not the one
  //                       that the list of members, or the change, starts from
  //   others              as Choose, LocalReplica, and the working copy's
  //   factory
  // After any error, nothing was shown.
  const absl::Status& status() const { return status_; }
  // Returns true if another opening with a higher ballot may succeed at once:
  // after a lost race, if replicas went in the middle of this one, perhaps
  // fenced by another primary, or with wants_whole_reports.
  bool may_try_again() const { return may_try_again_; }
  // Returns true if members may have installed its list, although it failed: it
  // had begun to install.
  bool may_be_installed() const { return may_be_installed_; }
  // Returns true if it failed because reports did not name all records: one
  // that is said to be had may be damaged (STR4 of state_report.h). Either a
  // replica could not read what it was given, or one was to get such records
  // that may have them itself (RPL4). Try again with whole_reports.
  bool wants_whole_reports() const { return wants_whole_reports_; }
  // Returns true if it failed because another primary was promised a higher
  // ballot. Wait for a random time, then try again `above` refused_by().
  bool lost_race() const { return lost_race_; }
  // Returns the highest promise that refused this opening.
  const std::optional<quorum::Promise>& refused_by() const {
    return refused_by_;
  }
  // Returns the open epoch. Call it once, if the status is OK.
  EpochOpened TakeOpened();

 private:
  static constexpr int64_t kNever = EpochInstall::kNever;

  enum class Phase { kServerHello, kBallot, kPromise, kInstall, kOver };

  EpochOpening(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
               quorum::BallotSource& ballots,
               const EpochOpeningOptions& options);

  // The nodes of a list and its sizes: OpeningQuorum of them must promise.
  struct Electorate {
    std::vector<NodeId> nodes;
    quorum::QuorumSizes sizes;
  };

  absl::Status CheckOptions() const;
  absl::Status CheckStays(const MembersChange& change) const;
  absl::Status CheckOwn() const;
  void MakeElectorates();
  void MakePeers();

  void RenewTimeAfterAPause(int64_t now);
  absl::Status Advance();
  void Reconnect();
  absl::Status CheckServerHellos();
  absl::Status AskBallot();
  absl::Status TakeBallot();
  absl::Status PromiseItself();
  void SendPrepares();
  // Returns true if the opening cleans records.
  bool IsToClean() const { return options_.cleanup_through != Lsn(0); }
  bool AsksForAll() const { return IsToClean() || options_.whole_reports; }
  bool HasMetUnnamedDamage(const absl::Status& status) const;
  absl::Status ContinueScan();
  absl::Status Gather();
  absl::Status ChooseFromReports();
  absl::Status CheckAnyoneIsLeft();
  bool OwnPromisedAnother();
  // Goes from what was chosen to the installation.
  absl::Status Begin(OpeningChoice choice, std::vector<StateReport> reports,
                     std::vector<OpeningPeer*> peers);
  // Fails if the epoch table has no room for the plan's.
  absl::Status CheckTable(const EpochTable& table) const;
  absl::Status MakeCache(const Decision& decision,
                         const std::vector<StateReport>& reports);
  absl::Status RegisterOwnRing();
  bool IsLeaving(NodeId node) const;
  void Finish();
  void End(const absl::Status& status);

  bool MayComeYet(const OpeningPeer& peer) const;
  bool IsAwaited(const OpeningPeer& peer) const;
  // Returns the number of electors whose peers satisfy the predicate, plus the
  // own replica.
  uint32_t Count(const Electorate& electorate,
                 const std::function<bool(const OpeningPeer&)>& is_so) const;
  absl::Status CheckPossible();
  absl::Status CheckNotDeleted() const;
  std::string DescribeMarked() const;
  // Returns Unavailable, and notes a lost race if a higher promise refused.
  absl::Status TooFew(const std::string& what);
  void NoteRefusedBy(const quorum::Promise& current);
  std::string WhatWasPromised() const;
  std::string DescribePeers() const;
  bool DeadlineHasPassed() const {
    return options_.deadline.HasPassed(clock_.NowNanos());
  }
  int64_t PatienceForReports() const;
  // Returns when report_ns is over; kNever: it is not limited.
  int64_t ReportsDueNanos() const;

  fabric::Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  quorum::BallotSource& ballots_;
  const EpochOpeningOptions options_;

  std::vector<Electorate> electorates_;
  Phase phase_ = Phase::kServerHello;
  absl::Status status_;
  bool may_try_again_ = false;
  bool may_be_installed_ = false;
  bool keeps_unnamed_ = false;  // records that the choice kept are not named
  bool wants_whole_reports_ = false;
  bool lost_race_ = false;
  std::optional<quorum::Promise> refused_by_;
  std::unique_ptr<quorum::BallotRequest>
      ballot_;               // request for a ballot, in flight
  quorum::Promise promise_;  // promise that replicas are asked for

  std::unique_ptr<OpenersReplica> own_;  // the own replica, or the working copy
  bool is_working_copy_ = false;
  WorkingCopyFactory working_copy_factory_;
  std::optional<StateReport> own_report_;
  std::unique_ptr<replication::RegisteredBytes> own_ring_;

  // When enough reports were there; after a pause, when it ended (EO5).
  std::optional<int64_t> gathered_at_;
  int64_t promised_ns_ = 0;       // as EpochOpened
  int64_t chosen_ns_ = 0;         // as EpochOpened
  int64_t wake_at_ = kNever;      // when gather_ns is over; kNever once noticed
  int64_t expected_at_ = kNever;  // when Poll was to be called next
  int64_t waits_since_;           // for reports, but for pauses (EO5)
  // Peers whose reports were too few to choose from, last time.
  std::optional<std::vector<const OpeningPeer*>> tried_with_;
  std::string wait_reason_;
  Configuration configuration_;            // the one being installed
  std::unique_ptr<EpochInstall> install_;  // in kInstall
  // Destroyed first: closed connections use no memory any more.
  std::vector<std::unique_ptr<OpeningPeer>> peers_;
  std::optional<EpochOpened> opened_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_EPOCH_OPENING_H_
