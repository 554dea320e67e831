// SPDX-License-Identifier: Apache-2.0
#include "quorum/cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "quorum/cluster/host_numbers.h"
#include "quorum/members/cluster_key.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kId[] = "cluster_id = '00000000-0000-0001-0000-000000000002'\n";
constexpr char kNode1[] = "[[member]]\nnode = 1\naddress = 'a:1'\n";
constexpr char kNode2[] = "[[member]]\nnode = 2\naddress = 'a:2'\n";

// A name server of the test's own: numbers are what they are.
absl::StatusOr<std::vector<std::string>> KnownHosts(const std::string& host) {
  using Numbers = std::vector<std::string>;
  static const std::map<std::string, Numbers> names = {
      {"a", {"10.0.0.7"}},
      {"127.example.com", {"192.0.2.1"}},
      {"localhost.example.com", {"192.0.2.2"}},
      {"half-here", {"127.0.0.1", "192.0.2.3"}},
      {"own-name", {"127.0.1.1"}},
  };
  const auto found = names.find(host);
  if (found != names.end()) return found->second;
  if (host == "nobody") return absl::NotFoundError("nobody knows this name");
  return LookUpHost(host);
}

void WriteText(const std::string& path, std::string_view text) {
  const auto bytes = AsBytes(text);
  testing::WriteFile(path, {bytes.begin(), bytes.end()});
}

// `where` is line:column of the file.
void ExpectRefused(const std::string& text, const std::string& where,
                   const std::string& what) {
  const absl::Status status = ParseClusterFile(text, "dir/c.toml").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  const std::string message(status.message());
  EXPECT_THAT(message, StartsWith("dir/c.toml:" + where + ": ")) << text;
  EXPECT_THAT(message, HasSubstr(what)) << text;
}

TEST(ClusterFileTest, EveryKeyIsRead) {
  const std::string text = std::string("configuration_id = 9\n") +
                           "write_quorum = 1\nread_quorum = 2\n" +
                           "fabric = 'verbs'\n" + kId + kNode2 +
                           "may_be_primary = false\nclients = 'c:3'\n" + kNode1;
  const auto cluster = ParseClusterFile(text, "c.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ClusterConfiguration expected{
      {1, 2},
      9,
      {2, 1, 2},
      {{NodeId(1), {"a", 1}, true},
       {NodeId(2), {"a", 2}, false, Address{"c", 3}}}};
  expected.fabric = ClusterFabric::kVerbs;
  EXPECT_EQ(*cluster, expected);
}

TEST(ClusterFileTest, KeysThatAreLeftOutHaveTheirDefaults) {
  const auto cluster = ParseClusterFile(std::string(kId) + kNode1, "c.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(*cluster,
            (ClusterConfiguration{
                {1, 2}, 1, {1, 1, 1}, {{NodeId(1), {"a", 1}, true}}}));
}

TEST(ClusterFileTest, ClusterIdHasTheFormOfUuidgen) {
  for (const char* id : {"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a",
                         "9F0C5F5E6A0B4C0E8F5A2D1F6D6F4B1A"}) {
    const std::string text =
        std::string("cluster_id = '") + id + "'\n" + kNode1;
    const auto cluster = ParseClusterFile(text, "c.toml");
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->cluster_id.ToString(),
              "9f0c5f5e6a0b4c0e8f5a2d1f6d6f4b1a");
  }
}

TEST(ClusterFileTest, TextThatIsNoTomlIsRefused) {
  ExpectRefused("a = = 1\n", "1:5", "not valid TOML: ");
  ExpectRefused("a = 1\n[b\n", "2:3", "not valid TOML: ");
  ExpectRefused("a = 1\na = 2\n", "2:5", "not valid TOML: ");
  ExpectRefused("a = \"\xff\"\n", "1:5", "not valid TOML: ");
}

