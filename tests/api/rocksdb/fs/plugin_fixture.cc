// SPDX-License-Identifier: Apache-2.0
#include "tests/api/rocksdb/fs/plugin_fixture.h"

#include <filesystem>
#include <system_error>

namespace alpheus::testing {

PluginFixture::PluginFixture() {
  wal_options_.log.path = directory_.File("wal");
  wal_options_.log.idle_force_us = 0;
  wal_options_.create_bytes = 16 << 20;
  wal_options_.stall_ms = 0;
  // Tests of a full ring fill it.
  wal_options_.memtable_bytes = 0;
  options_.create_if_missing = true;
  Restart();
}

PluginFixture::~PluginFixture() { Close(); }

void PluginFixture::Restart() {
  env_.reset();
  fs_ = std::make_shared<wal::WalFileSystem>(wal_options_,
                                             rocksdb::FileSystem::Default());
  env_ = rocksdb::NewCompositeEnv(fs_);
  options_.env = env_.get();
}

rocksdb::Status PluginFixture::TryOpen() {
  rocksdb::DB* db = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(options_, path_, &db);
  db_.reset(db);
  return opened;
}

void PluginFixture::Open() {
  const rocksdb::Status opened = TryOpen();
  ASSERT_TRUE(opened.ok()) << opened.ToString();
}

void PluginFixture::Close() { db_.reset(); }

void PluginFixture::Put(const std::string& key, const std::string& value,
                        bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status put = db_->Put(options, key, value);
  ASSERT_TRUE(put.ok()) << put.ToString();
}

std::string PluginFixture::Get(const std::string& key) {
  std::string value;
  const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), key, &value);
  if (got.IsNotFound()) return "(none)";
  return got.ok() ? value : got.ToString();
}

std::vector<std::string> PluginFixture::PlainWalFiles(
    const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    if (!entry.is_symlink() && entry.path().extension() == ".log") {
      names.push_back(entry.path().filename().string());
    }
  }
  return names;
}

void PluginFixture::Flush() {
  const rocksdb::Status flushed = db_->Flush(rocksdb::FlushOptions());
  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
  // It waits until background work is over.
  EXPECT_TRUE(db_->PauseBackgroundWork().ok());
  EXPECT_TRUE(db_->ContinueBackgroundWork().ok());
}

std::vector<std::string> PluginFixture::LogWalFiles(
    const std::string& directory) {
  const auto store = fs_->Store();
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? (*store)->List(directory) : std::vector<std::string>();
}

}  // namespace alpheus::testing
