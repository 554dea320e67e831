// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/shared_adapters.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "log/base/random.h"
#include "quorum/members/configuration.h"

namespace alpheus {
namespace {

// Number of adapters that were opened.
int opened = 0;

absl::StatusOr<std::unique_ptr<fabric::Fabric>> CountAndOpen(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options) {
  ++opened;
  quorum::ClusterConfiguration plain = cluster;
  plain.encryption.reset();  // has no such files
  return OpenAdapter(plain, near, random, options);
}

class SharedAdaptersTest : public ::testing::Test {
 protected:
  using Share = std::unique_ptr<fabric::Fabric>;

  SharedAdaptersTest() { opened = 0; }

  Share AddShare() { return AddShare(cluster_, NodeId(1)); }
  Share AddShare(const quorum::ClusterConfiguration& cluster, NodeId near) {
    auto share = adapters_.AddShare(cluster, near);
    EXPECT_TRUE(share.ok()) << share.status();
    return share.ok() ? *std::move(share) : nullptr;
  }

  quorum::ClusterConfiguration cluster_;
  SharedAdapters adapters_{2, CountAndOpen};
};

TEST_F(SharedAdaptersTest, LogsShareOnceThereAreAsManyAdaptersAsCores) {
  const Share a = AddShare();
  EXPECT_EQ(opened, 1);
  const Share b = AddShare();
  EXPECT_EQ(opened, 2);
  const Share c = AddShare();
  const Share d = AddShare();
  EXPECT_EQ(opened, 2);
}

TEST_F(SharedAdaptersTest, LogGetsTheAdapterThatTheFewestHave) {
  const Share a = AddShare();
  Share b = AddShare();
  const Share c = AddShare();  // as a
  const Share d = AddShare();  // as b
  b.reset();
  Share e = AddShare();  // as d
  EXPECT_EQ(opened, 2);
  e.reset();
  // The adapter of d is still there.
  const Share f = AddShare();
  EXPECT_EQ(opened, 2);
}

TEST_F(SharedAdaptersTest, AdapterIsClosedWithItsLastLog) {
  const Share a = AddShare();
  Share b = AddShare();
  const Share c = AddShare();  // as a
  b.reset();
  const Share d = AddShare();
  EXPECT_EQ(opened, 3);
}

// SHD1.
TEST_F(SharedAdaptersTest, WhatIsOpenedDifferentlyIsNotShared) {
  SharedAdapters adapters(1, CountAndOpen);
  std::vector<Share> kept;
  // Two shares by one adapter, which is another one each time.
  const auto add_both = [&](NodeId near) {
    for (int i = 0; i < 2; ++i) {
      auto share = adapters.AddShare(cluster_, near);
      ASSERT_TRUE(share.ok()) << share.status();
      kept.push_back(*std::move(share));
    }
  };
  add_both(NodeId(1));
  EXPECT_EQ(opened, 1);
  add_both(NodeId(2));
  EXPECT_EQ(opened, 2);
  cluster_.cluster_id.low ^= 1;
  add_both(NodeId(2));
  EXPECT_EQ(opened, 3);
  cluster_.encryption.emplace();
  add_both(NodeId(2));
  EXPECT_EQ(opened, 4);
  quorum::NodeEncryption& files = *cluster_.encryption;
  for (std::string* const file :
       {&files.certificate_file, &files.key_file, &files.authorities_file,
        &files.revoked_file}) {
    *file = "file";
    add_both(NodeId(2));
  }
  EXPECT_EQ(opened, 8);
}

}  // namespace
}  // namespace alpheus