TEST(ClusterFileTest, UnknownKeysAreRefused) {
  ExpectRefused(std::string(kId) + "write_qourum = 1\n" + kNode1, "2:1",
                "unknown key \"write_qourum\". Known here are cluster_id "
                "configuration_id write_quorum read_quorum fabric key_file "
                "insecure_without_key membership zookeeper encryption member");
  ExpectRefused(std::string(kId) + kNode1 + "  port = 1\n", "5:3",
                "unknown key \"port\". Known here are node address "
                "may_be_primary clients");
  ExpectRefused(std::string(kId) + kNode1 + "[other]\n", "5:2",
                "unknown key \"other\"");
}

TEST(ClusterFileTest, MissingKeysAreRefused) {
  ExpectRefused("", "1:1", "key \"cluster_id\" is missing");
  ExpectRefused(kNode1, "1:1", "key \"cluster_id\" is missing");
  ExpectRefused(kId, "1:1", "key \"member\" is missing");
  ExpectRefused(std::string(kId) + "[[member]]\naddress = 'a:1'\n", "2:1",
                "key \"node\" is missing");
  ExpectRefused(std::string(kId) + "[[member]]\nnode = 1\n", "2:1",
                "key \"address\" is missing");
}

TEST(ClusterFileTest, KeyFileThatIsNoneIsRefused) {
  ExpectRefused(std::string(kId) + "key_file = ''\n" + kNode1, "2:12",
                "names no file");
  ExpectRefused(std::string(kId) +
                    "key_file = 'k'\ninsecure_without_key = true\n" + kNode1,
                "3:24", "Leave one of the two out");
}

// One line behind kId, in front of the members.
TEST(ClusterFileTest, WrongTypesAndValuesAreRefused) {
  const struct {
    const char *line, *where, *what;
  } cases[] = {
      {"write_quorum = '1'", "2:16", "is a string, not an integer"},
      {"write_quorum = 1.0", "2:16", "is a float, not an integer"},
      {"write_quorum = true", "2:16", "is a boolean, not an integer"},
      {"write_quorum = [1]", "2:16", "is an array, not an integer"},
      {"write_quorum = {}", "2:16", "is a table, not an integer"},
      {"write_quorum = 1979-05-27", "2:16", "is a date or time, not an int"},
      {"write_quorum = 0", "2:16", "\"write_quorum\" is 0; it must be 1 to 16"},
      {"read_quorum = 17", "2:15", "\"read_quorum\" is 17; it must be 1 to 16"},
      {"read_quorum = -1", "2:15", "\"read_quorum\" is -1; it must be 1 to 16"},
      {"key_file = 1", "2:12", "is an integer, not a string"},
      {"insecure_without_key = 1", "2:24", "is an integer, not a boolean"},
      {"fabric = 'udp'", "2:10", "\"udp\" is unknown. Known are tcp and verbs"},
      {"configuration_id = 0", "2:20", "is 0; it must be 1 to 9223372036854"},
  };
  for (const auto& c : cases) {
    ExpectRefused(std::string(kId) + c.line + "\n" + kNode1, c.where, c.what);
  }
}

TEST(ClusterFileTest, WrongClusterIdsAreRefused) {
  ExpectRefused(std::string("cluster_id = 1\n") + kNode1, "1:14",
                "is an integer, not a string");
  for (const char* id : {"", "abc", "0123456789abcdef0123456789abcdeg",
                         "0123456789abcdef0123456789abcdef0",
                         "00000000-0000-0000-0000-000000000000"}) {
    ExpectRefused(std::string("cluster_id = '") + id + "'\n" + kNode1, "1:14",
                  "is not a cluster id");
    // A bare Debian has no uuidgen.
    ExpectRefused(std::string("cluster_id = '") + id + "'\n" + kNode1, "1:14",
                  "`cat /proc/sys/kernel/random/uuid` prints");
  }
}

