// SPDX-License-Identifier: Apache-2.0
// replica_world: one replica of three on modelled memory, and the primary's
// part in it, done by hand: records that are copied into its ring, and the
// epoch that is then installed.
//
// Idea: the records of a test are made by a second, plain writer (LogOf), with
// nothing of recovery in it, so that the replica's ring can hold any history:
// the right one, one with holes, one of an epoch that lost.
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_WORLD_H_
#define ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/ids.h"
#include "log/core/ring/region_state.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "recovery/replica/local_replica.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

inline constexpr Uuid kWorldCluster{1, 2};
inline constexpr Uuid kWorldLog{3, 4};

// A log as its primary has it: a ring of its own, and where it ends.
class LogImage {
 public:
  explicit LogImage(uint64_t ring_capacity) : bytes_(ring_capacity) {}

  // Opens an epoch where the log ends; its nonce is drawn from the epoch and
  // `salt`.
  void OpenEpoch(Epoch epoch, uint64_t salt = 0);
  // Adds a record of the last epoch. Requires: the ring has room.
  Lsn Append(std::string_view payload);
  // Moves the head behind `lsn`.
  void CleanThrough(Lsn lsn);
  // Goes back to where `lsn` ended; what was behind it stays in the ring.
  void Truncate(Lsn lsn);

  // Returns the installation that a primary sends for the last epoch.
  recovery::Installation ToInstall() const;
  // A head, with the ceiling a lap after it.
  RingBounds BoundsWith(const LogPosition& head) const {
    return {head, head.offset + bytes_.size()};
  }
  const LogPosition& head() const { return positions_.front(); }
  const LogPosition& end() const { return positions_.back(); }
  const LogPosition& PositionOf(Lsn lsn) const;
  const EpochTable& table() const { return table_; }
  Ring ring() const {
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::vector<std::byte> bytes_;
  EpochTable table_ = EpochTable::Empty(kWorldLog);
  std::vector<LogPosition> positions_{LogPosition{}};  // from the head on
};

struct ReplicaWorldOptions {
  uint64_t ring_capacity = 1024;
  uint64_t table_capacity = 102;  // entries
};

class ReplicaWorld {
 public:
  using Options = ReplicaWorldOptions;

  // A freshly formatted region, of node 1 of 1, 2 and 3.
  explicit ReplicaWorld(const Options& options = Options());

  model::ModelPersistence& pmem() { return pmem_; }
  std::span<std::byte> region() { return pmem_.region(); }
  recovery::LocalReplica<model::ModelPersistence>& replica() {
    return *replica_;
  }

  // Opens the replica as a process that starts; the one before was killed.
  absl::Status Open(const recovery::LocalReplicaOptions& options = {
                        .name = "model"});
  void PowerCut();
  std::vector<std::byte> Snapshot();
  // Goes back to a region, all of it persisted; no process is open.
  void Reset(std::span<const std::byte> image);

  // The primary of `epoch`: node 2, one process.
  static quorum::Promise PromiseFor(Epoch epoch);
  absl::Status AcceptPromise(Epoch epoch);
  // Writes records [first, end) of `log` with their PADs into the ring, as
  // remote writes do: they are visible.
  void CopyRecords(const LogImage& log, Lsn first, Lsn end);
  void CopyAll(const LogImage& log);
  // Promise, copy, install.
  absl::Status InstallAll(const LogImage& log);

  RegionState State();
  // Returns the payloads that a reader of the log gets.
  std::vector<std::string> Payloads();

 private:
  model::ModelPersistence pmem_;
  std::unique_ptr<recovery::LocalReplica<model::ModelPersistence>> replica_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_REPLICA_REPLICA_WORLD_H_
