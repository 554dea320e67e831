// SPDX-License-Identifier: Apache-2.0
#include "replication/primary/replicator.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/flatten.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::replication {
namespace {

// Nanoseconds without an append after which a catch-up is not throttled. Far
// longer than its batches then delay a new append.
constexpr int64_t kIdleNanos = 20'000'000;
// Rounds of completions in one Poll, at most: events of others must not hold a
// caller of this log forever.
constexpr int kRoundsMax = 16;
// One of this many busy Polls checks for silence and lag. A caller that waits
// for what was taken need not wait for that check.
constexpr uint32_t kBusyPolls = 8;
// Nanoseconds between two checks for silence and lag while nothing else
// happens; less if ack_timeout_ns is short (RPR4). A waiter whose observer is
// due sleeps as long: it would return at once, again and again, while another
// thread is in the middle of a step.
constexpr int64_t kCheckNanos = 20'000;

// For messages.
double Millis(int64_t nanos) { return static_cast<double>(nanos) / 1e6; }

// Returns the most bytes that a backup may save up: one millisecond's worth.
int64_t CatchUpBytesMax(uint64_t bytes_per_second) {
  return static_cast<int64_t>(bytes_per_second / 1000);
}

}  // namespace

Replicator::Replicator(fabric::Fabric& fabric, const Clock& clock,
                       const Options& options, const RingEnd& start,
                       Observer* observer)
    : fabric_(fabric),
      clock_(clock),
      options_(options),
      observer_(observer),
      confirm_quorum_(options.replica_count == 0
                          ? options.write_quorum
                          : quorum::ConfirmQuorumSize(options.replica_count,
                                                      options.write_quorum)),
      last_poll_ns_(clock.NowNanos()),
      appended_at_ns_(last_poll_ns_),
      end_(start),
      local_lsn_(start.lsn),
      local_end_(start),
      durable_lsn_(start.lsn) {}

void Replicator::Add(std::string name, fabric::ConnectionId connection,
                     std::unique_ptr<PrimarySession> session) {
  ALPHEUS_CHECK(backups_.size() + 1 < kMembersMax, "N is at most kMembersMax");
  backups_.push_back({std::move(name), connection, std::move(session),
                      absl::OkStatus(), absl::OkStatus(), Listen()});
}

void Replicator::Join(std::string name, fabric::ConnectionId connection,
                      std::unique_ptr<PrimarySession> session) {
  ALPHEUS_CHECK(!StatusOf(name).ok(), "one session with each replica");
  has_news_ = true;
  std::erase_if(backups_, [&](const Backup& b) { return b.name == name; });
  Add(std::move(name), connection, std::move(session));
  Backup& backup = backups_.back();
  backup.lag_excused = LagOf(backup);
  backup.is_catching_up = backup.lag_excused != 0;
  backup.catch_up_bytes = CatchUpBytesMax(options_.catch_up_bytes_per_second);
  backup.seen_end = end_.offset;
  backup.seen_ns = last_poll_ns_;
  CatchUp(backup);
  Push(backup);
  Count();
}

absl::Status Replicator::StatusOf(const std::string& name) const {
  const auto found = std::ranges::find(backups_, name, &Backup::name);
  return found != backups_.end()
             ? found->status
             : absl::NotFoundError("was not there when the epoch was opened");
}

uint64_t Replicator::LagOf(const Backup& backup) const {
  return end_.offset - backup.session->posted().offset +
         backup.session->lag_bytes();
}

int64_t Replicator::Listen() {
  const int64_t now = clock_.NowNanos();
  int64_t passed = now - std::exchange(last_poll_ns_, now);
  passed = std::min(passed, options_.ack_timeout_ns / 4);
  listened_ns_ += passed;
  return listened_ns_;
}

ALPHEUS_FLATTEN void Replicator::Advance(const RingEnd& end) {
  NoteNews();
  end_ = end;
  has_appended_ = true;
  for (Backup& backup : backups_) Push(backup);
  fabric_.FlushSends();  // sends now; Poll comes later
}

void Replicator::AdvanceBounds(const RingBounds& bounds) {
  NoteNews();
  bounds_ = bounds;
  for (Backup& backup : backups_) Push(backup);
  Count();
}

