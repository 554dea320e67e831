// SPDX-License-Identifier: Apache-2.0
// A store whose log is that of a cluster, over TCP.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/store/local/store.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus::testing {
namespace {

using store::Condition;
using store::Store;

class ClusterStoreTest : public ::testing::Test {
 protected:
  // A log of a cluster, and the store on it.
  struct Opened {
    std::unique_ptr<Log> log;
    std::unique_ptr<Store> store;
  };

  static void Format(TestCluster& cluster) {
    FormatOptions options;
    options.region_bytes = 1 << 20;
    options.cluster_file = cluster.file();
    options.log_name = "main";
    const auto id = Log::Format(options);
    ASSERT_TRUE(id.ok()) << id.status();
  }
  static LogOptions OptionsOf(const TestCluster& cluster, int node) {
    LogOptions options;
    options.replication.cluster_file = cluster.file();
    options.replication.node = node;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    return options;
  }
  static Opened Open(const LogOptions& options) {
    Opened opened;
    auto log = Log::Open(options);
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return opened;
    opened.log = *std::move(log);
    auto store = Store::Open(*opened.log);
    EXPECT_TRUE(store.ok()) << store.status();
    if (store.ok()) opened.store = *std::move(store);
    return opened;
  }
  static std::map<std::string, std::string> All(Store& store) {
    std::map<std::string, std::string> all;
    uint64_t cursor = 0;
    do {
      const auto page = store.Scan(cursor);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const auto& [key, value] : page->entries) all[key] = value.bytes;
      cursor = page->next;
    } while (cursor != 0);
    return all;
  }
};

// Round the ring, so that cleaning goes by heads that backups have, too.
TEST_F(ClusterStoreTest, NextPrimaryHasWhatWasAnswered) {
  TestCluster cluster(3);
  Format(cluster);
  std::map<std::string, std::string> expected;
  const Opened first = Open(OptionsOf(cluster, 1));
  ASSERT_NE(first.store, nullptr);
  for (int i = 0; i < 1'500; ++i) {
    const std::string key = absl::StrCat("key ", i % 50);
    const std::string value(500 + i % 1'000, static_cast<char>('a' + i % 26));
    const auto put = first.store->Put(key, value);
    ASSERT_TRUE(put.ok()) << put.status() << ", " << i;
    expected[key] = value;
    if (i % 11 != 0) continue;
    const auto deleted = first.store->Delete(key);
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    expected.erase(key);
  }
  EXPECT_GT(first.log->head_lsn(), Lsn(500));
  const auto before = first.store->Get("key 7");
  const Opened second = Open(OptionsOf(cluster, 2));
  ASSERT_NE(second.store, nullptr);
  EXPECT_EQ(All(*second.store), expected);
  const auto after = second.store->Get("key 7");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*after)->version, (*before)->version);
  EXPECT_TRUE(second.store->Put("key 7", "new").ok());
}

// STO2, P-O14.
TEST_F(ClusterStoreTest, PrimaryThatWasOvertakenAnswersNothing) {
  TestCluster cluster(3);
  Format(cluster);
  const Opened first = Open(OptionsOf(cluster, 1));
  ASSERT_NE(first.store, nullptr);
  ASSERT_TRUE(first.store->Put("k", "old").ok());
  const Opened second = Open(OptionsOf(cluster, 2));
  ASSERT_NE(second.store, nullptr);
  ASSERT_TRUE(second.store->Put("k", "new").ok());
  EXPECT_FALSE(first.store->Get("k").ok());
  EXPECT_FALSE(first.store->Scan(0).ok());
  EXPECT_FALSE(first.store->Put("k", "older").ok());
  EXPECT_FALSE(first.store->Put("k", "v", {Condition::Kind::kAbsent, 0}).ok());
  const auto now = second.store->Get("k");
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ((*now)->bytes, "new");
}

// STO2: the next primary writes the very memory from which this one reads.
TEST_F(ClusterStoreTest, StoreWhoseReplicaIsTakenAwayShowsNothingOfTheNext) {
  TestCluster cluster(1);
  Format(cluster);
  LogOptions options = OptionsOf(cluster, 1);
  options.path = cluster.ReplicaPath(1);
  const Opened first = Open(options);
  ASSERT_NE(first.store, nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        first.store->Put(absl::StrCat("key ", i), std::string(1'000, 'o'))
            .ok());
  }
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over.load()) {
      for (int i = 0; i < 100; ++i) {
        const auto value = first.store->Get(absl::StrCat("key ", i));
        if (!value.ok()) return;  // the replica is gone
        ASSERT_TRUE(value->has_value()) << i;
        ASSERT_EQ((*value)->bytes, std::string(1'000, 'o')) << i;
      }
    }
  });
  const Opened second = Open(OptionsOf(cluster, 1));
  if (second.store != nullptr) {
    for (int i = 0; i < 1'200; ++i) {
      const auto put = second.store->Put(absl::StrCat("key ", i % 100),
                                         std::string(1'000, 'n'));
      EXPECT_TRUE(put.ok()) << put.status();
    }
  }
  is_over.store(true);
  reader.join();
  EXPECT_FALSE(first.store->Get("key 1").ok());
}

}  // namespace
}  // namespace alpheus::testing
