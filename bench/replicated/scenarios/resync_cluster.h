// SPDX-License-Identifier: Apache-2.0
// resync_cluster: three nodes, of which two have each record, and a third that
// goes and comes back. This process is primary; its backup stays.
//
// The third node's replica file shows whether it has caught up, without
// trusting the log.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_SCENARIOS_RESYNC_CLUSTER_H_
#define ALPHEUS_BENCH_REPLICATED_SCENARIOS_RESYNC_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/pmem/region.h"

namespace alpheus::bench::replicated {

class ResyncCluster {
 public:
  // Starts with all three in sync. The ring has room for 1.5 times the missed
  // bytes. Errors: Unavailable, those of Log::Open.
  static absl::StatusOr<std::unique_ptr<ResyncCluster>> Start(
      const Settings& settings);

  Log& log() { return *log_; }
  const std::string& folder() const { return folder_.path(); }
  // Ends the third node's process; returns when the log has noticed.
  absl::Status LoseMember();
  // Appends the records that it misses: settings.resync_mib of payloads of 1
  // KiB.
  absl::Status Miss();
  // Starts its process again; the log will find it.
  absl::Status StartMember();
  // Returns the missed part of the primary's ring, read-only.
  std::span<const std::byte> missed() const { return missed_; }
  // Returns whether the third node's ring has all of it.
  bool HasCaughtUp() const;

  absl::Status Close() { return log_->Close(); }

 private:
  ResyncCluster(const Settings& settings, ClusterFolder folder)
      : settings_(settings), folder_(std::move(folder)) {}

  absl::Status Open();
  absl::Status AwaitInSync(uint32_t count) const;
  absl::Status Fill(uint64_t records);

  const Settings settings_;
  const ClusterFolder folder_;
  std::optional<BackupProcess> backup_;
  std::optional<BackupProcess> member_;
  std::unique_ptr<Log> log_;
  // Second mapping, read-only.
  std::optional<Region> primary_file_;
  std::optional<Region> member_file_;
  uint64_t filled_ = 0;  // records of 1 KiB before Miss
  std::span<const std::byte> missed_;
  std::span<const std::byte> missed_there_;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIOS_RESYNC_CLUSTER_H_
