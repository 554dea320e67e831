// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/processes/zookeeper_servers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/processes/patience.h"

namespace alpheus::demo {
namespace {

constexpr uint16_t kClientPort = 2181;
// A server that is starting may take a question and never answer it.
constexpr int64_t kAskNanosMax = 3'000'000'000;
constexpr const char* kJava = "/usr/bin/java";
constexpr const char* kJar = "/usr/share/java/zookeeper.jar";
// It names what else it needs, but for a logger.
constexpr const char* kClassPath =
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar:"
    "/usr/share/java/netty-all.jar";

// The password of a session, in hexadecimal digits: servers make it of the id,
// by the generator of java.util.Random.
std::string PasswordOf(uint64_t session) {
  constexpr uint64_t kFactor = 0x5deece66d;
  constexpr uint64_t kMask = (uint64_t{1} << 48) - 1;
  uint64_t state = (session ^ 0xb3415c00 ^ kFactor) & kMask;
  std::string digits;
  for (int word = 0; word < 4; ++word) {
    state = (state * kFactor + 0xb) & kMask;
    const auto drawn = static_cast<uint32_t>(state >> 16);
    for (int byte = 0; byte < 4; ++byte) {
      absl::StrAppend(&digits,
                      absl::Hex(drawn >> (8 * byte) & 0xff, absl::kZeroPad2));
    }
  }
  return digits;
}

// Bytes as the shell's printf takes them.
std::string AsPrintf(const std::string& digits) {
  std::string text;
  for (size_t i = 0; i < digits.size(); i += 2) {
    absl::StrAppend(&text, "\\x", digits.substr(i, 2));
  }
  return text;
}

// Loopback addresses in a network of their own: the ports are the same for
// each.
std::vector<std::string> OwnHosts(int count) {
  EntropyRandom random;
  const std::string network =
      absl::StrCat("127.", 1 + random.Below(254), ".", random.Below(256), ".");
  std::vector<std::string> hosts;
  for (int i = 0; i < count; ++i) {
    hosts.push_back(absl::StrCat(network, 1 + i));
  }
  return hosts;
}

}  // namespace

std::string ZookeeperServers::WhyMissing() {
  for (const char* file : {kJava, kJar}) {
    if (!std::filesystem::exists(file)) {
      return absl::StrCat("no ", file,
                          " (default-jre-headless, libzookeeper-java)");
    }
  }
  return "";
}

ZookeeperServers::ZookeeperServers(int count, const std::string& directory)
    : ZookeeperServers(OwnHosts(count), directory) {}

ZookeeperServers::ZookeeperServers(const std::vector<std::string>& hosts,
                                   const std::string& directory) {
  for (const std::string& host : hosts) {
    Server& server = servers_.emplace_back();
    server.host = host;
    server.directory = absl::StrCat(directory, "/server-", servers_.size() - 1);
  }
}

void ZookeeperServers::WriteFiles(int index) const {
  const Server& server = servers_[index];
  std::filesystem::create_directories(server.directory + "/data");
  std::ofstream config(server.directory + "/zoo.cfg");
  config << "tickTime=100\ninitLimit=100\nsyncLimit=40\n"
         << "minSessionTimeout=200\nmaxSessionTimeout=900000\n"
         << "dataDir=" << server.directory << "/data\n"
         << "clientPort=" << kClientPort << "\n"
         << "clientPortAddress=" << server.host << "\n"
         << "admin.enableServer=false\n"
         << "4lw.commands.whitelist=ruok,srvr,dump,mntr,cons\n";
  if (servers_.size() == 1) return;
  for (size_t i = 0; i < servers_.size(); ++i) {
    config << "server." << i + 1 << "=" << servers_[i].host << ":2888:3888\n";
  }
  std::ofstream(server.directory + "/data/myid") << index + 1 << "\n";
}

absl::Status ZookeeperServers::StartAll() {
  for (int i = 0; i < count(); ++i) ALPHEUS_RETURN_IF_ERROR(Start(i));
  return absl::OkStatus();
}

absl::Status ZookeeperServers::Start(int index) {
  Server& server = servers_[index];
  if (server.process != nullptr) {
    if (server.is_paused) Continue(index);
    return absl::OkStatus();
  }
  WriteFiles(index);
  Program program;
  program.argv = {"/bin/sh", "-c",
                  absl::StrCat("exec \"$@\" >>", server.directory,
                               "/output 2>&1 </dev/null"),
                  "sh", kJava, "-Xmx96m", "-XX:+UseSerialGC",
                  "-XX:TieredStopAtLevel=1",
                  // A crash of the machine is not what is tested.
                  "-Dzookeeper.forceSync=no", "-cp", kClassPath,
                  "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                  server.directory + "/zoo.cfg"};
  program.dies_with_starter = true;
  ALPHEUS_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(program));
  server.process = std::make_unique<ChildProcess>(std::move(process));
  return absl::OkStatus();
}

void ZookeeperServers::Kill(int index) {
  Server& server = servers_[index];
  if (server.process == nullptr) return;
  server.process->Kill();
  server.process->Wait();
  server.process.reset();
  server.is_paused = false;
}

void ZookeeperServers::Pause(int server) {
  servers_[server].process->Pause();
  servers_[server].is_paused = true;
}

void ZookeeperServers::Continue(int server) {
  servers_[server].process->Continue();
  servers_[server].is_paused = false;
}

void ZookeeperServers::LoseData(int server) {
  std::filesystem::remove_all(servers_[server].directory + "/data");
}

std::vector<quorum::Address> ZookeeperServers::addresses() const {
  std::vector<quorum::Address> all;
  for (const Server& server : servers_) {
    all.push_back({server.host, kClientPort});
  }
  return all;
}

std::string ZookeeperServers::Talk(int server, const std::string& script,
                                   int64_t nanos_max) const {
  Program program;
  program.argv = {"/bin/bash", "-c",
                  absl::StrCat("exec 3<>/dev/tcp/", servers_[server].host, "/",
                               kClientPort, " && ", script)};
  const absl::StatusOr<ProgramResult> result =
      RunProgram(program, {}, nanos_max);
  return result.ok() ? result->output : "";
}

std::string ZookeeperServers::Ask(int server, const std::string& word) const {
  return Talk(server, absl::StrCat("printf ", word, " >&3 && cat <&3"),
              kAskNanosMax);
}

std::vector<uint64_t> ZookeeperServers::Sessions(int server) const {
  const std::string said = Ask(server, "dump");
  std::vector<uint64_t> sessions;
  constexpr std::string_view kHex = "0x";
  for (size_t at = said.find(kHex); at != std::string::npos;
       at = said.find(kHex, at + 1)) {
    const size_t begin = at + kHex.size();
    const size_t end = said.find_first_not_of("0123456789abcdef", begin);
    uint64_t session = 0;
    // 0: a connection without a session, such as that of this question.
    if (absl::SimpleHexAtoi(said.substr(begin, end - begin), &session) &&
        session != 0) {
      sessions.push_back(session);
    }
  }
  std::sort(sessions.begin(), sessions.end());
  sessions.erase(std::unique(sessions.begin(), sessions.end()), sessions.end());
  return sessions;
}

bool ZookeeperServers::EndSession(int server, uint64_t session) const {
  if (!std::ranges::binary_search(Sessions(server), session)) return false;
  const std::string id = absl::StrCat(absl::Hex(session, absl::kZeroPad16));
  // Length, version, last change seen, time-out, session, its password.
  const std::string connect =
      absl::StrCat("0000002c", "00000000", "0000000000000000", "00007530", id,
                   "00000010", PasswordOf(session));
  // Length, number, and the operation that ends a session.
  const std::string end = "0000000800000001fffffff5";
  // Both go at once. The server cuts off the process whose session it is, which
  // connects again and may be first all the same: then once more.
  const std::string script = absl::StrCat("printf '", AsPrintf(connect + end),
                                          "' >&3 && cat <&3 >/dev/null");
  const int64_t until = Clock::Real().NowNanos() + kPatienceNanos;
  while (Clock::Real().NowNanos() < until) {
    Talk(server, script, kPatienceNanos);
    const std::vector<uint64_t> left = Sessions(server);
    // None at all: the server did not answer.
    if (!left.empty() && !std::ranges::binary_search(left, session))
      return true;
  }
  return false;
}

std::optional<int> ZookeeperServers::Leader() const {
  for (int i = 0; i < count(); ++i) {
    if (servers_[i].process != nullptr && !servers_[i].is_paused &&
        absl::StrContains(Ask(i, "srvr"), "Mode: leader")) {
      return i;
    }
  }
  return std::nullopt;
}

bool ZookeeperServers::AwaitAll() const {
  const int64_t until = Clock::Real().NowNanos() + kPatienceNanos;
  for (int i = 0; i < count();) {
    if (servers_[i].process == nullptr || servers_[i].is_paused ||
        absl::StrContains(Ask(i, "srvr"), "Mode: ")) {
      ++i;
    } else if (Clock::Real().NowNanos() > until) {
      return false;
    }
  }
  return true;
}

std::string ZookeeperServers::Said() const {
  std::string all;
  for (const Server& server : servers_) {
    std::ifstream output(server.directory + "/output");
    std::stringstream text;
    text << output.rdbuf();
    const std::string said = text.str();
    absl::StrAppend(&all, server.directory, ":\n",
                    said.substr(said.size() > 4000 ? said.size() - 4000 : 0));
  }
  return all;
}

}  // namespace alpheus::demo
