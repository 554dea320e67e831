// SPDX-License-Identifier: Apache-2.0
#include "api/log/cluster_backup.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "alpheus/cluster_reader.h"
#include "api/log/backup_file.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/base/waiter.h"

namespace alpheus {
namespace {

// From one reading to the next. The primary of an idle log tells its backups
// within some tenths of a second what is durable.
constexpr std::chrono::milliseconds kPause(50);

absl::Status TooFew(const ClusterBackupOptions& options,
                    const ClusterReader& reader) {
  std::vector<std::string> unread;
  for (const ReplicaReading& replica : reader.replicas()) {
    if (replica.status.ok()) continue;
    unread.push_back(
        absl::StrCat("node ", replica.node, ": ", replica.status.message()));
  }
  return absl::UnavailableError(absl::StrCat(
      "log ", options.log_name,
      ": too few replicas could be read to know which records were "
      "acknowledged, so a backup could lack some. No file was left. ",
      absl::StrJoin(unread, "; ")));
}

// Returns a reading that proves all that was acknowledged before (CBK1).
absl::StatusOr<std::unique_ptr<ClusterReader>> ReadAll(
    const ClusterBackupOptions& options) {
  ClusterReaderOptions from;
  from.cluster_file = options.cluster_file;
  from.log_name = options.log_name;
  from.timeout_ms = options.timeout_ms;
  FutexWaiter waiter(Clock::Real());
  const std::atomic<uint32_t> never{0};
  const Deadline end =
      Deadline::In(std::chrono::milliseconds(options.timeout_ms));
  std::optional<Lsn> wanted;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ClusterReader> reader,
                             ClusterReader::Open(from));
    ALPHEUS_RETURN_IF_ERROR(reader->outdated());
    if (!wanted) wanted = reader->durable_lsn_max();
    if (wanted && reader->durable_lsn() >= *wanted) return reader;
    if (end.HasPassed(Clock::Real().NowNanos())) {
      if (!wanted) return TooFew(options, *reader);
      return absl::UnavailableError(absl::StrCat(
          "log ", options.log_name, ": records up to LSN ", wanted->value,
          " may have been acknowledged, and it is proven only up to LSN ",
          reader->durable_lsn().value, " after ", options.timeout_ms,
          " ms. No file was left. Opening the log decides which records stay: "
          "has it a primary?"));
    }
    waiter.Wait(never, 0, Deadline::In(kPause));
  }
}

// Describes what is backed up from `head` on, by a replica of the newest epoch.
absl::StatusOr<BackupSubject> SubjectOf(const ClusterReader& reader) {
  const RegionInfo* newest = nullptr;
  for (const ReplicaReading& replica : reader.replicas()) {
    if (!replica.info || replica.info->repairing) continue;
    if (newest == nullptr || newest->log_epoch < replica.info->log_epoch) {
      newest = &*replica.info;
    }
  }
  if (newest == nullptr) {
    return absl::UnavailableError("no replica could be read. No file was left");
  }
  BackupSubject subject;
  subject.log_id = newest->log_id;
  subject.ring_capacity = newest->ring_capacity;
  for (const EpochInfo& epoch : newest->epochs) {
    subject.epochs.push_back({epoch.epoch, epoch.start_lsn});
  }
  subject.end_lsn = reader.durable_lsn();
  return subject;
}

}  // namespace

absl::StatusOr<BackupReport> BackUpCluster(
    const ClusterBackupOptions& options) {
  // First: a path that is taken is found before anything is read.
  ALPHEUS_ASSIGN_OR_RETURN(BackupFile file,
                           BackupFile::Create(options.path, options.replaces));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           ReadAll(options));
  ALPHEUS_ASSIGN_OR_RETURN(BackupSubject subject, SubjectOf(*reader));
  EntropyRandom random;
  BackupReport report;
  report.log_id = subject.log_id;
  report.end_lsn = subject.end_lsn;
  report.head_lsn = subject.end_lsn + 1;
  bool has_begun = false;
  const auto begin = [&](Lsn head) {
    has_begun = true;
    report.head_lsn = head;
    subject.head_lsn = head;
    return file.Begin(subject, random);
  };
  ALPHEUS_RETURN_IF_ERROR(
      reader->ForEachDurable([&](const ReaderRecord& record) {
        const absl::Status begun =
            has_begun ? absl::OkStatus() : begin(record.lsn);
        if (!begun.ok()) return begun;
        // An aborted record has no content, and a cleaned one is not needed.
        if (record.state != RecordState::kDurable) return absl::OkStatus();
        return file.Add(record.lsn, record.epoch, record.payload);
      }));
  if (!has_begun) ALPHEUS_RETURN_IF_ERROR(begin(report.head_lsn));
  ALPHEUS_RETURN_IF_ERROR(file.Publish());
  report.records = file.records();
  report.payload_bytes = file.payload_bytes();
  return report;
}

}  // namespace alpheus
