// SPDX-License-Identifier: Apache-2.0
// The sample of a node's configuration has every option of the program, at its
// default, and the program takes it. (That of a cluster: cluster_file_test.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "alpheus/candidate.h"
#include "api/grpc/connections/connection_limits.h"
#include "api/node/node.h"
#include "log/base/bytes.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_certificates.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kSample[] = ALPHEUS_SAMPLES "/alpheusd.toml";
constexpr char kClusterSample[] = ALPHEUS_SAMPLES "/cluster.toml";

ProgramResult RunNodeWith(const Arguments& arguments) {
  demo::Program program;
  program.argv = {ALPHEUSD_BINARY};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  auto result = demo::RunProgram(program);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ProgramResult();
}

// The samples in a directory of their own, with a key as `alpheus key new`
// makes it.
std::string CopySamples(const TempDirectory& directory) {
  for (const char* sample : {kSample, kClusterSample}) {
    std::filesystem::copy(sample, directory.path());
  }
  const std::string key = directory.File("cluster.key");
  std::ofstream(key) << std::string(64, 'a') << "\n";
  std::filesystem::permissions(key, std::filesystem::perms::owner_read);
  return directory.File("cluster.toml");
}

ProgramResult RunNode(const std::string& config) {
  return RunNodeWith({"--config", config});
}

// The words that begin a line in the list of options of `alpheusd --help`.
std::set<std::string> OptionsOfTheProgram() {
  const ProgramResult help = RunNodeWith({"--help"});
  std::set<std::string> options;
  for (const absl::string_view line : absl::StrSplit(help.output, '\n')) {
    absl::string_view rest = absl::StripLeadingAsciiWhitespace(line);
    if (absl::StartsWith(rest, "-h,")) rest.remove_prefix(3);
    if (!absl::ConsumePrefix(&rest, "--")) continue;
    options.emplace(rest.substr(0, rest.find_first_of(" =,")));
  }
  return options;
}

struct Setting {
  std::string value;
  bool is_default = false;  // commented out
  bool is_explained = false;
};

// Lines "key = value", after "# " if they are defaults.
std::map<std::string, Setting> ReadSample() {
  std::map<std::string, Setting> settings;
  const auto bytes = ReadFile(kSample);
  bool after_comment = false;
  for (absl::string_view line :
       absl::StrSplit(std::string(AsText(bytes)), '\n')) {
    const bool is_comment = absl::ConsumePrefix(&line, "# ");
    const size_t equals = line.find(" = ");
    const absl::string_view key = line.substr(0, equals);
    if (equals != absl::string_view::npos &&
        key.find(' ') == absl::string_view::npos) {
      settings[std::string(key)] = {std::string(line.substr(equals + 3)),
                                    is_comment, after_comment};
      after_comment = false;
    } else {
      after_comment = is_comment;
    }
  }
  return settings;
}

TEST(SamplesTest, SampleOfANodeHasEveryOption) {
  std::set<std::string> options = OptionsOfTheProgram();
  EXPECT_EQ(options.erase("help"), 1u);
  EXPECT_EQ(options.erase("config"), 1u);
  EXPECT_EQ(options.erase("version"), 1u);
  EXPECT_EQ(options.erase("check-config"), 1u);
  std::set<std::string> keys;
  for (const auto& [key, setting] : ReadSample()) {
    keys.insert(key);
    EXPECT_TRUE(setting.is_explained) << key;
  }
  EXPECT_EQ(keys, options);
}

