// SPDX-License-Identifier: Apache-2.0
// region_report: the output of `inspect` and `verify`, for people and as JSON.
#ifndef ALPHEUS_TOOLS_CLI_REPORTS_REGION_REPORT_H_
#define ALPHEUS_TOOLS_CLI_REPORTS_REGION_REPORT_H_

#include <string>

#include "absl/status/status.h"
#include "alpheus/log_reader.h"
#include "tools/cli/io/json_output.h"

namespace alpheus::cli {

// Returns the verdict on a region whose superline, table or watermark can't be
// read, so that it has no RegionInfo and no VerifyReport.
Json DescribeUnreadable(const std::string& file, const absl::Status& error);

// Returns superline, epochs, head and watermark.
Json DescribeRegion(const RegionInfo& info);
std::string RegionText(const RegionInfo& info);

// Returns verdict, end and counts by type.
Json DescribeRecords(const VerifyReport& report);
std::string RecordsText(const VerifyReport& report);

// Returns one line: file, verdict and counts.
std::string VerdictText(const RegionInfo& info, const VerifyReport& report);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_REPORTS_REGION_REPORT_H_
