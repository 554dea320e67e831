// SPDX-License-Identifier: Apache-2.0
// The composition root of local mode: region, persistence backend, recovery
// and ring log, wired by the medium of the region.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/node/log_engine.h"
#include "api/node/populator.h"
#include "api/node/service_thread.h"
#include "log/base/clock.h"
#include "log/base/mutant.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/base/waiter.h"
#include "log/core/format_region.h"
#include "log/core/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "recovery/local_opening.h"

namespace alpheus {
namespace {

// Delivers the recovered range; see recovered_range.h.
class RecoveredSource final : public RecoveredRange::Source {
 public:
  RecoveredSource(const Ring& ring, uint64_t ring_offset,
                  const EpochTable& table, const LogPosition& head, Lsn end_lsn,
                  std::string name)
      // Open has just checked the payloads.
      : cursor_(ring, table, head, head.offset + ring.capacity(),
                RecordCursor::Payloads::kTrust),
        ring_(ring),
        ring_offset_(ring_offset),
        end_lsn_(end_lsn),
        name_(std::move(name)) {}

  // Each is read when it is shown: what was cleaned and overwritten since the
  // last one must not be taken for a record.
  bool Next(RecoveredRecord* record) override {
    while (status_.ok() && cursor_.position().lsn <= end_lsn_) {
      const LogPosition at = cursor_.position();
      if (cursor_.Next() != RecordCursor::Step::kRecord) {
        if (!IsMutant(Mutant::kBadRecordIsTheEnd)) status_ = Unreadable(at);
        return false;
      }
      const RecordView& view = cursor_.record();
      if (view.cleaned || view.aborted()) continue;
      *record = {view.lsn(), view.epoch(), view.payload};
      return true;
    }
    return false;
  }

  absl::Status status() const override { return status_; }

 private:
  absl::Status Unreadable(const LogPosition& at) const {
    return absl::DataLossError(absl::StrCat(
        name_, ": LSN ", at.lsn.value, " at offset ",
        ring_offset_ + ring_.Place(at.offset),
        " was recovered but can't be read any more; the recovered log goes on "
        "to LSN ",
        end_lsn_.value, ". Take what is left with `alpheus salvage`"));
  }

  RecordCursor cursor_;
  const Ring ring_;
  const uint64_t ring_offset_;
  const Lsn end_lsn_;
  const std::string name_;
  absl::Status status_;
};

RecoveryReport MakeReport(const OpenedEpoch& opened) {
  RecoveryReport report;
  const ScanResult& scan = opened.scan;
  const Superline& superline = opened.start.superline;
  report.log_id = superline.log_id;
  report.epoch = opened.epoch;
  report.previous_epoch = opened.previous_epoch;
  report.was_closed_cleanly = opened.was_closed_cleanly;
  report.head_lsn = opened.head.lsn;
  report.end_lsn = scan.end.lsn - 1;
  report.records = scan.data_records;
  report.cleaned_records = scan.cleaned_records;
  report.aborted_records = scan.aborted_records;
  report.payload_bytes = scan.payload_bytes;
  report.repairs = opened.repairs;
  if (scan.verdict == TailVerdict::kTorn) {
    const Ring ring(nullptr, superline.ring_capacity);
    report.verdict = RecoveryVerdict::kTornTail;
    report.torn_lsn = scan.end.lsn;
    report.torn_offset = superline.ring_offset + ring.Place(scan.end.offset);
    report.torn_completed_records = scan.cut_records;
  }
  return report;
}

template <Persistence P>
class LocalEngine final : public LogEngine {
 public:
  LocalEngine(Region region, std::unique_ptr<P> pmem, const OpenedEpoch& opened,
              const LogOptions& options)
      : region_(std::move(region)),
        pmem_(std::move(pmem)),
        waiter_(Clock::Real()),
        recovered_end_(opened.start.end.lsn - 1),
        ring_offset_(opened.start.superline.ring_offset),
        report_(MakeReport(opened)),
        log_(*pmem_, region_.bytes(), opened.start,
             {region_.path(), options.exposure_records_max}, Clock::Real(),
             waiter_),
        service_(
            [this] { return log_.Poll() == IdleKeeper<P>::Next::kPollAgain; },
            log_.progress(), waiter_,
            std::chrono::microseconds(options.idle_force_us)) {}

  absl::Status StartService() { return service_.Start(); }

