// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

WalOptions MustParse(const std::string& uri) {
  absl::StatusOr<WalOptions> options = ParseWalUri(uri);
  EXPECT_TRUE(options.ok()) << uri << ": " << options.status();
  return options.ok() ? *std::move(options) : WalOptions();
}

TEST(WalOptionsTest, PathIsEnough) {
  for (const char* uri : {"alpheus:///mnt/pmem/wal", "alpheus:/mnt/pmem/wal",
                          "alpheus:?path=/mnt/pmem/wal"}) {
    const WalOptions options = MustParse(uri);
    EXPECT_EQ(options.log.path, "/mnt/pmem/wal");
    EXPECT_EQ(options.create_bytes, 0u);
    EXPECT_FALSE(options.adopt);
  }
}

TEST(WalOptionsTest, EveryOptionIsTaken) {
  const WalOptions options = MustParse(
      "alpheus:///w?create=64MiB&wal_dir=/d&adopt=true&stall_ms=5"
      "&idle_force_us=6&exposure_records_max=8&drop_wal=true"
      "&memtable_bytes=1MiB");
  EXPECT_EQ(options.create_bytes, 64u << 20);
  EXPECT_EQ(options.wal_directory, "/d");
  EXPECT_TRUE(options.adopt);
  EXPECT_TRUE(options.drop_wal);
  EXPECT_TRUE(MustParse("alpheus:///w?keep_wal=true").keep_wal);
  EXPECT_EQ(options.memtable_bytes, 1u << 20);
  EXPECT_EQ(MustParse("alpheus:///w").memtable_bytes, std::nullopt);
  EXPECT_TRUE(MustParse("alpheus:///w/?create=1MiB").is_folder);
  EXPECT_FALSE(options.is_folder);
  EXPECT_EQ(options.stall_ms, 5u);
  EXPECT_EQ(options.log.idle_force_us, 6u);
  EXPECT_EQ(options.log.exposure_records_max, 8u);
}

TEST(WalOptionsTest, ClusterTakesANodeAndMayGoWithoutReplica) {
  const WalOptions both = MustParse("alpheus:///w?cluster=/c.toml&node=2");
  EXPECT_EQ(both.log.path, "/w");
  EXPECT_EQ(both.log.replication.cluster_file, "/c.toml");
  EXPECT_EQ(both.log.replication.node, 2u);
  const WalOptions remote =
      MustParse("alpheus:?cluster=/c.toml&node=2&log=orders&take_over=/fs/db2");
  EXPECT_EQ(remote.log.path, "");
  EXPECT_EQ(remote.log.replication.log_name, "orders");
  EXPECT_EQ(remote.take_over, "/fs/db2");
}

TEST(WalOptionsTest, WhoFollowsIsNoNode) {
  EXPECT_TRUE(MustParse("alpheus:?cluster=/c.toml&follow=true").follow);
  EXPECT_TRUE(MustParse("alpheus:///w?follow=true").follow);
  EXPECT_FALSE(MustParse("alpheus:///w?follow=false").follow);
}

TEST(WalOptionsTest, FileHasTheSameOptions) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("wal.conf");
  std::ofstream(path) << "# the WAL\n\n path = /w  # here\ncreate=1GiB\n";
  const WalOptions options = MustParse("alpheus:?file=" + path + "&stall_ms=7");
  EXPECT_EQ(options.log.path, "/w");
  EXPECT_EQ(options.create_bytes, 1u << 30);
  EXPECT_EQ(options.stall_ms, 7u);
}

TEST(WalOptionsTest, WhatIsWrongIsNamed) {
  const struct {
    const char* uri;
    const char* says;
  } cases[] = {
      {"posix:///w", "begin with alpheus:"},
      {"alpheus:", "neither a path nor a cluster"},
      {"alpheus:?create=1MiB", "neither a path nor a cluster"},
      {"alpheus:relative", "an absolute path"},
      {"alpheus:///w?creat=1MiB", "no option is called `creat`"},
      {"alpheus:///w?create=1MB", "must be bytes"},
      {"alpheus:///w?create=99999999999GiB", "must be bytes"},
      {"alpheus:///w?create", "must be bytes"},
      {"alpheus:///w?adopt=yes", "true or false"},
      {"alpheus:///w?stall_ms=-1", "a number below 2^32"},
      {"alpheus:///w?wal_dir=d", "an absolute path"},
      {"alpheus:///w?node=1", "go together"},
      {"alpheus:///w?cluster=/c", "go together"},
      {"alpheus:///w?cluster=/c&node=1&create=1MiB", "alpheus format"},
      {"alpheus:///w?take_over=/d", "for a log of a cluster"},
      {"alpheus:?cluster=/c&node=1&take_over=d", "an absolute path"},
      {"alpheus:?cluster=/c&node=1&take_over=/d&adopt=true", "without adopt"},
      {"alpheus:///w?follow=yes", "true or false"},
      {"alpheus:///w?follow=true&create=1MiB", "only reads"},
      {"alpheus:///w?follow=true&adopt=true", "only reads"},
      {"alpheus:///w?follow=true&drop_wal=true", "only reads"},
      {"alpheus:///w?follow=true&keep_wal=true", "only reads"},
      {"alpheus:///w?keep_wal=true&drop_wal=true", "exclude each other"},
      {"alpheus:///w?drop_wal=1", "true or false"},
      {"alpheus:///w?memtable_bytes=half", "bytes"},
      {"alpheus:///w/?follow=true", "a folder of logs"},
      {"alpheus:///w/?wal_dir=/d", "a folder of logs"},
      {"alpheus:///w/?cluster=/c&node=1", "a folder of logs"},
      {"alpheus:?cluster=/c&follow=true&take_over=/d", "only reads"},
      {"alpheus:?file=wal.conf", "an absolute path"},
  };
  for (const auto& [uri, says] : cases) {
    const absl::Status status = ParseWalUri(uri).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << uri;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says)) << uri;
  }
  EXPECT_EQ(ParseWalUri("alpheus:?file=/nowhere/wal.conf").status().code(),
            Code::kNotFound);
}

TEST(WalOptionsTest, WrongLineOfAFileIsNamedWithTheFile) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("wal.conf");
  std::ofstream(path) << "path /w\n";
  const absl::Status status = ParseWalUri("alpheus:?file=" + path).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

}  // namespace
}  // namespace alpheus::wal