TEST(ClusterFileTest, WrongMembersAreRefused) {
  const struct {
    std::string text;
    const char *where, *what;
  } cases[] = {
      {"member = 1\n", "2:10", "\"member\" is not a list of [[member]] tables"},
      {"[member]\nnode = 1\n", "2:1", "\"member\" is not a list of [[member]]"},
      {"member = []\n", "2:10", "0 members; a log has 1 to 16 of them"},
      {"member = [1]\n", "2:11", "a member is an integer, not a [[member]]"},
      {"[[member]]\nnode = 'a'\naddress = 'a:1'\n", "3:8",
       "\"node\" is a string, not an integer"},
      {"[[member]]\nnode = 65536\naddress = 'a:1'\n", "3:8",
       "\"node\" is 65536; it must be 1 to 65535"},
      {"[[member]]\nnode = 1\naddress = 7400\n", "4:11",
       "\"address\" is an integer, not a string"},
      {"[[member]]\nnode = 1\naddress = 'a'\n", "4:11",
       "address \"a\": it has no port"},
      {std::string(kNode1) + "may_be_primary = 1\n", "5:18",
       "\"may_be_primary\" is an integer, not a boolean"},
      {std::string(kNode1) + "clients = 'c'\n", "5:11",
       "address \"c\": it has no port"},
      {std::string(kNode1) + "may_be_primary = false\n", "2:1",
       "no member may be primary"},
      {std::string(kNode2) + kNode1 + kNode2, "8:1",
       "node 2 is a member twice, at a:2 and a:2"},
      {std::string(kNode1) + "[[member]]\nnode = 2\naddress = 'A:1'\n", "5:1",
       "nodes 1 and 2 share the address a:1"},
  };
  for (const auto& c : cases) {
    ExpectRefused(kId + c.text, c.where, c.what);
  }
}

TEST(ClusterFileTest, MoreMembersThanASuperlineHasRoomForAreRefused) {
  std::string text = kId;
  for (int node = 1; node <= 17; ++node) {
    text += "[[member]]\nnode = " + std::to_string(node) +
            "\naddress = 'a:" + std::to_string(node) + "'\n";
  }
  ExpectRefused(text, "2:1", "17 members; a log has 1 to 16 of them");
}

// The key that is named is the one that does not fit the others.
TEST(ClusterFileTest, SizesThatDoNotFitAreRefused) {
  const std::string members = std::string(kNode1) + kNode2;
  ExpectRefused(std::string(kId) + "write_quorum = 3\n" + members, "2:16",
                "write_quorum W = 3 of N = 2 replicas");
  ExpectRefused(
      std::string(kId) + "write_quorum = 1\nread_quorum = 1\n" + members,
      "3:15", "R + W = 1 + 1 with N = 2 replicas");
  ExpectRefused(std::string(kId) + "read_quorum = 3\n" + members, "2:15",
                "read_quorum R = 3 of N = 2 replicas");
}

// The sample says what the defaults are; here it is held to that.
TEST(ClusterFileTest, SampleShowsEveryDefault) {
  const auto bytes = testing::ReadFile(ALPHEUS_SAMPLE_CLUSTER);
  std::string text(AsText(bytes));
  const auto sample = ParseClusterFile(text, "sample");
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->members.size(), 3u);
  for (const char* key :
       {"configuration_id", "write_quorum", "read_quorum",
        "insecure_without_key", "fabric", "may_be_primary", "membership"}) {
    const size_t at = text.find(std::string("\n# ") + key + " = ");
    ASSERT_NE(at, std::string::npos) << key;
    text.erase(at + 1, 2);
  }
  const auto explicit_defaults = ParseClusterFile(text, "sample");
  ASSERT_TRUE(explicit_defaults.ok()) << explicit_defaults.status();
  EXPECT_EQ(*explicit_defaults, *sample);
}

