// SPDX-License-Identifier: Apache-2.0
// served_logs: the logs that a node may serve, by name, and which of them it
// serves now.
//
//   elsewhere   another node is primary, or nobody
//   served      this node has the log open
//   withheld    this node has it open, but does not serve it: its records are
//               not the service's, or can't be read
//
// Invariants:
//   SVS1. A log is served from Serve, if that succeeds, to Withdraw, which
//         drains it (SVD1, served_log.h).
// Thread safety: all members by many threads. For one log Serve and Withdraw
// are called in turn.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_SERVICE_SERVED_SERVED_LOGS_H_
#define ALPHEUS_API_SERVICE_SERVED_SERVED_LOGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "api/service/log/log_counts.h"
#include "api/service/served/served_log.h"
#include "log/base/mutex.h"

namespace alpheus::service {

// The result of looking a log up.
struct FoundLog {
  // Empty unless the log is served.
  LogUse use;
  // OK if it is served. NotFound: this node stands for no log of that name, or
  // it was deleted.
  // FailedPrecondition: it is withheld. Unavailable: elsewhere.
  absl::Status status;
  // Elsewhere: its primary, as far as this node knows, and where clients reach
  // that node; empty: unknown.
  PrimaryReport primary;
  std::string address;
};

class ServedLogs {
 public:
  // Told of a log that is served from now on, or no longer.
  using OnChange = std::function<void(const std::string& log, bool is_served)>;
  // Says who is primary of a log.
  using FindPrimary = std::function<PrimaryReport()>;

  explicit ServedLogs(const std::vector<std::string>& names);

  // Sets how the log's primary is found while that is another node; empty: it
  // is unknown. On return the function before is not called any more.
  void SetFindPrimary(const std::string& name, FindPrimary find);
  // Sets where clients reach the nodes, by their numbers.
  void SetAddresses(std::map<uint64_t, std::string> addresses);
  // Returns where clients reach a node; empty: unknown.
  std::string AddressOf(uint64_t node);
  // Serves a log that was opened. It must stay open until Withdraw. Errors,
  // with the log withheld: as ServedLog::Recover. Requires: the name is known.
  absl::Status Serve(const std::string& name, Log& log);
  // Ends what Serve began. Blocks, as ServedLog::Drain.
  void Withdraw(const std::string& name);

  // Notes that the log was deleted: it is not found, and not listed, any more.
  // Requires: it is not served.
  void SetDeleted(const std::string& name);

  FoundLog Find(const std::string& name);
  // Begins a use of the log if it is served, as Find, and asks no more.
  LogUse Use(const std::string& name);
  // Returns what the service has done with the log; lives as long as this.
  // Requires: the name is known.
  const LogCounts& counts(const std::string& name);
  // Returns the names of all logs, in their order, and whether each is served.
  std::vector<std::pair<std::string, bool>> List();
  // Calls `on_change` for each log, and from then on at each change, with a
  // lock held; empty: no longer.
  void Watch(OnChange on_change);

 private:
  struct Entry {
    std::shared_ptr<ServedLog> served;
    absl::Status why_withheld;
    bool is_deleted = false;
    FindPrimary find_primary;
    LogCounts counts;
  };

  // Requires: the name is known.
  Entry& Known(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<std::string, Entry> logs_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::string> addresses_ ABSL_GUARDED_BY(mutex_);
  OnChange on_change_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::service

#endif  // ALPHEUS_API_SERVICE_SERVED_SERVED_LOGS_H_
