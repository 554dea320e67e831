// SPDX-License-Identifier: Apache-2.0
// cluster_database_fixture: a database whose WAL several nodes keep, all of
// them threads of the test.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FS_CLUSTER_DATABASE_FIXTURE_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FS_CLUSTER_DATABASE_FIXTURE_H_

#include "tests/api/rocksdb/fs/plugin_fixture.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus::testing {

class ClusterDatabaseFixture : public PluginFixture {
 protected:
  ClusterDatabaseFixture() {
    const auto made =
        Log::Format({.region_bytes = 1 << 20, .cluster_file = cluster_.file()});
    EXPECT_TRUE(made.ok()) << made.status();
    wal_options_ = On(1);
    Restart();
  }
  ~ClusterDatabaseFixture() override { Close(); }

  // A process on this node, without a replica of its own.
  wal::WalOptions On(int node) const {
    wal::WalOptions options;
    options.stall_ms = 60'000;
    ReplicationOptions& replication = options.log.replication;
    replication.cluster_file = cluster_.file();
    replication.node = node;
    replication.open_timeout_ms = 60'000;
    replication.ack_timeout_ms = 60'000;
    return options;
  }

  TestCluster cluster_{3};
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FS_CLUSTER_DATABASE_FIXTURE_H_
