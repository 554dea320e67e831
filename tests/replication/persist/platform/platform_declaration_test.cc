// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/platform_declaration.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/replication/persist/platform/all_platforms.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PlatformDeclarationTest, WeakestIsNeverDoubted) {
  EXPECT_THAT(replication::PlatformWarnings(replication::Platform(),
                                            replication::Shown()),
              IsEmpty());
  EXPECT_EQ(replication::ReplicaWarning(replication::Platform(),
                                        replication::ReplicaMedium::kFile),
            "");
}

TEST(PlatformDeclarationTest, EachClaimIsDoubtedByItself) {
  const auto of = [](const char* words) {
    return replication::PlatformWarnings(*replication::ParsePlatform(words),
                                         replication::Shown());
  };
  EXPECT_THAT(of("mhp"), ElementsAre(AllOf(HasSubstr("shows no sign of it"),
                                           HasSubstr("Declare dmp"))));
  EXPECT_THAT(of("wsp"), ElementsAre(HasSubstr("shows no sign of it"),
                                     HasSubstr("no program can see")));
  EXPECT_THAT(of("no-ddio"), ElementsAre(HasSubstr("Declare ddio")));
  EXPECT_THAT(of("pm"), ElementsAre(HasSubstr("Declare dram")));
  EXPECT_THAT(of("infiniband"),
              ElementsAre(AllOf(HasSubstr("declared to be infiniband"),
                                HasSubstr("Declare tcp"))));
  EXPECT_THAT(of("iwarp"), ElementsAre(HasSubstr("Declare tcp")));
  EXPECT_THAT(of("native-flush"), ElementsAre(HasSubstr("native-flush out")));
  EXPECT_THAT(of("atomic-write"), ElementsAre(HasSubstr("atomic-write out")));
  EXPECT_THAT(of("wsp,no-ddio,pm,infiniband,native-flush,atomic-write"),
              SizeIs(7));
}

// A machine that shows all that can be shown: what is left can't be.
TEST(PlatformDeclarationTest, WhatIsSeenIsNotDoubted) {
  for (const replication::Platform& platform : AllPlatforms()) {
    const replication::Shown shown = {
        .caches_persist =
            platform.domain != replication::PersistenceDomain::kMemory,
        .transport = platform.transport,
        .native_flush = platform.native_flush,
        .atomic_write = platform.atomic_write,
        .receives_into_pmem =
            platform.receive_buffers == replication::ReceiveBuffers::kPmem};
    const size_t unseen =
        (platform.domain == replication::PersistenceDomain::kSystem ? 1 : 0) +
        (!platform.ddio && platform.transport == replication::Transport::kTcp
             ? 1
             : 0);
    EXPECT_THAT(replication::PlatformWarnings(platform, shown), SizeIs(unseen))
        << replication::PlatformToString(platform);
    // A platform that shows more than was declared is no reason to warn.
    const replication::Shown all = {
        .caches_persist = true,
        .transport = replication::Transport::kInfiniBand,
        .native_flush = true,
        .atomic_write = true,
        .receives_into_pmem = true};
    EXPECT_LE(replication::PlatformWarnings(platform, all).size(), 1u);
  }
}

TEST(PlatformDeclarationTest, PlainFilesKeepNoCaches) {
  EXPECT_THAT(replication::ReplicaWarning(*replication::ParsePlatform("mhp"),
                                          replication::ReplicaMedium::kFile),
              HasSubstr("plain file"));
  EXPECT_EQ(replication::ReplicaWarning(*replication::ParsePlatform("wsp"),
                                        replication::ReplicaMedium::kPmem),
            "");
}

// Memory keeps nothing, whatever its node's caches and adapters keep.
TEST(PlatformDeclarationTest, CopiesInMemoryAreOfTheWeakest) {
  for (const replication::Platform& platform : AllPlatforms()) {
    const std::string warning = replication::ReplicaWarning(
        platform, replication::ReplicaMedium::kShadow);
    const bool is_weakest =
        platform.domain == replication::PersistenceDomain::kMemory &&
        platform.ddio &&
        platform.receive_buffers == replication::ReceiveBuffers::kDram;
    EXPECT_EQ(warning.empty(), is_weakest) << warning;
    if (!is_weakest) {
      EXPECT_THAT(warning, HasSubstr("served as on dmp,ddio,dram"));
    }
  }
}

}  // namespace
}  // namespace alpheus::testing