void Replicator::AnnounceDurable() {
  NoteNews();
  announced_lsn_ = durable_lsn_;
  for (Backup& backup : backups_) Push(backup);
}

// Sends nothing: records that are offered in the same step bring batches.
void Replicator::BeginConfirmation() {
  NoteNews();
  is_confirming_ = true;
  confirming_lsn_ = end_.lsn;
  for (Backup& backup : backups_) {
    backup.unconfirming = backup.session->batches();
  }
  CountConfirmation();
}

// RPR9.
void Replicator::AskToConfirm(Backup& backup) {
  if (!is_confirming_ || confirm_quorum_ <= OwnCount()) return;
  PrimarySession& session = *backup.session;
  if (!MayPost(backup) || session.batches() != backup.unconfirming) return;
  const absl::Status posted = session.Ask(durable_lsn_);
  if (!posted.ok()) DropUnlessMoreComes(backup, posted);
}

// RPR9, RSK5.
void Replicator::CountConfirmation() {
  if (!is_confirming_ || has_failed()) return;
  uint32_t answered = OwnCount();
  for (const Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    answered += backup.session->batches_acked() > backup.unconfirming ? 1 : 0;
  }
  if (answered < confirm_quorum_) return;
  if (durable_lsn_ < confirming_lsn_) return;
  is_confirming_ = false;
}

bool Replicator::IsIdle(const Backup& backup) const {
  if (!MayPost(backup)) return false;  // its end is to come (RPR7)
  const PrimarySession& session = *backup.session;
  return session.is_idle() && session.posted().offset == end_.offset &&
         session.durable_announced() >= announced_lsn_ &&
         (bounds_.head.lsn == Lsn(0) ||
          (session.bounds_published().head.lsn >= bounds_.head.lsn &&
           session.bounds_published().ceiling >= bounds_.ceiling));
}

bool Replicator::is_catching_up() const {
  return std::ranges::any_of(backups_, [](const Backup& backup) {
    return backup.status.ok() && backup.is_catching_up;
  });
}

bool Replicator::is_idle() const {
  if (is_confirming_ && !has_failed()) return false;
  return std::ranges::all_of(backups_, [this](const Backup& backup) {
    return !backup.status.ok() || IsIdle(backup);
  });
}

void Replicator::NoteNews() {
  has_news_ = true;
  for (Backup& backup : backups_) {
    backup.is_heard |= IsIdle(backup);
  }
}

RingOffset Replicator::reuse_limit() const {
  RingOffset least = bounds_.ceiling;
  for (const Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    least = std::min(least, backup.session->bounds_published().ceiling);
  }
  return least;
}

ALPHEUS_FLATTEN void Replicator::LocalPersisted(Lsn lsn) {
  if (!options_.has_local_replica) return;
  if (lsn >= end_.lsn) local_end_ = end_;
  local_lsn_ = std::max(local_lsn_, lsn);
  CountRecords();
}

ALPHEUS_FLATTEN bool Replicator::OnCompletion(
    const fabric::Completion& completion) {
  Backup* backup = Find(completion.connection);
  if (backup == nullptr) return false;
  if (!backup->status.ok()) return true;
  const uint64_t before = backup->session->batches_acked();
  const Lsn persisted_before = backup->session->acked_lsn();
  const Lsn head_before = backup->session->bounds_published().head.lsn;
  const absl::Status taken = backup->session->OnCompletion(completion);
  if (!taken.ok()) DropUnlessMoreComes(*backup, taken);
  if (!backup->status.ok()) return true;
  if (backup->session->batches_acked() != before ||
      backup->session->acked_lsn() != persisted_before) {
    // A completion comes from the adapter: no sign that the backup's program
    // runs.
    backup->is_heard |= backup->session->batches_acked() != before;
    Push(*backup);
    AskToConfirm(*backup);  // it may have had no credit
    CountRecords();
    if (backup->session->bounds_published().head.lsn != head_before) {
      CountHeads();
    }
  } else if (completion.operation == fabric::Operation::kWrite) {
    // A piece of a batch arrived. The last one, with the immediate, is no sign
    // of the backup's program: an adapter takes it alone.
    backup->is_heard = true;
  }
  return true;
}

