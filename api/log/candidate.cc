// SPDX-License-Identifier: Apache-2.0
#include "alpheus/candidate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/admin/instruct_candidates.h"
#include "api/log/log_engine.h"
#include "api/wiring/adapter.h"
#include "api/wiring/background_thread.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/fork_watch.h"
#include "log/base/status_macros.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "quorum/membership/membership.h"
#include "recovery/election/candidacy.h"
#include "recovery/election/membership_entries.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/messages.h"
#include "recovery/resync/epoch_succession.h"

namespace alpheus {

using quorum::ClusterConfiguration;
using quorum::ClusterMember;

// A list of the log's members. It has a linkage, since Stander has one.
struct KnownList {
  uint64_t id = 0;
  quorum::QuorumSizes sizes;
  std::vector<recovery::PeerAddress> nodes;
};

namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// How long the first opening waits for replicas; each that fails doubles the
// time of the next one, up to open_timeout_ms.
constexpr int64_t kFirstReportNanos = 500 * kNanosPerMilli;
// As EpochOpeningOptions::gather_factor.
constexpr uint32_t kGatherFactor = 3;
// How often a primary looks whether its log has failed or was given back.
constexpr int64_t kLookNanos = 10 * kNanosPerMilli;
// How often it looks whether the membership service has answered: it sleeps in
// the fabric.
constexpr int64_t kMembershipLookNanos = kNanosPerMilli / 2;
// How often it reads the cluster's file while its nodes have a newer list.
constexpr int64_t kReadListNanos = 1'000 * kNanosPerMilli;
// How much longer others leave the log to an elected candidate than the present
// primary has to hand over.
constexpr int64_t kElectedOpensNanos = 2'000 * kNanosPerMilli;

KnownList ListOf(const ClusterConfiguration& cluster) {
  KnownList list{cluster.id, cluster.sizes, {}};
  for (const ClusterMember& member : cluster.members) {
    list.nodes.push_back({member.node, member.address.ToString()});
  }
  return list;
}

KnownList ListOf(const recovery::EpochSuccession::Members& members) {
  return {members.configuration.id, members.sizes, members.nodes};
}

// The list as clients are told of it.
quorum::MembersCopy CopyOf(const KnownList& list) {
  quorum::MembersCopy copy;
  copy.configuration_id = list.id;
  copy.write_quorum = list.sizes.write_quorum;
  copy.read_quorum = list.sizes.read_quorum;
  for (const recovery::PeerAddress& at : list.nodes) {
    copy.members.emplace_back(at.node, at.address);
  }
  return copy;
}

recovery::CandidacyOptions CandidacyOf(const CandidateOptions& options,
                                       const ClusterConfiguration& cluster,
                                       RandomSource& random) {
  recovery::CandidacyOptions candidacy;
  candidacy.cluster_id = cluster.cluster_id;
  candidacy.log_id =
      quorum::LogIdOf(cluster.cluster_id, options.log.replication.log_name);
  candidacy.key = cluster.key;
  candidacy.nodes = ListOf(cluster).nodes;
  recovery::ElectionOptions& election = candidacy.election;
  election.self = {NodeId(options.log.replication.node), random.Next() | 1};
  election.priority = options.priority;
  election.opening_quorum = quorum::OpeningQuorumSize(cluster.sizes);
  election.silence_ns = options.silence_ms * kNanosPerMilli;
  election.silence_ns_max = options.silence_ms_max * kNanosPerMilli;
  // Machines that stand still for longer open logs more slowly, too.
  election.rank_ns = election.silence_ns / 3;
  election.hand_over_ns = options.hand_over_ms * kNanosPerMilli;
  election.yield_ns = election.hand_over_ns + kElectedOpensNanos;
  return candidacy;
}

// Until it has promised itself, an opener that waits for its ballot is heard by
// nobody. Two openers may wait at once, and one opens the log. The other one
// then promises with its own replica only, which is a lone promise (ELE9 of
// election.h). So the wait ends before the next one's turn.
int64_t PatienceOf(const recovery::ElectionOptions& election) {
  return std::min(MembershipOptions().register_patience_ns,
                  election.rank_ns * 4 / 5);
}

// Requires: the process is a member.
recovery::MembershipEntries::Options EntriesOf(
    const CandidateOptions& options, const ClusterConfiguration& cluster,
    const quorum::PrimaryId& self) {
  recovery::MembershipEntries::Options entries;
  entries.self = self;
  entries.priority = options.priority;
  entries.address = quorum::FindMember(cluster, self.node)->address.ToString();
  return entries;
}

uint32_t HeartbeatMsOf(const CandidateOptions& options) {
  const uint32_t own = options.log.replication.heartbeat_ms;
  return own != 0 ? own : options.heartbeat_ms;
}

LogOptions LogOptionsOf(const CandidateOptions& options) {
  LogOptions log = options.log;
  log.replication.heartbeat_ms = HeartbeatMsOf(options);
  log.replication.gather_ms = options.gather_ms;
  // The candidate's own adapter has the same certificates, and says it.
  log.replication.say = nullptr;
  // The log's thread sends the heartbeats, once an interval.
  log.idle_force_us =
      std::min(log.idle_force_us, log.replication.heartbeat_ms * 1'000);
  return log;
}

absl::Status CheckCandidateOptions(const CandidateOptions& options,
                                   const ClusterConfiguration& cluster) {
  const ReplicationOptions& replication = options.log.replication;
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(replication.log_name));
  const ClusterMember* const self =
      quorum::FindMember(cluster, NodeId(replication.node));
  if (self == nullptr || !self->may_be_primary) {
    return absl::InvalidArgumentError(
        absl::StrCat(replication.cluster_file, ": node ", replication.node,
                     self == nullptr ? " is not a member of the cluster"
                                     : " may not be primary (may_be_primary)"));
  }
  const uint64_t heartbeat_ms = HeartbeatMsOf(options);
  constexpr uint64_t kSilenceMsMax =
      recovery::kHearNanosMax / uint64_t{kNanosPerMilli};
  if (heartbeat_ms == 0) {
    return absl::InvalidArgumentError("heartbeat_ms 0, expected 1 at least");
  }
  if (options.silence_ms < 3 * heartbeat_ms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "silence_ms ", options.silence_ms, ", expected ", 3 * heartbeat_ms,
        " at least: three times heartbeat_ms, ", heartbeat_ms));
  }
  if (options.silence_ms_max < options.silence_ms ||
      options.silence_ms_max > kSilenceMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence_ms_max ", options.silence_ms_max, ", expected ",
                     options.silence_ms, " (silence_ms) to ", kSilenceMsMax));
  }
  return absl::OkStatus();
}

