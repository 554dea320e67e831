// SPDX-License-Identifier: Apache-2.0
// cluster_backup: backs a replicated log up over the network, without taking
// part, into a file.
//
// Idea: a cluster reader has images of the replicas, and says which records are
// durable for certain, and after which none can be (cluster_reader.h). The
// backup is made of a reading that proves all that could have been acknowledged
// before the first one. The primary goes on meanwhile.
//
// Invariants:
//   CBK1. The backup has each record that was acknowledged before BackUpCluster
//         was called and was not cleaned, and none that is not durable.
// Thread safety: a function.
#ifndef ALPHEUS_API_LOG_CLUSTER_BACKUP_H_
#define ALPHEUS_API_LOG_CLUSTER_BACKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus {

struct ClusterBackupOptions {
  std::string cluster_file;
  std::string log_name = "main";
  std::string path;       // of the backup
  bool replaces = false;  // a backup of that name is replaced
  // As ClusterReaderOptions; also the time after which a log whose last records
  // are in doubt is given up.
  uint32_t timeout_ms = 5'000;
};

struct BackupReport {
  Uuid log_id;
  Lsn head_lsn;
  Lsn end_lsn;  // head_lsn - 1: no record
  uint64_t records = 0;
  uint64_t payload_bytes = 0;
};

// Errors, with no file left: as BackupFile; as ClusterReader::Open and
// ForEachDurable; Unavailable (too few replicas were read to know what was
// acknowledged, or the last records stayed in doubt for timeout_ms).
absl::StatusOr<BackupReport> BackUpCluster(const ClusterBackupOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_CLUSTER_BACKUP_H_
