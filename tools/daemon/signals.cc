// SPDX-License-Identifier: Apache-2.0
#include "tools/daemon/signals.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <span>
#include <system_error>
#include <utility>

namespace alpheus::daemon {
namespace {

constexpr std::array kWaitedFor = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
// Wakes the thread that waits; from anywhere else it means nothing.
constexpr int kWakeUp = SIGUSR1;
// Default action; faults end the process with their own signal.
constexpr std::array kLeftAlone = {SIGKILL, SIGSTOP, SIGTSTP, SIGCONT, SIGSEGV,
                                   SIGBUS,  SIGFPE,  SIGILL,  SIGABRT, SIGTRAP,
                                   SIGSYS,  SIGCHLD, SIGURG,  SIGWINCH};

bool IsIn(std::span<const int> signals, int signal) {
  return std::ranges::find(signals, signal) != signals.end();
}

}  // namespace

Signals::Signals() {
  sigemptyset(&waited_for_);
  for (const int signal : kWaitedFor) sigaddset(&waited_for_, signal);
  sigaddset(&waited_for_, kWakeUp);
  pthread_sigmask(SIG_BLOCK, &waited_for_, nullptr);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool is_of_the_library = signal > SIGSYS && signal < SIGRTMIN;
    if (is_of_the_library || sigismember(&waited_for_, signal) == 1 ||
        IsIn(kLeftAlone, signal)) {
      continue;
    }
    // SIGPIPE and SIGXFSZ become errors of the calls that met them.
    (void)std::signal(signal, SIG_IGN);
  }
}

absl::Status Signals::Start(std::function<void()> end,
                            std::function<void()> reload) {
  end_ = std::move(end);
  reload_ = std::move(reload);
  try {
    thread_ = std::thread([this] { Wait(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(
        "no thread could be started to wait for signals. Raise the limit on "
        "processes (ulimit -u, TasksMax of the service) and start again");
  }
  return absl::OkStatus();
}

void Signals::Wait() {
  bool has_ended = false;
  while (!is_over_.load()) {
    int signal = 0;
    if (sigwait(&waited_for_, &signal) != 0 || signal == kWakeUp) continue;
    if (signal == SIGHUP) {
      reload_();
    } else if (!std::exchange(has_ended, true)) {
      end_();
    }
  }
}

void Signals::Stop() {
  if (!thread_.joinable()) return;
  is_over_.store(true);
  pthread_kill(thread_.native_handle(), kWakeUp);
  thread_.join();
}

}  // namespace alpheus::daemon
