// SPDX-License-Identifier: Apache-2.0
#include "replication/log_replication.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "log/base/mutant.h"

namespace alpheus {
namespace {

// Completions that are taken at once, and how often in one Poll: peers of
// others must not hold a caller of this log for ever.
constexpr size_t kTakenAtOnce = 64;
constexpr int kRoundsMax = 16;

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

// What arrived comes first: who was not polled for long may have been answered
// long ago. What an ack made possible to post leaves with the next round, the
// last of which finds nothing.
void LogReplication::Poll() {
  int rounds = 0;
  while (TakeSome() && ++rounds < kRoundsMax) {
  }
  if (replicator_.Poll()) TakeSome();
}

Deadline LogReplication::LookBy(Deadline deadline) const {
  if (IsMutant("kSilentWaitSleeps")) return deadline;
  return Deadline::AtNanos(
      std::min(deadline.at_nanos(), clock_.NowNanos() + silence_ns_ / 4));
}

bool LogReplication::TakeSome() {
  std::array<Completion, kTakenAtOnce> completions;
  events_.clear();
  const size_t count = fabric_.Poll(completions, &events_);
  for (size_t i = 0; i < count; ++i) {
    if (!replicator_.Take(completions[i]) && others_ != nullptr) {
      others_->Take(completions[i]);
    }
  }
  for (const ConnectionEvent& event : events_) {
    const bool is_ours = event.kind == ConnectionEvent::Kind::kDisconnected &&
                         replicator_.Disconnected(event.connection);
    if (!is_ours && others_ != nullptr) others_->Take(event);
  }
  return count != 0 || !events_.empty();
}

}  // namespace alpheus