TEST(SamplesTest, DefaultsInTheSampleAreThoseOfTheProgram) {
  const std::map<std::string, Setting> sample = ReadSample();
  std::set<std::string> defaults;
  for (const auto& [key, setting] : sample) {
    if (setting.is_default) defaults.insert(key);
  }
  ASSERT_THAT(
      defaults,
      UnorderedElementsAre(
          "connections-max", "connections-of-host-max",
          "connections-per-second", "messages", "followers-max", "heartbeat-ms",
          "listen", "metrics", "metrics-public", "platform", "priority",
          "scrub-bytes-per-second", "scrub-interval-seconds", "serve",
          "silence-ms", "silence-ms-max", "stand", "tls-certificate", "threads",
          "tls-client-ca", "tls-key", "tokens", "unopened-max", "unproved-max",
          "waiting-max", "yield-turns"));
  const CandidateOptions candidate;
  for (const auto& [key, value] : std::map<std::string, uint32_t>{
           {"priority", candidate.priority},
           {"silence-ms", candidate.silence_ms},
           {"silence-ms-max", candidate.silence_ms_max},
           {"heartbeat-ms", candidate.heartbeat_ms}}) {
    EXPECT_EQ(sample.at(key).value, absl::StrCat(value)) << key;
  }
  const NodeOptions options;
  for (const auto& [key, places] :
       std::map<std::string, uint64_t>{{"followers-max", options.followers_max},
                                       {"unopened-max", options.unopened_max},
                                       {"unproved-max", options.unproved_max},
                                       {"waiting-max", options.waiting_max}}) {
    EXPECT_EQ(sample.at(key).value, absl::StrCat(places)) << key;
  }
  const rpc::ConnectionLimitOptions connections;
  for (const auto& [key, limit] : std::map<std::string, uint64_t>{
           {"connections-max", connections.open_max},
           {"connections-of-host-max", connections.of_host_max},
           {"connections-per-second", connections.per_second}}) {
    EXPECT_EQ(sample.at(key).value, absl::StrCat(limit)) << key;
  }
  EXPECT_EQ(sample.at("threads").value, absl::StrCat(NodeOptions().threads));
  EXPECT_EQ(sample.at("yield-turns").value,
            absl::StrCat(NodeOptions().yield_turns));
  EXPECT_EQ(sample.at("scrub-bytes-per-second").value,
            absl::StrCat(NodeOptions().scrub_bytes_per_second));
  EXPECT_EQ(sample.at("scrub-interval-seconds").value,
            absl::StrCat(NodeOptions().scrub_interval_seconds));
  EXPECT_EQ(
      sample.at("platform").value,
      absl::StrCat("\"", replication::PlatformToString(NodeOptions().platform),
                   "\""));
  EXPECT_EQ(sample.at("messages").value, "\"text\"");
  EXPECT_THAT(NodeOptions().listen, IsEmpty());  // the member's address
  const TempDirectory directory;
  const auto cluster = quorum::LoadClusterFile(CopySamples(directory));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(sample.at("node").value, "1");
  EXPECT_EQ(
      sample.at("listen").value,
      absl::StrCat("\"",
                   quorum::FindMember(*cluster, NodeId(1))->address.ToString(),
                   "\""));
}

// Whether the program takes this option, or lacks a library for it.
bool IsTaken(const std::string& key) {
  if (key == "serve" || key == "tokens" || key.starts_with("tls-")) {
    return ALPHEUSD_SERVES;
  }
  return !key.starts_with("metrics") || ALPHEUSD_SHOWS_METRICS;
}

// Files that the sample names, made in this folder, by their keys.
std::map<std::string, std::string> MakeNamedFiles(
    const TempDirectory& directory) {
  const TestAuthority authority("authority");
  const TestCertificate node = authority.Issue("node");
  std::map<std::string, std::string> paths;
  for (const auto& [key, text] : std::map<std::string, std::string>{
           {"tls-certificate", node.certificate},
           {"tls-key", node.key},
           {"tls-client-ca", authority.certificate()},
           {"tokens", ""}}) {
    paths[key] = directory.File(key);
    std::ofstream(paths[key]) << text;
    std::filesystem::permissions(paths[key],
                                 std::filesystem::perms::owner_read);
  }
  return paths;
}

