// SPDX-License-Identifier: Apache-2.0
// own_process: this program in another mode, in a process of its own.
//
// Such a process writes one line to its standard output when it is ready. It
// dies with its starter.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_OWN_PROCESS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_OWN_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

class OwnProcess {
 public:
  // Starts it with these arguments; returns when it has written its line.
  // Errors: Unavailable (it can't be started, or writes nothing).
  static absl::StatusOr<OwnProcess> Start(std::vector<std::string> arguments);
  OwnProcess(OwnProcess&& other) noexcept;
  OwnProcess& operator=(OwnProcess&& other) = delete;
  ~OwnProcess();  // by SIGKILL; it is gone then

  const std::string& said() const { return said_; }
  pid_t pid() const { return pid_; }
  // Sends the signal.
  void Signal(int signal) const;

 private:
  OwnProcess(pid_t pid, std::string said);

  pid_t pid_;
  std::string said_;
};

// Writes the line for the process that started this one.
void Say(std::string_view line);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_OWN_PROCESS_H_
