// SPDX-License-Identifier: Apache-2.0
// plugin_fixture: a database directory, a log beside it, and RocksDB on both.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FS_PLUGIN_FIXTURE_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FS_PLUGIN_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/rocksdb/fs/wal_file_system.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {

class PluginFixture : public ::testing::Test {
 protected:
  PluginFixture();
  ~PluginFixture() override;

  // A new process, as far as RocksDB and the log can tell.
  void Restart();
  // The file system that `restart` made, opened.
  wal::WalFileSystem& fs() { return *fs_; }

  rocksdb::Status TryOpen();
  void Open();
  void Close();
  void Reopen() {
    Close();
    Restart();
    Open();
  }

  void Put(const std::string& key, const std::string& value, bool sync = false);
  // "(none)" if there is none.
  std::string Get(const std::string& key);
  // Flushes. Returns when the files that are superfluous now are gone: RocksDB
  // removes them in the background, after its own Flush has returned.
  void Flush();
  // Names that the base file system has, without markers.
  static std::vector<std::string> PlainWalFiles(const std::string& directory);
  // Those of the log.
  std::vector<std::string> LogWalFiles(const std::string& directory = "");

  TempDirectory directory_;
  std::string path_ = directory_.File("db");
  wal::WalOptions wal_options_;
  rocksdb::Options options_;
  std::shared_ptr<wal::WalFileSystem> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FS_PLUGIN_FIXTURE_H_
