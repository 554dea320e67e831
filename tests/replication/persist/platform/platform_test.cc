// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/platform.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/replication/persist/platform/all_platforms.h"

namespace alpheus::testing {

using replication::ParsePlatform;

namespace {

using ::testing::HasSubstr;

TEST(PlatformTest, UndeclaredIsTheWeakest) {
  EXPECT_EQ(*ParsePlatform(""), replication::Platform());
  EXPECT_EQ(replication::PlatformToString(replication::Platform()),
            "dmp,ddio,dram,tcp");
}

TEST(PlatformTest, WhatIsPrintedIsParsed) {
  std::set<std::string> texts;
  for (const replication::Platform& platform : AllPlatforms()) {
    const std::string text = replication::PlatformToString(platform);
    const auto parsed = ParsePlatform(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, platform) << text;
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
}

TEST(PlatformTest, WordsComeInAnyOrderAndMayBeMissing) {
  replication::Platform expected;
  expected.domain = replication::PersistenceDomain::kHierarchy;
  expected.transport = replication::Transport::kInfiniBand;
  expected.native_flush = true;
  EXPECT_EQ(*ParsePlatform("native-flush,infiniband,mhp"), expected);
  EXPECT_EQ(replication::PlatformToString(expected),
            "mhp,ddio,dram,infiniband,native-flush");
}

TEST(PlatformTest, WhatIsNoPlatformIsRefusedByName) {
  for (const auto& [text, what] : {std::pair("adr", "no word \"adr\""),
                                   {"dmp,", "last comma"},
                                   {",dmp", "no word \"\""},
                                   {"dmp, ddio", "no word \" ddio\""},
                                   {"DMP", "no word"},
                                   {"dmp,wsp", "\"wsp\" is the second"},
                                   {"ddio,ddio", "second"},
                                   {",", "no word \"\""}}) {
    const absl::Status status = ParsePlatform(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr(what)) << text;
    EXPECT_THAT(status.message(), HasSubstr("dmp or mhp or wsp; ddio or"));
  }
}

// Table 1's rows, in its order.
TEST(PlatformTest, ConfigurationsAreThoseOfTheTable) {
  size_t index = 0;
  for (const char* domain : {"dmp", "mhp", "wsp"}) {
    for (const char* ddio : {"ddio", "no-ddio"}) {
      for (const char* buffers : {"dram", "pm"}) {
        const std::string text =
            std::string(domain) + "," + ddio + "," + buffers;
        EXPECT_EQ(replication::ConfigurationIndex(*ParsePlatform(text)),
                  index++)
            << text;
      }
    }
  }
  EXPECT_EQ(index, replication::kConfigurationCount);
}

}  // namespace
}  // namespace alpheus::testing
