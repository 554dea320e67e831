// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/member_watch.h"

#include <chrono>
#include <cstdio>
#include <utility>

namespace alpheus::cli {
namespace {

// Nobody reads faster.
constexpr std::chrono::milliseconds kInterval(50);

}  // namespace

MemberWatch::MemberWatch(const Log& log, std::string name,
                         std::function<std::string(const std::string&)> spell)
    : log_(log),
      name_(std::move(name)),
      spell_(std::move(spell)),
      told_(log.replication_status()) {
  if (told_.replicas <= 1) return;
  // The epoch was opened without them: they may join yet.
  if (told_.in_sync < told_.replicas) Tell();
  thread_ = std::thread([this] { Run(); });
}

MemberWatch::~MemberWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void MemberWatch::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kInterval, [this] { return ends_; })) Look();
  Look();
}

// A member that can't join is tried again and again: that is told once.
void MemberWatch::Look() {
  ReplicationStatus status = log_.replication_status();
  if (status.in_sync == told_.in_sync && status.joins == told_.joins) return;
  told_ = std::move(status);
  Tell();
}

void MemberWatch::Tell() const {
  std::fprintf(stderr, "alpheus: %s: %s\n", name_.c_str(),
               spell_(told_.ToString()).c_str());
}

}  // namespace alpheus::cli