// Returns the cluster of the file, if a candidate can stand there. Errors: as
// Candidate::Check.
absl::StatusOr<ClusterConfiguration> CheckedCluster(
    const CandidateOptions& options) {
  const std::string& file = options.log.replication.cluster_file;
  if (file.empty()) {
    return absl::InvalidArgumentError(
        "a candidate without a cluster file: only a cluster's log has an "
        "election");
  }
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           quorum::LoadClusterFile(file));
  ALPHEUS_RETURN_IF_ERROR(CheckCandidateOptions(options, cluster));
  ALPHEUS_RETURN_IF_ERROR(CheckEngineOptions(options.log));
  return cluster;
}

std::chrono::steady_clock::time_point TimeOf(Deadline deadline) {
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(deadline.at_nanos()));
}

}  // namespace

// The thread that stands, opens, and watches the log that it opened. In a
// fork's child there is no such thread, and another one may have had the mutex:
// only CheckIsOwn may be called there.
class Candidate::Stander {
 public:
  Stander(CandidateOptions options, ClusterConfiguration cluster,
          std::unique_ptr<Connectivity> connectivity,
          std::unique_ptr<quorum::Membership> membership,
          recovery::MembershipEntries::Options entries,
          recovery::CandidacyOptions candidacy)
      : options_(std::move(options)),
        log_options_(LogOptionsOf(options_)),
        connectivity_(std::move(connectivity)),
        cluster_(std::move(cluster)),
        list_(ListOf(cluster_)),
        self_(candidacy.election.self),
        membership_(std::move(membership)),
        entries_(*membership_, std::move(entries)),
        candidacy_(*connectivity_->fabric, Clock::Real(), connectivity_->random,
                   std::move(candidacy)) {}
  ~Stander() {
    Withdraw();
    thread_.Join();
  }

