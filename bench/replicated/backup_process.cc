// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/backup_process.h"

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
#include "bench/replicated/system_error.h"

namespace alpheus::bench::replicated {
namespace {

// Up to the end of the line; empty if there is none.
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

absl::StatusOr<BackupProcess> BackupProcess::Start(const std::string& kind,
                                                   const std::string& folder,
                                                   uint64_t ring_bytes) {
  std::array<std::string, 5> words = {"bench_replicated", "backup", kind,
                                      folder, absl::StrCat(ring_bytes)};
  std::array<char*, 6> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return SystemError("pipe2");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(arguments.data(), pipe[1], parent);
  close(pipe[1]);
  if (pid < 0) {
    close(pipe[0]);
    return SystemError("fork");
  }
  std::string address = ReadLine(pipe[0]);
  close(pipe[0]);
  BackupProcess process(pid, std::move(address));
  if (process.address().empty()) {
    return absl::UnavailableError(
        absl::StrCat("backup process ", pid, " (", kind,
                     ") ended before it listened; see what it wrote above"));
  }
  return process;
}

BackupProcess::BackupProcess(pid_t pid, std::string address)
    : pid_(pid), address_(std::move(address)) {}

BackupProcess::BackupProcess(BackupProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      address_(std::move(other.address_)) {}

BackupProcess::~BackupProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void AnnounceAddress(std::string_view address) {
  std::printf("%.*s\n", static_cast<int>(address.size()), address.data());
  std::fflush(stdout);
}

}  // namespace alpheus::bench::replicated
