// SPDX-License-Identifier: Apache-2.0
// call_counts: how many calls of each method ended with which code, and how
// long they took.
//
// Idea: methods and codes are closed sets, so a count is an index, and nothing
// is made while calls run. A stream lives as long as its client wants, so only
// calls with one answer have their durations counted.
//
// The header needs nothing of gRPC: a build without it has none of its calls.
//
// Thread safety: all members by many threads.
#ifndef ALPHEUS_API_GRPC_CALLS_CALL_COUNTS_H_
#define ALPHEUS_API_GRPC_CALLS_CALL_COUNTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "log/base/clock.h"
#include "log/base/counters.h"
#include "log/base/duration_histogram.h"

namespace alpheus::rpc {

// Methods of the API: of log_service.proto, then of admin_service.proto.
// Streams of both come last.
enum class Method {
  kOpenClient,
  kResumeClient,
  kCloseClient,
  kListClients,
  kAppend,
  kResolve,
  kForce,
  kWaitDurable,
  kCleanup,
  kGetExposure,
  kGetStatus,
  kListLogs,
  kDescribeDurability,
  kListEpochs,
  kElect,
  kDrain,
  kScrub,
  kReplace,
  kReconfigure,
  kCreateLog,
  kDeleteLog,
  kAppendStream,
  kRead,
  kTail,
  kBackup,
};
inline constexpr size_t kMethodCount = 25;
inline constexpr size_t kUnaryCount = 21;  // the first ones

// Returns the method's name in the API.
constexpr std::string_view NameOf(Method method) {
  constexpr std::array<std::string_view, kMethodCount> kNames = {
      "OpenClient",
      "ResumeClient",
      "CloseClient",
      "ListClients",
      "Append",
      "Resolve",
      "Force",
      "WaitDurable",
      "Cleanup",
      "GetExposure",
      "GetStatus",
      "ListLogs",
      "DescribeDurability",
      "ListEpochs",
      "Elect",
      "Drain",
      "Scrub",
      "Replace",
      "Reconfigure",
      "CreateLog",
      "DeleteLog",
      "AppendStream",
      "Read",
      "Tail",
      "Backup"};
  return kNames[static_cast<size_t>(method)];
}

// gRPC's codes, by their numbers.
inline constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED"};

class CallCounts {
 public:
  // The clock must outlive the object.
  explicit CallCounts(const Clock& clock = Clock::Real()) : clock_(clock) {}

  int64_t NowNanos() const { return clock_.NowNanos(); }

  // Counts a call with one answer, which began at this time of NowNanos.
  void NoteCall(Method method, int code, int64_t began_ns) {
    NoteEnd(method, code);
    durations_[Index(method)].Count(NowNanos() - began_ns);
  }
  void NoteStreamBegun(Method method) { begun_.Add(Index(method)); }
  void NoteStreamEnded(Method method, int code) { NoteEnd(method, code); }

  // Returns how many calls have ended with this code. Requires: it is gRPC's.
  uint64_t ended(Method method, size_t code) const {
    return ended_[Index(method)].Sum(code);
  }
  // Returns how many streams have begun and not ended.
  uint64_t open_streams(Method method) const {
    uint64_t ended = 0;  // read first: no stream ends before it begins
    for (size_t code = 0; code < kCodeNames.size(); ++code) {
      ended += this->ended(method, code);
    }
    return begun_.Sum(Index(method)) - ended;
  }
  // Requires: the method is no stream.
  DurationHistogram::Reading durations(Method method) const {
    return durations_[Index(method)].Read();
  }

 private:
  static constexpr size_t kUnknown = 2;

  static size_t Index(Method method) { return static_cast<size_t>(method); }
  void NoteEnd(Method method, int code) {
    const auto number = static_cast<size_t>(code);
    ended_[Index(method)].Add(number < kCodeNames.size() ? number : kUnknown);
  }

  const Clock& clock_;
  std::array<Counters<kCodeNames.size()>, kMethodCount> ended_;
  Counters<kMethodCount> begun_;  // streams
  std::array<DurationHistogram, kUnaryCount> durations_;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_CALL_COUNTS_H_