  // Errors: FailedPrecondition (CAN3).
  absl::Status CheckIsOwn() const {
    if (!fork_watch_.IsForksChild()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "log ", LogName(),
        ": this process is a fork's child, and its parent stands for primary. "
        "Nothing was changed; stand again in the child"));
  }

  absl::Status Start() {
    return thread_.Start([this] { Run(); });
  }

  void Withdraw() {
    {
      const std::lock_guard lock(mutex_);
      is_withdrawn_ = true;
    }
    changed_.notify_all();
    connectivity_->fabric->Wake();
  }

  absl::StatusOr<std::shared_ptr<Log>> WaitForLog(Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto is_over = [this] {
      return elected_ != nullptr || is_withdrawn_;
    };
    if (!WaitUntil(lock, deadline, is_over)) {
      return absl::DeadlineExceededError(absl::StrCat(
          "log ", LogName(), ": this process is not primary yet",
          last_failure_.ok() ? ""
                             : absl::StrCat("; its last opening failed: ",
                                            last_failure_.message())));
    }
    if (elected_ != nullptr) return std::exchange(elected_, nullptr);
    return Withdrawn();
  }

  bool must_give_back() const {
    const std::lock_guard lock(mutex_);
    return is_withdrawn_ || !give_back_.ok();
  }

  absl::Status WaitToGiveBack(Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!is_out_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "log ", LogName(),
          ": it is not handed out: WaitForLog returns it when this process "
          "is primary"));
    }
    const auto is_over = [this] { return is_withdrawn_ || !give_back_.ok(); };
    if (!WaitUntil(lock, deadline, is_over)) {
      return absl::DeadlineExceededError(
          absl::StrCat("log ", LogName(), ": it is this process's still"));
    }
    return give_back_.ok() ? Withdrawn() : give_back_;
  }

  PrimaryReport primary() const {
    const std::lock_guard lock(mutex_);
    return primary_;
  }

  absl::Status GiveBack(std::shared_ptr<Log>&& log) {
    absl::Status closed = log->Close();
    if (absl::IsFailedPrecondition(closed)) return closed;
    std::shared_ptr<Log>(std::move(log)).reset();
    connectivity_->fabric->Wake();
    return closed;
  }

 private:
  using Advice = recovery::Candidacy::Advice;

  const std::string& LogName() const {
    return log_options_.replication.log_name;
  }
  absl::Status Withdrawn() const {
    if (!ended_.ok()) return ended_;
    return absl::CancelledError(
        absl::StrCat("log ", LogName(), ": this process stands no more"));
  }

  template <class IsOver>
  bool WaitUntil(std::unique_lock<std::mutex>& lock, Deadline deadline,
                 const IsOver& is_over) {
    if (deadline.is_set()) {
      return changed_.wait_until(lock, TimeOf(deadline), is_over);
    }
    changed_.wait(lock, is_over);
    return true;
  }

  bool is_withdrawn() const {
    const std::lock_guard lock(mutex_);
    return is_withdrawn_;
  }

  void Say(const std::string& sentence) const {
    if (options_.say) options_.say(sentence);
  }

  void Changed() {
    changed_.notify_all();
    if (options_.on_change) options_.on_change();
  }

  // Opens a log that nobody waits for any more, if it was withdrawn meanwhile:
  // it ends with this object.
  void Run() {
    FabricPump pump(*connectivity_->fabric);
    if (!membership_->warning().empty()) {
      Say(absl::StrCat("log ", LogName(), ": ", membership_->warning()));
    }
    while (!is_withdrawn()) {
      while (pump.Turn(candidacy_)) {
      }
      PollMembership();
      const Advice advice = candidacy_.Poll();
      NotePrimary();
      SayThatItStands();
      SayThatItWasWrong();
      FollowList();
      if (advice == Advice::kOpen) {
        Open();
        continue;
      }
      if (advice == Advice::kHandOver) HandOver();
      Deadline next = candidacy_.NextPoll();
      if (is_primary_ && WatchLog()) {
        const int64_t look = Clock::Real().NowNanos() + kLookNanos;
        next = Deadline::AtNanos(std::min(next.at_nanos(), look));
      } else if (is_primary_) {
        is_primary_ = false;
        entries_.Ended();
        candidacy_.Ended();
        continue;
      }
      pump.Sleep(Deadline::AtNanos(
          std::min(next.at_nanos(), entries_.NextPoll().at_nanos())));
    }
    // CAN5. Its session ends, and its znodes with it.
    membership_.reset();
    // It ends without the lock, since that may block.
    std::shared_ptr<Log> untaken;
    const std::lock_guard lock(mutex_);
    untaken = std::exchange(elected_, nullptr);
  }

  void PollMembership() {
    if (const auto left = entries_.Poll(candidacy_.election())) {
      candidacy_.OnPrimaryLeft(*left);
    }
    const absl::Status problem = membership_->problem();
    if (problem != std::exchange(said_problem_, problem) && !problem.ok()) {
      Say(absl::StrCat("log ", LogName(), ": ", problem.message()));
    }
  }

  // An opening that waits for others keeps its own replica from them, so the
  // first ones do not wait long. The next ones do, as machines may be slow.
  OpeningTries NextTry() const {
    constexpr uint32_t kDoublingsMax = 10;
    return {.until_deadline = false,
            .report_ns = kFirstReportNanos << std::min(
                             candidacy_.election().failures(), kDoublingsMax),
            .gather_factor = kGatherFactor,
            .promised_max = candidacy_.election().PromisedMax(),
            .cluster = &cluster_,
            .self = self_,
            .membership = membership_.get()};
  }

  // Notes who holds the latest epoch of which a node has told.
  void NotePrimary() {
    const recovery::Election& election = candidacy_.election();
    PrimaryReport seen;
    if (is_primary_) seen = {self_.node.value, election.holds()};
    for (const recovery::PeerAddress& at : list_.nodes) {
      const recovery::Heard* const heard = election.HeardAt(at.node);
      if (heard == nullptr) continue;
      for (const recovery::CandidateState& state : heard->candidates) {
        if (state.holds > seen.epoch) {
          seen = {state.candidate.node.value, state.holds};
        }
      }
    }
    if (seen == noted_primary_) return;
    noted_primary_ = seen;
    const std::lock_guard lock(mutex_);
    primary_ = seen;
  }

  void SayThatItStands() {
    const recovery::Election& election = candidacy_.election();
    if (has_said_ || !election.AreAllTried(Clock::Real().NowNanos())) return;
    has_said_ = true;
    std::string text = absl::StrCat(
        "log ", LogName(), ": node ", log_options_.replication.node,
        " stands for primary; nodes that it reaches: ", election.Reached());
    for (const recovery::PeerAddress& at : list_.nodes) {
      if (election.HeardAt(at.node) != nullptr) continue;
      const absl::Status why = candidacy_.StatusOf(at.node);
      absl::StrAppend(&text, "; node ", at.node.value,
                      absl::IsNotFound(why) ? ": " : " is not reached: ",
                      why.ok() ? "it does not answer" : why.message());
    }
    Say(text);
  }

  void SayThatItWasWrong() {
    const recovery::Election& election = candidacy_.election();
    if (std::exchange(said_wrong_, election.wrong_suspicions()) ==
        election.wrong_suspicions()) {
      return;
    }
    Say(absl::StrCat("log ", LogName(), ": node ",
                     log_options_.replication.node,
                     " suspected the primary wrongly; it bears a silence of ",
                     election.silence_ns() / kNanosPerMilli, " ms now"));
  }

  // Goes by the list that replicas have, as soon as the cluster's file has it,
  // too: only that says where nodes are. A primary knows its own log's, and
  // opens it by the file's after that. The file is read for this alone: reading
  // looks up names, for which a candidate may wait when it is needed most.
  void FollowList() {
    if (is_primary_) return;
    const int64_t now = Clock::Real().NowNanos();
    if (now < reads_list_at_) return;
    uint64_t newest = list_.id;
    for (const recovery::PeerAddress& at : list_.nodes) {
      const recovery::Heard* const heard =
          candidacy_.election().HeardAt(at.node);
      if (heard != nullptr) newest = std::max(newest, heard->configuration_id);
    }
    if (newest <= cluster_.id) return;
    reads_list_at_ = now + kReadListNanos;
    const std::string& file = log_options_.replication.cluster_file;
    absl::StatusOr<ClusterConfiguration> cluster =
        quorum::LoadClusterFile(file);
    if (cluster.ok() && cluster->id > cluster_.id && cluster->id >= list_.id) {
      return TakeFile(*std::move(cluster));
    }
    if (std::exchange(asked_for_list_, newest) == newest) return;
    Say(absl::StrCat(
        "log ", LogName(), ": its members have configuration ", newest, ", ",
        file,
        cluster.ok()
            ? absl::StrCat(" has ", cluster->id)
            : absl::StrCat(" can't be read: ", cluster.status().message()),
        ". Give this node the newest list; without it this process can't "
        "become primary"));
  }

  void TakeFile(ClusterConfiguration cluster) {
    cluster_ = std::move(cluster);
    const NodeId self = self_.node;
    if (quorum::FindMember(cluster_, self) != nullptr) {
      TakeList(ListOf(cluster_));
      return Say(absl::StrCat("log ", LogName(), ": node ", self.value,
                              " stands by configuration ", list_.id));
    }
    // It is in nobody's way.
    candidacy_.Drain();
    Say(absl::StrCat("log ", LogName(), ": node ", self.value,
                     " is no member by configuration ", cluster_.id,
                     ", and stands no more"));
  }

  void TakeList(KnownList list) {
    if (list.id == list_.id && list.nodes == list_.nodes) return;
    list_ = std::move(list);
    candidacy_.SetNodes(list_.nodes, quorum::OpeningQuorumSize(list_.sizes));
  }

  void Open() {
    absl::StatusOr<std::unique_ptr<LogEngine>> engine =
        OpenReplicatedEngine(log_options_, NextTry());
    if (!engine.ok()) {
      {
        const std::lock_guard lock(mutex_);
        last_failure_ = engine.status();
      }
      Say(absl::StrCat("log ", LogName(),
                       ": not opened: ", engine.status().message()));
      if (recovery::DeletionBy(engine.status()) == Deletion::kDecided) {
        return EndForGood(engine.status());
      }
      candidacy_.OpeningFailed();
      return;
    }
    const recovery::EpochSuccession::Members members = (*engine)->members();
    const Epoch epoch = members.epoch;
    TakeList(ListOf(members));
    std::shared_ptr<Log> log = MakeLog(*std::move(engine));
    candidacy_.Opened(epoch);
    entries_.Opened(epoch, CopyOf(list_));
    is_primary_ = true;
    handed_out_ = log;
    Say(absl::StrCat("log ", LogName(), ": node ",
                     log_options_.replication.node, " is primary, in epoch ",
                     epoch.value));
    {
      const std::lock_guard lock(mutex_);
      last_failure_ = absl::OkStatus();
      give_back_ = absl::OkStatus();
      is_out_ = true;
      elected_ = std::move(log);
    }
    Changed();
  }

  // CAN6.
  void EndForGood(const absl::Status& why) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = why;
      is_withdrawn_ = true;
    }
    Changed();
  }

  void HandOver() {
    Say(absl::StrCat("log ", LogName(), ": node ",
                     log_options_.replication.node, " is to hand over"));
    ToGiveBack(absl::CancelledError(absl::StrCat(
        "log ", LogName(), ": another primary is wanted; give the log back")));
  }

  // A log that nobody took is given back here. One that was only wanted may
  // fail before it is given back.
  void ToGiveBack(const absl::Status& why) {
    std::shared_ptr<Log> untaken;
    {
      const std::lock_guard lock(mutex_);
      const bool is_worse =
          absl::IsAborted(why) && !absl::IsAborted(give_back_);
      if (!give_back_.ok() && !is_worse) return;
      give_back_ = why;
      untaken = std::exchange(elected_, nullptr);
    }
    Changed();
  }

  // A log that changed its members goes on in an epoch that it opened itself:
  // nodes and clients are to know it, and its promises are no lone ones. Nodes
  // that left may promise anything.
  void FollowEpoch(const LogEngine& engine) {
    if (engine.change().epoch == candidacy_.election().holds()) return;
    const recovery::EpochSuccession::Members now = engine.members();
    TakeList(ListOf(now));
    candidacy_.Opened(now.epoch);
    entries_.Opened(now.epoch, CopyOf(list_));
    Say(absl::StrCat("log ", LogName(), ": node ",
                     log_options_.replication.node, " goes on in epoch ",
                     now.epoch.value, " by configuration ", list_.id));
  }

  // Returns false once the log was given back.
  bool WatchLog() {
    absl::Status failure;
    {
      const std::shared_ptr<Log> log = handed_out_.lock();
      if (log == nullptr) {
        const std::lock_guard lock(mutex_);
        is_out_ = false;
        return false;
      }
      const ReplicationStatus status = log->replication_status();
      if (status.has_failed) {
        failure = absl::AbortedError(absl::StrCat(
            "log ", LogName(), ": it has failed: ", status.ToString()));
      } else {
        FollowEpoch(EngineOf(*log));
      }
    }
    // The one who has it may take its time.
    if (!failure.ok()) {
      entries_.Ended();
      ToGiveBack(failure);
    }
    return true;
  }

  const ForkWatch fork_watch_;
  const CandidateOptions options_;
  const LogOptions log_options_;
  const std::unique_ptr<Connectivity> connectivity_;
  // The thread's own.
  ClusterConfiguration cluster_;  // the file's, as it was read last
  KnownList list_;                // by which it stands
  int64_t reads_list_at_ = 0;
  uint64_t asked_for_list_ = 0;  // id of the list that it has asked for
  const quorum::PrimaryId self_;
  std::unique_ptr<quorum::Membership> membership_;  // null after Run
  recovery::MembershipEntries entries_;             // of no use after Run
  absl::Status said_problem_;
  recovery::Candidacy candidacy_;
  bool has_said_ = false;    // that it stands
  uint64_t said_wrong_ = 0;  // suspicions
  bool is_primary_ = false;
  PrimaryReport noted_primary_;
  std::weak_ptr<Log> handed_out_;

  mutable std::mutex mutex_;  // guards all below, but the thread
  std::condition_variable changed_;
  bool is_withdrawn_ = false;
  bool is_out_ = false;           // a log was handed out, and is not back
  std::shared_ptr<Log> elected_;  // until somebody takes it
  absl::Status give_back_;        // why; OK: it need not be
  absl::Status last_failure_;
  absl::Status ended_;  // not OK: why it stands no more (CAN6)
  PrimaryReport primary_;
  BackgroundThread thread_;
};

