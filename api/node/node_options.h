// SPDX-License-Identifier: Apache-2.0
// node_options: how a node is started.
//
// Thread safety: a value.
#ifndef ALPHEUS_API_NODE_NODE_OPTIONS_H_
#define ALPHEUS_API_NODE_NODE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "api/wiring/adapter.h"
#include "log/pmem/msync_persistence.h"
#include "replication/persist/platform/platform.h"

namespace alpheus {

inline constexpr uint32_t kNodeThreadsMax = 64;

struct NodeOptions {
  std::string cluster_file;
  uint64_t node = 0;      // id in the cluster file
  std::string directory;  // of the replicas; must exist
  // Address to listen on; empty: the member's address in the cluster file.
  std::string listen = {};
  // Platform on which records become persistent; see ParsePlatform.
  replication::Platform platform = {};
  // Threads over which the logs are spread, at most kNodeThreadsMax; 0: one for
  // each core that this process may use, at most kThreadsByItself (node.h).
  // With RDMA there is one in any case.
  uint32_t threads = 0;
  // Turns without sleep after the last activity; each yields the core.
  uint32_t yield_turns = 200;
  // Speed of background scrubbing, in bytes of records per second; 0: only on
  // request. The threads share it equally.
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  // Seconds from the end of a pass over a log to the next one.
  uint64_t scrub_interval_seconds = 24 * uint64_t{3'600};
  // Limits on connections without a promise, each above 0 (ADM1 of
  // connection_admission.h): without a hello; without proof of the key; proved
  // and waiting, of each kind; following. Each thread has an equal part of all
  // but the first (NTH1 of node_thread.h).
  uint64_t unopened_max = 64;
  uint64_t unproved_max = 32;
  uint64_t waiting_max = 32;
  uint64_t followers_max = 64;
  // Function that persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
  // For each thread.
  AdapterOpener open_adapter = OpenAdapter;
  // Sink for events that an operator may want to know, one sentence each. It is
  // called by one thread at a time, and must not call the node.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_OPTIONS_H_
