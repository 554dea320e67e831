// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "alpheus/atomicity.h"
#include "alpheus/integrity.h"
#include "alpheus/persistent_region.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using Code = absl::StatusCode;

class PrimitivesTest : public ::testing::Test {
 protected:
  PrimitivesTest()
      : region_(*PersistentRegion::Create(directory_.File("r"), 64 << 10)) {}

  testing::TempDirectory directory_;
  PersistentRegion region_;
};

TEST_F(PrimitivesTest, ReliableBytesComeBackWhole) {
  ASSERT_TRUE(ReliableWrite(region_, 100, 7, AsBytes("content")).ok());
  const auto read = ReliableRead(region_, 100, 7);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(AsText(*read), "content");
}

TEST_F(PrimitivesTest, DamagedOrForeignBytesAreDataLoss) {
  ASSERT_TRUE(ReliableWrite(region_, 100, 7, AsBytes("content")).ok());
  EXPECT_EQ(ReliableRead(region_, 100, 8).status().code(), Code::kDataLoss);
  EXPECT_EQ(ReliableRead(region_, 101, 7).status().code(), Code::kDataLoss);
  region_.bytes()[100 + ReliableBytes(7) - 1] ^= std::byte{1};
  EXPECT_EQ(ReliableRead(region_, 100, 7).status().code(), Code::kDataLoss);
}

TEST_F(PrimitivesTest, PlacesOutsideTheRegionAreRefused) {
  const size_t end = region_.bytes().size();
  EXPECT_EQ(ReliableWrite(region_, end - 10, 7, AsBytes("x")).code(),
            Code::kOutOfRange);
  EXPECT_EQ(ReliableWrite(region_, ~size_t{0}, 7, AsBytes("x")).code(),
            Code::kOutOfRange);
  EXPECT_EQ(ReliableRead(region_, end, 7).status().code(), Code::kOutOfRange);
  EXPECT_EQ(region_.Persist(end, 1).code(), Code::kOutOfRange);
  EXPECT_TRUE(region_.Persist(0, end).ok());
  EXPECT_EQ(AtomicWrite(region_, {end, 10, 1}, {}).code(), Code::kOutOfRange);
  EXPECT_EQ(AtomicWrite(region_, {5, 10, 1}, {}).code(),
            Code::kInvalidArgument);
}

TEST_F(PrimitivesTest, AtomicValueIsReplacedAsAWhole) {
  const AtomicPlace place{8192, 100, 1};
  EXPECT_EQ(AtomicRead(region_, place).status().code(), Code::kNotFound);
  ASSERT_TRUE(AtomicWrite(region_, place, AsBytes("first")).ok());
  ASSERT_TRUE(AtomicWrite(region_, place, AsBytes("second")).ok());
  EXPECT_EQ(AsText(*AtomicRead(region_, place)), "second");
  // One copy damaged: the other holds the same value.
  region_.bytes()[8192 + 26] ^= std::byte{1};
  EXPECT_EQ(AsText(*AtomicRead(region_, place)), "second");
  region_.bytes()[8192 + AtomicBytes(100) / 2 + 26] ^= std::byte{1};
  EXPECT_EQ(AtomicRead(region_, place).status().code(), Code::kDataLoss);
}

TEST_F(PrimitivesTest, AtomicValueThatIsTooLargeIsRefused) {
  const AtomicPlace place{0, 3, 1};
  EXPECT_EQ(AtomicWrite(region_, place, AsBytes("four")).code(),
            Code::kInvalidArgument);
}

TEST_F(PrimitivesTest, ValuesSurviveReopening) {
  const std::string path = directory_.File("again");
  {
    auto region = PersistentRegion::Create(path, 64 << 10);
    ASSERT_TRUE(region.ok());
    ASSERT_TRUE(AtomicWrite(*region, {0, 10, 1}, AsBytes("kept")).ok());
    EXPECT_EQ(PersistentRegion::Open(path).status().code(),
              Code::kFailedPrecondition);
  }
  auto region = PersistentRegion::Open(path);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(AsText(*AtomicRead(*region, {0, 10, 1})), "kept");
}

TEST_F(PrimitivesTest, AnonymousRegionWorksAlike) {
  auto region = PersistentRegion::Anonymous(64 << 10);
  ASSERT_TRUE(region.ok());
  ASSERT_TRUE(ReliableWrite(*region, 0, 1, AsBytes("x")).ok());
  EXPECT_TRUE(ReliableRead(*region, 0, 1).ok());
}

}  // namespace
}  // namespace alpheus
