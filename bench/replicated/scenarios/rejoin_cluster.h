// SPDX-License-Identifier: Apache-2.0
// rejoin_cluster: three nodes of which two have each record, and a third that
// goes and comes back: this process is primary, its backup stays.
//
// Whether the third one has again what it missed is read off its replica's
// file, so that nothing of the log is taken at its word.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_SCENARIOS_REJOIN_CLUSTER_H_
#define ALPHEUS_BENCH_REPLICATED_SCENARIOS_REJOIN_CLUSTER_H_

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

class RejoinCluster {
 public:
  // With all three in sync. The ring has room for what is missed and half of
  // that. Errors: Unavailable, those of Log::Open.
  static absl::StatusOr<std::unique_ptr<RejoinCluster>> Start(
      const Settings& settings);

  Log& log() { return *log_; }
  const std::string& folder() const { return folder_.path(); }
  // The third node's process ends, and the log knows.
  absl::Status LoseMember();
  // Appends what it misses: settings.rejoin_mib of payloads of 1 KiB.
  absl::Status Miss();
  // Its process is there again; the log will find it.
  absl::Status StartMember();
  // All of the primary's ring that was missed, read-only.
  std::span<const std::byte> missed() const { return missed_; }
  // The third node's ring holds all of it.
  bool HasCaughtUp() const;

  absl::Status Close() { return log_->Close(); }

 private:
  RejoinCluster(const Settings& settings, ClusterFolder folder)
      : settings_(settings), folder_(std::move(folder)) {}

  absl::Status Open();
  absl::Status AwaitInSync(uint32_t count) const;
  absl::Status Fill(uint64_t records);

  const Settings settings_;
  const ClusterFolder folder_;
  std::optional<BackupProcess> backup_;
  std::optional<BackupProcess> member_;
  std::unique_ptr<Log> log_;
  // Mapped once more, read-only.
  std::optional<Region> primary_file_;
  std::optional<Region> member_file_;
  uint64_t filled_ = 0;  // records of 1 KiB, all there are until Miss
  std::span<const std::byte> missed_;
  std::span<const std::byte> missed_there_;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIOS_REJOIN_CLUSTER_H_
