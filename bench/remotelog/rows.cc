// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/rows.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::bench::remotelog {
namespace {

// In the words of `alpheus plan --all`.
std::string NameOf(const replication::TableRow& row,
                   const replication::Platform& platform) {
  constexpr const char* kDomains[] = {"dmp", "mhp", "wsp"};
  constexpr const char* kOperations[] = {"write", "writeimm", "send"};
  return absl::StrCat(
      kDomains[static_cast<size_t>(platform.domain)], ",",
      platform.ddio ? "on" : "off", ",",
      platform.receive_buffers == replication::ReceiveBuffers::kPmem ? "pm"
                                                                     : "dram",
      ",", replication::UpdateKindName(row.kind), ",",
      kOperations[static_cast<size_t>(row.operation)]);
}

// The estimate for a row with atomic WRITE; false if it has none.
bool Estimate(const BenchRow& row, BenchRow* estimate) {
  bool has_atomic = false;
  *estimate = row;
  estimate->name += ",estimate";
  for (replication::Step& step : estimate->steps) {
    if (step.action != replication::StepAction::kRequesterWriteAtomic) continue;
    step.action = replication::StepAction::kRequesterWrite;
    has_atomic = true;
  }
  return has_atomic;
}

}  // namespace

std::vector<BenchRow> BenchRows() {
  std::vector<BenchRow> rows;
  for (const replication::TableRow& of_table : replication::RowsOfTable()) {
    const replication::Platform platform =
        replication::PlatformOfTable(of_table.configuration);
    BenchRow row{.name = NameOf(of_table, platform),
                 .platform = platform,
                 .steps = {of_table.steps.begin(), of_table.steps.end()}};
    BenchRow estimate;
    const bool has_estimate = Estimate(row, &estimate);
    rows.push_back(std::move(row));
    if (has_estimate) rows.push_back(std::move(estimate));
  }
  return rows;
}

}  // namespace alpheus::bench::remotelog
