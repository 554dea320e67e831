// SPDX-License-Identifier: Apache-2.0
// Nodes whose replicas are on persistent memory that their adapters can't
// register: files of which libpmem is told that they are (PMEM_IS_PMEM_FORCE),
// and an adapter that takes no mapping of a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/wiring/adapter.h"
#include "log/base/deadline.h"
#include "log/pmem/region.h"
#include "replication/persist/platform/platform.h"
#include "tests/support/fabrics/failing_fabric.h"
#include "tests/support/fixtures/log_harness.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Whether it is a mapping of a file. (Not by the file's name: one that was
// mapped before it got its name is shown without.)
bool IsInFile(const void* address) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    if (begin > place || place >= end) continue;
    const size_t path = line.find('/');
    // Shared memory without a file is shown as one of /dev/zero.
    return path != std::string::npos &&
           !line.substr(path).starts_with("/dev/zero");
  }
  return false;
}

struct OwnedFabric {
  std::unique_ptr<fabric::Fabric> owned;
};

class RefusingFabric final : private OwnedFabric, public FailingFabric {
 public:
  explicit RefusingFabric(std::unique_ptr<fabric::Fabric> inner)
      : OwnedFabric{std::move(inner)}, FailingFabric(*owned) {}

  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override {
    if (IsInFile(bytes.data())) {
      return absl::UnavailableError("no file is taken");
    }
    return FailingFabric::Register(bytes, access);
  }
};

absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenRefusing(
    const quorum::ClusterConfiguration& cluster, NodeId near,
    RandomSource& random, const AdapterOptions& options) {
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> inner =
      OpenAdapter(cluster, near, random, options);
  if (!inner.ok()) return inner.status();
  return std::make_unique<RefusingFabric>(*std::move(inner));
}

LogOptions OptionsOf(const TestCluster& cluster) {
  LogOptions options;
  options.replication.cluster_file = cluster.file();
  options.replication.node = 1;
  options.replication.open_timeout_ms = 60'000;
  options.replication.ack_timeout_ms = 60'000;
  return options;
}

void FormatMain(const TestCluster& cluster) {
  FormatOptions format;
  format.region_bytes = 256 * 1024;
  format.cluster_file = cluster.file();
  format.log_name = "main";
  const auto formatted = Log::Format(format);
  ASSERT_TRUE(formatted.ok()) << formatted.status();
}

// The payloads in the file of a node.
std::vector<std::string> InFile(const TestCluster& cluster, int node) {
  const auto file = Region::OpenForReading(cluster.ReplicaPath(node));
  EXPECT_TRUE(file.ok()) << file.status();
  std::vector<std::byte> bytes(file->bytes().begin(), file->bytes().end());
  return LivePayloads(bytes);
}

int CountOf(const std::string& told, const std::string& what) {
  int count = 0;
  for (size_t at = told.find(what); at != std::string::npos;
       at = told.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// Opens it, again and again until all nodes take part.
std::unique_ptr<Log> OpenWithAll(TestCluster& cluster) {
  const Deadline deadline = testing::InPatience();
  for (;;) {
    auto log = Log::Open(OptionsOf(cluster));
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return nullptr;
    if ((*log)->report().absent_members.empty()) return *std::move(log);
    EXPECT_TRUE((*log)->Close().ok());
    if (deadline.HasPassed(Clock::Real().NowNanos())) {
      ADD_FAILURE() << "a node stays away";
      return nullptr;
    }
    std::this_thread::yield();
  }
}

// Goal: peers' writes reach the file before they are acknowledged; nodes say
// what they chose, and what of their declaration does not hold for it; a node
// that was started again has what it acknowledged.
TEST(ShadowNodeTest, ReplicaThatCannotBeRegisteredHasAShadow) {
  TestCluster cluster(2, 2,
                      {.open_adapter = OpenRefusing,
                       .platform = *replication::ParsePlatform("mhp,tcp")});
  ASSERT_NO_FATAL_FAILURE(FormatMain(cluster));
  std::vector<std::string> appended;
  {
    const std::unique_ptr<Log> log = OpenWithAll(cluster);
    ASSERT_NE(log, nullptr);
    for (int i = 0; i < 20; ++i) {
      appended.push_back(absl::StrCat("record ", i));
      ASSERT_TRUE(log->Append(appended.back()).ok());
    }
    // W is 2: both files have it now.
    EXPECT_EQ(InFile(cluster, 1), appended);
    EXPECT_EQ(InFile(cluster, 2), appended);
    ASSERT_TRUE(log->Close().ok());
  }
  for (const int node : {1, 2}) {
    EXPECT_THAT(cluster.Reported(),
                HasSubstr(absl::StrCat(
                    "node ", node, ": log main: ", cluster.ReplicaPath(node),
                    " can't be registered (no file is taken): "
                    "peers' writes are received in 1 MiB")));
  }
  EXPECT_THAT(cluster.Reported(),
              HasSubstr("it is served as on dmp,ddio,dram,tcp"));
  for (const int node : {1, 2}) cluster.Stop(node);
  for (const int node : {1, 2}) {
    EXPECT_EQ(InFile(cluster, node), appended);
    cluster.Start(node);
  }
  const std::unique_ptr<Log> log = OpenWithAll(cluster);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->report().records, appended.size());
}

// A primary of the machine takes the file itself, and gives it back: what it
// wrote there is read again.
TEST(ShadowNodeTest, FileThatIsTakenBackIsReadAgain) {
  TestCluster cluster(2, 2, {.open_adapter = OpenRefusing});
  ASSERT_NO_FATAL_FAILURE(FormatMain(cluster));
  LogOptions own = OptionsOf(cluster);
  own.path = cluster.ReplicaPath(1);
  const std::string lands = cluster.ReplicaPath(1) + " can't be registered";
  for (const std::string text : {"one", "two"}) {
    const auto log = Log::Open(own);
    ASSERT_TRUE(log.ok()) << log.status();
    // Its adapter takes the file.
    EXPECT_THAT((*log)->report().shadow, IsEmpty());
    ASSERT_TRUE((*log)->Append(text).ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
  const std::unique_ptr<Log> log = OpenWithAll(cluster);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->report().records, 2u);
  ASSERT_TRUE(log->Append("three").ok());
  EXPECT_EQ(InFile(cluster, 1),
            (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(CountOf(cluster.Reported(), lands), 1);
}

// Where the adapter takes it nothing changes.
TEST(ShadowNodeTest, ReplicaThatCanBeRegisteredIsWrittenItself) {
  TestCluster cluster(1, 1,
                      {.platform = *replication::ParsePlatform("mhp,tcp")});
  ASSERT_NO_FATAL_FAILURE(FormatMain(cluster));
  EXPECT_THAT(cluster.Reported(), HasSubstr("formatted"));
  EXPECT_THAT(cluster.Reported(), Not(HasSubstr("can't be registered")));
  EXPECT_THAT(cluster.Reported(), Not(HasSubstr("it is served as on")));
}

}  // namespace
}  // namespace alpheus::testing

// libpmem reads it before main; a program that was started without begins
// again.
int main(int argc, char** argv) {
  if (std::getenv("PMEM_IS_PMEM_FORCE") == nullptr) {
    std::string forced = "PMEM_IS_PMEM_FORCE=1";
    std::vector<char*> environment;
    for (char** word = environ; *word != nullptr; ++word) {
      environment.push_back(*word);
    }
    environment.push_back(forced.data());
    environment.push_back(nullptr);
    execve("/proc/self/exe", argv, environment.data());
    return EXIT_FAILURE;
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