const LogEngine& Candidate::EngineOf(const Log& log) { return *log.engine_; }

std::shared_ptr<Log> Candidate::MakeLog(std::unique_ptr<LogEngine> engine) {
  return std::shared_ptr<Log>(new Log(std::move(engine)));
}

Candidate::Candidate(std::unique_ptr<Stander> stander)
    : stander_(std::move(stander)) {}

Candidate::~Candidate() {
  // CAN3. Its memory ends with the child.
  if (stander_->CheckIsOwn().ok()) return;
  [[maybe_unused]] const Stander* const left = stander_.release();
}

absl::Status Candidate::Check(const CandidateOptions& options) {
  return CheckedCluster(options).status();
}

absl::StatusOr<std::unique_ptr<Candidate>> Candidate::Stand(
    const CandidateOptions& options) {
  const ReplicationOptions& replication = options.log.replication;
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           CheckedCluster(options));
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(replication.node),
                         replication.say ? replication.say : options.say));
  recovery::CandidacyOptions candidacy =
      CandidacyOf(options, cluster, connectivity->random);
  const quorum::PrimaryId self = candidacy.election.self;
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<quorum::Membership> membership,
      OpenMembership(cluster,
                     {.log_name = replication.log_name,
                      .self = self,
                      .look_ns = kMembershipLookNanos,
                      .register_patience_ns = PatienceOf(candidacy.election)},
                     connectivity->random));
  recovery::MembershipEntries::Options entries =
      EntriesOf(options, cluster, self);
  auto stander = std::make_unique<Stander>(
      options, std::move(cluster), std::move(connectivity),
      std::move(membership), std::move(entries), std::move(candidacy));
  ALPHEUS_RETURN_IF_ERROR(stander->Start());
  return std::unique_ptr<Candidate>(new Candidate(std::move(stander)));
}

