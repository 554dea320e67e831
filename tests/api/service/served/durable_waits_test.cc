// SPDX-License-Identifier: Apache-2.0
// Callers that wait for records of a log that has no thread: nobody forces but
// the tests.
#include "api/service/served/durable_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "log/base/ids.h"

namespace alpheus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DurableWaitsTest : public ::testing::Test {
 protected:
  DurableWaitsTest() {
    auto log = Log::Open({.anonymous_bytes = 1 << 20, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    waits_ = std::make_shared<DurableWaits>(*log_);
  }
  // Completes records that nobody forces.
  void AppendUnforced(int records) {
    for (int i = 0; i < records; ++i) {
      auto record = log_->Reserve(8);
      ASSERT_TRUE(record.ok()) << record.status();
      ASSERT_TRUE(log_->Complete(*std::move(record)).ok());
    }
  }
  // The caller of this number waits.
  absl::Status Wait(int caller, Lsn lsn) {
    return waits_->Wait(Name(caller), lsn, [=, this](const absl::Status& end) {
      told_.push_back(caller);
      ends_[caller] = end;
    });
  }
  void Leave(int caller) { waits_->Leave(Name(caller)); }
  const void* Name(int caller) { return &names_[caller]; }

  std::unique_ptr<Log> log_;
  std::shared_ptr<DurableWaits> waits_;
  std::map<int, char> names_;
  std::vector<int> told_;  // in this order
  std::map<int, absl::Status> ends_;
};

TEST_F(DurableWaitsTest, EachIsToldOnceItsRecordIsDurable) {
  AppendUnforced(3);
  ASSERT_TRUE(Wait(1, Lsn(3)).ok());
  ASSERT_TRUE(Wait(2, Lsn(1)).ok());
  ASSERT_TRUE(Wait(3, Lsn(3)).ok());
  EXPECT_EQ(waits_->count(), 3u);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_TRUE(log_->Force(Lsn(1)).ok());
  EXPECT_EQ(told_.front(), 2);
  ASSERT_TRUE(log_->Force(Lsn(3)).ok());
  EXPECT_EQ(told_.size(), 3u);
  for (const auto& [caller, end] : ends_) EXPECT_TRUE(end.ok()) << caller;
  EXPECT_EQ(waits_->count(), 0u);
  ASSERT_TRUE(Wait(4, Lsn(2)).ok());
  EXPECT_EQ(told_.back(), 4) << "durable already";
}

TEST_F(DurableWaitsTest, LsnThatWasNeverAssignedIsAnError) {
  AppendUnforced(1);
  EXPECT_TRUE(absl::IsOutOfRange(Wait(1, Lsn(2))));
  EXPECT_TRUE(absl::IsOutOfRange(Wait(1, Lsn(0))));
  EXPECT_EQ(waits_->count(), 0u);
}

// DWT2: as many as like come and go, for any record.
TEST_F(DurableWaitsTest, CallersThatLeaveLeaveNothingBehind) {
  constexpr int kRecords = 4;
  AppendUnforced(kRecords);
  for (int caller = 0; caller < 1'000; ++caller) {
    ASSERT_TRUE(Wait(caller, Lsn(kRecords - caller % kRecords)).ok());
    Leave(caller);
    Leave(caller);
  }
  EXPECT_EQ(waits_->count(), 0u);
  EXPECT_LE(waits_->watches(), static_cast<size_t>(kRecords));
  ASSERT_TRUE(log_->Force(Lsn(kRecords)).ok());
  EXPECT_EQ(waits_->watches(), 0u);
  EXPECT_THAT(told_, IsEmpty());
}

// The one that leaves was the first: the others are told all the same.
TEST_F(DurableWaitsTest, OthersStayWhenTheFirstLeaves) {
  AppendUnforced(2);
  ASSERT_TRUE(Wait(1, Lsn(1)).ok());
  ASSERT_TRUE(Wait(2, Lsn(2)).ok());
  EXPECT_EQ(waits_->watches(), 1u);
  Leave(1);
  ASSERT_TRUE(log_->Force(Lsn(2)).ok());
  EXPECT_THAT(told_, ElementsAre(2));
}

// An open record keeps the log from being closed whole.
TEST_F(DurableWaitsTest, AllAreToldOfALogThatIsDropped) {
  auto open = log_->Reserve(8);
  ASSERT_TRUE(open.ok());
  AppendUnforced(1);
  ASSERT_TRUE(Wait(1, Lsn(2)).ok());
  open->Abort();
  log_.reset();
  EXPECT_THAT(told_, ElementsAre(1));
}

}  // namespace
}  // namespace alpheus::service
