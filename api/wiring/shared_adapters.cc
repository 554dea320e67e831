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
  std::string key;
  absl::StrAppend(&key, cluster.cluster_id.ToString());
  absl::StrAppend(&key, " ", near.value);
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

absl::StatusOr<SharedAdapters::Share> SharedAdapters::AddShare(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    Audience::Say say) {
  using OpenAdapters =
      std::vector<std::pair<std::shared_ptr<fabric::SharedAdapter>,
                            std::shared_ptr<Audience>>>;
  const MutexLock lock(mutex_);
  Adapters& known = adapters_[KeyOf(cluster, near)];
  // The last share of any may be closed at any time: it stays open if held.
  OpenAdapters open;
  for (const Adapter& one : known) {
    if (auto adapter = one.adapter.lock()) {
      open.emplace_back(std::move(adapter), one.audience);
    }
  }
  if (open.size() < adapters_max_) {
    const auto audience = std::make_shared<Audience>();
    Audience::Seat seat = audience->Add(std::move(say));  // before it opens
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<fabric::Fabric> opened,
        open_adapter_(cluster, near, random_,
                      {.say = [audience](const std::string& sentence) {
                        audience->Tell(sentence);
                      }}));
    const auto adapter = std::make_shared<fabric::SharedAdapter>(
        std::move(opened), Clock::Real());
    std::erase_if(known,
                  [](const Adapter& one) { return one.adapter.expired(); });
    known.push_back({adapter, audience});
    return Share{adapter->AddShare(), std::move(seat)};
  }
  auto least = open.begin();
  for (auto one = open.begin(); one != open.end(); ++one) {
    if (one->first->shares() < least->first->shares()) least = one;
  }
  return Share{least->first->AddShare(), least->second->Add(std::move(say))};
}

}  // namespace alpheus
