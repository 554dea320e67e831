// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/admin/change_members.h"
#include "api/log/log_engine.h"
#include "log/base/check.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/core/durability/force_policy.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_use.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"

namespace alpheus {
namespace {

absl::Status NotOpen(const char* call) {
  return absl::FailedPreconditionError(absl::StrCat(
      call,
      ": the reservation is not open on this log: it was completed, "
      "aborted, moved from, or belongs to another log"));
}

ForcePolicy PolicyOf(const ForceOptions& options) {
  return {options.frequency, options.group};
}

// Keeps the engine reachable, so that leak checkers don't report it.
void KeepOfParent(LogEngine* engine) {
  static Mutex mutex;
  static auto* const kept = new std::vector<LogEngine*>();
  const MutexLock lock(mutex);
  kept->push_back(engine);
}

absl::Status WriteEmptyLog(Region& region, const FormatIdentity& identity) {
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(region.bytes().size()));
  if (region.medium() == RegionMedium::kFile) {
    MsyncPersistence pmem(region.path(), MsyncPersistence::SyncPages,
                          region.alarm());
    return FormatRegion(pmem, region.bytes(), layout, identity);
  }
  LibpmemPersistence pmem({.alarm = region.alarm()});
  return FormatRegion(pmem, region.bytes(), layout, identity);
}

}  // namespace

absl::StatusOr<RecoveryReport> Log::ChangeMembers(
    const ChangeMembersOptions& options) {
  return ChangeLogMembers(options);
}

absl::StatusOr<Uuid> Log::Format(const FormatOptions& options) {
  if (!options.cluster_file.empty()) return FormatReplicatedLog(options);
  // Sizes are checked before anything is created.
  if (options.region_bytes != 0) {
    ALPHEUS_RETURN_IF_ERROR(Layout::ForRegion(options.region_bytes).status());
  }
  EntropyRandom random;
  const FormatIdentity identity = NewLocalIdentity(random);
  const auto write = [&](Region& region) {
    return WriteEmptyLog(region, identity);
  };
  ALPHEUS_RETURN_IF_ERROR(Region::Create(options.path, options.region_bytes,
                                         {write, UseOfRegion, kTableOffset})
                              .status());
  return identity.log_id;
}

absl::StatusOr<std::unique_ptr<Log>> Log::Open(const LogOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogEngine> engine,
                           options.replication.cluster_file.empty()
                               ? OpenLocalEngine(options)
                               : OpenReplicatedEngine(options));
  return std::unique_ptr<Log>(new Log(std::move(engine)));
}

Log::Log(std::unique_ptr<LogEngine> engine) : engine_(std::move(engine)) {}

Log::~Log() {
  if (engine_->IsOfParent()) {
    engine_->LeaveToParent();
    KeepOfParent(engine_.release());
    return;
  }
  ALPHEUS_CHECK(open_tails_.load(std::memory_order_acquire) == 0,
                "a tail must not outlive its log (log_tail.h)");
  // Best effort, in a destructor: callers that need the result call Close.
  // Acknowledged records are durable already.
  (void)engine_->Close();
}

absl::Status Log::Close() { return engine_->Close(); }

absl::StatusOr<Reservation> Log::Reserve(size_t bytes, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  ALPHEUS_ASSIGN_OR_RETURN(const ReservedRecord record,
                           engine_->log().Reserve(bytes, deadline));
  return Reservation(engine_.get(), record);
}

absl::Status Log::Copy(Reservation& reservation, size_t offset,
                       std::span<const std::byte> bytes) {
  if (reservation.engine_ != engine_.get()) return NotOpen("Copy");
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().Copy(reservation.record_, offset, bytes);
}

absl::StatusOr<Lsn> Log::Complete(Reservation&& reservation) {
  if (reservation.engine_ != engine_.get()) return NotOpen("Complete");
  reservation.engine_ = nullptr;
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  ALPHEUS_RETURN_IF_ERROR(engine_->log().Complete(reservation.record_));
  return reservation.record_.lsn;
}

absl::Status Log::Force(Lsn lsn, ForceOptions options) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().Force(lsn, PolicyOf(options), options.deadline);
}

absl::Status Log::BeginForce(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().BeginForce(lsn);
}

absl::StatusOr<Lsn> Log::Append(std::span<const std::byte> bytes,
                                ForceOptions options) {
  return Append({&bytes, 1}, options);
}

absl::StatusOr<Lsn> Log::Append(std::string_view text, ForceOptions options) {
  return Append(AsBytes(text), options);
}

absl::StatusOr<Lsn> Log::Append(
    std::span<const std::span<const std::byte>> parts, ForceOptions options) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().Append(parts, PolicyOf(options), options.deadline,
                               /*in_ring=*/nullptr);
}

absl::StatusOr<AppendedRecord> Log::AppendInRing(
    std::span<const std::span<const std::byte>> parts, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  AppendedRecord record;
  ALPHEUS_ASSIGN_OR_RETURN(
      record.lsn, engine_->log().Append(parts, ForcePolicy::Each(), deadline,
                                        &record.payload));
  return record;
}

absl::Status Log::WaitDurable(Lsn lsn, Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().WaitDurable(lsn, deadline);
}

