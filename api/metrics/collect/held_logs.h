// SPDX-License-Identifier: Apache-2.0
// held_logs: the logs for which a node stands, and those of them that it has
// open now, whether or not it serves them.
//
// Idea: who holds a log says so when it has it, and before it gives it back. A
// visitor looks at the open log meanwhile, and the holder waits for it: a visit
// reads some numbers.
//
// Invariants:
//   HLG1. No visit uses a log after GiveBack has returned.
// Thread safety: all members by many threads. For one log Take and GiveBack are
// called in turn.
#ifndef ALPHEUS_API_METRICS_COLLECT_HELD_LOGS_H_
#define ALPHEUS_API_METRICS_COLLECT_HELD_LOGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "alpheus/log.h"
#include "alpheus/recovery_report.h"
#include "log/base/mutex.h"

namespace alpheus::metrics {

class HeldLogs {
 public:
  // One log, for the time of a visit.
  struct Held {
    const std::string& name;
    const Log* log = nullptr;     // null: this process does not have it open
    uint64_t openings = 0;        // by this process
    OpeningMoments last_opening;  // all 0: none, or it was never used
  };

  explicit HeldLogs(const std::vector<std::string>& names);

  // Notes that the log is open. It must stay so until GiveBack. Requires, here
  // and below: the name is known.
  void Take(const std::string& name, const Log& log);
  // Ends what Take began. Blocks while the log is visited.
  void GiveBack(const std::string& name);

  // Calls `visit` for each log, by its name. It should be short, and may not
  // call this object.
  void ForEach(absl::FunctionRef<void(const Held&)> visit) const;

 private:
  struct Entry {
    mutable Mutex mutex;  // held by a visit
    const Log* log ABSL_GUARDED_BY(mutex) = nullptr;
    uint64_t openings ABSL_GUARDED_BY(mutex) = 0;
    OpeningMoments last_opening ABSL_GUARDED_BY(mutex);
  };

  Entry& Known(const std::string& name);

  std::map<std::string, Entry> logs_;  // names never change
};

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_COLLECT_HELD_LOGS_H_
