// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/replica_resync.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/server_hello_check.h"

namespace alpheus::recovery {
namespace {

using PeerState = OpeningPeer::State;

// Number of failures that double the time until the next try.
constexpr uint32_t kDoublingsMax = 5;
// The part of the ring, 1 in this many, that may be held for a joiner though
// the log needs it no more (RSY2).
constexpr uint64_t kPinnedFraction = 4;
// A caller that polls this many nanoseconds after NextPoll has paused (EO5 of
// epoch_opening.h).
constexpr int64_t kOwnPauseNanos = 100'000'000;

}  // namespace

ReplicaResync::ReplicaResync(fabric::Fabric& fabric, const Clock& clock,
                             RandomSource& random, ResyncOptions options,
                             ResyncSource log)
    : fabric_(fabric),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      log_(std::move(log)),
      expected_at_(clock.NowNanos()) {
  for (const PeerAddress& at : options_.opening.peers) {
    Member& member = members_.emplace_back();
    member.at = at;
    member.name = DescribePeer(at);
    member.due_nanos = clock.NowNanos() + options_.retry_ns;
  }
}

ReplicaResync::~ReplicaResync() = default;

// The error names the member already.
void ReplicaResync::NoteAbsent(const OtherMember& absent) {
  for (Member& member : members_) {
    if (member.at.node != absent.node) continue;
    absl::string_view why = absent.why;
    absl::ConsumePrefix(&why, absl::StrCat(member.name, ": "));
    member.is_out_of_sync = true;
    member.why = absl::UnavailableError(
        absl::StrCat("took no part in the opening: ", why));
  }
}

bool ReplicaResync::OnCompletion(const fabric::Completion& completion) {
  if (joining_ == nullptr || !joining_->Owns(completion.connection)) {
    return false;
  }
  joining_->OnCompletion(completion);
  if (joining_->IsForeign(completion)) copier_->OnCompletion(completion);
  return true;
}

bool ReplicaResync::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (joining_ == nullptr || !joining_->Owns(event.connection)) return false;
  joining_->OnConnectionEvent(event);
  return true;
}

void ReplicaResync::NoteOutOfSync(const StatusOf& status_of) {
  for (Member& member : members_) {
    const absl::Status status = status_of(member.name);
    // The reason why it could not join says more than why it had gone.
    if (status.ok() || !member.is_out_of_sync) member.why = status;
    member.is_out_of_sync = !status.ok();
  }
}

Polled ReplicaResync::Poll(const Now& now, const StatusOf& status_of) {
  NoteOutOfSync(status_of);
  if (stopped_) return Polled::kIdle;
  if (joining_ == nullptr) {
    if (Member* const next = NextMember()) Begin(*next);
  }
  Polled polled = Polled::kIdle;
  if (joining_ != nullptr) {
    const int64_t now_nanos = clock_.NowNanos();
    if (now_nanos - expected_at_ > kOwnPauseNanos) {
      joining_->RenewTime(now_nanos);
    }
    joining_->CheckTime(now_nanos);
    if (const absl::Status status = Advance(now); !status.ok()) {
      Fail(status);
    } else if (joining_->state() == PeerState::kInstalled) {
      FinishJoin();
      polled = Polled::kMoved;
    }
  }
  expected_at_ = NextPoll().at_nanos();
  return polled;
}

Deadline ReplicaResync::NextPoll() const {
  if (stopped_) return Deadline();
  if (joining_ != nullptr) {
    return Deadline::AtNanos(joining_->state() == PeerState::kReported
                                 ? clock_.NowNanos()
                                 : joining_->due_nanos());
  }
  int64_t next = Deadline().at_nanos();
  for (const Member& member : members_) {
    if (member.is_out_of_sync && !member.is_lost) {
      next = std::min(next, member.due_nanos);
    }
  }
  return Deadline::AtNanos(next);
}

// Returns the member that has waited longest, or nullptr.
ReplicaResync::Member* ReplicaResync::NextMember() {
  Member* next = nullptr;
  for (Member& member : members_) {
    if (!member.is_out_of_sync || member.is_lost ||
        member.due_nanos > clock_.NowNanos()) {
      continue;
    }
    if (next == nullptr || member.due_nanos < next->due_nanos) next = &member;
  }
  return next;
}

void ReplicaResync::Begin(Member& member) {
  const EpochOpeningOptions& opening = options_.opening;
  trying_ = &member;
  ++counters_.tries;
  joining_ = std::make_unique<OpeningPeer>(
      OpeningPeerOptions{
          .at = member.at,
          .hello = {opening.cluster_id, opening.log_id, opening.self},
          .step_timeout_ns = opening.step_timeout_ns,
          .deadline = {},
          .credentials = {opening.key, &random_},
          .joins = true,
          .batch_bytes_max = opening.batch_bytes_max},
      fabric_, clock_);
  joining_->Connect();
}

absl::Status ReplicaResync::Advance(const Now& now) {
  ALPHEUS_RETURN_IF_ERROR(CheckPinned(now));
  switch (joining_->state()) {
    case PeerState::kFailed:
      return joining_->failure();
    case PeerState::kGreeted:
      return SendPrepare();
    case PeerState::kRefused:
      trying_->is_lost = true;
      return absl::AbortedError(
          absl::StrCat(joining_->Describe(), ": promised epoch ",
                       joining_->refused_by().epoch.value, ", above epoch ",
                       log_.epoch.value, " of this log, to another primary (",
                       quorum::DescribeOpening(joining_->refused_by()),
                       "); it joins none before the next"));
    case PeerState::kReported:
      return ContinuePlan(now);
    case PeerState::kRepairOpened:
      return ContinueCopy(now);
    default:
      return absl::OkStatus();
  }
}

