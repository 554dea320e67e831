// SPDX-License-Identifier: Apache-2.0
// bus_guard: turns SIGBUS at a mapped file into an alarm of its region.
//
// Idea: the kernel sends SIGBUS when it can't give a page of a mapping: the
// file was truncated, a hole can't be filled on a full file system, the medium
// failed. By default that ends the process, with all that it does besides. Here
// the handler raises the region's alarm, puts a page of zeros of this process
// in the place of the one that is missing, and lets the access go on; no fence
// succeeds from then on (region_alarm.h). What is read from such a page is
// nothing that was stored: whoever answers others by what it reads looks at the
// alarm before it does.
//
// The handler is the process's while any file is mapped, and passes on all
// other addresses to the one that was there before. A program that installs its
// own meanwhile has that instead.
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
  // Guards the mapping of `bytes` bytes, until it is destroyed, which must be
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
