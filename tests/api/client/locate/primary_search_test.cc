// SPDX-License-Identifier: Apache-2.0
#include "api/client/locate/primary_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace alpheus::client {
namespace {

using ::testing::ElementsAre;

class PrimarySearchTest : public ::testing::Test {
 protected:
  // Returns the address that is asked next, and goes on to its time.
  std::string Asked() {
    const PrimarySearch::Step step = search_.Next(now_);
    rested_ = step.not_before_ns - now_;
    now_ = step.not_before_ns;
    return step.address;
  }

  int64_t now_ = 1'000;
  int64_t rested_ = 0;
  uint64_t drawn_ = 0;  // 0: the least; 1: the most
  PrimarySearch search_{
      {"a", "b", "c"},
      {.rest_min_ns = 100, .rest_max_ns = 400},
      [this](uint64_t below) { return drawn_ == 0 ? 0 : below - 1; }};
};

// PSR1.
TEST_F(PrimarySearchTest, AsksEachNodeOnceInARound) {
  for (int round = 0; round < 2; ++round) {
    for (const char* address : {"a", "b", "c"}) {
      EXPECT_EQ(Asked(), address);
      search_.NotPrimary("");
    }
  }
}

// PSR2.
TEST_F(PrimarySearchTest, FollowsAHintOnce) {
  EXPECT_EQ(Asked(), "a");
  search_.NotPrimary("c");
  EXPECT_EQ(Asked(), "c");
  search_.NotPrimary("a");
  EXPECT_EQ(Asked(), "b");
  search_.NotPrimary("c");
  EXPECT_EQ(Asked(), "a");
  EXPECT_GT(rested_, 0);
}

TEST_F(PrimarySearchTest, FollowsAHintToANodeThatItDoesNotKnow) {
  EXPECT_EQ(Asked(), "a");
  search_.NotPrimary("z");
  EXPECT_EQ(Asked(), "z");
  EXPECT_EQ(rested_, 0);
}

TEST_F(PrimarySearchTest, BeginsWithThePrimaryThatItFoundLast) {
  EXPECT_EQ(Asked(), "a");
  search_.NotPrimary("z");
  EXPECT_EQ(Asked(), "z");
  search_.Found();
  search_.Answered();
  EXPECT_EQ(Asked(), "z");
  EXPECT_EQ(rested_, 0);
  search_.NotPrimary("");
  EXPECT_EQ(Asked(), "a");
}

// PSR3.
TEST_F(PrimarySearchTest, RestsLongerAndLonger) {
  std::vector<int64_t> rests;
  for (int round = 0; round < 5; ++round) {
    Asked();
    rests.push_back(rested_);
    Asked();
    Asked();
    drawn_ = 1;
  }
  EXPECT_THAT(rests, ElementsAre(0, 100, 200, 400, 400));
  search_.Found();
  search_.Answered();
  for (int i = 0; i < 3; ++i) Asked();
  EXPECT_EQ(rested_, 0);
  drawn_ = 0;
  Asked();
  EXPECT_EQ(rested_, 50);
}

// PSR3.
TEST_F(PrimarySearchTest, RestsBeforeAPrimaryThatHasAnsweredNothing) {
  drawn_ = 1;
  std::vector<int64_t> rests;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Asked(), "a");
    rests.push_back(rested_);
    search_.Found();
  }
  EXPECT_THAT(rests, ElementsAre(0, 100, 200, 400));
  search_.Answered();
  EXPECT_EQ(Asked(), "a");
  EXPECT_EQ(rested_, 0);
}

TEST(PrimarySearchStartTest, ClientsBeginWithDifferentNodes) {
  std::set<std::string> first;
  for (uint64_t drawn = 0; drawn < 3; ++drawn) {
    PrimarySearch search({"a", "b", "c"}, {},
                         [drawn](uint64_t) { return drawn; });
    first.insert(search.Next(0).address);
  }
  EXPECT_EQ(first.size(), 3U);
}

}  // namespace
}  // namespace alpheus::client
