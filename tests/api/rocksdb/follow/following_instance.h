// SPDX-License-Identifier: Apache-2.0
// following_instance: read-only and secondary instances that follow the log of
// another process, for tests of what they see.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWING_INSTANCE_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWING_INSTANCE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/rocksdb/follow/wal_following_file_system.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "tests/api/rocksdb/fs/plugin_fixture.h"

namespace alpheus::testing {

// Another process's view of a database, as far as RocksDB can tell.
class Instance {
 public:
  Instance(wal::WalOptions options, rocksdb::Options of_database,
           std::shared_ptr<rocksdb::FileSystem> base =
               rocksdb::FileSystem::Default())
      : options_(std::move(of_database)) {
    options.follow = true;
    options.create_bytes = 0;
    fs_ = std::make_shared<wal::WalFollowingFileSystem>(std::move(options),
                                                        std::move(base));
    env_ = rocksdb::NewCompositeEnv(fs_);
    options_.env = env_.get();
    options_.create_if_missing = false;
    options_.max_open_files = -1;
  }
  rocksdb::Status OpenReadOnly(const std::string& path) {
    return Take(rocksdb::DB::OpenForReadOnly(options_, path, &raw_));
  }
  // Not as one that may be compacted, for which the MANIFEST is read before.
  rocksdb::Status OpenFamilyReadOnly(const std::string& path) {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::Status opened = Take(rocksdb::DB::OpenForReadOnly(
        options_, path, {{rocksdb::kDefaultColumnFamilyName, options_}},
        &handles, &raw_));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      EXPECT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
    }
    return opened;
  }
  rocksdb::Status OpenSecondary(const std::string& path,
                                const std::string& own) {
    return Take(rocksdb::DB::OpenAsSecondary(options_, path, own, &raw_));
  }
  rocksdb::Status OpenForWriting(const std::string& path) {
    return Take(rocksdb::DB::Open(options_, path, &raw_));
  }
  std::string Get(const std::string& key) {
    std::string value;
    const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), key, &value);
    return got.ok() ? value : got.ToString();
  }
  rocksdb::DB& db() { return *db_; }
  wal::WalFollowingFileSystem& fs() { return *fs_; }

 private:
  rocksdb::Status Take(rocksdb::Status opened) {
    db_.reset(raw_);
    return opened;
  }

  rocksdb::Options options_;
  std::shared_ptr<wal::WalFollowingFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::DB* raw_ = nullptr;
  std::unique_ptr<rocksdb::DB> db_;
};

class FollowingTest : public PluginFixture {
 protected:
  std::string Own() { return directory_.File("secondary"); }
  // Beside its writer a local log is followed to its last batch but one, until
  // it idles, which it does not here.
  void PutShown(const std::string& key, const std::string& value) {
    Put(key, value, true);
    Put("another batch", "", true);
  }
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FOLLOW_FOLLOWING_INSTANCE_H_
