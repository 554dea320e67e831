// SPDX-License-Identifier: Apache-2.0
// wait_notice: one line on standard error about what a command waits for, if
// that takes longer than two seconds: which nodes of the cluster say nothing of
// the log, and when the command gives up.
//
// Idea: the command itself blocks in a call; a thread beside it waits for the
// end or for its time, asks the nodes by a reader of its own, which disturbs
// nobody, and tells once.
//
// Thread safety: made and ended by one thread.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_WAIT_NOTICE_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_WAIT_NOTICE_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tools/cli/commands/log_source.h"

namespace alpheus::cli {

class WaitNotice {
 public:
  // Nothing is told of a log that is no cluster's. `until` is a part of a
  // sentence: "it gives up after 60 s (--timeout)". `after`: when it is told.
  WaitNotice(LogSource source, std::string until,
             std::chrono::milliseconds after = std::chrono::seconds(2));
  // The wait is over. Asking, which has begun, ends first: half a second.
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

// "waiting for node 3 (127.0.0.1:7403: nobody answers there); it gives up ...",
// by what the nodes say now.
std::string DescribeWait(const LogSource& source, const std::string& until);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_WAIT_NOTICE_H_
