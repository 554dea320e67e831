// SPDX-License-Identifier: Apache-2.0
// bus_guard: turns SIGBUS at a mapped file into an alarm of its region.
//
// Idea: the kernel sends SIGBUS when it can't give a page of a mapping: the
// file was truncated, a hole can't be filled on a full file system, or the
// medium failed. By default that ends the whole process. Here the handler
// raises the region's alarm, replaces the missing page by a page of zeros of
// this process, and lets the access continue. From then on no fence succeeds
// (region_alarm.h). Such a page holds no stored data: code that answers from
// the region checks the alarm first.
//
// The handler is installed while any file is mapped, and passes on all other
// addresses to the handler that was there before. A program that installs its
// own handler meanwhile has that one instead. The kernel ends a process whose
// thread blocks SIGBUS when it meets a missing page.
//
// Thread safety: constructor and destructor by any thread.
// References: sigaction(2), SIGBUS.
#ifndef ALPHEUS_LOG_PMEM_BUS_GUARD_H_
#define ALPHEUS_LOG_PMEM_BUS_GUARD_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "log/pmem/region_alarm.h"

namespace alpheus {

class BusGuard {
 public:
  // Guards nothing.
  BusGuard() = default;
  // Guards the mapping of `bytes` bytes until it is destroyed, which must be
  // before the mapping is.
  BusGuard(const void* begin, size_t bytes, std::shared_ptr<RegionAlarm> alarm);
  BusGuard(BusGuard&& other) noexcept
      : alarm_(std::move(other.alarm_)),
        slot_(std::exchange(other.slot_, nullptr)) {}
  BusGuard& operator=(BusGuard&& other) noexcept {
    std::swap(alarm_, other.alarm_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~BusGuard();

 private:
  struct Slot;
  friend struct BusSlots;

  std::shared_ptr<RegionAlarm> alarm_;
  Slot* slot_ = nullptr;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_BUS_GUARD_H_
