// SPDX-License-Identifier: Apache-2.0
// Logs that are deleted on the nodes of a cluster, over TCP, with files.
#include "api/admin/delete_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/candidate.h"
#include "alpheus/cluster_reader.h"
#include "alpheus/log.h"
#include "api/admin/administrator.h"
#include "api/node/replica_file.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/core/ring/format_region.h"
#include "log/format/layout.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/new_file.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "quorum/membership/static_membership.h"
#include "recovery/deletion/log_deletion.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPatienceMs;
using testing::TestCluster;

constexpr uint64_t kRegionBytes = 256 * 1024;

class DeleteLogTest : public ::testing::Test {
 protected:
  DeleteLogTest() {
    FormatOptions options;
    options.cluster_file = cluster_.file();
    options.region_bytes = kRegionBytes;
    options.timeout_ms = kPatienceMs;
    EXPECT_TRUE(Log::Format(options).ok());
  }

  LogOptions OptionsOf(uint64_t node) {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = node;
    options.replication.open_timeout_ms = kPatienceMs;
    options.replication.ack_timeout_ms = kPatienceMs;
    return options;
  }
  void AppendOne() {
    const auto log = Log::Open(OptionsOf(1));
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append("one").ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
  absl::StatusOr<DeletedLog> Delete(uint32_t timeout_ms = kPatienceMs) {
    return DeleteLog(
        {.cluster_file = cluster_.file(), .timeout_ms = timeout_ms});
  }
  uint64_t BytesOf(int node) {
    return std::filesystem::file_size(cluster_.ReplicaPath(node));
  }
  bool IsRemoved(int node) {
    return BytesOf(node) == LayoutOfRemoved().region_bytes;
  }
  // Where a node makes the file of a removed replica.
  std::string WorkingNameOf(int node) {
    return NewFile::WorkingName(
        std::filesystem::canonical(cluster_.ReplicaPath(node)).string());
  }
  // By the node itself, which takes its time.
  void MustBeRemoved(int node) {
    const Deadline deadline = testing::InPatience();
    while (!IsRemoved(node)) {
      ASSERT_FALSE(deadline.HasPassed(Clock::Real().NowNanos())) << node;
      std::this_thread::yield();
    }
  }
  // Marks the file of a node that does not run.
  void Mark(int node, Deletion deletion) {
    const auto cluster = quorum::LoadClusterFile(cluster_.file());
    ASSERT_TRUE(cluster.ok());
    const auto file = ReplicaFile::Open(cluster_.ReplicaPath(node));
    ASSERT_TRUE(file.ok()) << file.status();
    const auto served = (*file)->Serve(
        {cluster->cluster_id, quorum::LogIdOf(cluster->cluster_id, "main"),
         NodeId(static_cast<uint64_t>(node))});
    ASSERT_TRUE(served.ok()) << served.status();
    ASSERT_TRUE((*served)->MarkDeleted(deletion).ok());
  }

  TestCluster cluster_{3};
};

// P-D3, P-D4.
TEST_F(DeleteLogTest, RecordsGoAndTheNameStaysTaken) {
  AppendOne();
  ASSERT_EQ(BytesOf(1), kRegionBytes);
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(deleted->removed, ElementsAre(1, 2, 3));
  EXPECT_TRUE(deleted->left.empty());
  for (const int node : {1, 2, 3}) EXPECT_TRUE(IsRemoved(node)) << node;
  EXPECT_THAT(cluster_.Reported(), HasSubstr("the file keeps the mark"));
  const auto opened = Log::Open(OptionsOf(1));
  EXPECT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("was deleted"));
  LogOptions with_replica = OptionsOf(2);
  with_replica.path = cluster_.ReplicaPath(2);
  const auto own = Log::Open(with_replica);
  EXPECT_TRUE(absl::IsNotFound(own.status())) << own.status();
  EXPECT_THAT(std::string(own.status().message()), HasSubstr("was deleted"));
  EXPECT_FALSE(ClusterReader::Open({.cluster_file = cluster_.file()}).ok());
  FormatOptions format;
  format.cluster_file = cluster_.file();
  format.region_bytes = kRegionBytes;
  format.timeout_ms = kPatienceMs;
  const auto again = Log::Format(format);
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("was deleted"));
  format.log_name = "second";
  EXPECT_TRUE(Log::Format(format).ok());
  // Given again it says the same; and after a restart.
  EXPECT_TRUE(Delete().ok());
  cluster_.Stop(1);
  cluster_.Start(1);
  EXPECT_TRUE(Delete().ok());
  EXPECT_TRUE(absl::IsNotFound(Log::Open(OptionsOf(1)).status()));
}

