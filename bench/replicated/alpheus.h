// SPDX-License-Identifier: Apache-2.0
// alpheus: the log through its public header, with nodes in processes of their
// own as backups.
#ifndef ALPHEUS_BENCH_REPLICATED_ALPHEUS_H_
#define ALPHEUS_BENCH_REPLICATED_ALPHEUS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bench/local/force_policy.h"
#include "bench/replicated/candidate.h"
#include "log/core/flush_order.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kAlpheusName = "alpheus";
// Of a backup process that sleeps in the kernel whenever nothing comes.
inline constexpr const char* kAlpheusBlockKind = "alpheus-block";

struct AlpheusVariant {
  std::string name = kAlpheusName;
  FlushOrder flush_order = FlushOrder::kRemoteFirst;
  // Other than the default: an Append returns when the policy lets it, durable
  // or not. Not together with batches.
  ForcePolicy policy = {};
  // Reserve, Copy, Complete and Force apart; the means of Copy and Force become
  // metrics of a turn.
  bool is_by_steps = false;
  // No replica in this process: one copy less than the others keep.
  bool is_remote_only = false;
};

// Every turn has a log and nodes of its own: how a node waits is an option of
// its start, and one that is not asked for anything should take no core.
MakeCandidate Alpheus(AlpheusVariant variant = {});

// A backup process of it: node `node` of the cluster in `folder`.
absl::Status ServeAlpheus(std::string_view kind, const std::string& folder,
                          uint64_t node);
// Whether `kind` names such a process.
bool IsAlpheusKind(std::string_view kind);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_ALPHEUS_H_
