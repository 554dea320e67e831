// SPDX-License-Identifier: Apache-2.0
// log_engine: the interface that the public Log calls: one open log in any
// memory.
//
// Idea: the memory backend is a template parameter of everything below. This is
// the one virtual step between the public class and that template: one call per
// user's call, none per store.
//
// Thread safety: as alpheus/log.h.
#ifndef ALPHEUS_API_LOG_LOG_ENGINE_H_
#define ALPHEUS_API_LOG_LOG_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/options.h"
#include "alpheus/recovered_range.h"
#include "alpheus/recovery_report.h"
#include "alpheus/replication_status.h"
#include "alpheus/reservation.h"
#include "log/base/ids.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/appended_record.h"

namespace alpheus {

class LogEngine {
 public:
  virtual ~LogEngine() = default;

  // Returns whether the parent of this fork's child opened it. Then all calls
  // below fail with FailedPrecondition, and touch neither records nor file. Its
  // destructor would join threads and end connections of the parent, so
  // LeaveToParent is called instead, which releases the child's share of the
  // file.
  virtual bool IsOfParent() const = 0;
  virtual void LeaveToParent() = 0;

  virtual absl::StatusOr<ReservedRecord> Reserve(size_t bytes,
                                                 Deadline deadline) = 0;
  virtual absl::Status Copy(ReservedRecord& record, size_t offset,
                            std::span<const std::byte> bytes) = 0;
  virtual absl::Status Complete(ReservedRecord& record) = 0;
  virtual void Abort(const ReservedRecord& record) = 0;
  virtual void Detach(ReservedRecord& record) = 0;
  virtual absl::Status Force(Lsn lsn, const ForceOptions& options) = 0;
  virtual absl::Status BeginForce(Lsn lsn) = 0;
  virtual absl::StatusOr<Lsn> Append(
      std::span<const std::span<const std::byte>> parts,
      const ForceOptions& options) = 0;
  virtual absl::StatusOr<AppendedRecord> AppendInRing(
      std::span<const std::span<const std::byte>> parts, Deadline deadline) = 0;
  virtual absl::Status WaitDurable(Lsn lsn, Deadline deadline) = 0;
  virtual absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) = 0;
  virtual absl::Status Cleanup(Lsn lsn) = 0;
  virtual absl::Status CleanupThrough(Lsn lsn) = 0;
  virtual absl::Status CleanupAll() = 0;
  virtual absl::Status Close() = 0;
  virtual absl::StatusOr<bool> CopyNext(TailPlace& place) const = 0;

  virtual Lsn durable_lsn() const = 0;
  virtual Lsn next_lsn() const = 0;
  virtual Lsn head_lsn() const = 0;
  virtual size_t payload_bytes_max() const = 0;
  virtual uint64_t Exposed() const = 0;
  virtual uint64_t exposed_max() const = 0;
  virtual std::unique_ptr<RecoveredRange::Source> Recovered() const = 0;
  virtual absl::Status CheckPayloads() const = 0;
  virtual const RecoveryReport& report() const = 0;
  virtual ReplicationStatus replication_status() const = 0;
};

// Maps the region that `options` names, recovers it and opens an epoch.
absl::StatusOr<std::unique_ptr<LogEngine>> OpenLocalEngine(
    const LogOptions& options);

// Opens an epoch of the cluster's log that options.replication names.
absl::StatusOr<std::unique_ptr<LogEngine>> OpenReplicatedEngine(
    const LogOptions& options);

// Makes the replicas of the cluster's log that `options` names.
absl::StatusOr<Uuid> FormatReplicatedLog(const FormatOptions& options);

// Checks options that every engine has. Errors: InvalidArgument.
absl::Status CheckEngineOptions(const LogOptions& options);

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_LOG_ENGINE_H_
