// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/shared_adapters.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
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
// The last one calls this.
std::function<void(const std::string&)> said;

absl::StatusOr<std::unique_ptr<fabric::Fabric>> CountAndOpen(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options) {
  ++opened;
  said = options.say;
  quorum::ClusterConfiguration plain = cluster;
  plain.encryption.reset();  // has no such files
  return OpenAdapter(plain, near, random, options);
}

class SharedAdaptersTest : public ::testing::Test {
 protected:
  using Share = SharedAdapters::Share;

  SharedAdaptersTest() { opened = 0; }

  std::unique_ptr<Share> AddShare(Audience::Say say = nullptr) {
    auto share = adapters_.AddShare(cluster_, NodeId(1), std::move(say));
    EXPECT_TRUE(share.ok()) << share.status();
    return share.ok() ? std::make_unique<Share>(*std::move(share)) : nullptr;
  }

  quorum::ClusterConfiguration cluster_;
  SharedAdapters adapters_{2, CountAndOpen};
};

TEST_F(SharedAdaptersTest, LogsShareOnceThereAreAsManyAdaptersAsCores) {
  const auto a = AddShare();
  EXPECT_EQ(opened, 1);
  const auto b = AddShare();
  EXPECT_EQ(opened, 2);
  const auto c = AddShare();
  const auto d = AddShare();
  EXPECT_EQ(opened, 2);
}

TEST_F(SharedAdaptersTest, LogGetsTheAdapterThatTheFewestHave) {
  const auto a = AddShare();
  auto b = AddShare();
  const auto c = AddShare();  // as a
  const auto d = AddShare();  // as b
  b.reset();
  auto e = AddShare();  // as d
  EXPECT_EQ(opened, 2);
  e.reset();
  // The adapter of d is still there.
  const auto f = AddShare();
  EXPECT_EQ(opened, 2);
}

TEST_F(SharedAdaptersTest, AdapterIsClosedWithItsLastLog) {
  const auto a = AddShare();
  auto b = AddShare();
  const auto c = AddShare();  // as a
  b.reset();
  const auto d = AddShare();
  EXPECT_EQ(opened, 3);
}

// SHD2, AUD1.
TEST_F(SharedAdaptersTest, EachLogIsToldWhatHappensToItsAdapter) {
  std::vector<std::string> of_a;
  std::vector<std::string> of_c;
  const auto a =
      AddShare([&](const std::string& text) { of_a.push_back(text); });
  const auto to_a = said;
  const auto b = AddShare();
  auto c = AddShare([&](const std::string& text) { of_c.push_back(text); });
  to_a("one");  // the adapter of a and c
  said("two");  // that of b
  c.reset();
  to_a("three");
  EXPECT_EQ(of_a, (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(of_c, std::vector<std::string>{"one"});
}

// SHD1.
TEST_F(SharedAdaptersTest, WhatIsOpenedDifferentlyIsNotShared) {
  SharedAdapters adapters(1, CountAndOpen);
  std::vector<Share> kept;
  // Two shares by one adapter, which is another one each time.
  const auto add_both = [&](NodeId near) {
    for (int i = 0; i < 2; ++i) {
      auto share = adapters.AddShare(cluster_, near, nullptr);
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
