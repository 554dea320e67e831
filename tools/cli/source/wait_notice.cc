// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/source/wait_notice.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "alpheus/cluster_reader.h"

namespace alpheus::cli {
namespace {

// Time without an answer after which a node counts as waited for.
constexpr uint32_t kAskMillis = 500;

}  // namespace

std::string DescribeWait(const LogSource& source, const std::string& until) {
  ClusterReaderOptions options;
  options.cluster_file = source.cluster;
  options.log_name = source.log;
  options.timeout_ms = kAskMillis;
  options.without_records = true;
  const auto reader = ClusterReader::Open(options);
  std::string what = "its nodes, none of which has answered for it";
  if (reader.ok()) {
    std::vector<std::string> silent;
    for (const ReplicaReading& replica : (*reader)->replicas()) {
      if (replica.status.ok()) continue;
      silent.push_back(
          absl::StrCat("node ", replica.node, " (", WhyOf(replica), ")"));
    }
    what = silent.empty() ? "its nodes, all of which answer"
                          : absl::StrJoin(silent, ", ");
  }
  return absl::StrCat("log ", source.log, ": waiting for ", what, "; ", until);
}

WaitNotice::WaitNotice(LogSource source, std::string until,
                       std::chrono::milliseconds after)
    : source_(std::move(source)), until_(std::move(until)) {
  if (!source_.is_cluster()) return;
  thread_ = std::thread([this, after] { Run(after); });
}

WaitNotice::~WaitNotice() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void WaitNotice::Run(std::chrono::milliseconds after) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (ended_.wait_for(lock, after, [this] { return ends_; })) return;
  }
  const std::string text = DescribeWait(source_, until_);
  std::fprintf(stderr, "alpheus: %s\n", text.c_str());
}

}  // namespace alpheus::cli
