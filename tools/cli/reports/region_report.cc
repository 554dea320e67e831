// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/reports/region_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace alpheus::cli {
namespace {

template <class... Parts>
void AddRow(std::string* text, const char* name, const Parts&... parts) {
  absl::StrAppendFormat(text, "%-17s ", name);
  absl::StrAppend(text, parts..., "\n");
}

const char* YesOrNo(bool value) { return value ? "yes" : "no"; }

// A node has its replicas open as long as it runs, and marks none of them. A
// local log is of node 0, and has a cluster id of its own.
std::string CleanCloseText(const RegionInfo& info) {
  if (info.closed_cleanly || info.node == NodeId(0)) {
    return YesOrNo(info.closed_cleanly);
  }
  return "no mark: a replica of a cluster needs none, as an opening compares "
         "the replicas";
}

// One region does not show whether these records count: only an opening cuts
// (docs/glossary.md).
std::string RecordsAfterText(const VerifyReport& report) {
  if (report.verdict == "corrupt") {
    return absl::StrCat(report.cut_records, " after the damage, not counted");
  }
  return absl::StrCat(report.cut_records,
                      " after the torn end, never acknowledged");
}

void AddStatus(const absl::Status& status, Json* json) {
  (*json)["status"] = absl::StatusCodeToString(status.code());
  (*json)["message"] = std::string(status.message());
}

Json DescribeEpochs(const RegionInfo& info) {
  Json epochs = Json::array();
  for (const EpochInfo& epoch : info.epochs) {
    Json entry;
    entry["epoch"] = epoch.epoch.value;
    entry["start_lsn"] = epoch.start_lsn.value;
    epochs.push_back(entry);
  }
  return epochs;
}

}  // namespace

Json DescribeUnreadable(const std::string& file, const absl::Status& error) {
  Json json;
  json["file"] = file;
  json["verdict"] = "unreadable";
  AddStatus(error, &json);
  return json;
}

Json DescribeRegion(const RegionInfo& info) {
  Json json;
  json["file"] = info.path;
  json["format_version"] = info.format_version;
  json["has_writer"] = info.has_writer;
  json["cluster_id"] = info.cluster_id.ToString();
  json["log_id"] = info.log_id.ToString();
  json["node"] = info.node.value;
  json["incarnation"] = info.incarnation;
  json["configuration_id"] = info.configuration_id;
  json["replica_count"] = info.replica_count;
  json["write_quorum"] = info.write_quorum;
  json["region_bytes"] = info.region_bytes;
  json["ring_offset"] = info.ring_offset;
  json["ring_capacity"] = info.ring_capacity;
  json["promised_epoch"] = info.promised_epoch.value;
  json["log_epoch"] = info.log_epoch.value;
  json["repairing"] = info.repairing;
  json["closed_cleanly"] = info.closed_cleanly;
  json["is_backup"] = info.is_backup;
  json["epochs"] = DescribeEpochs(info);
  json["head_lsn"] = info.head_lsn.value;
  json["head_offset"] = info.head_offset;
  json["watermark_lsn"] = info.watermark_lsn.value;
  json["single_faults"] = info.single_faults;
  return json;
}

std::string RegionText(const RegionInfo& info) {
  std::string text;
  AddRow(&text, "region", info.path, ", ", info.region_bytes,
         " bytes, format version ", info.format_version);
  AddRow(&text, "log id", info.log_id.ToString());
  AddRow(&text, "cluster id", info.cluster_id.ToString());
  if (info.is_backup) {
    AddRow(&text, "backup", "of the records from LSN ", info.head_lsn.value,
           " to ", std::max(info.watermark_lsn, info.head_lsn - 1).value,
           ", and no replica");
  } else {
    AddRow(&text, "replica", "node ", info.node.value, ", incarnation ",
           info.incarnation);
  }
  AddRow(&text, "configuration", info.configuration_id, ": ",
         info.replica_count, " replicas, write quorum ", info.write_quorum);
  AddRow(&text, "ring", info.ring_capacity, " bytes at offset ",
         info.ring_offset);
  AddRow(&text, "epoch", info.log_epoch.value, ", promised ",
         info.promised_epoch.value);
  AddRow(&text, "open for writing", YesOrNo(info.has_writer));
  AddRow(&text, "closed cleanly", CleanCloseText(info));
  AddRow(&text, "repairing", YesOrNo(info.repairing));
  AddRow(&text, "head", "LSN ", info.head_lsn.value, " at ring offset ",
         info.head_offset);
  AddRow(&text, "watermark", "LSN ", info.watermark_lsn.value);
  for (const EpochInfo& epoch : info.epochs) {
    AddRow(&text, "  epoch", epoch.epoch.value, " from LSN ",
           epoch.start_lsn.value);
  }
  for (const std::string& fault : info.single_faults) {
    AddRow(&text, "fault", fault);
  }
  return text;
}

Json DescribeRecords(const VerifyReport& report) {
  Json json;
  json["verdict"] = report.verdict;
  AddStatus(report.status, &json);
  json["end_lsn"] = report.end_lsn.value;
  json["tail_offset"] = report.tail_offset;
  json["proven_lsn"] = report.proven_lsn.value;
  json["durable_lsn"] = report.durable_lsn.value;
  json["data_records"] = report.data_records;
  json["cleaned_records"] = report.cleaned_records;
  json["aborted_records"] = report.aborted_records;
  json["damaged_pads"] = report.damaged_pads;
  json["payload_bytes"] = report.payload_bytes;
  json["cut_records"] = report.cut_records;
  return json;
}

std::string RecordsText(const VerifyReport& report) {
  std::string text;
  AddRow(&text, "tail", "last readable LSN ", report.end_lsn.value,
         ", ring offset after it ", report.tail_offset);
  AddRow(&text, "proven", "persisted here for certain up to LSN ",
         report.proven_lsn.value);
  AddRow(&text, "durable", "on W replicas for certain up to LSN ",
         report.durable_lsn.value);
  AddRow(&text, "data records", report.data_records, " with ",
         report.payload_bytes, " bytes");
  AddRow(&text, "cleaned records", report.cleaned_records);
  AddRow(&text, "aborted records", report.aborted_records);
  AddRow(&text, "damaged pads", report.damaged_pads);
  if (report.cut_records > 0) {
    AddRow(&text, "more records", RecordsAfterText(report));
  }
  AddRow(&text, "verdict", report.verdict);
  return text;
}

std::string VerdictText(const RegionInfo& info, const VerifyReport& report) {
  std::string text = absl::StrCat(
      info.path, ": ", report.verdict, ": ", report.data_records,
      " data records with ", report.payload_bytes, " bytes, ",
      report.cleaned_records, " cleaned, ", report.aborted_records,
      " aborted, LSN ", info.head_lsn.value, " to ", report.end_lsn.value);
  if (report.cut_records > 0) {
    absl::StrAppend(&text, "; ", RecordsAfterText(report));
  }
  absl::StrAppend(&text, "\n");
  for (const std::string& fault : info.single_faults) {
    absl::StrAppend(&text, info.path, ": ", fault, "\n");
  }
  return text;
}

}  // namespace alpheus::cli