// Its lines about ZooKeeper show the defaults, too, but for the servers.
TEST(ClusterFileTest, SampleShowsEveryDefaultOfZookeeper) {
  const auto bytes = testing::ReadFile(ALPHEUS_SAMPLE_CLUSTER);
  std::string text(AsText(bytes));
  for (const char* line :
       {"membership = \"static\"", "[zookeeper]\n", "servers = ", "path = ",
        "insecure_without_identity = ", "admin = ", "session_timeout_ms = "}) {
    const size_t at = text.find(std::string("\n# ") + line);
    ASSERT_NE(at, std::string::npos) << line;
    text.erase(at + 1, 2);
  }
  const size_t at = text.find("\"static\"\n");
  text.replace(at, 8, "\"zookeeper\"");
  const auto sample = ParseClusterFile(text, "sample");
  ASSERT_TRUE(sample.ok()) << sample.status();
  ZookeeperService expected;
  expected.servers = {{"127.0.0.1", 2181}};
  EXPECT_EQ(sample->zookeeper, expected);
}

constexpr char kService[] = "[zookeeper]\nservers = ['z:2181']\n";

TEST(ClusterFileTest, EveryKeyOfZookeeperIsRead) {
  const auto cluster = ParseClusterFile(
      std::string("membership = 'zookeeper'\n") + kId +
          "[zookeeper]\nservers = ['z:2181', '[::1]:2182']\npath = '/a/b-c'\n"
          "identity_file = 'i'\nadmin = 'ops:x='\nsession_timeout_ms = 400\n" +
          kNode1,
      "c.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ZookeeperService expected;
  expected.servers = {{"z", 2181}, {"::1", 2182}};
  expected.path = "/a/b-c";
  expected.identity_file = "i";
  expected.admin = "ops:x=";
  expected.session_timeout_ms = 400;
  EXPECT_EQ(cluster->zookeeper, expected);
}

TEST(ClusterFileTest, WrongMembershipsAreRefused) {
  const struct {
    std::string text;
    const char *where, *what;
  } cases[] = {
      {"membership = 'etcd'\n", "2:14",
       "\"etcd\" is unknown. Known are static and zookeeper"},
      {"membership = 1\n", "2:14", "is an integer, not a string"},
      {"membership = 'zookeeper'\n", "1:1", "there is no table [zookeeper]"},
      {"membership = 'zookeeper'\nzookeeper = 1\n", "3:13",
       "there is no table [zookeeper]"},
      {kService, "2:1", "and membership is \"static\""},
  };
  for (const auto& c : cases) {
    ExpectRefused(kId + c.text + kNode1, c.where, c.what);
  }
}

// One line in the table, behind its servers.
TEST(ClusterFileTest, WrongKeysOfZookeeperAreRefused) {
  const struct {
    const char *line, *where, *what;
  } cases[] = {
      {"host = 1", "5:1", "unknown key \"host\""},
      {"path = 'a'", "5:8", "\"a\" is no path for znodes"},
      {"path = '/'", "5:8", "is no path for znodes"},
      {"path = '/a/'", "5:8", "is no path for znodes"},
      {"path = '/a//b'", "5:8", "is no path for znodes"},
      {"path = '/a/../b'", "5:8", "is no path for znodes"},
      {"path = '/zookeeper/a'", "5:8", "is no path for znodes"},
      {"identity_file = ''", "5:17", "names no file"},
      {"identity_file = 'i'\ninsecure_without_identity = true", "6:29",
       "Leave one of the two out"},
      {"admin = 'ops'", "5:9", "is not name:digest"},
      {"admin = ':x'", "5:9", "is not name:digest"},
      {"admin = 'ops:'", "5:9", "is not name:digest"},
      {"session_timeout_ms = 199", "5:22", "it must be 200 to 600000"},
      {"session_timeout_ms = 600001", "5:22", "it must be 200 to 600000"},
  };
  const std::string front =
      std::string(kId) + "membership = 'zookeeper'\n" + kService;
  for (const auto& c : cases) {
    ExpectRefused(front + c.line + "\n" + kNode1, c.where, c.what);
  }
}

TEST(ClusterFileTest, WrongServersAreRefused) {
  const std::string front =
      std::string(kId) + "membership = 'zookeeper'\n[zookeeper]\n";
  ExpectRefused(front + kNode1, "3:1", "key \"servers\" is missing");
  ExpectRefused(front + "servers = 'z:1'\n" + kNode1, "4:11",
                "is not a list of 1 to 16 addresses");
  ExpectRefused(front + "servers = []\n" + kNode1, "4:11",
                "is not a list of 1 to 16 addresses");
  ExpectRefused(front + "servers = [1]\n" + kNode1, "4:12",
                "a server is an integer, not a string");
  ExpectRefused(front + "servers = ['z']\n" + kNode1, "4:12", "it has no port");
}

TEST(ClusterFileTest, FilesThatCannotBeReadAreRefused) {
  const testing::TempDirectory directory;
  const std::string missing = directory.File("missing.toml");
  EXPECT_EQ(LoadClusterFile(missing).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(LoadClusterFile(missing).status().message()),
      HasSubstr(missing + " can't be opened: No such file or directory. Is the "
                          "path right"));
}

// A pipe that nobody writes to is not waited for.
TEST(ClusterFileTest, WhatIsNoPlainFileIsRefused) {
  const testing::TempDirectory directory;
  const std::string pipe = directory.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {pipe, directory.path(), std::string("/dev/null")}) {
    const absl::Status status = LoadClusterFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(path + " is not a regular file"));
  }
}

