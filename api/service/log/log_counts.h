// SPDX-License-Identifier: Apache-2.0
// log_counts: what the service has done with one log since the process began,
// in all openings of it by this process.
//
// Thread safety: all members by many threads, but for NoteAppended: one at a
// time, each after the one before, as under the lock of a service_log.
#ifndef ALPHEUS_API_SERVICE_LOG_LOG_COUNTS_H_
#define ALPHEUS_API_SERVICE_LOG_LOG_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/service/log/finding.h"
#include "log/base/counters.h"
#include "log/base/duration_histogram.h"

namespace alpheus::service {

// Stages of a request, each from the end of the one before.
enum class AppendStage {
  kAppended,  // from its message: judged, and its record is completed
  kDurable,   // its record is as durable as its client asked for
  kAnswered,  // the answer is written to the socket
};
inline constexpr size_t kAppendStageCount = 3;

// Returns, for instance, "appended".
constexpr std::string_view NameOf(AppendStage stage) {
  constexpr std::array<std::string_view, kAppendStageCount> kNames = {
      "appended", "durable", "answered"};
  return kNames[static_cast<size_t>(stage)];
}

class LogCounts {
 public:
  // One of so many requests has its stages timed.
  static constexpr uint64_t kSampled = 64;

  // Counts the record of a request, and the bytes of its payload. Takes no
  // locked instruction: it is called for each record.
  void NoteAppended(uint64_t bytes) {
    Grow(records_, 1);
    Grow(bytes_, bytes);
  }
  // Counts findings that clients are told.
  void NoteTold(Finding finding, uint64_t number = 1) {
    told_.Add(static_cast<size_t>(finding), number);
  }
  // Returns whether one of the next `requests` is to be timed.
  bool Samples(uint64_t requests) {
    const uint64_t before =
        requests_.fetch_add(requests, std::memory_order_relaxed);
    return before / kSampled != (before + requests) / kSampled;
  }
  void NoteStage(AppendStage stage, int64_t duration_ns) {
    stages_[static_cast<size_t>(stage)].Count(duration_ns);
  }

  uint64_t appended_records() const {
    return records_.load(std::memory_order_relaxed);
  }
  uint64_t appended_bytes() const {
    return bytes_.load(std::memory_order_relaxed);
  }
  uint64_t told(Finding finding) const {
    return told_.Sum(static_cast<size_t>(finding));
  }
  DurationHistogram::Reading stage(AppendStage stage) const {
    return stages_[static_cast<size_t>(stage)].Read();
  }

 private:
  // Relaxed: nobody else writes the number meanwhile.
  static void Grow(std::atomic<uint64_t>& number, uint64_t by) {
    number.store(number.load(std::memory_order_relaxed) + by,
                 std::memory_order_relaxed);
  }

  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> bytes_{0};
  Counters<kFindingCount> told_;
  std::atomic<uint64_t> requests_{0};
  std::array<DurationHistogram, kAppendStageCount> stages_;
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_LOG_LOG_COUNTS_H_