bool Replicator::Disconnected(fabric::ConnectionId connection) {
  Backup* backup = Find(connection);
  if (backup == nullptr) return false;
  Drop(*backup, backup->unposted.ok()
                    ? absl::UnavailableError("the backup broke the connection")
                    : backup->unposted);
  return true;
}

// Takes what arrived first: after a long pause, acks may have been waiting. If
// an ack made a batch possible, another round sends it. If not, there is no
// other round, so that the caller gets its ack at once.
Polled Replicator::Poll() {
  int rounds = 0;
  Arrived arrived;
  if (is_confirming_) [[unlikely]] {
    for (Backup& backup : backups_) AskToConfirm(backup);
  }
  while (DrainSome(&arrived) && ++rounds < kRoundsMax) {
  }
  const bool any = arrived.completions != 0 || arrived.events != 0;
  if (arrived.completions != 0) has_news_ = true;
  const bool is_due = arrived.completions != 0 ? ++busy_polls_ % kBusyPolls == 0
                                               : any || IsPollDue();
  if (is_due) {
    has_news_ = false;
    if (CheckBackups()) DrainSome(&arrived);
  }
  const Polled polled = any || is_due ? Polled::kMoved : Polled::kIdle;
  return observer_ == nullptr ? polled : observer_->OnPoll(polled);
}

bool Replicator::IsPollDue() const {
  return has_news_ || is_catching_up() ||
         clock_.NowNanos() - last_poll_ns_ >=
             std::min(kCheckNanos, options_.ack_timeout_ns / 8);
}

// Connections end after everything that arrived before, which may say why. If
// there is more of that, the next call comes to the ends.
bool Replicator::DrainSome(Arrived* arrived) {
  const size_t count = fabric_.Poll(completions_, &events_);
  if (count == 0 && events_.empty()) return false;
  arrived->completions += count;
  const uint64_t posted = batches();
  bool may_have_posted = false;
  for (const fabric::Completion& completion :
       std::span(completions_).first(count)) {
    if (OnCompletion(completion) || observer_ == nullptr) continue;
    observer_->OnCompletion(completion);
    may_have_posted = true;
  }
  if (count == completions_.size()) return true;
  arrived->events += events_.size();
  for (const fabric::ConnectionEvent& event : events_) {
    const bool is_ours =
        event.kind == fabric::ConnectionEvent::Kind::kDisconnected &&
        Disconnected(event.connection);
    if (!is_ours && observer_ != nullptr) observer_->OnConnectionEvent(event);
  }
  const bool is_news = !events_.empty();
  events_.clear();
  return may_have_posted || batches() != posted || is_news;
}

Deadline Replicator::PollDeadline(Deadline deadline) const {
  const int64_t now = clock_.NowNanos();
  const int64_t observer_due = std::max(
      observer_due_ns_.load(std::memory_order_relaxed), now + kCheckNanos);
  int64_t check_ns = options_.ack_timeout_ns / 4;
  if (options_.heartbeat_ns != 0) {
    check_ns = std::min(check_ns, options_.heartbeat_ns);
  }
  return Deadline::AtNanos(
      std::min({deadline.at_nanos(), now + check_ns, observer_due}));
}

ALPHEUS_FLATTEN ReplicationState Replicator::replication_state() const {
  ReplicationState state{.durable_lsn = durable_lsn_,
                         .in_sync_lsn = InSyncLsn(),
                         .reuse_limit = reuse_limit(),
                         .durable_head_lsn = durable_head_lsn_,
                         .is_idle = !is_joining_ && is_idle(),
                         .is_catching_up = is_joining_ || is_catching_up(),
                         .has_failed = has_failed(),
                         .is_confirming = is_confirming_};
  if (pinned_limit_) {
    state.reuse_limit = std::min(state.reuse_limit, *pinned_limit_);
  }
  return state;
}

