// SPDX-License-Identifier: Apache-2.0
// znode_membership: a process's membership of one log, kept by znodes.
//
// Idea: it keeps its owner's wishes, and the znodes as it read them last. One
// request is in flight at a time; when it is answered, the next one follows
// from the difference. So an unknown outcome needs no special case: the lists
// are read again, and show what is missing. Ballots go first.
//
//   kConnecting --session, synced--> kConnected --no answer--> kSuspended
//        ^                             ^  |                     |     |
//        |                             |  \------> kExpired <---/     |
//        \---------- Renew ------------|---------------/              |
//                                      \---- heard again, synced -----/
//
// The znodes and their contents: docs/design/zookeeper.md.
//
// Invariants:
//   ZM1. A number whose writing has an unknown outcome is consumed: it is no
//        ballot, and is not tried again (MB3, register_ballot.h).
//   ZM2. A znode of this process counts only if its owner is the present
//        session. One of an earlier session goes away at any moment.
//   ZM3. After each connection nothing is read before a sync is answered: the
//        server may be behind what this process saw, or wrote, elsewhere.
//   ZM4. A session that comes back with another id has expired: the service
//        made a new one silently.
//   ZM5. A session that was not heard for a third of its time-out is in doubt
//        (kSuspended), even if its connection stands. After all of its
//        time-out problem() says so, also of a session that never came.
//   ZM6. After an expiry, or 4 time-outs without a word, nothing of the session
//        is used again. The next one begins after a pause. Pauses double from
//        50 ms up to 2 s, and a random part of up to one half of each is left
//        out.
//   ZM7. The znode of a primary is named by its epoch, and the highest one
//        counts. A primary makes its own, unless it knows of a higher one, and
//        then deletes lower ones. So a late loser takes nothing from a later
//        primary. Versions would not prevent that: each znode that is made
//        again begins at 0. Ballots that were taken meanwhile do not count. A
//        znode that belongs to no session is no primary's, and is left alone.
//   ZM8. A ballot comes within a bounded time, whatever the service does. If
//        the register can't be used, or does not answer in time, the ballot is
//        counted up from the promises, as with static membership. Numbers that
//        the register may have got are left out. A process that was polled
//        without a session for ten times that time does not wait at all.
//   ZM9. A register that is further ahead of all promises than RegisterLeadMax
//        is not believed: following it would use up the counters. If it lies
//        each time, half of them are left after hundreds of openings, and from
//        there on a hundred thousand more do no harm.
//   ZM10. While the layout that was read last is of another version, nothing is
//        written.
//   ZM11. A service that has too much to do is left alone for a while, and
//        ballots do not wait for it.
//   ZM12. The membership is settled only while it is connected, has read the
//        lists since, and has nothing left to write. A wish or a change ends
//        that at once.
//   ZM13. Processes that learn something at the same moment act on it at random
//        times: lists are read again within 10 ms after a change or a new
//        connection, and a service that is left alone is asked again within 1
//        to 2 s. A process's own writes are read at once.
//   ZM14. A process that only observes makes nothing: with an identity other
//        than the nodes' it would lock them out.
//   ZM15. A missing znode that may not be made is tried again later, not at
//        once: the service would be asked without end.
//   ZM16. After a Poll nothing is due at once: an owner that polls whenever
//        something is due sleeps in between.
//   ZM17. If an entry can't be deleted, because somebody made znodes in it, it
//        is left alone for a while, and so are all lists. Ballots do not wait.
//   ZM18. For an owner that does not wait on descriptor(), Poll is due often
//        while an answer is awaited, and seldom otherwise (look_ns).
//   ZM19. Once no wish and no znode of this session is left, the lists are no
//        longer read, and the end of the object waits for nothing.
// Crash states: a process may end at any request. Its ephemeral znodes go with
// the session. A number that was written and not given is consumed. The next
// process completes a tree that was made in part.
// Thread safety: one thread. Only the destructor may block (ZK3).
// References: membership.h; protocol P-A4.1, P-H4, P-H24.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_MEMBERSHIP_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_MEMBERSHIP_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"
#include "quorum/membership/membership_events.h"
#include "quorum/membership/register_ballot.h"
#include "quorum/membership/zookeeper/znode_folder.h"
#include "quorum/membership/zookeeper/znodes.h"

