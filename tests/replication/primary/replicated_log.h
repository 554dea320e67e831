// SPDX-License-Identifier: Apache-2.0
// replicated_log: a RingLog on modelled memory with backups that are joined
// directly, in one thread.
//
// Idea: what happens elsewhere happens while the log waits: there a backup that
// `answers` persists and acknowledges, and nowhere else. So a test says who
// answers, and each wait of a call is one round trip.
#ifndef ALPHEUS_TESTS_REPLICATION_PRIMARY_REPLICATED_LOG_H_
#define ALPHEUS_TESTS_REPLICATION_PRIMARY_REPLICATED_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/core/ring/ring_log.h"
#include "recovery/replica/local_opening.h"
#include "replication/primary/replicator.h"
#include "replication/session/backup_session.h"
#include "tests/support/fabrics/direct_fabric.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

// Stands still until a test moves it.
class SetClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_nanos; }
  int64_t now_nanos = 0;
};

class ReplicatedLog {
 public:
  struct Options {
    int backups = 1;
    replication::Replicator::Options replicator = {.write_quorum = 2};
    FlushOrder order = FlushOrder::kRemoteFirst;
    uint64_t ring_capacity = 4096;
    uint32_t exposure_records_max = 64;
    uint32_t credits = 4;
  };

  struct Backup {
    DirectFabric fabric;
    model::ModelPersistence pmem;
    Superline superline;
    uint64_t superline_seq;
    const EpochTable table;
    fabric::ConnectionId connection;
    std::unique_ptr<replication::BackupSession<model::ModelPersistence>>
        session;
    bool answers = true;

    Backup(const recovery::OpenedEpoch& opened,
           std::span<const std::byte> image);
    absl::Status Publish(Epoch epoch, const RingBounds& bounds);
    // Persists and acknowledges what has arrived.
    void Serve();
  };

  explicit ReplicatedLog(const Options& options);

  RingLog<model::ModelPersistence>& log() { return *log_; }
  replication::Replicator& replication() { return *replication_; }
  model::ModelPersistence& pmem() { return pmem_; }
  DirectFabric& fabric() { return fabric_; }
  SetClock& backup_clock() { return backup_clock_; }
  Backup& backup(int i) { return *backups_[i]; }
  int backups() const { return static_cast<int>(backups_.size()); }
  // Whether the backups answer while the log waits.
  void SetAnswers(bool answers) {
    for (const auto& b : backups_) b->answers = answers;
  }
  void SetElsewhere(std::function<void()> elsewhere) {
    fabric_.SetElsewhere(std::move(elsewhere));
  }

  // Time in which backups are listened to all along.
  void PassBackupTime(int64_t nanos) {
    for (int i = 0; i < 8; ++i) {
      backup_clock_.now_nanos += nanos / 8;
      log_->Poll();
    }
  }

  // After a thousand looks at the clock.
  Deadline Soon() const {
    return Deadline::AtNanos(clock_.NowNanos() + 1'000'000);
  }
  absl::StatusOr<Lsn> Append(size_t bytes, Deadline deadline = {});
  // Completed, not forced.
  absl::StatusOr<Lsn> Fill(size_t bytes, Deadline deadline = {});
  // Durable-LSN field in the header of a record that the primary holds.
  Lsn DurableFieldOf(Lsn lsn);

  // Replicas, the primary's own if it counts, of which a power cut that keeps
  // the least leaves the record, or a head behind it.
  int HoldersAfterAPowerCut(Lsn lsn);

 private:
  const Options options_;
  Random random_{1};
  model::ModelPersistence pmem_;
  SteppingClock clock_;
  SetClock backup_clock_;
  NoWaiter waiter_;
  DirectFabric fabric_;
  std::optional<recovery::OpenedEpoch> opened_;
  std::vector<std::unique_ptr<Backup>> backups_;
  std::unique_ptr<replication::Replicator> replication_;
  std::unique_ptr<RingLog<model::ModelPersistence>> log_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_PRIMARY_REPLICATED_LOG_H_
