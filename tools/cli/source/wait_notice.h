// SPDX-License-Identifier: Apache-2.0
// wait_notice: one line on standard error about a wait of more than two
// seconds: the nodes of the cluster that don't answer for the log, and the time
// at which the command gives up.
//
// Idea: the command blocks in a call. A second thread waits for the end of the
// call or for its time, asks the nodes by a reader of its own, which disturbs
// nobody, and reports once.
//
// Thread safety: made and destroyed by one thread.
#ifndef ALPHEUS_TOOLS_CLI_SOURCE_WAIT_NOTICE_H_
#define ALPHEUS_TOOLS_CLI_SOURCE_WAIT_NOTICE_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tools/cli/source/log_source.h"

namespace alpheus::cli {

class WaitNotice {
 public:
  // Reports nothing for a local log. `until` is part of a sentence: "it gives
  // up after 60 s (--timeout)". `after`: the time until the report.
  WaitNotice(LogSource source, std::string until,
             std::chrono::milliseconds after = std::chrono::seconds(2));
  // Ends the notice. A question in progress ends first: half a second.
  ~WaitNotice();
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;

 private:
  void Run(std::chrono::milliseconds after);

  const LogSource source_;
  const std::string until_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

// Returns "waiting for node 3 (127.0.0.1:7403: nobody answers there); it gives
// up ...", from the present answers of the nodes.
std::string DescribeWait(const LogSource& source, const std::string& until);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_SOURCE_WAIT_NOTICE_H_
