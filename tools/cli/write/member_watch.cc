// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/write/member_watch.h"

#include <chrono>
#include <cstdio>
#include <utility>

namespace alpheus::cli {
namespace {

// People do not read faster.
constexpr std::chrono::milliseconds kInterval(50);

}  // namespace

MemberWatch::MemberWatch(const Log& log, std::string name,
                         std::function<std::string(const std::string&)> spell)
    : log_(log),
      name_(std::move(name)),
      spell_(std::move(spell)),
      reported_(log.replication_status()) {
  if (reported_.replicas <= 1) return;
  // The epoch was opened without them: they may join yet.
  if (reported_.in_sync < reported_.replicas) Report();
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
  while (!ended_.wait_for(lock, kInterval, [this] { return ends_; })) Check();
  Check();
}

// A member that can't join is tried again and again: report it once.
void MemberWatch::Check() {
  ReplicationStatus status = log_.replication_status();
  if (status.in_sync == reported_.in_sync && status.joins == reported_.joins)
    return;
  reported_ = std::move(status);
  Report();
}

void MemberWatch::Report() const {
  std::fprintf(stderr, "alpheus: %s: %s\n", name_.c_str(),
               spell_(reported_.ToString()).c_str());
}

}  // namespace alpheus::cli
