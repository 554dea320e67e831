// SPDX-License-Identifier: Apache-2.0
// backup_process: a backup in a process of its own, as it would be on another
// host. It says where it listens.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_BACKUP_PROCESS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_BACKUP_PROCESS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/own_process.h"

namespace alpheus::bench::replicated {

class BackupProcess {
 public:
  // Starts this program as `backup KIND FOLDER RING_BYTES`.
  // Errors: as OwnProcess::Start.
  static absl::StatusOr<BackupProcess> Start(const std::string& kind,
                                             const std::string& folder,
                                             uint64_t ring_bytes) {
    absl::StatusOr<OwnProcess> started =
        OwnProcess::Start({"backup", kind, folder, absl::StrCat(ring_bytes)});
    if (!started.ok()) return started.status();
    return BackupProcess(*std::move(started));
  }

  const std::string& address() const { return process_.said(); }

 private:
  explicit BackupProcess(OwnProcess process) : process_(std::move(process)) {}

  OwnProcess process_;
};

// The other end: tells who started this process.
inline void AnnounceAddress(std::string_view address) { Say(address); }

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_BACKUP_PROCESS_H_