  absl::StatusOr<ReservedRecord> Reserve(size_t bytes,
                                         Deadline deadline) override {
    return log_.Reserve(bytes, deadline);
  }
  absl::Status Copy(ReservedRecord& record, size_t offset,
                    std::span<const std::byte> bytes) override {
    return log_.Copy(record, offset, bytes);
  }
  absl::Status Complete(ReservedRecord& record) override {
    return log_.Complete(record);
  }
  void Abort(const ReservedRecord& record) override { log_.Abort(record); }
  void HandOver(ReservedRecord& record) override { log_.HandOver(record); }
  absl::Status Force(Lsn lsn, const ForceOptions& options) override {
    return log_.Force(lsn, {options.frequency, options.group},
                      options.deadline);
  }
  absl::StatusOr<Lsn> Append(std::span<const std::span<const std::byte>> parts,
                             const ForceOptions& options) override {
    return log_.Append(parts, {options.frequency, options.group},
                       options.deadline);
  }
  absl::Status WaitDurable(Lsn lsn, Deadline deadline) override {
    return log_.WaitDurable(lsn, deadline);
  }
  absl::Status OnDurable(Lsn lsn, DurableCallback callback) override {
    return log_.OnDurable(lsn, std::move(callback));
  }
  absl::Status Cleanup(Lsn lsn) override { return log_.Cleanup(lsn); }
  absl::Status CleanupThrough(Lsn lsn) override {
    return log_.CleanupThrough(lsn);
  }
  absl::Status CleanupAll() override { return log_.CleanupAll(); }
  absl::Status Close() override {
    // Close wants to be alone with the log.
    service_.Stop();
    absl::Status closed = log_.Close();
    if (!absl::IsFailedPrecondition(closed)) return closed;
    // Refused: the log goes on.
    const absl::Status started = service_.Start();
    if (started.ok()) return closed;
    return absl::FailedPreconditionError(
        absl::StrCat(closed.message(),
                     "; it now idles without a thread: ", started.message()));
  }

  Lsn durable_lsn() const override { return log_.durable_lsn(); }
  Lsn next_lsn() const override { return log_.next_lsn(); }
  Lsn head_lsn() const override { return log_.head_lsn(); }
  size_t payload_bytes_max() const override {
    return PayloadBytesMax(log_.ring().capacity());
  }
  uint64_t Exposed() const override { return log_.Exposed(); }
  uint64_t exposed_max() const override { return log_.exposed_max(); }
  std::unique_ptr<RecoveredRange::Source> Recovered() const override {
    return std::make_unique<RecoveredSource>(log_.ring(), ring_offset_,
                                             log_.table(), log_.head(),
                                             recovered_end_, region_.path());
  }
  const RecoveryReport& report() const override { return report_; }

 private:
  Region region_;
  std::unique_ptr<P> pmem_;
  FutexWaiter waiter_;
  const Lsn recovered_end_;
  const uint64_t ring_offset_;
  const RecoveryReport report_;
  RingLog<P> log_;
  ServiceThread service_;  // stops before the log goes
};

template <Persistence P>
absl::StatusOr<std::unique_ptr<LogEngine>> OpenWith(Region region,
                                                    std::unique_ptr<P> pmem,
                                                    const LogOptions& options) {
  EntropyRandom random;
  LocalOpeningOptions opening;
  opening.name = region.path();
  opening.expected_log_id = options.expected_log_id;
  opening.cleanup_through = options.cleanup_through;
  const Populator populator(region.medium() == RegionMedium::kAnonymous
                                ? std::span<std::byte>()
                                : region.bytes());
  ALPHEUS_ASSIGN_OR_RETURN(
      const OpenedEpoch opened,
      OpenEpochLocally(*pmem, region.bytes(), opening, random));
  auto engine = std::make_unique<LocalEngine<P>>(
      std::move(region), std::move(pmem), opened, options);
  ALPHEUS_RETURN_IF_ERROR(engine->StartService());
  return engine;
}

absl::StatusOr<Region> FormattedAnonymousRegion(uint64_t bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout, Layout::ForRegion(bytes));
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::Anonymous(bytes));
  EntropyRandom random;
  const FormatIdentity identity = NewLocalIdentity(random);
  LibpmemPersistence pmem({});
  ALPHEUS_RETURN_IF_ERROR(FormatRegion(pmem, region.bytes(), layout, identity));
  return region;
}

absl::Status CheckOptions(const LogOptions& options) {
  if (options.exposure_records_max < 2 ||
      options.exposure_records_max > (1u << 20)) {
    return absl::InvalidArgumentError(absl::StrCat("exposure_records_max ",
                                                   options.exposure_records_max,
                                                   ": must be 2 to 1048576"));
  }
  if (options.emulated_latency_ns > 1'000'000) {
    return absl::InvalidArgumentError(absl::StrCat("emulated_latency_ns ",
                                                   options.emulated_latency_ns,
                                                   ": must be 0 to 1000000"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogEngine>> OpenLocalEngine(
    const LogOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(CheckOptions(options));
  ALPHEUS_ASSIGN_OR_RETURN(
      Region region, options.path.empty()
                         ? FormattedAnonymousRegion(options.anonymous_bytes)
                         : Region::OpenForWriting(options.path));
  if (region.medium() == RegionMedium::kFile) {
    const std::string path = region.path();
    return OpenWith(std::move(region), std::make_unique<MsyncPersistence>(path),
                    options);
  }
  LibpmemPersistence::Options pmem;
  pmem.auto_flush = LibpmemPersistence::DetectAutoFlush();
  pmem.emulated_latency_ns = options.emulated_latency_ns;
  return OpenWith(std::move(region), std::make_unique<LibpmemPersistence>(pmem),
                  options);
}

}  // namespace alpheus