// P-D5: one that was down brings nothing back, and learns of it by itself.
TEST_F(DeleteLogTest, NodeThatWasDownRemovesItsRecordsWhenItIsBack) {
  AppendOne();
  cluster_.Stop(3);
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(deleted->removed, ElementsAre(1, 2));
  EXPECT_THAT(deleted->left, ElementsAre(3));
  EXPECT_EQ(BytesOf(3), kRegionBytes);
  cluster_.Start(3);
  const auto opened = Log::Open(OptionsOf(3));
  EXPECT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
  MustBeRemoved(3);
}

// P-D1: too few members; nobody is marked, and the log opens as ever.
TEST_F(DeleteLogTest, WithTooFewNodesNothingIsDone) {
  AppendOne();
  cluster_.Stop(2);
  cluster_.Stop(3);
  const auto deleted = Delete(/*timeout_ms=*/500);
  EXPECT_TRUE(absl::IsUnavailable(deleted.status())) << deleted.status();
  EXPECT_THAT(std::string(deleted.status().message()),
              HasSubstr("no record was removed"));
  cluster_.Start(2);
  AppendOne();
  EXPECT_EQ(BytesOf(1), kRegionBytes);
}

// P-D2, P-D4: a node that ended after its mark, and one that ended before its
// file was replaced.
TEST_F(DeleteLogTest, NodeThatEndedInBetweenGoesOnWhenItStarts) {
  AppendOne();
  cluster_.Stop(1);
  Mark(1, Deletion::kMarked);
  cluster_.Start(1);
  AppendOne();  // by nodes 2 and 3
  EXPECT_EQ(BytesOf(1), kRegionBytes);
  cluster_.Stop(2);
  Mark(2, Deletion::kDecided);
  cluster_.Start(2);
  EXPECT_TRUE(IsRemoved(2));
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(IsRemoved(1));
  EXPECT_TRUE(IsRemoved(3));
}

// P-D4: a removal that fails leaves the replica as it was, with its mark, and
// is made when the deletion is given again or the node starts.
TEST_F(DeleteLogTest, RemovalThatFailsKeepsTheMarkAndIsMadeLater) {
  AppendOne();
  // Folders in the way of the files that are to come.
  for (const int node : {2, 3}) {
    ASSERT_TRUE(std::filesystem::create_directory(WorkingNameOf(node)));
  }
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(deleted->removed, ElementsAre(1));
  EXPECT_THAT(deleted->left, ElementsAre(2, 3));
  EXPECT_EQ(BytesOf(2), kRegionBytes);
  EXPECT_TRUE(absl::IsNotFound(Log::Open(OptionsOf(1)).status()));
  cluster_.Stop(3);
  cluster_.Start(3);
  EXPECT_THAT(cluster_.Reported(), HasSubstr("its records can't be removed"));
  EXPECT_EQ(BytesOf(3), kRegionBytes);
  for (const int node : {2, 3}) {
    ASSERT_TRUE(std::filesystem::remove(WorkingNameOf(node)));
  }
  cluster_.Stop(3);
  cluster_.Start(3);
  EXPECT_TRUE(IsRemoved(3));
  const auto again = Delete();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->removed, ElementsAre(1, 2, 3));
  EXPECT_TRUE(IsRemoved(2));
}

// ND7: and by the node itself, while it runs, which says once why not yet.
TEST_F(DeleteLogTest, RemovalThatFailsIsTriedAgain) {
  AppendOne();
  ASSERT_TRUE(std::filesystem::create_directory(WorkingNameOf(3)));
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(deleted->left, ElementsAre(3));
  ASSERT_TRUE(cluster_.AwaitReported(
      {"node 3: log main: deleted, but its records can't be removed: "}, 1));
  EXPECT_EQ(BytesOf(3), kRegionBytes);
  EXPECT_TRUE(absl::IsNotFound(Log::Open(OptionsOf(1)).status()));
  ASSERT_TRUE(std::filesystem::remove(WorkingNameOf(3)));
  MustBeRemoved(3);
  ASSERT_TRUE(cluster_.AwaitReported(
      {"node 3: log main: deleted; the records in "}, 1));
  const std::string told = cluster_.Reported();
  const size_t first = told.find("its records can't be removed");
  EXPECT_EQ(told.find("its records can't be removed", first + 1),
            std::string::npos);
  // It is served as before: the deletion hears of it.
  const auto again = Delete();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->removed, ElementsAre(1, 2, 3));
}

