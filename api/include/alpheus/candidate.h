// SPDX-License-Identifier: Apache-2.0
// candidate: a process that stands for primary of a cluster's log.
//
// Idea: processes of several nodes stand, and one of them has the log open.
// When it ends, stands still or is cut off, another one opens the log, without
// an operator. The one that lost it stands again. A thread of the candidate
// talks with the nodes, opens the log, and watches it.
//
//   auto candidate = alpheus::Candidate::Stand(options);
//   for (;;) {
//     auto log = (*candidate)->WaitForLog();  // this process is primary
//     if (!log.ok()) break;
//     Serve(**log, [&] { return (*candidate)->must_give_back(); });
//     auto closed = (*candidate)->GiveBack(*std::move(log));  // stands again
//   }
//
// Invariants:
//   CAN1. All that a log promises holds as for Log::Open (log.h). An election
//         decides who opens a log, never what is in it: two primaries at once
//         never both make records durable.
//         A change of the members is no reason to give the log back: it goes
//         on in the next epoch, if it has the node's replica (log.h).
//   CAN2. A log that is given back in good order, because an operator wants it,
//         leaves no record with an unknown outcome, as with Log::Close.
//   CAN3. A candidate belongs to the process that made it. In a fork's child
//         its calls fail with FailedPrecondition, and the destructor leaves it
//         to the parent.
//   CAN4. An opening reads no cluster file, so it waits for no name server,
//         which may be away when the primary dies. It goes by the file as it
//         was when the candidate began to stand. The file is read again only if
//         the log has a newer list of members.
//   CAN5. Soon after a process has withdrawn nobody names it, even if its log
//         stays open for long.
//   CAN6. A candidate withdraws by itself once it finds that its log was
//         deleted: nobody opens it any more.
// Thread safety: all members by many threads at once, except the destructor.
// References: docs/design/election.md.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_CANDIDATE_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_CANDIDATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "alpheus/options.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"

namespace alpheus {

class LogEngine;

struct CandidateOptions {
  // How the log is opened: replication.cluster_file, log_name and node; `path`
  // names the node's replica, or is empty. heartbeat_ms 0 becomes
  // `heartbeat_ms` below, and gather_ms becomes that below.
  LogOptions log = {};
  // Among candidates whose replicas are equally fresh, the one with the highest
  // priority goes first.
  uint32_t priority = 0;
  // Milliseconds without a word of the primary after which a candidate suspects
  // it. Each wrong suspicion doubles this time, up to silence_ms_max. All
  // candidates of a log need the same silence_ms: each leaves a third of it to
  // a candidate that goes first, whose ballot may take most of that third.
  // Nothing checks this.
  uint32_t silence_ms = 150;
  uint32_t silence_ms_max = 4'000;
  // While this process is primary, it is heard once in so many milliseconds. At
  // most a third of the others' silence.
  uint32_t heartbeat_ms = 30;
  // Milliseconds for which an opening waits at most for more replicas than it
  // needs; and no longer than three times what the needed ones took to report.
  // Replicas that are left out join later.
  uint32_t gather_ms = 50;
  // Milliseconds that the present primary has to hand over, once this candidate
  // is elected; then it is deposed. If another candidate is elected, this one
  // leaves the log to it for two seconds more than that. So all candidates need
  // the same hand_over_ms.
  uint32_t hand_over_ms = 1'000;
  // Gets one sentence when something happens, on a thread of the candidate. It
  // should be short, and may not call the candidate. What `log.replication.say`
  // is for comes here, too, unless that is set; either way once, though the
  // candidate and its log have connections of their own.
  std::function<void(const std::string&)> say = {};
  // Called on that thread when this process has become primary, and when it is
  // to give the log back. The log may have been taken before the call comes.
  // The call should be short, and may not call the candidate.
  std::function<void()> on_change = {};
};

// Options of an operator's instruction.
struct ElectOptions {
  std::string cluster_file = {};
  std::string log_name = "main";
  uint64_t node = 0;  // whose candidate is instructed
  uint32_t timeout_ms = 10'000;
  // Node for which this process asks, by its certificate, if the cluster
  // encrypts ([encryption] of the cluster file); 0: an operator.
  uint64_t as_node = 0;
  // Asked several times a second by the calling thread. Once it returns true,
  // the call waits no more, and returns Cancelled.
  std::function<bool()> gives_up = {};
};

// The process that has a log open.
struct PrimaryReport {
  uint64_t node = 0;  // 0: nobody, as far as the nodes know
  Epoch epoch;

