// SPDX-License-Identifier: Apache-2.0
// region_alarm: says that the file behind a region is not what it was, so that
// nothing that is stored there counts as persisted any more.
//
// Idea: whoever notices raises it: who watches the file (file_watch.h), and the
// handler of SIGBUS (bus_guard.h). Each fence of the region looks at it, and
// fails from then on, as it does when the medium fails.
//
// Invariants:
//   RGA1. Once raised it stays so.
//   RGA2. It is raised before a page of the region is replaced, so that a
//         thread whose store went to such a page sees it at its next fence.
// Thread safety: all members, concurrently; RaiseByBusError also in a signal's
// handler.
#ifndef ALPHEUS_LOG_PMEM_REGION_ALARM_H_
#define ALPHEUS_LOG_PMEM_REGION_ALARM_H_

#include <atomic>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/mutex.h"

namespace alpheus {

class RegionAlarm {
 public:
  // `path` is for messages.
  explicit RegionAlarm(std::string path) : path_(std::move(path)) {}

  bool is_raised() const { return raised_.load(std::memory_order_acquire); }

  // The first reason is kept. Requires: not OK.
  void Raise(const absl::Status& why) {
    const MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    raised_.store(true, std::memory_order_release);
  }
  void RaiseByBusError() { raised_.store(true, std::memory_order_seq_cst); }

  // OK until it is raised.
  absl::Status status() const {
    if (!is_raised()) return absl::OkStatus();
    const MutexLock lock(mutex_);
    if (!why_.ok()) return why_;
    return absl::UnavailableError(absl::StrCat(
        path_,
        ": the system could not give a page of this file (SIGBUS): it was "
        "truncated, its file system is full, or its medium failed. What was "
        "stored since then is not persisted. See the kernel's log and the free "
        "space, then open it again; recovery finds out what survived"));
  }

  // The same as what a fence that fails says of its medium.
  absl::Status MediumError() const {
    if (!is_raised()) return absl::OkStatus();
    return absl::UnavailableError(status().message());
  }

 private:
  const std::string path_;
  std::atomic<bool> raised_{false};
  mutable Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_REGION_ALARM_H_