TEST(ClusterFileTest, LargestFileIsReadAndLargerOnesAreRefused) {
  const testing::TempDirectory directory;
  const std::string path = directory.File("c.toml");
  std::string text =
      std::string("insecure_without_key = true\n") + kId + kNode1;
  text.resize(kClusterFileBytesMax, '\n');
  WriteText(path, text);
  EXPECT_TRUE(LoadClusterFile(path, KnownHosts).ok());
  WriteText(path, text + "\n");
  const absl::Status status = LoadClusterFile(path, KnownHosts).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(path + " has more than 262144 bytes"));
}

// --- The key -----------------------------------------------------------------

constexpr char kDigits[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

class ClusterFileKeyTest : public ::testing::Test {
 protected:
  absl::StatusOr<ClusterConfiguration> Load(const std::string& line,
                                            const char* member = kNode1) {
    const std::string path = directory_.File("c.toml");
    WriteText(path, line + "\n" + kId + member);
    return LoadClusterFile(path, KnownHosts);
  }
  std::string KeyFile() const { return directory_.File("the.key"); }
  void WriteKey(std::filesystem::perms mode) {
    WriteText(KeyFile(), kDigits);
    std::filesystem::permissions(KeyFile(), mode);
  }

  const testing::TempDirectory directory_;
};

TEST_F(ClusterFileKeyTest, LiesBesideTheClusterFileOrWhereItSays) {
  WriteKey(std::filesystem::perms::owner_read);
  const ClusterKey key = *ParseClusterKey(kDigits, "key");
  for (const std::string& name : {std::string("the.key"), KeyFile()}) {
    const auto cluster = Load("key_file = '" + name + "'");
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->key_file, KeyFile());
    EXPECT_EQ(cluster->key, key);
  }
}

TEST_F(ClusterFileKeyTest, ThatCannotBeUsedIsRefused) {
  EXPECT_TRUE(absl::IsNotFound(Load("key_file = 'the.key'").status()));
  WriteKey(std::filesystem::perms::owner_read |
           std::filesystem::perms::group_read);
  const absl::Status open = Load("key_file = 'the.key'").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
  EXPECT_THAT(std::string(open.message()), HasSubstr("chmod 600"));
}

