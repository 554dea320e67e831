// SPDX-License-Identifier: Apache-2.0
// child_process: starts a program with pipes on its three standard streams.
// Used by the demonstration and by the tests of the command line.
//
// A child dies with its owner object, and, where setpriv(1) works, with the
// owner's process too, however that ends.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_CHILD_PROCESS_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::demo {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { Close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_;
};

// Size of a pipe: the largest that Linux allows an ordinary user.
inline constexpr int kPipeBytesMax = 1 << 20;

struct Program {
  std::vector<std::string> argv;  // argv[0] is the path
  // NAME=value, which overrides the environment; NAME alone: unset.
  std::vector<std::string> environment;
  // Killed with SIGKILL when the thread that starts it ends.
  bool dies_with_starter = false;
};

// How a process ended.
struct ProcessEnd {
  int exit_status = -1;  // -1: ended by a signal
  int signal = 0;        // 0: ended by itself

  std::string ToString() const;
};

// Adds the readable bytes to *text. Returns false at the end of the stream.
// Requires: `fd` does not block, or is known to be readable.
// Requires: `fd` does not block, or a read is known to give something.
bool ReadSome(int fd, std::string* text);

class ChildProcess {
 public:
  // Starts the program. Our three pipe ends are non-blocking. Errors:
  // Unavailable.
  static absl::StatusOr<ChildProcess> Start(const Program& program);

  ChildProcess(ChildProcess&& other) noexcept;
  // Kills and reaps a child that still runs.
  ~ChildProcess();

  OwnedFd& input() { return input_; }    // to write: its standard input
  OwnedFd& output() { return output_; }  // to read: its standard output
  OwnedFd& error() { return error_; }    // to read: its standard error

  // Returns the process id; -1 once it has been waited for.
  pid_t pid() const { return pid_; }

  // Sends SIGKILL. Requires: not waited for yet.
  void Kill();
  // Sends any signal. Requires: not waited for yet.
  void Signal(int signal);
  // Pause sends SIGSTOP, and returns when the child has stopped (or had ended).
  // Resume sends SIGCONT.
  void Pause();
  void Continue();
  // Waits for the end. Called once.
  ProcessEnd Wait();
  // Waits for the end, at most `timeout_nanos`. Returns nothing if it still
  // runs.
  std::optional<ProcessEnd> WaitFor(int64_t timeout_nanos);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1: reaped
  OwnedFd input_;
  OwnedFd output_;
  OwnedFd error_;
};

struct ProgramResult {
  ProcessEnd end;
  std::string output;
  std::string error;
};

// Time limit that no program of ours reaches, however busy the machine is.
inline constexpr int64_t kProgramNanosMax = 300'000'000'000;

// Runs a program to its end with these bytes on its standard input. Kills it
// after `timeout_nanos`.
// Errors: Unavailable; DeadlineExceeded (with its output so far).
absl::StatusOr<ProgramResult> RunProgram(
    const Program& program, std::string_view input = {},
    int64_t timeout_nanos = kProgramNanosMax);

// Returns the directory of the running program. Errors: Unavailable.
absl::StatusOr<std::string> OwnDirectory();

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_CHILD_PROCESS_H_
