// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/shared_adapters.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

// Returns how many cores this process may use.
size_t CountCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return static_cast<size_t>(std::max(CPU_COUNT(&allowed), 1));
}

std::string KeyOf(const quorum::ClusterConfiguration& cluster, NodeId near) {
  std::string key =
      absl::StrCat(cluster.cluster_id.ToString(), " ", near.value);
  if (cluster.encryption) {
    for (const std::string* const file :
         {&cluster.encryption->certificate_file, &cluster.encryption->key_file,
          &cluster.encryption->authorities_file,
          &cluster.encryption->revoked_file}) {
      absl::StrAppend(&key, " ", file->size(), ":", *file);
    }
  }
  return key;
}

}  // namespace

SharedAdapters& SharedAdapters::OfProcess() {
  static auto& adapters = *new SharedAdapters(CountCores());
  return adapters;
}

absl::StatusOr<std::unique_ptr<fabric::Fabric>> SharedAdapters::AddShare(
    const quorum::ClusterConfiguration& cluster, NodeId near) {
  const MutexLock lock(mutex_);
  Adapters& known = adapters_[KeyOf(cluster, near)];
  // The last share of any may be closed at any time: it stays open if held.
  std::vector<std::shared_ptr<fabric::SharedAdapter>> open;
  for (const auto& one : known) {
    if (auto adapter = one.lock()) open.push_back(std::move(adapter));
  }
  if (open.size() < adapters_max_) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<fabric::Fabric> opened,
                             open_adapter_(cluster, near, random_, {}));
    open.push_back(std::make_shared<fabric::SharedAdapter>(std::move(opened),
                                                           Clock::Real()));
    known.assign(open.begin(), open.end());
  }
  const auto least = std::ranges::min_element(
      open, {}, [](const auto& adapter) { return adapter->shares(); });
  return (*least)->AddShare();
}

}  // namespace alpheus
