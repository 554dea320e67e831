// SPDX-License-Identifier: Apache-2.0
// Read-only and secondary instances in another process than the one that has
// the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "tests/api/rocksdb/fs/cluster_database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::DB;
using rocksdb::Status;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A process that waits, does this each time that it is asked, and tells what
// came of it. To be made before anything is opened, as it is forked.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<std::string()>& work) {
    EXPECT_EQ(pipe(ask_.data()), 0);
    EXPECT_EQ(pipe(tell_.data()), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ask_[1]);
    char asked = 0;
    while (read(ask_[0], &asked, 1) == 1) {
      const std::string told = work() + '\n';
      if (write(tell_[1], told.data(), told.size()) < 0) break;
    }
    _exit(0);
  }
  ~OtherProcess() {
    for (const int fd : {ask_[0], ask_[1], tell_[0], tell_[1]}) close(fd);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  std::string Ask() {
    EXPECT_EQ(write(ask_[1], "?", 1), 1);
    std::string told;
    char byte = 0;
    while (read(tell_[0], &byte, 1) == 1 && byte != '\n') told += byte;
    return told;
  }

 private:
  std::array<int, 2> ask_ = {-1, -1};
  std::array<int, 2> tell_ = {-1, -1};
  pid_t pid_ = -1;
};

using Opening = std::function<Status(const rocksdb::Options&, DB**)>;

class OtherProcessTest : public testing::PluginFixture {
 protected:
  // Each of them as long as it is needed for one key.
  std::string GetBy(const Opening& open) {
    Restart();
    DB* raw = nullptr;
    const Status opened = open(options_, &raw);
    db_.reset(raw);
    std::string got = opened.ok() ? Get("a") : opened.ToString();
    Close();
    env_.reset();
    fs_.reset();
    return got;
  }
  std::string ReadOnly() {
    return GetBy([this](const rocksdb::Options& options, DB** db) {
      return DB::OpenForReadOnly(options, path_, db);
    });
  }
  std::string Secondary() {
    return GetBy([this](rocksdb::Options options, DB** db) {
      options.max_open_files = -1;
      return DB::OpenAsSecondary(options, path_, directory_.File("secondary"),
                                 db);
    });
  }
};

// While a process has the log, no other one reads the database, and none
// disturbs it.
TEST_F(OtherProcessTest, InstancesOfOthersAreRefusedWhileTheLogIsOpen) {
  OtherProcess read_only([this] { return ReadOnly(); });
  OtherProcess secondary([this] { return Secondary(); });
  Restart();
  Open();
  Put("a", "1", true);
  for (OtherProcess* other : {&read_only, &secondary}) {
    const std::string told = other->Ask();
    EXPECT_THAT(told, StartsWith("IO error: "));
    EXPECT_THAT(told, HasSubstr("another writer has this region open"));
  }
  Put("b", "2", true);
  EXPECT_EQ(Get("a"), "1");
  Close();
  env_.reset();
  fs_.reset();
  EXPECT_EQ(read_only.Ask(), "1");
  EXPECT_EQ(secondary.Ask(), "1");
  Restart();
  Open();
  EXPECT_EQ(Get("b"), "2");
}

using ClusterReaderTest = testing::ClusterDatabaseFixture;

// The log of a cluster has no lock that refuses: whoever opens it has it, to
// read only, too.
TEST_F(ClusterReaderTest, InstanceOfAnotherProcessTakesTheLog) {
  Open();
  Put("a", "1", true);
  const std::unique_ptr<rocksdb::Env> env = std::move(env_);
  const std::unique_ptr<DB> first = std::move(db_);
  wal_options_ = On(2);
  Restart();
  DB* raw = nullptr;
  const Status opened = DB::OpenForReadOnly(options_, path_, &raw);
  db_.reset(raw);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(Get("a"), "1");
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const Status put = first->Put(sync, "b", "2");
  EXPECT_TRUE(put.IsIOFenced()) << put.ToString();
}

}  // namespace
}  // namespace alpheus::wal
