// SPDX-License-Identifier: Apache-2.0
#include "api/log/log_engine.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/log/recovered_source.h"
#include "log/base/status_macros.h"
#include "log/core/read/record_cursor.h"
#include "log/core/read/region_check.h"
#include "log/format/epoch_table.h"
#include "log/pmem/libpmem_persistence.h"
#include "quorum/arithmetic/ballot.h"

namespace alpheus {
namespace {

constexpr int64_t kCheckNanos = 500'000'000;

// Anonymous memory was touched when it was filled.
TailPages::MapPages WayToMap(const Region& region) {
  const bool is_mapped_by_need =
      region.medium() == RegionMedium::kPersistentMemory &&
      !region.is_shadowed();
  return is_mapped_by_need ? TailPages::MapPages(PopulateForReading) : nullptr;
}

// Threads that wait for backups should not keep a core that the backups may
// need.
FutexWaiter::Patience PatienceOf(const LogOptions& options,
                                 bool is_replicated) {
  if (!is_replicated) return {};
  return {.spins = 0, .yields = options.replication.yields};
}

}  // namespace

LogEngine::LogEngine(Region region, const RingLogStart& start,
                     RecoveryReport report, const LogOptions& options,
                     std::unique_ptr<EngineReplication> replication,
                     MakeRing make_ring)
    : region_(std::move(region)),
      replication_(std::move(replication)),
      waiter_(Clock::Real(), PatienceOf(options, replication_ != nullptr)),
      is_watched_(region_.is_watched()),
      is_shared_(replication_ != nullptr ||
                 region_.medium() != RegionMedium::kAnonymous),
      has_own_replica_(replication_ == nullptr || !options.path.empty()),
      recovered_end_(start.end.lsn - 1),
      read_from_(start.read_from),
      ring_offset_(start.superline.ring_offset),
      report_(std::move(report)),
      ring_(make_ring(region_.bytes(), OptionsOf(options), waiter_)),
      tail_pages_(log().ring(), log().tail(), WayToMap(region_)),
      service_(ServiceWork(), log().progress(), log().waiter(),
               std::chrono::microseconds(options.idle_force_us)),
      has_thread_(options.idle_force_us != 0) {
  if (replication_ != nullptr) replication_->ClaimReplica(*this, *this);
}

LogEngine::~LogEngine() {
  region_end_.is_suspect = !is_released_.load(std::memory_order_acquire) &&
                           !log().MediumError().ok();
}

ServiceThread::Work LogEngine::ServiceWork() {
  return {
      [this] {
        const Polled polled = log().Poll();
        tail_pages_.KeepAhead(log().tail());
        return polled;
      },
      [this](uint32_t seen, Deadline until) { log().WaitForWork(seen, until); },
      [this](Deadline until, const std::atomic<uint32_t>& stop) {
        return log().WaitForAcks(until, stop);
      },
      [this] { return RecheckFile(); }};
}

RingLogOptions LogEngine::OptionsOf(const LogOptions& options) const {
  RingLogOptions ring;
  ring.name = region_.path();
  ring.exposure_records_max = options.exposure_records_max;
  if (replication_ != nullptr) {
    ring.sink = &replication_->sink();
    ring.flush_order = options.replication.flush_order;
  }
  return ring;
}

void LogEngine::CountRecovered() {
  const LogPosition head = log().head();
  const LogPosition& from = read_from_.lsn > head.lsn ? read_from_ : head;
  report_.read_from_lsn = from.lsn;
  RecordCursor cursor(log().ring(), log().table(), from,
                      head.offset + log().ring().capacity(),
                      RecordCursor::Payloads::kTrust);
  while (cursor.position().lsn <= recovered_end_ &&
         cursor.Next() == RecordCursor::Step::kRecord) {
    const RecordView& record = cursor.record();
    report_.cleaned_records += record.cleaned ? 1 : 0;
    report_.aborted_records += !record.cleaned && record.aborted() ? 1 : 0;
    if (record.cleaned || record.aborted()) continue;
    ++report_.records;
    report_.payload_bytes += record.payload.size();
  }
  report_.moments.opened_ns = Clock::Real().NowNanos();
}

void LogEngine::DescribeOwn(ReplicaDurability* own) const {
  own->is_own = true;
  own->in_sync = true;
  switch (region_.medium()) {
    case RegionMedium::kAnonymous:
      own->medium = DurabilityMedium::kProcessMemory;
      return;
    case RegionMedium::kFile:
      own->medium = DurabilityMedium::kFile;
      own->steps = {"msync"};
      return;
    case RegionMedium::kPersistentMemory:
      break;
  }
  own->medium = region_.is_shadowed() ? DurabilityMedium::kShadow
                                      : DurabilityMedium::kPersistentMemory;
  if (region_.is_shadowed()) own->steps.emplace_back("copy");
  // With eADR the caches are kept, and libpmem flushes nothing.
  if (!LibpmemPersistence::DetectAutoFlush()) own->steps.emplace_back("flush");
  own->steps.emplace_back("fence");
}

DurabilityPlan LogEngine::durability_plan() const {
  DurabilityPlan plan;
  if (IsOfParent()) return plan;
  if (replication_ == nullptr) {
    DescribeOwn(&plan.members.emplace_back());
    return plan;
  }
  plan = replication_->durability_plan();
  for (ReplicaDurability& member : plan.members) {
    if (member.is_own) DescribeOwn(&member);
  }
  return plan;
}

std::vector<LogEpoch> LogEngine::epochs() const {
  std::vector<LogEpoch> epochs;
  if (IsOfParent()) return epochs;
  // Read before the table: an epoch that begins meanwhile begins behind it.
  const Lsn end = log().next_lsn() - 1;
  const EpochTable& table = log().table();
  for (const EpochEntry& entry : table.entries()) {
    const bool is_running = &entry == &table.entries().back();
    epochs.push_back(
        {entry.epoch,
         replication_ == nullptr ? 0 : quorum::BallotNode(entry.epoch).value,
         entry.start_lsn,
         is_running ? std::max(end, entry.start_lsn - 1)
                    : table.EndOf(&entry) - 1});
  }
  return epochs;
}

absl::Status LogEngine::Close() {
  ALPHEUS_RETURN_IF_ERROR(CheckProcess());
  // Close wants to be alone with the log.
  service_.Stop();
  absl::Status closed = log().Close();
  if (!absl::IsFailedPrecondition(closed)) return closed;
  // Refused: the log continues.
  const absl::Status started = service_.Start();
  if (started.ok()) return closed;
  return absl::FailedPreconditionError(absl::StrCat(
      closed.message(),
      "; while it is idle it now has no thread: ", started.message()));
}

absl::StatusOr<bool> LogEngine::CopyNext(TailPlace& place) const {
  ALPHEUS_RETURN_IF_ERROR(CheckProcess());
  absl::StatusOr<bool> copied = log().CopyNext(place);
  ALPHEUS_RETURN_IF_ERROR(CheckPayloads());
  return copied;
}

absl::Status LogEngine::CheckPayloads() const {
  ALPHEUS_RETURN_IF_ERROR(CheckProcess());
  std::atomic_thread_fence(std::memory_order_acquire);
  if (is_released_.load(std::memory_order_acquire)) return RegionReleased();
  return absl::OkStatus();
}

std::unique_ptr<RecoveredRange::Source> LogEngine::Recovered() const {
  const EpochTable& table = log().table();  // before the head (RCL6)
  return std::make_unique<RecoveredSource>(
      log().ring(), ring_offset_, table, log().head(), read_from_,
      recovered_end_, is_released_, region_.path());
}

absl::Status LogEngine::AskChange(recovery::SuccessionRequest request) {
  ALPHEUS_RETURN_IF_ERROR(CheckProcess());
  if (replication_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(region_.path(), ": a local log has no members to change"));
  }
  return replication_->AskChange(std::move(request));
}

