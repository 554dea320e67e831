// SPDX-License-Identifier: Apache-2.0
// standing_logs: logs for which this node itself stands for primary.
//
// Idea: a log whose programs are not running is kept open all the same: the
// node wins its election, recovers it, holds it, and hands it over. One thread
// for each log waits for the election.
//
// Invariants:
//   STL1. A log that this node holds is closed in good order before Stop
//         returns.
//   STL2. Either all logs have a candidate, or none has.
//   STL3. A log has one candidate: two of one replica would depose each other.
// Thread safety: Start and Stop by any threads. Both may block.
// References: docs/design/election.md; alpheus/candidate.h.
#ifndef ALPHEUS_TOOLS_DAEMON_STANDING_LOGS_H_
#define ALPHEUS_TOOLS_DAEMON_STANDING_LOGS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "alpheus/candidate.h"
#include "api/metrics/collect/held_logs.h"
#include "api/service/served/served_logs.h"

namespace alpheus::daemon {

// Logs for which a node stands, and how it opens them.
struct StandingOptions {
  std::vector<std::string> logs;  // names
  std::string cluster_file;
  uint64_t node = 0;
  std::string directory;  // of the node's replicas
  // For each log; what is above is set in it.
  CandidateOptions candidate;
  // Where the logs are served while this node is primary, by their names; null:
  // nowhere. It must outlive Stop.
  service::ServedLogs* served = nullptr;
  // Told which of the logs are open, served or not; null: nobody is. It must
  // outlive Stop.
  metrics::HeldLogs* held = nullptr;
};

class StandingLogs {
 public:
  StandingLogs() = default;
  ~StandingLogs() { Stop(); }
  StandingLogs(const StandingLogs&) = delete;
  StandingLogs& operator=(const StandingLogs&) = delete;

  // Checks whether the node could stand for each log. Changes nothing. Errors:
  // InvalidArgument (a log is named twice: STL3); as Candidate::Check.
  static absl::Status Check(const StandingOptions& options);
  // Stands for each log, unless Stop was called before. Called once. Errors: as
  // Check and Candidate::Stand; ResourceExhausted (no thread). None stands for
  // long then: the destructor stops the others.
  absl::Status Start(const StandingOptions& options);
  // Closes the logs in good order, and stands no more. The node must serve
  // until then. May block: an opening that has begun ends first, and a log that
  // is closed waits for its members.
  void Stop();

 private:
  struct Standing {
    std::string name;
    std::unique_ptr<Candidate> candidate;
    std::thread thread;
  };

  // Holds the log whenever it is elected, until the candidate withdraws, and
  // has it served meanwhile.
  static void Hold(Standing& standing, const StandingOptions& options);
  // The same for one time that it is elected.
  static void HoldOnce(Standing& standing, const StandingOptions& options,
                       std::shared_ptr<Log> log);

  std::mutex mutex_;  // of starting and stopping
  bool is_stopped_ = false;
  StandingOptions options_;  // of Start
  std::vector<std::unique_ptr<Standing>> logs_;
};

}  // namespace alpheus::daemon

#endif  // ALPHEUS_TOOLS_DAEMON_STANDING_LOGS_H_