// It takes the sample as it stands, and with the defaults written out. It gets
// as far as looking for its directory.
TEST(SamplesTest, ProgramTakesTheSample) {
  const TempDirectory directory;
  std::map<std::string, std::string> paths = MakeNamedFiles(directory);
  paths["cluster"] = CopySamples(directory);
  paths["directory"] = directory.File("nosuch");
  for (const bool writes_out : {false, true}) {
    const std::string config = directory.File("node.toml");
    std::ofstream out(config);
    for (const auto& [key, setting] : ReadSample()) {
      if (setting.is_default && !writes_out) continue;
      if (!IsTaken(key)) continue;
      const auto path = paths.find(key);
      out << key << " = "
          << (path == paths.end() ? setting.value
                                  : absl::StrCat("\"", path->second, "\""))
          << "\n";
    }
    out.close();
    const ProgramResult result = RunNode(config);
    EXPECT_EQ(result.end.exit_status, kFailed) << result.error;
    EXPECT_THAT(result.error, HasSubstr(directory.File("nosuch")));
  }
}

// Untouched; only where they lie is another place.
TEST(SamplesTest, SamplesWorkAsTheyAreWithAKey) {
  const TempDirectory directory;
  const std::string cluster = CopySamples(directory);
  const auto check = [&](const std::string& replicas) {
    return RunNodeWith({"--config", directory.File("alpheusd.toml"),
                        "--cluster", cluster, "--directory", replicas,
                        "--check-config"});
  };
  const ProgramResult good = check(directory.path());
  EXPECT_EQ(good.end.exit_status, kGood) << good.error;
  EXPECT_THAT(good.output, HasSubstr("node 1 of cluster 9f0c5f5e"));
  EXPECT_THAT(good.output, HasSubstr("with a key: the configuration is good"));
  const ProgramResult bad = check(directory.File("nosuch"));
  EXPECT_EQ(bad.end.exit_status, kFailed) << bad.output;
  EXPECT_THAT(bad.error, HasSubstr(directory.File("nosuch")));
}

// The lines of the sample's recipe that draw an id, as somebody types them.
TEST(SamplesTest, RecipeGivesEachClusterAnIdOfItsOwn) {
  const auto bytes = ReadFile(kSample);
  std::string script;
  for (absl::string_view line :
       absl::StrSplit(std::string(AsText(bytes)), '\n')) {
    if (!absl::ConsumePrefix(&line, "#   ")) continue;
    if (!absl::StrContains(line, "id")) continue;
    absl::StrAppend(&script, line, "\n");
  }
  ASSERT_THAT(script, HasSubstr("/proc/sys/kernel/random/uuid"));
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    const TempDirectory directory;
    const std::string cluster = CopySamples(directory);
    // The sample's own is the first.
    if (i > 0) {
      RunInShell(
          absl::StrReplaceAll(script, {{"/etc/alpheus", directory.path()}}));
    }
    const auto drawn = quorum::LoadClusterFile(cluster);
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    ids.insert(drawn->cluster_id.ToString());
  }
  EXPECT_EQ(ids.size(), 3u);
}

// The steps that begin the unit give its user what the samples name.
TEST(SamplesTest, ServiceHasTheStepsToItsUser) {
  const std::string unit(AsText(ReadFile(ALPHEUS_SAMPLES "/alpheusd.service")));
  std::string steps;
  std::string user;
  for (absl::string_view line : absl::StrSplit(unit, '\n')) {
    if (absl::ConsumePrefix(&line, "#   ")) absl::StrAppend(&steps, line, "\n");
    if (absl::ConsumePrefix(&line, "User=")) user = std::string(line);
  }
  ASSERT_FALSE(user.empty());
  EXPECT_THAT(steps, ContainsRegex("useradd --system .* " + user + "\n"));
  EXPECT_THAT(steps, HasSubstr("chown -R " + user +
                               ": /var/lib/alpheus /etc/alpheus/cluster.key"));
  EXPECT_EQ(ReadSample().at("directory").value, "\"/var/lib/alpheus\"");
  // A node whose address comes late is not given up.
  EXPECT_THAT(unit, HasSubstr("\nStartLimitIntervalSec=0\n"));
}