absl::Status LogEngine::OfParent() const {
  return absl::FailedPreconditionError(
      absl::StrCat(region_.path(),
                   ": this process is a fork's child, and its parent opened "
                   "the log. Nothing was changed; open the log again in the "
                   "child, after the parent has closed it"));
}

absl::Status LogEngine::RegionReleased() const {
  return absl::AbortedError(
      absl::StrCat(region_.path(),
                   ": the replica was released for another primary; open "
                   "the log again"));
}

Deadline LogEngine::RecheckFile() {
  if (!is_watched_) return Deadline();
  const int64_t now = Clock::Real().NowNanos();
  const int64_t due = recheck_at_.load(std::memory_order_relaxed);
  if (now < due) return Deadline::AtNanos(due);
  const MutexLock lock(region_mutex_);
  recheck_at_.store(now + kCheckNanos, std::memory_order_relaxed);
  if (!is_released_.load(std::memory_order_relaxed)) {
    CheckRegionFile(region_, report_.log_id);
  }
  return Deadline::AtNanos(now + kCheckNanos);
}

absl::Status LogEngine::ReleaseRegion() {
  // A process that takes the region over must know that it is suspect (ND3,
  // hosted_logs.h), and nothing could tell it: so keep the region.
  ALPHEUS_RETURN_IF_ERROR(log().MediumError());
  // First: readers must know, before others write there.
  is_released_.store(true, std::memory_order_seq_cst);
  const MutexLock lock(region_mutex_);
  return region_.Detach();
}

}  // namespace alpheus