// A cluster that unauthenticated clients can reach has a key, or says that it
// wants none.
TEST_F(ClusterFileKeyTest, MayBeLeftOutOnOneMachineOnly) {
  for (const char* host :
       {"127.0.0.1", "127.9.8.7", "localhost", "LocalHost", "[::1]", "127.1",
        "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "own-name"}) {
    const std::string member =
        absl::StrCat("[[member]]\nnode = 1\naddress = '", host, ":1'\n");
    const auto cluster = Load("", member.c_str());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_FALSE(cluster->key.is_set());
  }
  for (const char* host :
       {"10.0.0.1", "a", "[::2]", "127.example.com", "localhost.example.com",
        "[::ffff:10.0.0.1]", "half-here", "128.0.0.1"}) {
    const std::string member =
        absl::StrCat("[[member]]\nnode = 1\naddress = '", host, ":1'\n");
    const absl::Status refused = Load("", member.c_str()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("alpheus key new"));
    EXPECT_TRUE(Load("insecure_without_key = true", member.c_str()).ok());
  }
}

// Fabrics take numbers; two spellings of one place are one machine.
TEST_F(ClusterFileKeyTest, MembersAreWhereTheirNamesLead) {
  const auto named =
      Load("insecure_without_key = true",
           "[[member]]\nnode = 1\naddress = 'a:1'\n"
           "[[member]]\nnode = 2\naddress = '[::FFFF:10.0.0.8]:1'\n");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->members[0].address.ToString(), "10.0.0.7:1");
  EXPECT_EQ(named->members[1].address.ToString(), "10.0.0.8:1");
  const absl::Status twice =
      Load("",
           "[[member]]\nnode = 1\naddress = '127.0.0.1:1'\n"
           "[[member]]\nnode = 2\naddress = '127.1:1'\n")
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(twice)) << twice;
  EXPECT_THAT(std::string(twice.message()), HasSubstr("node 2"));
}

TEST_F(ClusterFileKeyTest, MembersThatLeadNowhereAreRefused) {
  const absl::Status unknown =
      Load("", "[[member]]\nnode = 1\naddress = 'nobody:1'\n").status();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("/etc/hosts"));
  for (const char* host : {"0.0.0.0", "[::]", "0"}) {
    const std::string member =
        absl::StrCat("[[member]]\nnode = 1\naddress = '", host, ":1'\n");
    const absl::Status all = Load("", member.c_str()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(all)) << host << all;
    EXPECT_THAT(std::string(all.message()),
                HasSubstr("nobody can connect to it"));
  }
}

// --- The identity for ZooKeeper ----------------------------------------------

class ClusterFileIdentityTest : public ClusterFileKeyTest {
 protected:
  absl::StatusOr<ClusterConfiguration> LoadService(const std::string& servers,
                                                   const std::string& line) {
    const std::string path = directory_.File("c.toml");
    WriteText(path, "insecure_without_key = true\nmembership = 'zookeeper'\n" +
                        std::string(kId) + "[zookeeper]\nservers = " + servers +
                        "\n" + line + "\n" + kNode1);
    return LoadClusterFile(path, KnownHosts);
  }
};

TEST_F(ClusterFileIdentityTest, LiesBesideTheClusterFile) {
  WriteText(directory_.File("who"), "alpheus:secret\n");
  std::filesystem::permissions(directory_.File("who"),
                               std::filesystem::perms::owner_read);
  const auto cluster =
      LoadService("['a:2181', 'localhost:2182']", "identity_file = 'who'");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->zookeeper->identity, "alpheus:secret");
  // Servers are where their names lead.
  EXPECT_EQ(cluster->zookeeper->servers[0], (Address{"10.0.0.7", 2181}));
  EXPECT_EQ(cluster->zookeeper->servers[1].port, 2182);
}

TEST_F(ClusterFileIdentityTest, MayBeLeftOutOnOneMachineOnly) {
  EXPECT_TRUE(LoadService("['127.0.0.1:1', 'localhost:2']", "").ok());
  const absl::Status status =
      LoadService("['127.0.0.1:1', 'a:2']", "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a:2 can be reached"));
  EXPECT_TRUE(LoadService("['a:2']", "insecure_without_identity = true").ok());
}