absl::Status ReplicaResync::SendPrepare() {
  const ServerHello& server_hello = joining_->server_hello();
  const uint64_t configuration_id = options_.opening.configuration_id;
  if (server_hello.configuration_id > configuration_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        joining_->Describe(), " has configuration ",
        server_hello.configuration_id, ", newer than ", configuration_id,
        " of this process. Open the log with "
        "the newest list of members"));
  }
  if (const absl::Status good = CheckServerHello(server_hello); !good.ok()) {
    if (!absl::IsNotFound(good)) return good;
    return absl::NotFoundError(absl::StrCat(
        joining_->Describe(),
        " has no replica of this log, which runs. `alpheus replace --cluster "
        "FILE --log NAME --node ",
        joining_->node().value, "` makes it one from the others"));
  }
  joining_->Ask(Prepare{.promise = {log_.epoch, options_.opening.self},
                        .configuration_id = configuration_id,
                        .from_head = trying_->reports_all});
  return absl::OkStatus();
}

absl::Status ReplicaResync::ContinuePlan(const Now& now) {
  if (planner_ == nullptr) {
    RunningEpoch running{log_.configuration, log_.epoch,      log_.table,
                         log_.start,         now.bounds.head, now.finished,
                         now.durable_lsn};
    ALPHEUS_RETURN_IF_ERROR(
        CheckJoins(running, log_.ring.capacity(), joining_->report()));
    pinned_ = now.bounds.head.offset;
    planner_ = std::make_unique<JoinPlanner>(log_.ring, std::move(running),
                                             joining_->report());
  }
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_planned,
                           planner_->Continue(options_.slice_bytes));
  if (is_planned) {
    joining_->Ask(OpenForRepair{log_.epoch, planner_->plan().set_repairing,
                                planner_->plan().written_end});
  }
  return absl::OkStatus();
}

absl::Status ReplicaResync::ContinueCopy(const Now& now) {
  const JoinPlan& plan = planner_->plan();
  if (copier_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(
        copier_,
        RingCopier::Make(
            /*number=*/0,
            {.sources = {},
             .destination = joining_.get(),
             .own = {.ring = log_.ring, .key = log_.ring_key, .has_all = true}},
            plan.copies,
            std::min(options_.copy_bytes_max, options_.opening.copy_bytes_max),
            fabric_));
  }
  ALPHEUS_RETURN_IF_ERROR(copier_->Post());
  if (!copier_->is_done()) return absl::OkStatus();
  const LogPosition& head = planner_->running().head;
  // The session raises it (RSE6 of primary_session.h).
  const RingOffset ceiling =
      std::min(now.bounds.ceiling, head.offset + log_.ring.capacity());
  joining_->Ask(Install{{log_.epoch, log_.table, head, plan.next, ceiling,
                         log_.configuration},
                        NewSession(random_),
                        options_.opening.credits,
                        options_.opening.heartbeat_ms},
                log_.ring, log_.ring_key);
  return absl::OkStatus();
}

// RSY2.
absl::Status ReplicaResync::CheckPinned(const Now& now) const {
  if (!pinned_) return absl::OkStatus();
  const uint64_t pinned_bytes = now.bounds.head.offset - *pinned_;
  if (pinned_bytes <= log_.ring.capacity() / kPinnedFraction)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(joining_->Describe(), ": ", pinned_bytes,
                   " bytes of the ring, of ", log_.ring.capacity(),
                   ", are cleaned and were kept for it: it is slower than the "
                   "log. The primary tries it again"));
}

void ReplicaResync::FinishJoin() {
  ++counters_.joins;
  counters_.records_copied += planner_->plan().records;
  joined_ = {joining_->node(), joining_->address(),
             joining_->ReleaseConnection(), joining_->ReleaseSession()};
  trying_->failures = 0;
  trying_->is_out_of_sync = false;
  trying_->reports_all = false;
  trying_->has_asked_for_scrub = false;
  EndTry(options_.retry_ns);
}

// RSY5.
void ReplicaResync::NoteDamage() {
  if (trying_->reports_all && !trying_->has_asked_for_scrub) {
    trying_->has_asked_for_scrub = true;
    wants_scrub_ = true;
  }
  trying_->reports_all = true;
}

void ReplicaResync::Fail(const absl::Status& why) {
  ++counters_.failures;
  trying_->why = why;
  if (absl::IsDataLoss(why)) NoteDamage();
  const uint32_t doublings = std::min(trying_->failures, kDoublingsMax);
  ++trying_->failures;
  EndTry(options_.retry_ns << doublings);
}

// Closes the connection first, so that nothing is written from freed memory.
void ReplicaResync::EndTry(int64_t wait_ns) {
  trying_->due_nanos = clock_.NowNanos() + wait_ns;
  joining_.reset();
  copier_.reset();
  planner_.reset();
  pinned_.reset();
}

void ReplicaResync::Stop() {
  stopped_ = true;
  if (joining_ == nullptr) return;
  ++counters_.failures;
  EndTry(0);
}

std::vector<OtherMember> ReplicaResync::OutOfSync() const {
  std::vector<OtherMember> out_of_sync;
  for (const Member& member : members_) {
    if (!member.is_out_of_sync) continue;
    out_of_sync.push_back({member.at.node, std::string(member.why.message())});
  }
  return out_of_sync;
}

}  // namespace alpheus::recovery
