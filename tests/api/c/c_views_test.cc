// SPDX-License-Identifier: Apache-2.0
// A view that the C interface lends holds every field of its source: each has a
// value of its own here.
#include <gtest/gtest.h>

#include "api/c/views.h"

namespace alpheus::c {
namespace {

bool operator==(const alpheus_uuid& a, const Uuid& b) {
  return a.high == b.high && a.low == b.low;
}

TEST(CViewsTest, ReportHoldsEveryField) {
  RecoveryReport report;
  report.verdict = RecoveryVerdict::kTornTail;
  report.log_id = {1, 2};
  report.epoch = Epoch(3);
  report.previous_epoch = Epoch(4);
  report.was_closed_cleanly = true;
  report.head_lsn = Lsn(5);
  report.end_lsn = Lsn(6);
  report.read_from_lsn = Lsn(14);
  report.records = 7;
  report.cleaned_records = 8;
  report.aborted_records = 9;
  report.payload_bytes = 10;
  report.torn_lsn = Lsn(11);
  report.torn_offset = 12;
  report.torn_completed_records = 13;
  report.repairs = {"one", "two"};
  const ReportView view(report);
  const alpheus_recovery_report& c = *view.get();
  EXPECT_EQ(c.verdict, ALPHEUS_RECOVERY_TORN_TAIL);
  EXPECT_TRUE(c.log_id == report.log_id);
  EXPECT_EQ(c.epoch, 3u);
  EXPECT_EQ(c.previous_epoch, 4u);
  EXPECT_TRUE(c.was_closed_cleanly);
  EXPECT_EQ(c.head_lsn, 5u);
  EXPECT_EQ(c.end_lsn, 6u);
  EXPECT_EQ(c.read_from_lsn, 14u);
  EXPECT_EQ(c.records, 7u);
  EXPECT_EQ(c.cleaned_records, 8u);
  EXPECT_EQ(c.aborted_records, 9u);
  EXPECT_EQ(c.payload_bytes, 10u);
  EXPECT_EQ(c.torn_lsn, 11u);
  EXPECT_EQ(c.torn_offset, 12u);
  EXPECT_EQ(c.torn_completed_records, 13u);
  ASSERT_EQ(c.repair_count, 2u);
  EXPECT_STREQ(c.repairs[0], "one");
  EXPECT_STREQ(c.repairs[1], "two");
  EXPECT_EQ(c.text, report.ToString());
}

RegionInfo SomeInfo() {
  RegionInfo info;
  info.path = "path";
  info.format_version = 1;
  info.cluster_id = {2, 3};
  info.log_id = {4, 5};
  info.node = NodeId(6);
  info.incarnation = 7;
  info.configuration_id = 8;
  info.replica_count = 9;
  info.write_quorum = 10;
  info.region_bytes = 11;
  info.ring_offset = 12;
  info.ring_capacity = 13;
  info.promised_epoch = Epoch(14);
  info.log_epoch = Epoch(15);
  info.head_lsn = Lsn(16);
  info.head_offset = 17;
  info.watermark_lsn = Lsn(18);
  info.epochs = {{Epoch(19), Lsn(20)}, {Epoch(21), Lsn(22)}};
  info.single_faults = {"fault"};
  return info;
}

TEST(CViewsTest, RegionInfoHoldsEveryField) {
  const RegionInfo info = SomeInfo();
  const RegionInfoView view(info);
  const alpheus_region_info& c = *view.get();
  EXPECT_STREQ(c.path, "path");
  EXPECT_EQ(c.format_version, 1u);
  EXPECT_TRUE(c.cluster_id == info.cluster_id);
  EXPECT_TRUE(c.log_id == info.log_id);
  EXPECT_EQ(c.node, 6u);
  EXPECT_EQ(c.incarnation, 7u);
  EXPECT_EQ(c.configuration_id, 8u);
  EXPECT_EQ(c.replica_count, 9u);
  EXPECT_EQ(c.write_quorum, 10u);
  EXPECT_EQ(c.region_bytes, 11u);
  EXPECT_EQ(c.ring_offset, 12u);
  EXPECT_EQ(c.ring_capacity, 13u);
  EXPECT_EQ(c.promised_epoch, 14u);
  EXPECT_EQ(c.log_epoch, 15u);
  EXPECT_EQ(c.head_lsn, 16u);
  EXPECT_EQ(c.head_offset, 17u);
  EXPECT_EQ(c.watermark_lsn, 18u);
  ASSERT_EQ(c.epoch_count, 2u);
  EXPECT_EQ(c.epochs[0].epoch, 19u);
  EXPECT_EQ(c.epochs[0].start_lsn, 20u);
  EXPECT_EQ(c.epochs[1].epoch, 21u);
  EXPECT_EQ(c.epochs[1].start_lsn, 22u);
  ASSERT_EQ(c.single_fault_count, 1u);
  EXPECT_STREQ(c.single_faults[0], "fault");
}

TEST(CViewsTest, RegionInfoTellsItsFlagsApart) {
  for (int flag = 0; flag < 3; ++flag) {
    RegionInfo info = SomeInfo();
    info.has_writer = flag == 0;
    info.repairing = flag == 1;
    info.closed_cleanly = flag == 2;
    const RegionInfoView view(info);
    EXPECT_EQ(view.get()->has_writer, flag == 0);
    EXPECT_EQ(view.get()->repairing, flag == 1);
    EXPECT_EQ(view.get()->closed_cleanly, flag == 2);
  }
}

TEST(CViewsTest, VerificationHoldsEveryField) {
  VerifyReport report;
  report.verdict = "torn";
  report.end_lsn = Lsn(1);
  report.tail_offset = 2;
  report.proven_lsn = Lsn(3);
  report.data_records = 4;
  report.cleaned_records = 5;
  report.aborted_records = 6;
  report.damaged_pads = 7;
  report.payload_bytes = 8;
  report.cut_records = 9;
  report.durable_lsn = Lsn(10);
  const VerificationView view(report);
  const alpheus_verification& c = *view.get();
  EXPECT_STREQ(c.verdict, "torn");
  EXPECT_EQ(c.end_lsn, 1u);
  EXPECT_EQ(c.tail_offset, 2u);
  EXPECT_EQ(c.proven_lsn, 3u);
  EXPECT_EQ(c.data_records, 4u);
  EXPECT_EQ(c.cleaned_records, 5u);
  EXPECT_EQ(c.aborted_records, 6u);
  EXPECT_EQ(c.damaged_pads, 7u);
  EXPECT_EQ(c.payload_bytes, 8u);
  EXPECT_EQ(c.cut_records, 9u);
  EXPECT_EQ(c.durable_lsn, 10u);
}

}  // namespace
}  // namespace alpheus::c
