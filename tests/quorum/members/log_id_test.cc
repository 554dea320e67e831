// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/log_id.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace alpheus::quorum {
namespace {

constexpr Uuid kAnyCluster{1, 2};

TEST(LogIdTest, FollowsFromClusterAndName) {
  const Uuid id = LogIdOf(kAnyCluster, "main");
  EXPECT_FALSE(id.is_zero());
  EXPECT_EQ(id, LogIdOf(kAnyCluster, "main"));
  // Regions carry it: a later version must find the same one.
  EXPECT_EQ(id.ToString(), "04f5c625870d498e81270edd1877d581");
}

TEST(LogIdTest, DiffersByClusterAndName) {
  std::set<Uuid> seen;
  for (const Uuid cluster : {Uuid{1, 2}, Uuid{2, 1}, Uuid{0, 3}}) {
    for (const char* name : {"main", "mian", "mai", "main0", "a", "0"}) {
      EXPECT_TRUE(seen.insert(LogIdOf(cluster, name)).second) << name;
    }
  }
}

TEST(LogIdTest, NamesThatNoFileShouldHaveAreRefused) {
  for (const char* name : {"main", "a", "0", "a.b-c_D", "9-"}) {
    EXPECT_TRUE(CheckLogName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckLogName(std::string(64, 'x')).ok());
  for (const std::string& name :
       {std::string(), std::string("."), std::string("-a"), std::string("_a"),
        std::string("a/b"), std::string("a b"), std::string("\xc3\xa9"),
        std::string("a\0b", 3), std::string(65, 'x')}) {
    EXPECT_EQ(CheckLogName(name).code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
}

}  // namespace
}  // namespace alpheus::quorum
