// SPDX-License-Identifier: Apache-2.0
// shared_fabric: one adapter for many logs of a process.
#ifndef ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_FABRIC_H_
#define ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_FABRIC_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "log/base/clock.h"
#include "log/base/mutex.h"
#include "replication/fabric/fabric.h"

namespace alpheus::fabric {

class SharedFabric : public std::enable_shared_from_this<SharedFabric> {
 public:
  SharedFabric(std::unique_ptr<Fabric> inner, const Clock& clock);
  ~SharedFabric();
  // A view for one owner.
  std::unique_ptr<Fabric> AddPort();

 private:
  class Port;
  // Runs turns of the adapter until nobody asks for another one, and gives each
  // port what is its own.
  void Send();
  void Run();
  void Dispatch(std::span<const Completion> completions,
                std::vector<ConnectionEvent>& events);

  const std::unique_ptr<Fabric> inner_;
  const Clock& clock_;
  Mutex turn_mutex_;
  std::atomic<bool> again_{false};
  std::vector<ConnectionEvent> turn_events_;
  std::vector<Completion> turn_completions_ = std::vector<Completion>(64);
  Mutex mutex_;
  std::map<ConnectionId, Port*> owners_;
  std::set<Port*> ports_;
  Port* listener_ = nullptr;
  Port* leader_ = nullptr;
  std::atomic<int> leaders_{0};
  // Threads that were woken and have neither posted nor slept since.
  std::atomic<int> awake_{0};
  std::atomic<bool> posted_{false};
  std::atomic<bool> is_awake_{true};
  std::atomic<bool> stop_{false};
  std::thread pump_;
};

}  // namespace alpheus::fabric
#endif  // ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_FABRIC_H_
