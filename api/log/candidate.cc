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

namespace alpheus {

using quorum::ClusterConfiguration;
using quorum::ClusterMember;

namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
// How long the first opening waits for replicas; each that fails doubles the
// time of the next one, up to open_timeout_ms.
constexpr int64_t kFirstReportNanos = 500 * kNanosPerMilli;
// How often a primary looks whether its log has failed or was given back.
constexpr int64_t kLookNanos = 10 * kNanosPerMilli;
// How often it looks whether the membership service has answered: it sleeps in
// the fabric.
constexpr int64_t kMembershipLookNanos = kNanosPerMilli / 2;

recovery::CandidacyOptions CandidacyOf(const CandidateOptions& options,
                                       const ClusterConfiguration& cluster,
                                       RandomSource& random) {
  recovery::CandidacyOptions candidacy;
  candidacy.cluster_id = cluster.cluster_id;
  candidacy.log_id =
      quorum::LogIdOf(cluster.cluster_id, options.log.replication.log_name);
  candidacy.key = cluster.key;
  for (const ClusterMember& member : cluster.members) {
    candidacy.nodes.push_back({member.node, member.address.ToString()});
  }
  recovery::ElectionOptions& election = candidacy.election;
  election.self = {NodeId(options.log.replication.node), random.Next() | 1};
  election.priority = options.priority;
  election.opening_quorum = quorum::OpeningQuorumSize(cluster.sizes);
  election.silence_ns = options.silence_ms * kNanosPerMilli;
  election.silence_ns_max = options.silence_ms_max * kNanosPerMilli;
  // Machines that stand still for longer open logs more slowly, too.
  election.rank_ns = election.silence_ns / 3;
  return candidacy;
}

// Requires: the process is a member.
recovery::MembershipEntries::Options EntriesOf(
    const CandidateOptions& options, const ClusterConfiguration& cluster,
    const quorum::PrimaryId& self) {
  recovery::MembershipEntries::Options entries;
  entries.self = self;
  entries.priority = options.priority;
  entries.address = quorum::FindMember(cluster, self.node)->address.ToString();
  entries.members = MembersCopyOf(cluster);
  return entries;
}

std::vector<NodeId> NodesOf(const recovery::CandidacyOptions& candidacy) {
  std::vector<NodeId> nodes;
  for (const recovery::PeerAddress& at : candidacy.nodes) {
    nodes.push_back(at.node);
  }
  return nodes;
}

uint32_t HeartbeatMsOf(const CandidateOptions& options) {
  const uint32_t own = options.log.replication.heartbeat_ms;
  return own != 0 ? own : options.heartbeat_ms;
}

LogOptions LogOptionsOf(const CandidateOptions& options) {
  LogOptions log = options.log;
  log.replication.heartbeat_ms = HeartbeatMsOf(options);
  log.replication.gather_ms = options.gather_ms;
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
  if (heartbeat_ms == 0 || options.silence_ms < 3 * heartbeat_ms ||
      options.silence_ms_max < options.silence_ms ||
      options.silence_ms_max > kSilenceMsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "silence_ms ", options.silence_ms, ", silence_ms_max ",
        options.silence_ms_max, ", heartbeat_ms ", heartbeat_ms,
        ": the silence must be three heartbeats at least, and no longer than "
        "its most, which is at most ",
        kSilenceMsMax));
  }
  return absl::OkStatus();
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
  Stander(CandidateOptions options, std::unique_ptr<Connectivity> connectivity,
          std::unique_ptr<quorum::Membership> membership,
          recovery::MembershipEntries::Options entries,
          recovery::CandidacyOptions candidacy)
      : options_(std::move(options)),
        log_options_(LogOptionsOf(options_)),
        connectivity_(std::move(connectivity)),
        nodes_(NodesOf(candidacy)),
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
    while (!is_withdrawn()) {
      while (pump.Turn(candidacy_)) {
      }
      PollMembership();
      const Advice advice = candidacy_.Poll();
      SayThatItStands();
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
    entries_.Withdraw();
    const std::lock_guard lock(mutex_);
    elected_.reset();
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
            .promised_max = candidacy_.election().PromisedMax(),
            .self = self_,
            .membership = membership_.get()};
  }

  void SayThatItStands() {
    const recovery::Election& election = candidacy_.election();
    if (has_said_ || !election.AreAllTried(Clock::Real().NowNanos())) return;
    has_said_ = true;
    std::string text = absl::StrCat(
        "log ", LogName(), ": node ", log_options_.replication.node,
        " stands for primary; nodes that it reaches: ", election.Reached());
    for (const NodeId node : nodes_) {
      if (election.HeardAt(node) != nullptr) continue;
      const absl::Status why = candidacy_.StatusOf(node);
      absl::StrAppend(&text, "; node ", node.value, " is not reached: ",
                      why.ok() ? "it does not answer" : why.message());
    }
    Say(text);
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
      candidacy_.OpeningFailed();
      return;
    }
    const Epoch epoch = (*engine)->report().epoch;
    std::shared_ptr<Log> log = MakeLog(*std::move(engine));
    candidacy_.Opened(epoch);
    entries_.Opened(epoch);
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
  // nodes and clients are to know it, and its promises are no lone ones.
  void FollowEpoch(Epoch epoch) {
    if (epoch == candidacy_.election().holds()) return;
    candidacy_.Opened(epoch);
    entries_.Opened(epoch);
    Say(absl::StrCat("log ", LogName(), ": node ",
                     log_options_.replication.node, " goes on in epoch ",
                     epoch.value));
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
        FollowEpoch(EpochOf(*log));
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
  const std::vector<NodeId> nodes_;
  const quorum::PrimaryId self_;
  // The thread's own.
  const std::unique_ptr<quorum::Membership> membership_;
  recovery::MembershipEntries entries_;
  absl::Status said_problem_;
  recovery::Candidacy candidacy_;
  bool has_said_ = false;  // that it stands
  bool is_primary_ = false;
  std::weak_ptr<Log> handed_out_;

  mutable std::mutex mutex_;  // guards all below, but the thread
  std::condition_variable changed_;
  bool is_withdrawn_ = false;
  bool is_out_ = false;           // a log was handed out, and is not back
  std::shared_ptr<Log> elected_;  // until somebody takes it
  absl::Status give_back_;        // why; OK: it need not be
  absl::Status last_failure_;
  BackgroundThread thread_;
};

