// SPDX-License-Identifier: Apache-2.0
// region_alarm: reports that the file of a region has changed, so that stores
// there no longer count as persisted.
//
// Idea: the watch of the file (file_watch.h) and the SIGBUS handler
// (bus_guard.h) raise it. Each fence of the region checks it, and fails once it
// is raised, as if the medium had failed.
//
// Invariants:
//   RGA1. Once raised it stays so.
//   RGA2. It is raised before a page of the region is replaced, so that a
//         thread whose store went to such a page sees it at its next fence.
// Thread safety: all members concurrently; RaiseByBusError also in a signal
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

  // Raises it; the first reason is kept. Requires: not OK.
  void Raise(const absl::Status& why) {
    const MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    raised_.store(true, std::memory_order_release);
  }
  void RaiseByBusError() { raised_.store(true, std::memory_order_seq_cst); }

  // Returns OK until it is raised.
  absl::Status status() const {
    if (!is_raised()) return absl::OkStatus();
    const MutexLock lock(mutex_);
    if (!why_.ok()) return why_;
    return absl::UnavailableError(absl::StrCat(
        path_,
        ": the system could not give a page of this file (SIGBUS): it was "
        "truncated, its file system is full, or its medium failed. Bytes that "
        "were stored since then are not persisted. See the kernel's log and "
        "the free space, then open it again; recovery finds out what "
        "survived"));
  }

  // Returns the same reason as the error of a fence.
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
