// SPDX-License-Identifier: Apache-2.0
// own_process: this program again, in another mode, in a process of its own.
//
// Such a process says one line on its standard output when it is ready. It dies
// with the one that started it.
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
  // Starts it with these arguments; returns when it has said its line.
  // Errors: Unavailable (it can't be started, or says nothing).
  static absl::StatusOr<OwnProcess> Start(std::vector<std::string> arguments);
  OwnProcess(OwnProcess&& other) noexcept;
  OwnProcess& operator=(OwnProcess&& other) = delete;
  ~OwnProcess();  // by SIGKILL; it is gone then

  const std::string& said() const { return said_; }

 private:
  OwnProcess(pid_t pid, std::string said);

  pid_t pid_;
  std::string said_;
};

// The other end: tells who started this process.
void Say(std::string_view line);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_OWN_PROCESS_H_