// Where others reach it a node has a key.
TEST(SamplesTest, ListeningEverywhereWithoutAKeyIsRefused) {
  const TempDirectory directory;
  const std::string cluster = directory.File("c.toml");
  std::ofstream(cluster)
      << "cluster_id = '9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a'\n"
      << "[[member]]\nnode = 1\naddress = 'localhost:7401'\n";
  for (const char* listen : {"0.0.0.0:7401", "[::]:7401", "192.0.2.1:7401",
                             "[::ffff:0.0.0.0]:7401", "0:7401"}) {
    const ProgramResult refused =
        RunNodeWith({"--cluster", cluster, "--node", "1", "--directory",
                     directory.path(), "--listen", listen});
    EXPECT_EQ(refused.end.exit_status, kFailed) << listen;
    EXPECT_THAT(refused.error, HasSubstr("alpheus key new")) << listen;
  }
  for (const char* listen :
       {"127.0.0.1:7401", "localhost:7401", "127.1:7401"}) {
    const ProgramResult taken =
        RunNodeWith({"--cluster", cluster, "--node", "1", "--directory",
                     directory.path(), "--check-config", "--listen", listen});
    EXPECT_EQ(taken.end.exit_status, kGood) << taken.error;
  }
}

// A check that says yes to what the start refuses is none.
TEST(SamplesTest, AddressThatIsNoneIsRefusedByTheCheckToo) {
  const TempDirectory directory;
  const std::string cluster = directory.File("c.toml");
  std::ofstream(cluster)
      << "cluster_id = '9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a'\n"
      << "[[member]]\nnode = 1\naddress = 'localhost:7401'\n";
  for (const std::string listen :
       {"127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:7401x",
        "127.0.0.1:", "127.0.0.1: 7401", "127.0.0.1:99999999999", "127.0.0.1",
        ":7401", "[]:7401"}) {
    std::vector<std::string> words = {
        "--cluster",   cluster,          "--node",   "1",
        "--directory", directory.path(), "--listen", listen};
    const ProgramResult started = RunNodeWith(words);
    words.emplace_back("--check-config");
    const ProgramResult checked = RunNodeWith(words);
    for (const ProgramResult& refused : {started, checked}) {
      EXPECT_EQ(refused.end.exit_status, kUsage) << listen << refused.error;
      EXPECT_THAT(refused.error, HasSubstr("--listen " + listen + ": "));
      EXPECT_THAT(refused.error, HasSubstr("Write host:port"));
    }
  }
}

// The same of an address that is another machine's, whoever has the port here.
TEST(SamplesTest, AddressOfAnotherMachineIsRefusedByTheCheckToo) {
  const TempDirectory directory;
  const std::string cluster = CopySamples(directory);
  for (const std::string listen : {"192.0.2.1:7401", "[2001:db8::1]:7401"}) {
    std::vector<std::string> words = {
        "--cluster",   cluster,          "--node",   "1",
        "--directory", directory.path(), "--listen", listen};
    const ProgramResult started = RunNodeWith(words);
    words.emplace_back("--check-config");
    const ProgramResult checked = RunNodeWith(words);
    for (const ProgramResult& refused : {started, checked}) {
      EXPECT_EQ(refused.end.exit_status, kUnavailable)
          << listen << refused.error;
      EXPECT_THAT(refused.error, HasSubstr(listen));
    }
    EXPECT_THAT(checked.output, IsEmpty());
  }
}

// The node does not wait for a writer of it.
TEST(SamplesTest, ConfigurationThatIsNoPlainFileIsRefused) {
  const TempDirectory directory;
  const std::string pipe = directory.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const ProgramResult result = RunNode(pipe);
  EXPECT_EQ(result.end.exit_status, kUsage) << result.error;
  EXPECT_THAT(result.error, HasSubstr(pipe + " is not a regular file"));
}

TEST(SamplesTest, KeyThatIsNoOptionIsRefused) {
  const TempDirectory directory;
  const std::string config = directory.File("node.toml");
  std::ofstream(config) << "cluster = \"" << kClusterSample
                        << "\"\nnode = 1\ndirectory = \"" << directory.path()
                        << "\"\nyield_turns = 1\n";
  const ProgramResult result = RunNode(config);
  EXPECT_EQ(result.end.exit_status, kUsage) << result.error;
  EXPECT_THAT(result.error, HasSubstr("yield_turns"));
}

}  // namespace
}  // namespace alpheus::testing
