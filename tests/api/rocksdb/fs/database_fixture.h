// SPDX-License-Identifier: Apache-2.0
// database_fixture: a RocksDB on the plugin that crashes, and whose log is
// damaged.
#ifndef ALPHEUS_TESTS_API_ROCKSDB_FS_DATABASE_FIXTURE_H_
#define ALPHEUS_TESTS_API_ROCKSDB_FS_DATABASE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rocksdb/status.h"
#include "tests/api/rocksdb/fs/plugin_fixture.h"

#define ASSERT_OK(expression)                                  \
  do {                                                         \
    const rocksdb::Status status_of_it = (expression);         \
    ASSERT_TRUE(status_of_it.ok()) << status_of_it.ToString(); \
  } while (false)

namespace alpheus::testing {

class DatabaseFixture : public PluginFixture {
 protected:
  // Puts "0", "1", ... until the ring is full; returns how many are in it.
  // RocksDB then flushes by itself, which empties the ring. So its background
  // work is paused before, and goes on with the test's ContinueBackgroundWork,
  // or with Crash.
  int FillRing(const std::string& value) {
    EXPECT_TRUE(db_->PauseBackgroundWork().ok());
    rocksdb::Status put;
    int written = 0;
    while ((put = db_->Put(rocksdb::WriteOptions(), std::to_string(written),
                           value))
               .ok()) {
      ++written;
    }
    EXPECT_TRUE(put.IsNoSpace()) << put.ToString();
    return written;
  }
  // Goes to a copy of the files, as a crash at this moment leaves them.
  void Crash() {
    // Copying takes a while, in which nothing may change.
    ASSERT_OK(db_->PauseBackgroundWork());
    const std::string copy = CopyOfNow();
    // Closing waits for it, also if the test had paused it before.
    while (db_->ContinueBackgroundWork().ok()) {
    }
    Close();
    GoTo(copy);
  }
  std::string CopyOfNow() {
    std::string copy = directory_.File("copy" + std::to_string(++copies_));
    std::filesystem::create_directory(copy);
    constexpr auto kHow = std::filesystem::copy_options::recursive |
                          std::filesystem::copy_options::copy_symlinks;
    std::filesystem::copy(path_, copy + "/db", kHow);
    std::filesystem::copy(wal_options_.log.path, copy + "/wal");
    return copy;
  }
  // Requires: nothing is open.
  void GoTo(const std::string& copy) {
    path_ = copy + "/db";
    wal_options_.log.path = copy + "/wal";
    wal_options_.adopt = true;
    Restart();
  }
  void FlipByte(uint64_t offset) {
    std::vector<std::byte> bytes = ReadFile(wal_options_.log.path);
    bytes[offset] ^= std::byte{1};
    WriteFile(wal_options_.log.path, bytes);
  }
  // Where a text lies in the region.
  uint64_t OffsetOf(const std::string& text) {
    const std::vector<std::byte> bytes = ReadFile(wal_options_.log.path);
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
    EXPECT_NE(all.find(text), std::string_view::npos);
    return all.find(text);
  }

  int copies_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_ROCKSDB_FS_DATABASE_FIXTURE_H_