// A log is opened without ZooKeeper, too.
TEST_F(ClusterFileIdentityTest, ServersWhoseNamesLeadNowhereAreLeftOut) {
  const std::string open = "insecure_without_identity = true";
  const auto some = LoadService("['nobody:2', '127.0.0.1:1']", open);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->zookeeper->servers, (std::vector<Address>{{"127.0.0.1", 1}}));
  EXPECT_THAT(some->zookeeper->warning,
              HasSubstr("of 2 servers of ZooKeeper 1 are used"));
  EXPECT_THAT(some->zookeeper->warning, HasSubstr("nobody:2"));
  const auto none = LoadService("['nobody:2']", open);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->zookeeper->servers.empty());
  EXPECT_THAT(none->zookeeper->warning, HasSubstr("nobody:2"));
  EXPECT_EQ(LoadService("['127.0.0.1:1']", "")->zookeeper->warning, "");
}

TEST_F(ClusterFileIdentityTest, IsNeededForAServerWhoseNameLeadsNowhereYet) {
  const absl::Status status =
      LoadService("['127.0.0.1:1', 'nobody:2']", "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("nobody:2 can be reached"));
}

TEST(ClusterFileTest, EncryptionNamesThreeFiles) {
  const std::string table =
      "[encryption]\nauthorities_file = 'ca.pem'\n"
      "certificate_file = 'node-{node}.pem'\nkey_file = 'node-{node}.key'\n";
  const auto parsed =
      ParseClusterFile(absl::StrCat(kId, table, kNode1), "file");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->encryption,
            (NodeEncryption{"ca.pem", "node-{node}.pem", "node-{node}.key"}));
  EXPECT_FALSE(ParseClusterFile(absl::StrCat(kId, kNode1), "file")->encryption);
  const auto with_list = ParseClusterFile(
      absl::StrCat(kId, table, "revoked_file = 'revoked.pem'\n", kNode1),
      "file");
  ASSERT_TRUE(with_list.ok()) << with_list.status();
  EXPECT_EQ(with_list->encryption->revoked_file, "revoked.pem");
  const auto refused = [](const std::string& text) {
    const auto cluster = ParseClusterFile(text, "file");
    EXPECT_TRUE(absl::IsInvalidArgument(cluster.status())) << cluster.status();
    return std::string(cluster.status().message());
  };
  EXPECT_THAT(refused(absl::StrCat(kId, "fabric = 'verbs'\n", table, kNode1)),
              HasSubstr("RDMA adapters don't encrypt"));
  EXPECT_THAT(refused(absl::StrCat(kId, "encryption = true\n", kNode1)),
              HasSubstr("is not a table"));
  for (const char* key : {"authorities_file", "certificate_file", "key_file"}) {
    const std::string line = absl::StrCat(key, " = '");
    std::string without = table;
    without.insert(without.find(absl::StrCat("\n", line)) + 1, "#");
    EXPECT_THAT(refused(absl::StrCat(kId, without, kNode1)),
                HasSubstr(absl::StrCat("key \"", key, "\" is missing")));
    std::string empty = table;
    const size_t begin = empty.find(absl::StrCat("\n", line)) + 1 + line.size();
    empty.erase(begin, empty.find('\'', begin) - begin);
    EXPECT_THAT(refused(absl::StrCat(kId, empty, kNode1)),
                HasSubstr(absl::StrCat("\"", key, "\" names no file")));
  }
  EXPECT_THAT(refused(absl::StrCat(kId, table, "revoked_file = ''\n", kNode1)),
              HasSubstr("\"revoked_file\" names no file"));
  EXPECT_THAT(refused(absl::StrCat(kId, table, "cipher = 'x'\n", kNode1)),
              HasSubstr("unknown key \"cipher\""));
}

}  // namespace
}  // namespace alpheus::quorum
