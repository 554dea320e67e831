// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/log_harness.h"

#include <cstdio>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/core/format_region.h"
#include "log/core/region_state.h"
#include "log/core/scan.h"
#include "log/format/layout.h"

namespace alpheus::testing {
namespace {

Layout LayoutOf(const LogHarness::Options& options) {
  return *Layout::ForRing(options.ring_capacity, options.table_capacity);
}

}  // namespace

LogHarness::LogHarness(const Options& options)
    : options_(options),
      random_(options.seed),
      pmem_(LayoutOf(options).region_bytes) {
  const absl::Status formatted = FormatRegion(
      pmem_, pmem_.region(), LayoutOf(options), NewLocalIdentity(random_));
  ALPHEUS_CHECK(formatted.ok(), "modelled memory does not fail unasked");
}

LogHarness::~LogHarness() = default;

absl::Status LogHarness::Open(Lsn cleanup_through) {
  Drop();
  LocalOpeningOptions opening;
  opening.name = "model";
  opening.cleanup_through = cleanup_through;
  ALPHEUS_ASSIGN_OR_RETURN(
      opened_, OpenEpochLocally(pmem_, pmem_.region(), opening, random_));
  log_ = std::make_unique<RingLog<ModelPersistence>>(
      pmem_, pmem_.region(), opened_->start,
      RingLogOptions{"model", options_.exposure_records_max}, clock_, waiter_);
  return absl::OkStatus();
}

void LogHarness::PowerCut() {
  Drop();
  pmem_.Reset(pmem_.CutKeepingNone());
}

Lsn LogHarness::Append(std::string_view text) {
  const std::span<const std::byte> part = AsBytes(text);
  const absl::StatusOr<Lsn> lsn = log_->Append({&part, 1}, 1, Deadline());
  if (!lsn.ok()) std::fprintf(stderr, "%s\n", lsn.status().ToString().c_str());
  ALPHEUS_CHECK(lsn.ok(), "the append of a test's set-up succeeds");
  return *lsn;
}

std::vector<std::string> LogHarness::Recovered() const {
  return LivePayloads({const_cast<ModelPersistence&>(pmem_).region()});
}

std::vector<std::string> LivePayloads(std::span<std::byte> region) {
  const absl::StatusOr<RegionState> state = ReadRegionState(region, "model");
  ALPHEUS_CHECK(state.ok(), "the region can be read");
  std::vector<std::string> payloads;
  ScanLog(ScanInputOf(region, *state),
          [&payloads](const LogPosition&, const RecordView& record) {
            if (record.cleaned || record.aborted()) return;
            payloads.emplace_back(AsText(record.payload));
          });
  return payloads;
}

}  // namespace alpheus::testing
