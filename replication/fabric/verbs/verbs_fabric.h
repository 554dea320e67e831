// SPDX-License-Identifier: Apache-2.0
// verbs_fabric: an adapter with RDMA, by rdma-core.
//
// Idea: this is a thin layer. The adapter keeps FB1, FB2, FB4 and FB6 itself.
// The layer adds the order of completions (queue_pair.h), keys that say where a
// region begins (region_key_parts.h), and private data of each program before
// they are connected (greeting.h). The adapter starts no thread. A polling
// thread takes completions from its queues, without a system call; it asks the
// connection manager, by a system call, from time to time.
//
// Invariants, beyond those of fabric.h:
//   VF1. Close and Deregister destroy the queue pair and the memory region
//        before they return: nothing else is a fence (FB5, P-R2).
//   VF2. No region is registered with relaxed ordering (P-R4).
//   VF3. Work posted in a row leaves by one doorbell at the next Poll. While a
//        thread sleeps in WaitForActivity it leaves at once.
//   VF4. A thread sleeps only when each completion queue will wake it.
//   VF5. Nothing is left of a connection that was closed or rejected.
//   VF6. When the adapter reports that it failed, that its port is down, or
//        that it lost completions, all concerned connections are broken at once
//        (FB9).
// Thread safety: all members concurrently.
// References: docs/design/fabric.md; rdma_cm(7); ibv_get_cq_event(3).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_VERBS_FABRIC_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_VERBS_FABRIC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/adapter.h"
#include "replication/fabric/verbs/connection.h"
#include "replication/fabric/verbs/connection_manager.h"
#include "replication/fabric/verbs/device_news.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/fabric/verbs/options.h"
#include "replication/fabric/verbs/registered_memory.h"
#include "replication/fabric/verbs/wake_up.h"

namespace alpheus::fabric::verbs {

class VerbsFabric final : public Fabric {
 public:
  // Opens an adapter. `clock` and `random`, from which keys are drawn, must
  // outlive the fabric. Errors: NotFound (no adapter, or none of that name;
  // names those that there are); Unavailable (the adapter lacks what it needs).
  static absl::StatusOr<std::unique_ptr<VerbsFabric>> Open(
      const VerbsFabricOptions& options, const Clock& clock,
      RandomSource& random);
  ~VerbsFabric() override;

  Limits limits() const override { return limits_; }
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                     RemoteAccess access) override;
  absl::Status Deregister(RegionKey key) override;
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<ConnectionId> Connect(std::string_view address,
                                       std::string_view private_data,
                                       Deadline deadline) override;
  absl::Status Accept(ConnectionId id, std::string_view private_data) override;
  absl::Status Reject(ConnectionId id, std::string_view private_data) override;
  absl::Status Close(ConnectionId id) override;
  absl::Status Post(ConnectionId id, const WorkRequest& request) override;
  absl::Status PostReceive(ConnectionId id, WorkId work,
                           LocalBytes into) override;
  void FlushSends() override;
  size_t Poll(std::span<Completion> completions,
              std::vector<ConnectionEvent>* events) override;
  bool RunTurn() override;
  void WaitForActivity(Deadline deadline) override;
  void Wake() override;

  VerbsFabricCounters counters() const;
  // Returns true if posted work other than receives has not completed, or a
  // connection begins: more will come, perhaps only by time.
  bool IsInFlight() const;
  // Returns the name, such as "rxe0".
  const std::string& device() const { return device_; }

 private:
  VerbsFabric(const VerbsFabricOptions& options, const Clock& clock,
              RandomSource& random, const Adapter& adapter,
              ProtectionDomain domain);
  absl::Status Begin();

  absl::Status BrokenError(const Connection& connection, ConnectionId id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WhyNotPosted(const Connection& connection, ConnectionId id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RingDoorbells() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PollConnections() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DrainDeviceNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DrainManagerEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnManagerEvent(const ConnectionManager::Event& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoomForUnauthenticated() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCall(CommunicationId manager, bool is_calling)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DrainQueueEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunTimers(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t NextTimer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PrepareToSleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns nullptr if there is none that the application knows.
  Connection* Find(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds also connections that the application does not know.
  Connection* FindAny(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets a connection with which the application is done: no event of it
  // comes any more.
  void Forget(ConnectionId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::string device_;
  const Limits limits_;
  const WakeUp wake_;

  mutable Mutex mutex_;
  // In the order in which they need each other: the last one ends first.
  std::unique_ptr<DeviceNews> news_ ABSL_GUARDED_BY(mutex_);
  ProtectionDomain domain_ ABSL_GUARDED_BY(mutex_);
  CompletionChannel channel_ ABSL_GUARDED_BY(mutex_);
  ConnectionManager manager_ ABSL_GUARDED_BY(mutex_);
  RegisteredMemory memory_ ABSL_GUARDED_BY(mutex_);
  std::array<std::byte, 8> flush_target_ ABSL_GUARDED_BY(mutex_){};
  Shared shared_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<ConnectionId, std::unique_ptr<Connection>> connections_
      ABSL_GUARDED_BY(mutex_);
  // The last result of FindAny, while it exists: posts come in a row.
  std::pair<ConnectionId, Connection*> found_ ABSL_GUARDED_BY(mutex_){};
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ConnectionId> posted_ ABSL_GUARDED_BY(mutex_);
  bool is_past_setup_ ABSL_GUARDED_BY(mutex_) = true;  // all connections are
  // when the connection manager is asked next; 0: at once
  int64_t tick_at_ ABSL_GUARDED_BY(mutex_) = 0;
  // When device news are read next; 0: at once.
  int64_t news_at_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t turns_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_VERBS_FABRIC_H_