absl::Status Log::OnDurable(Lsn lsn,
                            std::function<void(const absl::Status&)> callback) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().OnDurable(lsn, std::move(callback));
}
absl::Status Log::OnPersisted(
    Lsn lsn, PersistedBy by,
    std::function<void(const absl::Status&)> callback) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  if (by == PersistedBy::kOwnReplica && !engine_->has_own_replica()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "wait until this process's own replica has persisted LSN ", lsn.value,
        ": it has none (LogOptions::path). Wait for a quorum, or for all "
        "replicas in sync"));
  }
  return engine_->log().OnPersisted(lsn, by, std::move(callback));
}

Lsn Log::durable_lsn() const { return engine_->log().durable_lsn(); }
Lsn Log::next_lsn() const { return engine_->log().next_lsn(); }
Lsn Log::head_lsn() const { return engine_->log().head_lsn(); }
size_t Log::payload_bytes_max() const {
  return PayloadBytesMax(engine_->log().ring().capacity());
}
uint64_t Log::free_bytes() const { return engine_->log().free_bytes(); }
uint64_t Log::ring_bytes() const { return engine_->log().ring().capacity(); }
std::span<const std::byte> Log::ring() const {
  const Ring& ring = engine_->log().ring();
  return {ring.data(), ring.capacity()};
}
Lsn Log::persisted_lsn(PersistedBy by) const {
  return engine_->log().persisted_lsn(by);
}

uint64_t Log::Exposed() const { return engine_->log().Exposed(); }

uint64_t Log::ExposedMax() const { return engine_->log().exposed_max(); }

absl::Status Log::ConfirmEpoch(Deadline deadline) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().ConfirmEpoch(deadline);
}
absl::Status Log::OnEpochConfirmed(
    std::function<void(const absl::Status&)> callback) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckToForce());
  return engine_->log().OnEpochConfirmed(std::move(callback));
}

absl::StatusOr<bool> Log::OnResumed(
    std::function<void(const absl::Status&)> callback) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().OnResumed(std::move(callback));
}

absl::Status Log::Cleanup(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().Cleanup(lsn);
}
absl::Status Log::CleanupThrough(Lsn lsn) {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().CleanupThrough(lsn);
}
absl::Status Log::CleanupAll() {
  ALPHEUS_RETURN_IF_ERROR(engine_->CheckProcess());
  return engine_->log().CleanupAll();
}

absl::Status Log::ForEachRecovered(
    const std::function<absl::Status(const RecoveredRecord&)>& visit) const {
  return engine_->Recovered()->ForEach(visit);
}

RecoveredRange Log::Recovered() const {
  return RecoveredRange(engine_->Recovered());
}

absl::Status Log::CheckPayloads() const { return engine_->CheckPayloads(); }

const RecoveryReport& Log::report() const { return engine_->report(); }
DurabilityPlan Log::durability_plan() const {
  return engine_->durability_plan();
}

std::vector<LogEpoch> Log::epochs() const { return engine_->epochs(); }

ReplicationStatus Log::replication_status() const {
  return engine_->replication_status();
}

RecoveredRange::~RecoveredRange() {
  ALPHEUS_CHECK(status_was_read_ || std::uncaught_exceptions() > 0,
                "the status of recovered records must be read "
                "(recovered_range.h)");
}

RingOffset Reservation::offset() const {
  return record_.offset + kRecordHeaderBytes;
}

Epoch Reservation::epoch() const {
  ALPHEUS_CHECK(is_open(), "only an open reservation keeps its epoch (RL5)");
  return engine_->log().epoch();
}

void Reservation::Abort() {
  LogEngine* const engine = std::exchange(engine_, nullptr);
  if (engine == nullptr || engine->IsOfParent()) return;
  engine->log().Abort(record_);
}

void Reservation::Detach() {
  if (engine_ == nullptr || engine_->IsOfParent()) return;
  engine_->log().Detach(record_);
}

std::string RecoveryReport::ToString() const {
  std::string text =
      absl::StrCat("recovered LSN ", head_lsn.value, " to ", end_lsn.value,
                   ": ", records, " records, ", payload_bytes, " bytes");
  if (read_from_lsn > head_lsn) {
    absl::StrAppend(&text, " from LSN ", read_from_lsn.value,
                    " on, those before it unread");
  }
  if (cleaned_records + aborted_records > 0) {
    absl::StrAppend(&text, ", ", cleaned_records, " cleaned, ", aborted_records,
                    " aborted");
  }
  if (verdict == RecoveryVerdict::kTornTail) {
    absl::StrAppend(&text, "; torn tail: LSN ", torn_lsn.value, " at offset ",
                    torn_offset, " was never acknowledged and is cut");
    if (torn_completed_records > 0) {
      absl::StrAppend(&text, ", with ", torn_completed_records,
                      " completed records after it");
    }
  } else {
    absl::StrAppend(&text, "; complete",
                    was_closed_cleanly ? ", closed cleanly" : "");
  }
  absl::StrAppend(&text, "; epoch ", previous_epoch.value, " -> ", epoch.value);
  for (const std::string& repair : repairs) {
    absl::StrAppend(&text, "; repaired: ", repair);
  }
  for (const std::string& member : absent_members) {
    absl::StrAppend(&text, "; not in this epoch: ", member);
  }
  if (!shadow.empty()) absl::StrAppend(&text, "; ", shadow);
  if (!medium_warning.empty()) {
    absl::StrAppend(&text, "; warning: ", medium_warning);
  }
  if (!membership_warning.empty()) {
    absl::StrAppend(&text, "; warning: ", membership_warning);
  }
  if (!ballot_warning.empty()) {
    absl::StrAppend(&text, "; warning: ", ballot_warning);
  }
  return text;
}

}  // namespace alpheus
