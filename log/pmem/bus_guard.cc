// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/bus_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "log/base/bytes.h"
#include "log/base/mutex.h"

namespace alpheus {

// Mapping, as the handler finds it. Slots are reused and never freed: the
// handler may read any of them at any time.
struct BusGuard::Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: free
  std::atomic<RegionAlarm*> alarm{nullptr};
  Slot* next = nullptr;  // set before the slot is in the list
};

struct BusSlots {
  using Slot = BusGuard::Slot;

  static constinit inline std::atomic<Slot*> first{nullptr};
  static constinit inline Mutex mutex;  // of taking and freeing slots
  static constinit inline bool is_installed = false;
  static constinit inline size_t guards = 0;
  static inline struct sigaction before{};  // handler to pass on to

  static Slot* Free() {
    for (Slot* slot = first.load(); slot != nullptr; slot = slot->next) {
      if (slot->end.load() == 0) return slot;
    }
    auto* const slot = new Slot();
    slot->next = first.load();
    first.store(slot);
    return slot;
  }

  static Slot* Containing(uintptr_t address) {
    for (Slot* slot = first.load(); slot != nullptr; slot = slot->next) {
      if (address < slot->end.load() && slot->begin.load() <= address) {
        return slot;
      }
    }
    return nullptr;
  }
};

namespace {

// Page sizes: of ordinary files; and of huge pages and devices, which can only
// be replaced by whole huge pages.
constexpr std::array<uintptr_t, 3> kPageSizes = {
    uintptr_t{1} << 12, uintptr_t{1} << 21, uintptr_t{1} << 30};

// Puts zeros of this process in the place of the page at `address`.
bool ReplacePage(uintptr_t address) {
  for (const uintptr_t bytes : kPageSizes) {
    const uintptr_t begin = address / bytes * bytes;
    if (mmap(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      return true;
    }
  }
  return false;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = BusSlots::before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // The access is repeated, and ends the process as without this handler.
    sigaction(SIGBUS, &before, nullptr);
    if (info->si_code <= 0) raise(signal);  // sent by a process
  }
}

// Calls only what a handler may: atomics, and system calls.
void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  auto* const slot =
      info->si_code > 0 ? BusSlots::Containing(address) : nullptr;
  RegionAlarm* const alarm = slot == nullptr ? nullptr : slot->alarm.load();
  bool is_replaced = false;
  if (alarm != nullptr) {
    alarm->RaiseByBusError();  // RGA2
    is_replaced = ReplacePage(address);
  }
  errno = error;
  if (!is_replaced) PassOn(signal, info, context);
}

// Requires: BusSlots::mutex.
void Install() {
  if (BusSlots::is_installed) return;
  struct sigaction action{};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  // First: the handler may run as soon as it is installed.
  sigaction(SIGBUS, nullptr, &BusSlots::before);
  BusSlots::is_installed = sigaction(SIGBUS, &action, nullptr) == 0;
}

// Leaves a handler that was installed after this one: it may pass on to this
// one. Requires: BusSlots::mutex.
void Uninstall() {
  struct sigaction now{};
  if (!BusSlots::is_installed || sigaction(SIGBUS, nullptr, &now) != 0 ||
      now.sa_sigaction != OnBusError) {
    return;
  }
  BusSlots::is_installed = sigaction(SIGBUS, &BusSlots::before, nullptr) != 0;
}

}  // namespace

BusGuard::BusGuard(const void* begin, size_t bytes,
                   std::shared_ptr<RegionAlarm> alarm)
    : alarm_(std::move(alarm)) {
  const MutexLock lock(BusSlots::mutex);
  Install();
  ++BusSlots::guards;
  slot_ = BusSlots::Free();
  const auto at = reinterpret_cast<uintptr_t>(begin);
  slot_->alarm.store(alarm_.get());
  slot_->begin.store(at);
  slot_->end.store(at + RoundUp(bytes, kPageBytes));
}

BusGuard::~BusGuard() {
  if (slot_ == nullptr) return;
  const MutexLock lock(BusSlots::mutex);
  slot_->end.store(0);
  slot_->alarm.store(nullptr);
  if (--BusSlots::guards == 0) Uninstall();
}

}  // namespace alpheus
