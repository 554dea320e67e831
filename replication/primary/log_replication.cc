// SPDX-License-Identifier: Apache-2.0
#include "replication/primary/log_replication.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "log/base/flatten.h"

namespace alpheus {
namespace {

// Rounds of completions in one Poll, at most: events of others must not hold a
// caller of this log forever.
constexpr int kRoundsMax = 16;
// One of this many busy Polls checks for silence and lag. A caller that waits
// for what was taken need not wait for that check.
constexpr uint32_t kBusyPolls = 8;
// Nanoseconds between two checks for silence and lag while nothing else
// happens; less if silence_ns is short (RPR4 of replicator.h).
constexpr int64_t kLookNanos = 20'000;

}  // namespace

LogReplication::LogReplication(Fabric& fabric, const Clock& clock,
                               const Replicator::Options& options,
                               const RingEnd& start, Others* others)
    : fabric_(fabric),
      clock_(clock),
      silence_ns_(options.silence_ns),
      has_local_replica_(options.has_local_replica),
      others_(others),
      replicator_(fabric, clock, options, start) {}

// Takes what arrived first: after a long pause, acks may have been waiting. If
// an ack made a batch possible, another round sends it. If not, there is no
// other round, so that the caller gets its ack at once.
bool LogReplication::Poll() {
  int rounds = 0;
  Arrived arrived;
  while (TakeSome(&arrived) && ++rounds < kRoundsMax) {
  }
  if (arrived.completions != 0) {
    is_told_ = true;
    if (++busy_polls_ % kBusyPolls != 0) return true;
  } else if (arrived.events == 0 && !IsLookDue()) {
    return false;
  }
  is_told_ = false;
  if (replicator_.Poll()) TakeSome(&arrived);
  return true;
}

bool LogReplication::IsLookDue() const {
  return is_told_ || replicator_.is_catching_up() ||
         clock_.NowNanos() - replicator_.looked_at_ns() >=
             std::min(kLookNanos, silence_ns_ / 8);
}

ALPHEUS_FLATTEN ReplicationState LogReplication::replication_state() const {
  return {.durable_lsn = replicator_.durable_lsn(),
          .reuse_head = replicator_.reuse_head(),
          .durable_head_lsn = replicator_.durable_head_lsn(),
          .is_idle = replicator_.is_idle(),
          .is_catching_up = replicator_.is_catching_up(),
          .has_failed = has_failed()};
}

Deadline LogReplication::LookBy(Deadline deadline) const {
  return Deadline::AtNanos(
      std::min(deadline.at_nanos(), clock_.NowNanos() + silence_ns_ / 4));
}

// Connections end after everything that arrived before, which may say why. If
// there is more of that, the next call comes to the ends.
bool LogReplication::TakeSome(Arrived* arrived) {
  const size_t count = fabric_.Poll(completions_, &events_);
  if (count == 0 && events_.empty()) return false;
  arrived->completions += count;
  const uint64_t posted = replicator_.batches();
  bool may_have_posted = false;
  for (const Completion& completion : std::span(completions_).first(count)) {
    if (replicator_.Take(completion) || others_ == nullptr) continue;
    others_->Take(completion);
    may_have_posted = true;
  }
  if (count == completions_.size()) return true;
  arrived->events += events_.size();
  for (const ConnectionEvent& event : events_) {
    const bool is_ours = event.kind == ConnectionEvent::Kind::kDisconnected &&
                         replicator_.Disconnected(event.connection);
    if (!is_ours && others_ != nullptr) others_->Take(event);
  }
  const bool is_news = !events_.empty();
  events_.clear();
  return may_have_posted || replicator_.batches() != posted || is_news;
}

}  // namespace alpheus
