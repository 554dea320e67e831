// SPDX-License-Identifier: Apache-2.0
// A process that has the few words of a location finds the puts there.
#include "bench/rocksdb/location.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/rocksdb/database.h"
#include "bench/rocksdb/flex_store.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::bench::wal {
namespace {

constexpr uint64_t kRegionBytes = 16 << 20;

TEST(LocationTest, PutsAreFoundByWhoOpensThePlaceAgain) {
  for (const char* kind : {kDefaultKind, kFlexKind, kAlpheusKind}) {
    SCOPED_TRACE(kind);
    testing::TempDirectory directory;
    const Location location{
        .kind = kind, .folder = directory.path(), .region_bytes = kRegionBytes};
    ASSERT_TRUE(
        FlexStore::Format(FlexRegionIn(location.folder), kRegionBytes).ok());
    const std::string folder = directory.File("db");
    for (const uint64_t found_before : {0, 1}) {
      const auto opened = OpenPlace(location);
      ASSERT_TRUE(opened.ok()) << opened.status();
      auto database = Database::Open(opened->place, folder);
      ASSERT_TRUE(database.ok()) << database.status();
      const auto count = database->CountKeys();
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(*count, found_before);
      EXPECT_TRUE(database->Put(true, "key", "value").ok());
      EXPECT_TRUE(database->Close().ok());
    }
  }
}

TEST(LocationTest, UnknownKindIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      OpenPlace({.kind = "nothing", .folder = "/dev/shm"}).status()));
}

}  // namespace
}  // namespace alpheus::bench::wal
