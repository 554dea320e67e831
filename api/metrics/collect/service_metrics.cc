// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/service_metrics.h"

#include <cstddef>
#include <string>

#include "api/metrics/model/catalogue.h"
#include "api/service/log/finding.h"
#include "api/service/log/log_counts.h"

namespace alpheus::metrics {
namespace {

using service::Finding;

// Whether the finding refuses a request.
bool IsRefusal(Finding finding) {
  return finding != Finding::kAppended && finding != Finding::kRepeated &&
         finding != Finding::kNever;
}

void AddCounts(const std::string& log, const service::LogCounts& counts,
               Families* families) {
  const Labels of_log = {{"log", log}};
  families->Add(kAppendedRecords, of_log, counts.appended_records());
  families->Add(kAppendedBytes, of_log, counts.appended_bytes());
  families->Add(kRepeats, of_log, counts.told(Finding::kRepeated));
  for (size_t i = 0; i < service::kFindingCount; ++i) {
    const auto finding = static_cast<Finding>(i);
    if (!IsRefusal(finding)) continue;
    families->Add(
        kRefusals,
        {{"log", log}, {"reason", std::string(service::NameOf(finding))}},
        counts.told(finding));
  }
  for (size_t i = 0; i < service::kAppendStageCount; ++i) {
    const auto stage = static_cast<service::AppendStage>(i);
    families->Add(
        kStageSeconds,
        {{"log", log}, {"stage", std::string(service::NameOf(stage))}},
        counts.stage(stage));
  }
}

}  // namespace

void AddServiceMetrics(service::ServedLogs& logs, Families* families) {
  for (const auto& [name, is_served] : logs.List()) {
    const Labels of_log = {{"log", name}};
    families->Add(kLogServed, of_log, uint64_t{is_served ? 1U : 0U});
    AddCounts(name, logs.counts(name), families);
    // While there is a use, the log stays open.
    const service::LogUse use = logs.Use(name);
    if (!use) continue;
    families->Add(kOpenClients, of_log, use->service().clients());
    families->Add(kKnownClients, of_log, use->service().known_clients());
    families->Add(kStreams, of_log, use->guests());
  }
}

}  // namespace alpheus::metrics
