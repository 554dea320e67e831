// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/own_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/replicated/candidates/system_error.h"

namespace alpheus::bench::replicated {
namespace {

// Reads up to the end of the line; returns an empty text if there is none.
std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  return "";
}

// Never returns. Only calls that are safe between fork and exec.
[[noreturn]] void Become(char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it died before that
  dup2(output, STDOUT_FILENO);
  execv("/proc/self/exe", arguments);
  _exit(EXIT_FAILURE);
}

}  // namespace

absl::StatusOr<OwnProcess> OwnProcess::Start(
    std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program_invocation_name);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return SystemError("pipe2");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(words.data(), pipe[1], parent);
  close(pipe[1]);
  if (pid < 0) {
    close(pipe[0]);
    return SystemError("fork");
  }
  std::string said = ReadLine(pipe[0]);
  close(pipe[0]);
  OwnProcess process(pid, std::move(said));
  if (process.said().empty()) {
    arguments.erase(arguments.begin());
    return absl::UnavailableError(
        absl::StrCat("process ", pid, " (", absl::StrJoin(arguments, " "),
                     ") ended before it was ready; see what it wrote above"));
  }
  return process;
}

OwnProcess::OwnProcess(pid_t pid, std::string said)
    : pid_(pid), said_(std::move(said)) {}

OwnProcess::OwnProcess(OwnProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), said_(std::move(other.said_)) {}

OwnProcess::~OwnProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void OwnProcess::Signal(int signal) const { kill(pid_, signal); }

void Say(std::string_view line) {
  std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(stdout);
}

}  // namespace alpheus::bench::replicated
