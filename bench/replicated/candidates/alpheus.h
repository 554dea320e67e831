// SPDX-License-Identifier: Apache-2.0
// alpheus: the log through its public header, with nodes in processes of their
// own as backups.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_ALPHEUS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_ALPHEUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "bench/harness/force_policy.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "log/core/durability/flush_order.h"

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
  // Reserve, Copy, Complete and Force apart; the medians of Copy and Force
  // become metrics of a turn.
  bool is_by_steps = false;
  // The nodes say that their links check what they carry: they sum no payload.
  // The method is the same.
  bool is_unsummed = false;
  // No replica in this process: one copy less than the others keep.
  bool is_remote_only = false;
};

// Nodes as backups in processes of their own, and logs on them.
class AlpheusCluster {
 public:
  // Errors: Unavailable, and those of ClusterFolder.
  static absl::StatusOr<std::unique_ptr<AlpheusCluster>> Start(
      const AlpheusVariant& variant, const Work& work, Waiting waiting,
      int logs = 1);

  // This process as primary of a log. Errors: as Log::Open.
  absl::StatusOr<std::unique_ptr<Log>> Open(int log = 0) const;
  // Of all its nodes.
  const std::string& folder() const { return folder_.path(); }

 private:
  AlpheusCluster(AlpheusVariant variant, Waiting waiting, ClusterFolder folder)
      : variant_(std::move(variant)),
        waiting_(waiting),
        folder_(std::move(folder)) {}

  const AlpheusVariant variant_;
  const Waiting waiting_;
  const ClusterFolder folder_;
  std::vector<BackupProcess> backups_;
};

// What a process opens a log with as primary, in the folder of a cluster.
LogOptions LogOptionsIn(const std::string& folder,
                        const AlpheusVariant& variant, Waiting waiting,
                        int log = 0);

// Every turn has a log and nodes of its own: how a node waits is an option of
// its start, and one that is not asked for anything should take no core.
MakeCandidate Alpheus(AlpheusVariant variant = {});

// A backup process of it: node `node` of the cluster in `folder`.
absl::Status ServeAlpheus(std::string_view kind, const std::string& folder,
                          uint64_t node);
// Whether `kind` names such a process.
bool IsAlpheusKind(std::string_view kind);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_ALPHEUS_H_
