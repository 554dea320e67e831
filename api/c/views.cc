// SPDX-License-Identifier: Apache-2.0
#include "api/c/views.h"

#include <utility>

namespace alpheus::c {

static_assert(ALPHEUS_RECOVERY_COMPLETE ==
              static_cast<int>(RecoveryVerdict::kComplete));
static_assert(ALPHEUS_RECOVERY_TORN_TAIL ==
              static_cast<int>(RecoveryVerdict::kTornTail));

alpheus_uuid ViewOf(const Uuid& uuid) { return {uuid.high, uuid.low}; }

TextsView::TextsView(std::vector<std::string> texts)
    : texts_(std::move(texts)) {
  pointers_.reserve(texts_.size());
  for (const std::string& text : texts_) pointers_.push_back(text.c_str());
}

ReportView::ReportView(const RecoveryReport& report)
    : repairs_(report.repairs), text_(report.ToString()) {
  view_.verdict = static_cast<alpheus_recovery_verdict>(report.verdict);
  view_.was_closed_cleanly = report.was_closed_cleanly;
  view_.log_id = ViewOf(report.log_id);
  view_.epoch = report.epoch.value;
  view_.previous_epoch = report.previous_epoch.value;
  view_.head_lsn = report.head_lsn.value;
  view_.end_lsn = report.end_lsn.value;
  view_.records = report.records;
  view_.cleaned_records = report.cleaned_records;
  view_.aborted_records = report.aborted_records;
  view_.payload_bytes = report.payload_bytes;
  view_.torn_lsn = report.torn_lsn.value;
  view_.torn_offset = report.torn_offset;
  view_.torn_completed_records = report.torn_completed_records;
  view_.repairs = repairs_.data();
  view_.repair_count = repairs_.size();
  view_.text = text_.c_str();
  view_.read_from_lsn = report.read_from_lsn.value;
}

RegionInfoView::RegionInfoView(const RegionInfo& info)
    : path_(info.path), single_faults_(info.single_faults) {
  epochs_.reserve(info.epochs.size());
  for (const EpochInfo& epoch : info.epochs) {
    epochs_.push_back({epoch.epoch.value, epoch.start_lsn.value});
  }
  view_.path = path_.c_str();
  view_.format_version = info.format_version;
  view_.has_writer = info.has_writer;
  view_.repairing = info.repairing;
  view_.closed_cleanly = info.closed_cleanly;
  view_.cluster_id = ViewOf(info.cluster_id);
  view_.log_id = ViewOf(info.log_id);
  view_.node = info.node.value;
  view_.incarnation = info.incarnation;
  view_.configuration_id = info.configuration_id;
  view_.replica_count = info.replica_count;
  view_.write_quorum = info.write_quorum;
  view_.region_bytes = info.region_bytes;
  view_.ring_offset = info.ring_offset;
  view_.ring_capacity = info.ring_capacity;
  view_.promised_epoch = info.promised_epoch.value;
  view_.log_epoch = info.log_epoch.value;
  view_.head_lsn = info.head_lsn.value;
  view_.head_offset = info.head_offset;
  view_.watermark_lsn = info.watermark_lsn.value;
  view_.epochs = epochs_.data();
  view_.epoch_count = epochs_.size();
  view_.single_faults = single_faults_.data();
  view_.single_fault_count = single_faults_.size();
}

VerificationView::VerificationView(const VerifyReport& report)
    : verdict_(report.verdict) {
  view_.verdict = verdict_.c_str();
  view_.end_lsn = report.end_lsn.value;
  view_.tail_offset = report.tail_offset;
  view_.proven_lsn = report.proven_lsn.value;
  view_.durable_lsn = report.durable_lsn.value;
  view_.data_records = report.data_records;
  view_.cleaned_records = report.cleaned_records;
  view_.aborted_records = report.aborted_records;
  view_.damaged_pads = report.damaged_pads;
  view_.payload_bytes = report.payload_bytes;
  view_.cut_records = report.cut_records;
}

}  // namespace alpheus::c