// Whether syncs fail of files that have no name yet.
std::atomic<bool> new_files_fail{false};

// Returns the file that is mapped at the address, as the kernel names it.
std::string FileMappedAt(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream words(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    if (at >= begin && at < end) return line.substr(line.find('/'));
  }
  return "";
}

int SyncUnlessNew(const void* address, size_t bytes) {
  const bool fails = new_files_fail &&
                     FileMappedAt(address).ends_with(NewFile::WorkingName(""));
  return fails ? EIO : MsyncPersistence::SyncPages(address, bytes);
}

// P-D4: the medium fails under the small files, so the large ones stay.
TEST(DeleteLogMediumTest, NewFilesThatAreNotPersistedReplaceNothing) {
  TestCluster cluster(3, 0, SyncUnlessNew);
  FormatOptions format;
  format.cluster_file = cluster.file();
  format.region_bytes = kRegionBytes;
  format.timeout_ms = kPatienceMs;
  ASSERT_TRUE(Log::Format(format).ok());
  const auto sizes = [&cluster] {
    std::vector<uint64_t> all;
    for (const int node : {1, 2, 3}) {
      all.push_back(std::filesystem::file_size(cluster.ReplicaPath(node)));
    }
    return all;
  };
  const DeleteLogOptions options{.cluster_file = cluster.file(),
                                 .timeout_ms = kPatienceMs};
  new_files_fail = true;
  const auto deleted = DeleteLog(options);
  EXPECT_THAT(sizes(), Each(kRegionBytes));
  new_files_fail = false;
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_THAT(deleted->removed, IsEmpty());
  EXPECT_THAT(deleted->left, ElementsAre(1, 2, 3));
  const auto again = DeleteLog(options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->removed, ElementsAre(1, 2, 3));
  EXPECT_THAT(sizes(), Each(LayoutOfRemoved().region_bytes));
  for (const int node : {1, 2, 3}) {
    EXPECT_FALSE(std::filesystem::exists(
        NewFile::WorkingName(cluster.ReplicaPath(node))));
  }
}

// P-D4: a node that was killed while it made the small file.
TEST_F(DeleteLogTest, LeftoversOfARemovalAreMadeAgain) {
  AppendOne();
  cluster_.Stop(1);
  Mark(1, Deletion::kDecided);
  const std::string replica = cluster_.ReplicaPath(1);
  const std::vector<std::byte> decided = testing::ReadFile(replica);
  cluster_.Start(1);
  ASSERT_TRUE(IsRemoved(1));
  cluster_.Stop(1);
  const std::vector<std::byte> whole = testing::ReadFile(replica);
  std::vector<std::byte> unfinished = whole;
  std::fill_n(unfinished.begin(), 2 * kSuperlineCopyBytes, std::byte{0});
  for (const auto& leftover : {std::vector<std::byte>(), unfinished, whole}) {
    testing::WriteFile(replica, decided);
    testing::WriteFile(WorkingNameOf(1), leftover);
    cluster_.Start(1);
    EXPECT_TRUE(IsRemoved(1)) << leftover.size();
    EXPECT_FALSE(std::filesystem::exists(WorkingNameOf(1)));
    cluster_.Stop(1);
  }
  // Something else under that name may be needed.
  testing::WriteFile(replica, decided);
  testing::WriteFile(WorkingNameOf(1), decided);
  cluster_.Start(1);
  EXPECT_EQ(BytesOf(1), kRegionBytes);
  EXPECT_TRUE(testing::ReadFile(WorkingNameOf(1)) == decided);
  EXPECT_THAT(cluster_.Reported(), HasSubstr("move it elsewhere"));
}

// CAN6. A program that stands, and one that has the log open.
TEST_F(DeleteLogTest, CandidateEndsAndPrimaryLosesTheLog) {
  CandidateOptions options;
  options.log = OptionsOf(1);
  options.log.path = cluster_.ReplicaPath(1);
  const auto candidate = Candidate::Stand(options);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  auto log = (*candidate)->WaitForLog();
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("one").ok());
  const auto deleted = Delete();
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  absl::Status appended;
  while (appended.ok()) appended = (*log)->Append("two").status();
  EXPECT_TRUE(absl::IsAborted((*candidate)->WaitToGiveBack()));
  (*candidate)->GiveBack(*std::move(log)).IgnoreError();
  const auto next = (*candidate)->WaitForLog();
  EXPECT_TRUE(absl::IsNotFound(next.status())) << next.status();
  MustBeRemoved(1);
}

