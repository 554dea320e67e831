// SPDX-License-Identifier: Apache-2.0
// backup_process: a backup in a process of its own, as it would be on another
// host: this program again, in another mode.
//
// Such a process says on its standard output, in one line, where it listens. It
// dies with the one that started it.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_BACKUP_PROCESS_H_
#define ALPHEUS_BENCH_REPLICATED_BACKUP_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

class BackupProcess {
 public:
  // Starts `bench_replicated backup KIND FOLDER RING_BYTES`.
  // Errors: Unavailable (it can't be started, or says nothing).
  static absl::StatusOr<BackupProcess> Start(const std::string& kind,
                                             const std::string& folder,
                                             uint64_t ring_bytes);
  BackupProcess(BackupProcess&& other) noexcept;
  BackupProcess& operator=(BackupProcess&& other) = delete;
  ~BackupProcess();  // ends it

  const std::string& address() const { return address_; }

 private:
  BackupProcess(pid_t pid, std::string address);

  pid_t pid_;
  std::string address_;
};

// The other end: tells who started this process.
void AnnounceAddress(std::string_view address);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_BACKUP_PROCESS_H_