absl::StatusOr<std::shared_ptr<Log>> Candidate::WaitForLog(Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(stander_->CheckIsOwn());
  return stander_->WaitForLog(deadline);
}

bool Candidate::must_give_back() const {
  return !stander_->CheckIsOwn().ok() || stander_->must_give_back();
}

absl::Status Candidate::WaitToGiveBack(Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(stander_->CheckIsOwn());
  return stander_->WaitToGiveBack(deadline);
}

absl::Status Candidate::GiveBack(std::shared_ptr<Log>&& log) {
  ALPHEUS_RETURN_IF_ERROR(stander_->CheckIsOwn());
  return stander_->GiveBack(std::move(log));
}

PrimaryReport Candidate::primary() const {
  return stander_->CheckIsOwn().ok() ? stander_->primary() : PrimaryReport();
}

void Candidate::Withdraw() {
  if (stander_->CheckIsOwn().ok()) stander_->Withdraw();
}

absl::StatusOr<PrimaryReport> Candidate::Elect(const ElectOptions& options) {
  return InstructCandidates(options, recovery::InstructionKind::kElect);
}

absl::StatusOr<PrimaryReport> Candidate::Drain(const ElectOptions& options) {
  return InstructCandidates(options, recovery::InstructionKind::kDrain);
}

std::string PrimaryReport::ToString() const {
  if (node == 0) return "nobody is primary";
  return absl::StrCat("node ", node, " is primary, in epoch ", epoch.value);
}

}  // namespace alpheus