TEST_F(DeleteLogTest, LogsThatAreNotThereAndWrongFilesAreErrors) {
  DeleteLogOptions options;
  options.cluster_file = cluster_.file();
  options.log_name = "other";
  options.timeout_ms = kPatienceMs;
  EXPECT_TRUE(absl::IsNotFound(DeleteLog(options).status()))
      << DeleteLog(options).status();
  options.log_name = "not a name";
  EXPECT_TRUE(absl::IsInvalidArgument(DeleteLog(options).status()));
  options.log_name = "main";
  options.cluster_file = "nowhere.toml";
  EXPECT_FALSE(DeleteLog(options).ok());
  options.cluster_file = cluster_.file();
  cluster_.Stop(1);
  cluster_.Stop(2);
  options.timeout_ms = 200;
  EXPECT_TRUE(absl::IsUnavailable(DeleteLog(options).status()));
}

// RS4, DEL1.
TEST(DeleteLogEncryptedTest, NodeDeletesNothingAndAnOperatorDoes) {
  TestCluster cluster(3, 2, TestCluster::Machines{.encrypts = true});
  FormatOptions format;
  format.cluster_file = cluster.file();
  format.region_bytes = kRegionBytes;
  format.timeout_ms = kPatienceMs;
  ASSERT_TRUE(Log::Format(format).ok());
  ClusterAdministrator node(cluster.file(), 2);
  const auto refused = node.DeleteLog("main", {.timeout_ms = kPatienceMs});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  const auto deleted =
      DeleteLog({.cluster_file = cluster.file(), .timeout_ms = kPatienceMs});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->removed.size(), 3u);
}

// RS4: its members ask for the operator's certificate themselves, before they
// mark.
TEST(DeleteLogEncryptedTest, MembersMarkForNoNode) {
  TestCluster cluster(3, 2, TestCluster::Machines{.encrypts = true});
  FormatOptions format;
  format.cluster_file = cluster.file();
  format.region_bytes = kRegionBytes;
  format.timeout_ms = kPatienceMs;
  ASSERT_TRUE(Log::Format(format).ok());
  const auto members = quorum::LoadClusterFile(cluster.file());
  ASSERT_TRUE(members.ok()) << members.status();
  const auto as_node = Connectivity::Open(*members, NodeId(2));
  ASSERT_TRUE(as_node.ok()) << as_node.status();
  recovery::LogDeletionOptions options;
  options.cluster_id = members->cluster_id;
  options.log_id = quorum::LogIdOf(members->cluster_id, "main");
  options.self = {NodeId(2), 1};
  options.sizes = members->sizes;
  options.configuration_id = members->id;
  options.key = members->key;
  options.deadline = testing::InPatience();
  for (const quorum::ClusterMember& member : members->members) {
    options.peers.push_back({member.node, member.address.ToString()});
  }
  auto ballots = quorum::StaticMembership::Make(options.self);
  ASSERT_TRUE(ballots.ok());
  const auto deletion =
      recovery::LogDeletion::Start(*(*as_node)->fabric, Clock::Real(),
                                   (*as_node)->random, *ballots, options);
  ASSERT_TRUE(deletion.ok()) << deletion.status();
  FabricPump(*(*as_node)->fabric).RunUntilDone(**deletion);
  EXPECT_FALSE((*deletion)->status().ok());
  EXPECT_FALSE((*deletion)->is_decided());
  EXPECT_THAT(std::string((*deletion)->status().message()),
              HasSubstr("only an operator"));
  const auto log = Log::Open({.replication = {.cluster_file = cluster.file(),
                                              .node = 1,
                                              .open_timeout_ms = kPatienceMs}});
  EXPECT_TRUE(log.ok()) << log.status();
}

// By a node of a cluster that does not encrypt: for a caller with a token.
TEST_F(DeleteLogTest, AdministratorDeletes) {
  ClusterAdministrator node(cluster_.file(), 2);
  const auto deleted = node.DeleteLog("main", {.timeout_ms = kPatienceMs});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->removed.size(), 3u);
}

}  // namespace
}  // namespace alpheus