bool Replicator::CheckBackups() {
  const int64_t now = Listen();
  if (std::exchange(has_appended_, false)) appended_at_ns_ = last_poll_ns_;
  bool any_posted = false;
  for (Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    if (std::exchange(backup.is_heard, false)) backup.heard_ns = now;
    const uint64_t before = backup.session->batches();
    CatchUp(backup);
    Push(backup);
    PostReceives(backup);
    Beat(backup);
    any_posted |= backup.session->batches() != before;
    if (!backup.status.ok()) continue;
    const uint64_t lag = LagOf(backup);
    if (lag <= options_.lag_bytes_max) backup.lag_excused = 0;
    if (IsIdle(backup)) {
      backup.heard_ns = now;
    } else if (lag > options_.lag_bytes_max + backup.lag_excused) {
      Drop(backup, absl::UnavailableError(absl::StrCat(
                       lag, " bytes behind, at most ", options_.lag_bytes_max,
                       " are allowed (lag_bytes_max)")));
    } else if (now - backup.heard_ns > options_.ack_timeout_ns) {
      Drop(backup,
           absl::UnavailableError(absl::StrCat(
               "nothing was heard for ", Millis(now - backup.heard_ns),
               " ms of listening, at most ", Millis(options_.ack_timeout_ns),
               " are allowed (ack_timeout_ms)")));
    }
  }
  return any_posted;
}

uint64_t Replicator::batches() const {
  uint64_t sum = 0;
  for (const Backup& backup : backups_) sum += backup.session->batches();
  return sum;
}

uint32_t Replicator::in_sync() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(backups_,
                            [](const Backup& b) { return b.status.ok(); }) +
      OwnCount());
}

std::vector<Replicator::SyncedBackup> Replicator::SyncedBackups() const {
  std::vector<SyncedBackup> synced;
  for (const Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    synced.push_back({backup.name, backup.session->platform()});
  }
  return synced;
}

Replicator::Backup* Replicator::Find(fabric::ConnectionId connection) {
  const auto found =
      std::ranges::find(backups_, connection, &Backup::connection);
  return found == backups_.end() ? nullptr : &*found;
}

// Closing is no fence at the backup: it may take more of what is in flight
// (P-H21). Its acks no longer arrive.
void Replicator::Drop(Backup& backup, const absl::Status& why) {
  if (!backup.status.ok()) return;
  backup.status = why;
  fabric_.Close(backup.connection).IgnoreError();
  if (in_sync() >= options_.write_quorum || !status_.ok()) return;
  status_ = absl::AbortedError(DescribeLoss());
}

// Names the last of several primaries that may have opened the log.
std::string Replicator::DescribeLoss() const {
  const quorum::Promise* newest = nullptr;
  for (const Backup& backup : backups_) {
    const std::optional<quorum::Promise>& by = backup.session->overtaken_by();
    if (!by || by->epoch == Epoch()) continue;
    if (newest == nullptr || newest->epoch < by->epoch) newest = &*by;
  }
  std::string text = newest == nullptr
                         ? ""
                         : absl::StrCat(quorum::DescribeOpening(*newest), "; ");
  absl::StrAppend(
      &text, "the log failed with ", in_sync(), " of ", options_.write_quorum,
      " replicas that must be in sync; records after LSN ", durable_lsn_.value,
      " have an unknown outcome until the log is opened again.");
  for (const Backup& backup : backups_) {
    if (backup.status.ok()) continue;
    absl::StrAppend(&text, " ", backup.name, ": ", backup.status.message(),
                    ".");
  }
  return text;
}

// RPR7. The adapter knows that the connection is broken. What arrived before
// may still be on its way to this log, and the end comes after it. After any
// other error nothing more comes.
void Replicator::DropUnlessMoreComes(Backup& backup, const absl::Status& why) {
  if (absl::IsFailedPrecondition(why)) {
    if (backup.unposted.ok()) backup.unposted = why;
  } else {
    Drop(backup, why);
  }
}

void Replicator::End(const absl::Status& why) {
  has_news_ = true;
  is_ended_ = true;
  if (status_.ok()) {
    status_ = absl::AbortedError(
        absl::StrCat(why.message(), "; records after LSN ", durable_lsn_.value,
                     " have an unknown outcome until the log is opened again"));
  }
  for (Backup& backup : backups_) Drop(backup, why);
}

