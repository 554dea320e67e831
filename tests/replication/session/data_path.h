// SPDX-License-Identifier: Apache-2.0
// data_path: a log on modelled memory and backups of it, joined directly.
#ifndef ALPHEUS_TESTS_REPLICATION_SESSION_DATA_PATH_H_
#define ALPHEUS_TESTS_REPLICATION_SESSION_DATA_PATH_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "replication/session/backup_session.h"
#include "replication/session/primary_session.h"
#include "tests/support/fabrics/counting_fabric.h"
#include "tests/support/fabrics/direct_fabric.h"
#include "tests/support/fixtures/log_harness.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

inline constexpr replication::SessionId kSession{77};

// A primary's log, and as many backups as wanted. Each begins as a copy of the
// primary's region, taken when its epoch had just been opened.
class DataPath {
 public:
  struct Backup {
    DirectFabric fabric;
    CountingFabric counted{fabric};  // the session's adapter
    model::ModelPersistence pmem;
    RegionState state;
    fabric::ConnectionId connection;
    std::vector<LogPosition> heads;  // that were published
    std::unique_ptr<replication::BackupSession<model::ModelPersistence>>
        session;

    Backup(const fabric::Fabric::Limits& limits,
           std::span<const std::byte> image)
        : fabric(limits), pmem(image) {}

    // Takes what arrived; the first error.
    absl::Status Drain();
    // Records that a scan finds after a power cut that keeps the least.
    uint64_t RecordsAfterAPowerCut();
  };

  struct Options {
    int backups = 1;
    uint32_t credits = 4;
    uint64_t message_bytes_max = 1 << 20;
    uint64_t ring_capacity = 4096;
    uint64_t batch_bytes_max = replication::SessionTerms().batch_bytes_max;
    replication::Platform platform = {};  // of the backups
    // Lines before the ceiling of both ends; 0: a lap.
    uint64_t ceiling_lines = 0;
    // The backups', if it is another.
    uint64_t backup_ceiling_lines = 0;
  };

  explicit DataPath(const Options& options);

  LogHarness& log() { return log_; }
  DirectFabric& fabric() { return fabric_; }
  // The adapter that sessions post on.
  CountingFabric& counted() { return counted_; }
  Backup& backup(int i) { return *backups_[i]; }
  replication::PrimarySession& session(int i) { return *sessions_[i]; }
  std::unique_ptr<replication::PrimarySession> TakeSession(int i) {
    return std::move(sessions_[i]);
  }
  const replication::SessionTerms& terms() const { return terms_; }
  // A head, with the ceiling a lap after it.
  RingBounds BoundsWith(const LogPosition& head) const {
    return {head,
            head.offset + backups_.front()->state.superline.ring_capacity};
  }

  // Where the primary's records end.
  RingEnd End();
  // Appends a record of so many bytes.
  Lsn Append(size_t bytes) { return log_.Append(std::string(bytes, 'x')); }
  // Hands all completions of the primary to its sessions; the first error.
  absl::Status Drain();
  // One round: posts of the primary run, backups persist and acknowledge, the
  // primary takes it.
  absl::Status Round();

 private:
  LogHarness log_;
  DirectFabric fabric_;
  CountingFabric counted_{fabric_};
  replication::SessionTerms terms_;
  Lsn head_;
  std::vector<std::unique_ptr<Backup>> backups_;
  std::vector<std::unique_ptr<replication::PrimarySession>> sessions_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_SESSION_DATA_PATH_H_
