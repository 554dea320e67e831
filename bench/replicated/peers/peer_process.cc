// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/peer_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/system_error.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kAskAgain{5};
constexpr int kStarts = 3;

// Never returns. Only calls that are safe between fork and exec.
[[noreturn]] void BecomePeer(char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it died before that
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(arguments[0], arguments);
  _exit(EXIT_FAILURE);
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last = "nothing";
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& package) {
  const char* path = std::getenv("PATH");
  const std::vector<std::string> folders =
      absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty());
  for (const std::string& folder : folders) {
    std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return absl::NotFoundError(
      absl::StrCat("no ", name, " in PATH (Debian: ", package, ")"));
}

absl::StatusOr<PeerProcess> PeerProcess::Start(
    const std::string& program, std::vector<std::string> arguments,
    const std::string& log_path) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const int output =
      open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (output < 0) return SystemError(log_path.c_str());
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomePeer(words.data(), output, parent);
  close(output);
  if (pid < 0) return SystemError("fork");
  return PeerProcess(pid, program, log_path);
}

PeerProcess::PeerProcess(pid_t pid, std::string program, std::string log_path)
    : pid_(pid), program_(std::move(program)), log_path_(std::move(log_path)) {}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      program_(std::move(other.program_)),
      log_path_(std::move(other.log_path_)) {}

PeerProcess::~PeerProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void PeerProcess::Signal(int signal) const {
  if (pid_ >= 0) kill(pid_, signal);
}

absl::Status PeerProcess::CheckRuns() {
  if (pid_ >= 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = -1;  // somebody else may get this id
  }
  if (pid_ >= 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      program_, " has ended; it wrote last: ", LastLine(log_path_)));
}

absl::Status PeerProcess::Wait() {
  int ended = 0;
  if (waitpid(pid_, &ended, 0) != pid_) return SystemError("waitpid");
  pid_ = -1;
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      program_, " has failed; it wrote last: ", LastLine(log_path_)));
}

absl::Status AwaitReady(std::vector<PeerProcess>& processes,
                        std::chrono::milliseconds timeout,
                        const std::function<absl::Status()>& check) {
  const int64_t end = NowNanos() + std::chrono::nanoseconds(timeout).count();
  for (;;) {
    const absl::Status status = check();
    if (status.ok()) return status;
    for (PeerProcess& process : processes) {
      ALPHEUS_RETURN_IF_ERROR(process.CheckRuns());
    }
    if (NowNanos() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat("peers are not ready after ", timeout.count(),
                       " ms: ", status.ToString()));
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

absl::Status StartPeers(const std::function<absl::Status()>& start,
                        const std::function<absl::Status()>& end) {
  absl::Status status = start();
  for (int i = 1; i < kStarts && !status.ok(); ++i) {
    ALPHEUS_RETURN_IF_ERROR(end());
    status = start();
  }
  return status;
}

}  // namespace alpheus::bench::replicated