Epoch Candidate::EpochOf(const Log& log) { return log.engine_->change().epoch; }

std::shared_ptr<Log> Candidate::MakeLog(std::unique_ptr<LogEngine> engine) {
  return std::shared_ptr<Log>(new Log(std::move(engine)));
}

Candidate::Candidate(std::unique_ptr<Stander> stander)
    : stander_(std::move(stander)) {}

Candidate::~Candidate() {
  // CAN3. Its memory ends with the child.
  if (!stander_->CheckIsOwn().ok()) static_cast<void>(stander_.release());
}

absl::StatusOr<std::unique_ptr<Candidate>> Candidate::Stand(
    const CandidateOptions& options) {
  const ReplicationOptions& replication = options.log.replication;
  if (replication.cluster_file.empty()) {
    return absl::InvalidArgumentError(
        "a candidate without a cluster file: only a cluster's log has an "
        "election");
  }
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           quorum::LoadClusterFile(replication.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(CheckCandidateOptions(options, cluster));
  ALPHEUS_RETURN_IF_ERROR(CheckEngineOptions(options.log));
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(replication.node)));
  recovery::CandidacyOptions candidacy =
      CandidacyOf(options, cluster, connectivity->random);
  const quorum::PrimaryId self = candidacy.election.self;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<quorum::Membership> membership,
                           OpenMembership(cluster,
                                          {.log_name = replication.log_name,
                                           .self = self,
                                           .look_ns = kMembershipLookNanos},
                                          connectivity->random));
  auto stander = std::make_unique<Stander>(
      options, std::move(connectivity), std::move(membership),
      EntriesOf(options, cluster, self), std::move(candidacy));
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
