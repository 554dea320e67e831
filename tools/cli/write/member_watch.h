// SPDX-License-Identifier: Apache-2.0
// member_watch: reports on standard error when members of a replicated log go
// and come back while it is written, and which are out of sync at the start.
//
// Thread safety: Start and destruction by one thread; a thread of its own
// watches.
#ifndef ALPHEUS_TOOLS_CLI_WRITE_MEMBER_WATCH_H_
#define ALPHEUS_TOOLS_CLI_WRITE_MEMBER_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "alpheus/log.h"

namespace alpheus::cli {

class MemberWatch {
 public:
  // `log` must outlive it. `name` is for messages, which `spell` may change.
  MemberWatch(const Log& log, std::string name,
              std::function<std::string(const std::string&)> spell);
  // Ends after the last report.
  ~MemberWatch();
  MemberWatch(const MemberWatch&) = delete;
  MemberWatch& operator=(const MemberWatch&) = delete;

 private:
  void Run();
  void Check();
  void Report() const;

  const Log& log_;
  const std::string name_;
  const std::function<std::string(const std::string&)> spell_;
  ReplicationStatus reported_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_WRITE_MEMBER_WATCH_H_
