// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/background_thread.h"

#include <csignal>
#include <utility>

#include "log/base/check.h"

namespace alpheus {
namespace {

// Signals of the process are left to its own threads. Signals that the kernel
// sends to the thread that caused them must reach their handlers: it ends a
// process whose thread blocks them. SIGBUS is one (bus_guard.h).
sigset_t SignalsOfTheProcess() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    sigdelset(&signals, own);
  }
  return signals;
}

}  // namespace

absl::Status BackgroundThread::Start(std::function<void()> run) {
  ALPHEUS_CHECK(!started_, "a background thread runs once at a time");
  run_ = std::move(run);
  const sigset_t blocked = SignalsOfTheProcess();
  sigset_t before;
  // A thread inherits the signal mask of its creator.
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  started_ = pthread_create(&thread_, nullptr, &Main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "no thread could be started; raise the limit on processes (ulimit -u), "
      "or do without background work (LogOptions::idle_force_us = 0)");
}

void BackgroundThread::Join() {
  if (!started_) return;
  pthread_join(thread_, nullptr);
  started_ = false;
}

void* BackgroundThread::Main(void* self) {
  pthread_setname_np(pthread_self(), "alpheus");
  static_cast<BackgroundThread*>(self)->run_();
  return nullptr;
}

}  // namespace alpheus