namespace alpheus::quorum {

// Returns by how many counters a register may be ahead of the largest one that
// is promised. Each lost ballot adds one; a million of them without one promise
// do not happen. In the second half of all counters fewer are believed.
inline uint64_t RegisterLeadMax(uint64_t promised) {
  constexpr uint64_t kEarly = uint64_t{1} << 20;
  constexpr uint64_t kLate = uint64_t{1} << 10;
  const bool is_late = promised >= kBallotCounterMax / 2;
  return is_late ? kLate : kEarly;
}

struct ZnodeMembershipOptions {
  PrimaryId self;
  std::string path = "/alpheus";  // of all clusters of this service
  Uuid cluster_id;
  std::string log_name;
  // A warning about the service's configuration, for an operator; empty: none.
  std::string warning = {};
  // Reads the lists although the process neither registers nor stands (ZM14).
  bool observes = false;
  // How long a ballot waits for the register (ZM8).
  int64_t register_patience_ns = 100'000'000;
  // Time between two looks for an answer, for owners that do not wait on
  // descriptor(); 0: they do. Looks for a session are 20 times less frequent,
  // looks for changes that others make 200 times.
  int64_t look_ns = 0;
  // Lists that changed for all are read within this time (ZM13).
  int64_t spread_ns = 10'000'000;
  // Pauses between two sessions (ZM6).
  int64_t renew_ns_min = 50'000'000;
  int64_t renew_ns_max = 2'000'000'000;
};

// Counts of what an operator may want to know.
struct ZnodeMembershipCounters {
  uint64_t sessions = 0;
  uint64_t expired = 0;
  uint64_t of_register = 0;  // ballots
  uint64_t of_promises = 0;  // ballots without the register
  uint64_t consumed = 0;     // numbers of unknown outcome
  uint64_t unreadable = 0;   // znodes that say nothing of ours
};

class ZnodeMembership final : public Membership {
 public:
  // Both must outlive it. Errors: as BallotSequence::Make, and as `make`, which
  // is called at once, so that a client that can't work is known at the start.
  static absl::StatusOr<std::unique_ptr<ZnodeMembership>> Start(
      ZnodesMaker make, const Clock& clock, RandomSource& random,
      const ZnodeMembershipOptions& options);
  ~ZnodeMembership() override;
  ZnodeMembership(const ZnodeMembership&) = delete;
  ZnodeMembership& operator=(const ZnodeMembership&) = delete;

  std::unique_ptr<BallotRequest> Ask(const BallotQuestion& question) override;

  void Poll() override;
  Deadline NextPoll() const override;
  int descriptor() const override;
  Session session() const override { return session_; }
  // One of: no right; another layout; a ballot that is not believed; the reason
  // why the last session ended.
  absl::Status problem() const override { return problem_; }
  // The first of: the last ballot was counted up although the session counts as
  // connected; the warning of the options; the servers' bounds changed the
  // time-out that was asked for.
  std::string warning() const override;
  bool is_settled() const override {
    return session_.state == SessionState::kConnected && is_idle_;
  }
  void Renew() override;
  void Register(const Registration& registration) override;
  void Unregister() override;
  void Stand() override;
  void Withdraw() override;
  void Describe(const Merits& merits) override;
  void Announce(const LivePrimary& primary) override;
  void Retract() override;
  void Publish(const MembersCopy& members) override;
  const std::vector<Registration>& registrations() const override {
    return registrations_;
  }
  const std::vector<Candidate>& candidates() const override {
    return candidates_;
  }
  std::optional<LivePrimary> live_primary() const override {
    return live_primary_;
  }
  std::vector<MembershipEvent> TakeEvents() override { return events_.Take(); }

  const ZnodeMembershipCounters& counters() const { return counters_; }

 private:
  class Request;
  // A ballot that was asked for; its request and the membership share it.
  struct Asked;
  // A znode that must be there, and how it is made.
  struct TreeZnode {
    std::string path;
    std::string data = {};
    ZnodeRights rights = ZnodeRights::kKeepFolder;
  };

  // The purpose of a request in flight.
  enum class Task {
    kSync,
    kFormat,
    kTree,
    kBallot,
    kNodes,  // reads of a folder
    kCandidates,
    kLive,
    kNodesWrite,  // writes in it
    kCandidatesWrite,
    kLiveWrite,
    kMembers,
    kMembersWrite,
    kPing,
  };

  ZnodeMembership(ZnodesMaker make, const Clock& clock, RandomSource& random,
                  const ZnodeMembershipOptions& options,
                  const BallotSequence& sequence);

  static std::vector<TreeZnode> TreeOf(const std::string& path,
                                       const std::string& root,
                                       const std::string& log_path);

  // Session.
  absl::Status Begin(int64_t now);
  void NoteWait(int64_t now);
  void CheckSession(int64_t now);
  void OnConnection();
  void Suspend();
  void Expire(const absl::Status& why);
  void ForgetInFlight();
  void OnWish();
  void Avoid(const absl::Status& why);
  void AvoidLists(const absl::Status& why);
  void SetProblem(const absl::Status& problem);
  void PutOffLists();
  int64_t AfterAPause();
  int64_t RandomUpTo(int64_t most);
  void Change(SessionState state);
  bool WishesForEntries() const;
  bool WantsLists() const;
  void OnListsDone();

