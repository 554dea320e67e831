// SPDX-License-Identifier: Apache-2.0
// shared_adapters: the adapters that the logs of a process share.
//
// Idea: many logs are fastest with one adapter: what they post leaves together
// (shared_adapter.h). A few are fastest with an adapter each: there the kernel
// wakes the thread that an answer is for, and no other thread is on the way. So
// the logs of a cluster have as many adapters as there are cores, and a log
// gets one of those that the fewest logs have:
//
//   2 cores, 3 logs:   adapter 0: logs A and C     adapter 1: log B
//
// An adapter is opened for its first log, and closed with its last one.
//
// Invariants:
//   SHD1. Logs share an adapter only if it would be opened alike for each: they
//         are of one cluster, by the same files of encryption, and this process
//         is the same member of it.
//   SHD2. What happens to an adapter is told to each log that has it.
// Thread safety: all members concurrently.
// May block: as OpenAdapter; the other callers wait meanwhile.
#ifndef ALPHEUS_API_WIRING_SHARED_ADAPTERS_H_
#define ALPHEUS_API_WIRING_SHARED_ADAPTERS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "api/wiring/adapter.h"
#include "api/wiring/audience.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/shared/shared_adapter.h"

namespace alpheus {

class SharedAdapters {
 public:
  // `adapters_max`: of one cluster, above 0. Must outlive the shares.
  explicit SharedAdapters(size_t adapters_max,
                          AdapterOpener open_adapter = OpenAdapter)
      : adapters_max_(adapters_max), open_adapter_(open_adapter) {}

  // The adapters of this process are never destroyed: a log may be closed after
  // main has returned.
  static SharedAdapters& OfProcess();

  // One log has this. The seat goes first, and so before what `say` needs.
  struct Share {
    std::unique_ptr<fabric::Fabric> fabric;
    Audience::Seat seat;
  };
  // Returns a share for one log. `near` as for OpenAdapter; `say` gets
  // sentences for an operator, on any thread that uses a log of this process.
  // Errors: as OpenAdapter.
  absl::StatusOr<Share> AddShare(const quorum::ClusterConfiguration& cluster,
                                 NodeId near, Audience::Say say);

 private:
  struct Adapter {
    std::weak_ptr<fabric::SharedAdapter> adapter;
    std::shared_ptr<Audience> audience;
  };
  using Adapters = std::vector<Adapter>;

  const size_t adapters_max_;
  const AdapterOpener open_adapter_;
  EntropyRandom random_;
  Mutex mutex_;
  // By what distinguishes them (SHD1).
  std::map<std::string, Adapters> adapters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_SHARED_ADAPTERS_H_