  bool operator==(const PrimaryReport&) const = default;
  // One line for people.
  std::string ToString() const;
};

class Candidate {
 public:
  // Checks what Stand checks before it connects to anything: options, and the
  // files that they name. Changes nothing. May block, as it looks up the names
  // of hosts. Errors: InvalidArgument (no cluster file, options); those of the
  // cluster file.
  static absl::Status Check(const CandidateOptions& options);
  // Stands from now on. Returns before it knows any node. Goes by the cluster
  // file as it is now; reads it again only when the nodes have a newer list of
  // members. Errors: as Check; ResourceExhausted (no thread); those of the
  // adapter.
  static absl::StatusOr<std::unique_ptr<Candidate>> Stand(
      const CandidateOptions& options);
  // Withdraws. A log that was handed out stays with its owner. May block: an
  // opening that has begun ends first; with ZooKeeper up to 4.5 s more, until
  // the service has heard that the session ends. Requires: no other call runs.
  ~Candidate();
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // Waits until this process is primary, and returns the log. It is handed out
  // once. May block. Errors: DeadlineExceeded (with the reason why the last
  // opening failed); Cancelled (withdrawn); NotFound (CAN6); FailedPrecondition
  // (CAN3).
  absl::StatusOr<std::shared_ptr<Log>> WaitForLog(Deadline deadline = {});

  // Returns true if the log that was handed out is to be given back: it has
  // failed, another primary is wanted, or this process has withdrawn.
  bool must_give_back() const;
  // Waits until must_give_back(), and returns the reason. Cancelled: another
  // primary is wanted, by an operator or to win back a member, and all calls of
  // the log still work; or this process withdraws. Aborted: the log has failed,
  // perhaps after another primary was wanted. FailedPrecondition: no log is
  // handed out; CAN3. DeadlineExceeded: the log still is this process's. May
  // block.
  absl::Status WaitToGiveBack(Deadline deadline = {});
  // Closes the log, drops this reference, and stands again once there is no
  // other. Dropping all references does the same, without a status. May block,
  // as Log::Close. Errors: as Log::Close; after FailedPrecondition the log is
  // open, and the caller still has it. Requires: `log` is not null.
  absl::Status GiveBack(std::shared_ptr<Log>&& log);

  // Returns the process that has the log open, as far as the nodes that this
  // candidate reaches have heard: a hint for others, which may be old. Nobody
  // in a fork's child (CAN3).
  PrimaryReport primary() const;

  // Ends the candidacy. Waits of other threads end. Does not block.
  void Withdraw();

  // Makes the candidate of that node primary. The present primary hands over
  // first. If it does not do so within the elected candidate's hand_over_ms, it
  // is deposed, and its appends may have an unknown outcome. Safe at any
  // moment. Returns once the candidate is primary. May block, up to timeout_ms.
  // Errors: InvalidArgument (no member); FailedPrecondition (nobody stands at
  // that node; the nodes have a newer list of members); NotFound (no node has
  // the log); DeadlineExceeded (nobody said in time that it is primary; it
  // may still become so); Unavailable (no node could be reached); Cancelled
  // (ElectOptions::gives_up; the message says whether anybody was told); those
  // of the cluster file.
  static absl::StatusOr<PrimaryReport> Elect(const ElectOptions& options);
  // Has the candidate of that node hand over. It no longer stands, until it is
  // elected or another process takes its place. Returns the report of the
  // primary after it. May block, as Elect. Errors: as Elect; FailedPrecondition
  // also if nobody else stands; DeadlineExceeded (it still has the log, or
  // nobody else became primary).
  static absl::StatusOr<PrimaryReport> Drain(const ElectOptions& options);

 private:
  class Stander;
  static std::shared_ptr<Log> MakeLog(std::unique_ptr<LogEngine> engine);
  // Returns the engine that a log owns.
  static const LogEngine& EngineOf(const Log& log);
  explicit Candidate(std::unique_ptr<Stander> stander);

  std::unique_ptr<Stander> stander_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CANDIDATE_H_
