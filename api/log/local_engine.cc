// SPDX-License-Identifier: Apache-2.0
// The composition root of local mode: region, persistence backend, recovery
// and ring log, wired by the medium of the region.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/log/log_engine.h"
#include "api/wiring/populator.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/pmem/file_lock.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"

namespace alpheus {
namespace {

RecoveryReport MakeReport(const recovery::OpenedEpoch& opened) {
  RecoveryReport report;
  const ScanResult& scan = opened.scan;
  const Superline& superline = opened.start.superline;
  report.log_id = superline.log_id;
  report.epoch = opened.epoch;
  report.previous_epoch = opened.previous_epoch;
  report.was_closed_cleanly = opened.was_closed_cleanly;
  report.head_lsn = opened.head.lsn;
  report.end_lsn = scan.end.lsn - 1;
  report.read_from_lsn = opened.start.read_from.lsn;
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
absl::StatusOr<std::unique_ptr<LogEngine>> OpenWith(Region region,
                                                    std::unique_ptr<P> pmem,
                                                    const LogOptions& options) {
  EntropyRandom random;
  recovery::LocalOpeningOptions opening;
  opening.name = region.path();
  opening.expected_log_id = options.expected_log_id;
  opening.cleanup_through = options.cleanup_through;
  opening.file = region.file();
  const Populator populator(region.medium() == RegionMedium::kAnonymous
                                ? std::span<std::byte>()
                                : region.bytes(),
                            region.is_in_page_cache());
  ALPHEUS_ASSIGN_OR_RETURN(
      const recovery::OpenedEpoch opened,
      recovery::OpenEpochLocally(*pmem, region.bytes(), opening, random));
  RecoveryReport report = MakeReport(opened);
  report.medium_warning = region.warning();
  auto engine =
      std::make_unique<LogEngine>(std::move(region), std::move(pmem),
                                  opened.start, std::move(report), options);
  ALPHEUS_RETURN_IF_ERROR(engine->StartService());
  return engine;
}

// Adds the node to the error. A node's replica belongs to its alpheusd, or to a
// primary to which that released it; its log is written through the cluster.
absl::Status WithNodeOfReplica(const absl::Status& locked,
                               const std::string& path) {
  const std::optional<int64_t> holder = WriterLockHolder(path);
  const absl::Status by_whom =
      holder ? absl::FailedPreconditionError(
                   absl::StrCat(locked.message(), "; it is process ", *holder))
             : locked;
  const absl::StatusOr<Region> region = Region::OpenForReading(path);
  if (!region.ok()) return by_whom;
  const auto state = ReadRegionState(region->bytes(), path);
  if (!state.ok() || state->superline.node == NodeId(0)) return by_whom;
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": this is the replica of node ", state->superline.node.value,
      " of a cluster. alpheusd or a primary of this machine",
      DescribeLockHolder(path),
      " has it open. Give --cluster and --log instead of the file "
      "(LogOptions::replication)"));
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

}  // namespace

absl::Status CheckEngineOptions(const LogOptions& options) {
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

absl::StatusOr<std::unique_ptr<LogEngine>> OpenLocalEngine(
    const LogOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(CheckEngineOptions(options));
  absl::StatusOr<Region> opened =
      options.path.empty() ? FormattedAnonymousRegion(options.anonymous_bytes)
                           : Region::OpenForWriting(options.path);
  if (absl::IsFailedPrecondition(opened.status())) {
    return WithNodeOfReplica(opened.status(), options.path);
  }
  ALPHEUS_RETURN_IF_ERROR(opened.status());
  Region region = *std::move(opened);
  if (region.medium() == RegionMedium::kFile) {
    const std::string path = region.path();
    auto pmem = std::make_unique<MsyncPersistence>(
        path, MsyncPersistence::SyncPages, region.alarm());
    return OpenWith(std::move(region), std::move(pmem), options);
  }
  LibpmemPersistence::Options pmem;
  pmem.auto_flush = LibpmemPersistence::DetectAutoFlush();
  pmem.emulated_latency_ns = options.emulated_latency_ns;
  pmem.alarm = region.alarm();
  return OpenWith(std::move(region), std::make_unique<LibpmemPersistence>(pmem),
                  options);
}

}  // namespace alpheus
