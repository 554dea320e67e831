// SPDX-License-Identifier: Apache-2.0
// member_watch: tells on standard error when members of a replicated log go
// and come back while it is written, and who is away when that begins.
//
// Thread safety: Start and the end by one thread; it looks on its own one.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_MEMBER_WATCH_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_MEMBER_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "alpheus/log.h"

namespace alpheus::cli {

class MemberWatch {
 public:
  // `log` must outlive it; `name` is for messages, which `spell` has the last
  // word on.
  MemberWatch(const Log& log, std::string name,
              std::function<std::string(const std::string&)> spell);
  // When it has told what there is to tell.
  ~MemberWatch();
  MemberWatch(const MemberWatch&) = delete;
  MemberWatch& operator=(const MemberWatch&) = delete;

 private:
  void Run();
  void Look();
  void Tell() const;

  const Log& log_;
  const std::string name_;
  const std::function<std::string(const std::string&)> spell_;
  ReplicationStatus told_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_MEMBER_WATCH_H_
