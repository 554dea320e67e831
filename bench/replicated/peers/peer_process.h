// SPDX-License-Identifier: Apache-2.0
// peer_process: a third party's server, as Debian packages it, run for one turn
// of a benchmark and ended by its process id.
//
// Its output goes into a file. It dies with its starter.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_PEER_PROCESS_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_PEER_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

// Returns its path by PATH. Errors: NotFound, with the package to install.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& package);

class PeerProcess {
 public:
  // Starts a server; `arguments` without the program itself. Errors:
  // Unavailable.
  static absl::StatusOr<PeerProcess> Start(const std::string& program,
                                           std::vector<std::string> arguments,
                                           const std::string& log_path);
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&& other) = delete;
  ~PeerProcess();  // ends it

  pid_t pid() const { return pid_; }
  // Sends the signal.
  void Signal(int signal) const;
  // Checks that it runs. Errors: Unavailable: it has ended; with its last
  // output.
  absl::Status CheckRuns();
  // Waits until it has ended. Errors: Unavailable: without success; with its
  // last output.
  absl::Status Wait();

 private:
  PeerProcess(pid_t pid, std::string program, std::string log_path);

  pid_t pid_;
  std::string program_;
  std::string log_path_;
};

// Calls `check` until it returns OK. Errors: DeadlineExceeded, with its last
// result; Unavailable: one of the processes has ended.
absl::Status AwaitReady(std::vector<PeerProcess>& processes,
                        std::chrono::milliseconds timeout,
                        const std::function<absl::Status()>& check);

// Calls `start`; if that fails, `end` and then `start` again, up to three times
// in all: a port that was free may have been taken. Errors: those of the last.
absl::Status StartPeers(const std::function<absl::Status()>& start,
                        const std::function<absl::Status()>& end);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_PEER_PROCESS_H_
