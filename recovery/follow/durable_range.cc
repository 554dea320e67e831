// SPDX-License-Identifier: Apache-2.0
#include "recovery/follow/durable_range.h"

#include <algorithm>
#include <functional>

namespace alpheus::recovery {
namespace {

struct Evidence {
  Lsn named;
  Lsn before_epoch;            // LSN before the newest epoch
  std::vector<Lsn> persisted;  // of replicas that count; largest first
  std::vector<Lsn> ends;       // ends of those; largest first
  bool without_ends = false;
  uint32_t unheard = 0;  // u of DR2
};

Epoch NewestOf(const std::vector<std::optional<ReplicaEvidence>>& replicas) {
  Epoch newest;
  for (const auto& replica : replicas) {
    if (replica) newest = std::max(newest, replica->log_epoch);
  }
  return newest;
}

Evidence Gather(const std::vector<std::optional<ReplicaEvidence>>& replicas) {
  const Epoch newest = NewestOf(replicas);
  Evidence all;
  for (const auto& replica : replicas) {
    if (!replica) {
      ++all.unheard;
      continue;
    }
    all.named = std::max(all.named, replica->named_lsn);
    if (replica->log_epoch != newest) continue;
    const Lsn before = replica->start_lsn - 1;
    all.before_epoch = std::max(all.before_epoch, before);
    if (!replica->counts) {
      ++all.unheard;
      continue;
    }
    all.persisted.push_back(std::max(before, replica->watermark_lsn));
    all.without_ends |= !replica->end_lsn.has_value();
    all.ends.push_back(replica->end_lsn.value_or(Lsn()));
  }
  std::ranges::sort(all.persisted, std::greater<>());
  std::ranges::sort(all.ends, std::greater<>());
  return all;
}

// Returns the largest LSN that `count` of them reach.
Lsn ReachedBy(size_t count, const std::vector<Lsn>& largest_first) {
  return largest_first.size() < count ? Lsn() : largest_first[count - 1];
}

}  // namespace

DurableRange FindDurableRange(
    uint32_t write_quorum,
    const std::vector<std::optional<ReplicaEvidence>>& replicas) {
  const Evidence all = Gather(replicas);
  DurableRange range;
  range.unheard = all.unheard;
  range.known = std::max(all.named, ReachedBy(write_quorum, all.persisted));
  range.possible = range.known;
  if (all.without_ends || all.unheard >= write_quorum) {
    range.possible.reset();
  } else {
    range.possible =
        std::max({range.known, all.before_epoch,
                  ReachedBy(write_quorum - all.unheard, all.ends)});
  }
  return range;
}

}  // namespace alpheus::recovery
