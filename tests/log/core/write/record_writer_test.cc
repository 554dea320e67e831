// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/record_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "log/base/bytes.h"
#include "log/format/record.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

using Event = model::ModelPersistence::Event;
using Primitive = model::ModelPersistence::Primitive;

bool IsStore(const Event& event) {
  return event.primitive == Primitive::kStore8 ||
         event.primitive == Primitive::kCopy ||
         event.primitive == Primitive::kCopyLinesNt;
}

// P-A1, P-F5, RWR1 (record_writer.h): until the last store, which is one atomic
// word with both checksums, no byte of that word changes.
TEST(RecordWriterTest, OneWordPublishesTheRecordLast) {
  testing::LogHarness harness({});
  ASSERT_TRUE(harness.Open().ok());
  auto record = harness.log().Reserve(4, Deadline());
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_TRUE(harness.log().Copy(*record, 0, AsBytes("text")).ok());
  const auto publish =
      static_cast<size_t>(record->payload - harness.region().data()) -
      kRecordHeaderBytes + offsetof(RecordHeader, payload_crc);

  std::vector<Event> stores;
  harness.pmem().SetHook([&stores](const Event& event) {
    if (IsStore(event)) stores.push_back(event);
  });
  ASSERT_TRUE(harness.log().Complete(*record).ok());
  harness.pmem().SetHook({});

  ASSERT_FALSE(stores.empty());
  EXPECT_EQ(stores.back().primitive, Primitive::kStore8);
  EXPECT_EQ(stores.back().offset, publish);
  stores.pop_back();
  for (const Event& store : stores) {
    EXPECT_TRUE(store.offset + store.bytes <= publish ||
                store.offset >= publish + sizeof(uint64_t))
        << store.bytes << " bytes at " << store.offset;
  }
}

}  // namespace
}  // namespace alpheus