void Replicator::Push(Backup& backup) {
  if (!MayPost(backup)) return;
  PrimarySession& session = *backup.session;
  absl::Status posted;
  if (end_.offset > session.posted().offset && !backup.is_catching_up) {
    posted = session.Advance(end_);
  }
  const bool has_bounds = bounds_.head.lsn != Lsn(0);
  if (has_bounds && bounds_ != session.bounds_sent() && posted.ok()) {
    posted = session.AdvanceBounds(bounds_);
  }
  if (announced_lsn_ > session.durable_announced() && posted.ok()) {
    posted = session.AdvanceDurable(announced_lsn_);
  }
  if (!posted.ok()) [[unlikely]]
    DropUnlessMoreComes(backup, posted);
}

void Replicator::PostReceives(Backup& backup) {
  if (!MayPost(backup)) return;
  const absl::Status posted = backup.session->PostReceives();
  if (!posted.ok()) DropUnlessMoreComes(backup, posted);
}

// RPR8.
void Replicator::Beat(Backup& backup) {
  if (options_.heartbeat_ns == 0 || !MayPost(backup)) return;
  PrimarySession& session = *backup.session;
  if (session.batches() == backup.said &&
      last_poll_ns_ - backup.said_ns >= options_.heartbeat_ns) {
    const absl::Status posted = session.Beat(durable_lsn_);
    if (!posted.ok()) return DropUnlessMoreComes(backup, posted);
  }
  if (session.batches() == backup.said) return;
  backup.said = session.batches();
  backup.said_ns = last_poll_ns_;
}

// RPR6.
void Replicator::CatchUp(Backup& backup) {
  if (!MayPost(backup) || !backup.is_catching_up) return;
  EarnCatchUp(backup);
  PrimarySession& session = *backup.session;
  const RingOffset before = session.posted().offset;
  absl::Status posted;
  if (last_poll_ns_ - appended_at_ns_ >= kIdleNanos) {
    posted = session.Advance(end_);
  } else if (backup.catch_up_bytes > 0) {
    posted = session.Advance(end_, PrimarySession::Pace::kCatchUp);
  }
  backup.catch_up_bytes -=
      static_cast<int64_t>(session.posted().offset - before);
  backup.is_catching_up = session.posted().offset != end_.offset;
  if (!posted.ok()) DropUnlessMoreComes(backup, posted);
}

void Replicator::EarnCatchUp(Backup& backup) const {
  const auto appended = static_cast<int64_t>(
      end_.offset - std::exchange(backup.seen_end, end_.offset));
  const int64_t passed =
      last_poll_ns_ - std::exchange(backup.seen_ns, last_poll_ns_);
  const auto earned = static_cast<int64_t>(
      static_cast<double>(passed) *
      static_cast<double>(options_.catch_up_bytes_per_second) / 1e9);
  backup.catch_up_bytes =
      std::min(CatchUpBytesMax(options_.catch_up_bytes_per_second),
               backup.catch_up_bytes + earned + 2 * appended);
}

void Replicator::Count() {
  CountRecords();
  CountHeads();
}

void Replicator::CountRecords() {
  // P-H20: with W = 1 the own replica alone would do.
  if (is_ended_) return;
  const auto durable = Quorum(local_lsn_, [](const PrimarySession& session) {
    return session.acked_lsn();
  });
  if (durable) durable_lsn_ = std::max(durable_lsn_, *durable);
  CountConfirmation();
}

void Replicator::CountHeads() {
  if (is_ended_) return;  // P-H20
  const auto head = Quorum(bounds_.head.lsn, [](const PrimarySession& session) {
    return session.bounds_published().head.lsn;
  });
  if (head) durable_head_lsn_ = std::max(durable_head_lsn_, *head);
}

Lsn Replicator::InSyncLsn() const {
  if (has_failed()) return Lsn();
  Lsn lowest = durable_lsn_;
  if (options_.has_local_replica) lowest = std::min(lowest, local_lsn_);
  for (const Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    lowest = std::min(lowest, backup.session->acked_lsn());
  }
  return lowest;
}

std::optional<Lsn> Replicator::Quorum(Lsn own,
                                      Lsn (*of)(const PrimarySession&)) {
  size_t count = 0;
  if (options_.has_local_replica) {
    progress_[count++] = {own, /*in_sync=*/true};
  }
  for (const Backup& backup : backups_) {
    progress_[count++] = {of(*backup.session), backup.status.ok()};
  }
  return quorum::DurableLsn(std::span(progress_).first(count),
                            options_.write_quorum);
}

}  // namespace alpheus::replication
