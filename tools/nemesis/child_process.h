// SPDX-License-Identifier: Apache-2.0
// child_process: starts a program with pipes on its three standard streams.
// Used by the demonstration and by the tests of the command line.
//
// A child dies with its owner, and, where setpriv(1) can see to it, with the
// owner's process too, whatever ends that.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_TOOLS_NEMESIS_CHILD_PROCESS_H_
#define ALPHEUS_TOOLS_NEMESIS_CHILD_PROCESS_H_

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

// The size of a pipe: what Linux lets an ordinary user have.
inline constexpr int kPipeBytesMax = 1 << 20;

struct Program {
  std::vector<std::string> argv;  // argv[0] is the path
  // NAME=value, before what the environment says of NAME; NAME alone: unset.
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

// Adds what can be read to *text. False at the end of the stream.
// Requires: `fd` does not block, or a read is known to give something.
bool ReadSome(int fd, std::string* text);

class ChildProcess {
 public:
  // All three pipe ends of ours are non-blocking. Errors: Unavailable.
  static absl::StatusOr<ChildProcess> Start(const Program& program);

  ChildProcess(ChildProcess&& other) noexcept;
  // Kills and reaps a child that still runs.
  ~ChildProcess();

  OwnedFd& input() { return input_; }    // write: its standard input
  OwnedFd& output() { return output_; }  // read: its standard output
  OwnedFd& error() { return error_; }    // read: its standard error

  // -1 when it has been waited for.
  pid_t pid() const { return pid_; }

  // SIGKILL. Requires: not waited for yet.
  void Kill();
  // Any signal. Requires: not waited for yet.
  void Signal(int signal);
  // SIGSTOP, and returns when it has stopped (or has ended before). SIGCONT.
  void Pause();
  void Continue();
  // Waits for the end. To be called once.
  ProcessEnd Wait();
  // Waits for the end, but not for longer. Nothing: it still runs.
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

// No program of ours takes so long, however busy the machine is.
inline constexpr int64_t kProgramNanosMax = 120'000'000'000;

// Runs a program to its end with these bytes on its standard input. One that
// takes longer than `timeout_nanos` is killed.
// Errors: Unavailable; DeadlineExceeded (with what it said so far).
absl::StatusOr<ProgramResult> RunProgram(
    const Program& program, std::string_view input = {},
    int64_t timeout_nanos = kProgramNanosMax);

// The directory of the running program. Errors: Unavailable.
absl::StatusOr<std::string> OwnDirectory();

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_CHILD_PROCESS_H_