  // Requests.
  void SendNext(int64_t now);
  std::optional<ZnodeRequest> NextRequest(int64_t now);
  std::optional<ZnodeRequest> NextBallotRequest();
  std::optional<ZnodeRequest> NextRegistrationRequest();
  std::optional<ZnodeRequest> NextCandidateRequest();
  std::optional<ZnodeRequest> NextPrimaryRequest();
  std::optional<ZnodeRequest> NextMembersRequest();
  std::optional<ZnodeRequest> ReadOf(ZnodeFolder& folder, Task task);
  ZnodeRequest Make(Task task, ZnodeCall call, const std::string& path);

  // Answers.
  void OnEvent(const ZnodeEvent& event);
  void OnAnswer(const ZnodeEvent& answer);
  void OnFolderAnswer(ZnodeFolder& folder, const ZnodeEvent& answer);
  void OnBallotAnswer(const ZnodeEvent& answer);
  void OnBallotRead(Asked& asked, const ZnodeEvent& answer);
  void OnMembersAnswer(const ZnodeEvent& answer);
  bool IsObserver() const;
  void BuildTree();
  void OnMissing();
  void TakeChanges();
  void RebuildRegistrations();
  void RebuildCandidates();
  void RebuildPrimary();
  bool IsOwn(const ZnodeFolder::Child& child) const;

  // Ballots.
  std::shared_ptr<Asked> FirstAsked();
  bool HasAsked() const;
  int64_t PatienceEnd(const Asked& asked) const;
  void Settle(int64_t now);
  void CountUp(Asked& asked);
  void DoWithoutRegister(Asked& asked, ZnodeOutcome why);
  void Consume(Asked& asked);

  const ZnodesMaker make_;
  const Clock& clock_;
  RandomSource& random_;
  const ZnodeMembershipOptions options_;
  const std::string root_;      // of the cluster
  const std::string log_path_;  // of the log
  const std::string format_path_;
  const std::string members_path_;
  const uint64_t token_;               // in the names of its candidates
  const std::vector<TreeZnode> tree_;  // parents first
  BallotSequence sequence_;
  MembershipEvents events_;
  ZnodeMembershipCounters counters_;
  absl::Status problem_;

  std::unique_ptr<Znodes> znodes_;  // null: between two sessions
  Session session_;
  uint64_t connections_ = 0;  // of the session, that were noticed
  bool is_synced_ = false;    // on this connection
  int64_t sync_at_ns_ = 0;    // not before; 0: at once
  bool is_format_known_ = false;
  bool has_made_znodes_ = false;  // ephemeral ones, or may have
  bool has_waited_ = false;  // for the service, in vain, since it was synced
  int64_t avoided_until_ns_ = 0;  // the service is of no use until then
  bool is_avoided_ = false;
  bool are_lists_avoided_ = false;  // until lists_at_ns_
  bool is_tried_again_ = false;     // the cause of problem_
  std::string without_register_;  // why the last ballot did; empty: it did not
  int64_t lists_at_ns_ = 0;       // lists are not read before
  int64_t begin_at_ns_ = 0;       // of the next session
  int64_t renew_ns_ = 0;          // pause before it

  // Wishes.
  std::optional<Registration> registration_;
  bool wants_to_stand_ = false;
  Merits merits_;
  std::optional<LivePrimary> announced_;
  std::optional<MembersCopy> members_;

  // Knowledge.
  size_t tree_next_;     // of tree_, to be made; past its end: nothing is
  std::string refused_;  // path of the last znode of it that may not be made
  ZnodeFolder nodes_folder_;
  ZnodeFolder candidates_folder_;
  ZnodeFolder live_folder_;
  std::optional<int32_t> members_version_;  // found, and to be written over
  bool is_members_read_ = false;
  bool is_members_done_ = false;
  std::vector<Registration> registrations_;
  std::vector<Candidate> candidates_;
  std::optional<LivePrimary> live_primary_;
  std::deque<std::weak_ptr<Asked>> asked_;
  int64_t polled_at_ns_;   // last Poll
  int64_t waited_ns_ = 0;  // for a session, as far as it was polled

  // Request in flight.
  uint64_t number_ = 0;
  std::optional<Task> in_flight_;
  ZnodeRequest request_;
  bool is_idle_ = false;  // nothing was left to ask for, and no wish since
  std::shared_ptr<Asked> in_flight_ballot_;
  bool has_changed_in_flight_ = false;  // the content that it reads
  int64_t sent_at_ns_ = 0;
  std::vector<ZnodeEvent> arrived_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_MEMBERSHIP_H_
