// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/processes/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/check.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

extern char** environ;

namespace alpheus::demo {
namespace {

struct Pipe {
  OwnedFd read;
  OwnedFd write;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> fds;
  if (pipe2(fds.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(
        absl::StrCat("pipe2 failed: ", std::strerror(errno)));
  }
  return Pipe{OwnedFd(fds[0]), OwnedFd(fds[1])};
}

void MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  ALPHEUS_CHECK(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0,
                "a pipe of ours takes O_NONBLOCK");
}

std::string NameOf(const std::string& setting) {
  return setting.substr(0, setting.find('='));
}

std::vector<std::string> EnvironmentOf(const Program& program) {
  std::vector<std::string> environment;
  for (const std::string& setting : program.environment) {
    if (setting.find('=') != std::string::npos) environment.push_back(setting);
  }
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const bool replaced =
        std::any_of(program.environment.begin(), program.environment.end(),
                    [&](const std::string& setting) {
                      return NameOf(setting) == NameOf(*inherited);
                    });
    if (!replaced) environment.push_back(*inherited);
  }
  return environment;
}

// Where it is installed, as with util-linux.
constexpr char kSetprivPath[] = "/usr/bin/setpriv";

std::vector<std::string> ArgumentsOf(const Program& program) {
  std::vector<std::string> argv;
  if (program.dies_with_starter && access(kSetprivPath, X_OK) == 0) {
    // It becomes the program: same process, same number.
    argv = {kSetprivPath, "--pdeathsig", "KILL", "--"};
  }
  argv.insert(argv.end(), program.argv.begin(), program.argv.end());
  return argv;
}

// For poll(2): rounded up, so that no wait ends before its time.
int MillisUntil(int64_t end_nanos) {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  const int64_t left =
      (end_nanos - Clock::Real().NowNanos() + kNanosPerMilli - 1) /
      kNanosPerMilli;
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

// Returns pointers for exec, valid until `strings` changes.
std::vector<char*> PointersTo(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> Spawn(const Program& program, int input, int output,
                            int error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // We ignore SIGPIPE, and a child would inherit that.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> argv = ArgumentsOf(program);
  std::vector<std::string> environment = EnvironmentOf(program);
  pid_t pid = -1;
  const int result =
      posix_spawn(&pid, argv[0].c_str(), &actions, &attributes,
                  PointersTo(argv).data(), PointersTo(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (result == 0) return pid;
  return absl::UnavailableError(
      absl::StrCat(argv[0], ": can't be started: ", std::strerror(result)));
}

// Writes what fits; closes the stream when all is written or nobody reads.
void WriteSome(OwnedFd* fd, std::string_view* bytes) {
  const ssize_t written = write(fd->get(), bytes->data(), bytes->size());
  if (written > 0) bytes->remove_prefix(static_cast<size_t>(written));
  const bool failed = written < 0 && errno != EAGAIN && errno != EINTR;
  if (bytes->empty() || failed) fd->Close();
}

// Moves bytes both ways until the child closes its output streams, or until
// then.
void Converse(ChildProcess* child, std::string_view input, int64_t end_nanos,
              ProgramResult* result) {
  if (input.empty()) child->input().Close();
  while ((child->output().is_open() || child->error().is_open()) &&
         Clock::Real().NowNanos() < end_nanos) {
    // poll() passes over negative descriptors.
    std::array<pollfd, 3> fds = {{{child->input().get(), POLLOUT, 0},
                                  {child->output().get(), POLLIN, 0},
                                  {child->error().get(), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), MillisUntil(end_nanos)) < 0) continue;
    if (fds[0].revents != 0) WriteSome(&child->input(), &input);
    if (fds[1].revents != 0 && !ReadSome(fds[1].fd, &result->output)) {
      child->output().Close();
    }
    if (fds[2].revents != 0 && !ReadSome(fds[2].fd, &result->error)) {
      child->error().Close();
    }
  }
}

}  // namespace

void OwnedFd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string ProcessEnd::ToString() const {
  if (signal != 0) return absl::StrCat("killed by signal ", signal);
  return absl::StrCat("exit status ", exit_status);
}

bool ReadSome(int fd, std::string* text) {
  std::array<char, 64 << 10> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) text->append(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const Program& program) {
  std::signal(SIGPIPE, SIG_IGN);
  ALPHEUS_ASSIGN_OR_RETURN(Pipe input, MakePipe());
  ALPHEUS_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ALPHEUS_ASSIGN_OR_RETURN(Pipe error, MakePipe());
  ALPHEUS_ASSIGN_OR_RETURN(
      const pid_t pid,
      Spawn(program, input.read.get(), output.write.get(), error.write.get()));
  ChildProcess child(pid);
  child.input_ = std::move(input.write);
  child.output_ = std::move(output.read);
  child.error_ = std::move(error.read);
  for (const OwnedFd* fd : {&child.input_, &child.output_, &child.error_}) {
    MakeNonBlocking(fd->get());
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  Kill();
  Wait();
}

void ChildProcess::Kill() { Signal(SIGKILL); }

void ChildProcess::Signal(int signal) {
  ALPHEUS_CHECK(pid_ > 0, "a process that was waited for is no longer ours");
  // It may have ended already, which is what most signals are sent for.
  (void)kill(pid_, signal);
}

void ChildProcess::Pause() {
  Signal(SIGSTOP);
  siginfo_t stopped;
  // If the child has ended, leaves that to be waited for.
  while (waitid(P_PID, static_cast<id_t>(pid_), &stopped,
                WSTOPPED | WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
}

void ChildProcess::Continue() { Signal(SIGCONT); }

std::optional<ProcessEnd> ChildProcess::WaitFor(int64_t timeout_nanos) {
  const int64_t end_nanos = Clock::Real().NowNanos() + timeout_nanos;
  // The header of glibc 2.36 lacks its extern "C".
  const OwnedFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  ALPHEUS_CHECK(process.is_open(), "a child of ours has a descriptor");
  pollfd ended = {process.get(), POLLIN, 0};
  // A signal to us may end one wait early.
  while (poll(&ended, 1, MillisUntil(end_nanos)) <= 0) {
    if (Clock::Real().NowNanos() >= end_nanos) return std::nullopt;
  }
  return Wait();
}

ProcessEnd ChildProcess::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ProcessEnd end;
  if (WIFEXITED(status)) end.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

absl::StatusOr<ProgramResult> RunProgram(const Program& program,
                                         std::string_view input,
                                         int64_t timeout_nanos) {
  const int64_t end_nanos = Clock::Real().NowNanos() + timeout_nanos;
  ALPHEUS_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(program));
  ProgramResult result;
  Converse(&child, input, end_nanos, &result);
  const std::optional<ProcessEnd> end =
      child.WaitFor(std::max<int64_t>(end_nanos - Clock::Real().NowNanos(), 0));
  if (!end) {
    return absl::DeadlineExceededError(
        absl::StrCat(absl::StrJoin(program.argv, " "), ": still runs after ",
                     timeout_nanos / 1'000'000,
                     " ms and is killed. It said: ", result.error));
  }
  result.end = *end;
  return result;
}

absl::StatusOr<std::string> OwnDirectory() {
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return own.parent_path().string();
  return absl::UnavailableError(
      absl::StrCat("/proc/self/exe: ", error.message()));
}

}  // namespace alpheus::demo
