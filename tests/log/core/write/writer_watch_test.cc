// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/writer_watch.h"

#include <gtest/gtest.h>

namespace alpheus {
namespace {

class WriterWatchTest : public ::testing::Test {
 protected:
  ~WriterWatchTest() override { SetThreadToken(own_); }

  // Returns the watch's answer to thread `writer` for the next record.
  bool Write(uint32_t writer) {
    SetThreadToken(writer);
    next_ = next_ + 1;
    return watch_.IsShared(next_);
  }

  const uint32_t own_ = ThreadToken();
  WriterWatch watch_;
  Lsn next_{0};
};

TEST_F(WriterWatchTest, LoneWriterIsAlone) {
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(Write(1)) << i;
}

TEST_F(WriterWatchTest, TwoThatTakeTurnsAreSeen) {
  for (int i = 0; i < 20; ++i) {
    Write(1);
    Write(2);
  }
  EXPECT_TRUE(Write(1));
  EXPECT_TRUE(Write(2));
}

TEST_F(WriterWatchTest, AWriterThatStaysAloneIsAloneAgain) {
  for (int i = 0; i < 20; ++i) {
    Write(1);
    Write(2);
  }
  for (uint64_t i = 0; i < WriterWatch::kHoldsFor + WriterWatch::kEvery; ++i) {
    Write(2);
  }
  EXPECT_FALSE(Write(2));
}

// One change of the writer is seen once, as a hand-over is.
TEST_F(WriterWatchTest, ADetachCountsForAWhile) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Write(1));
  int shared = 0;
  for (int i = 0; i < 3000; ++i) shared += Write(2) ? 1 : 0;
  EXPECT_GT(shared, 0);
  EXPECT_LE(shared, static_cast<int>(WriterWatch::kHoldsFor));
}

}  // namespace
}  // namespace alpheus
