// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/processes/cluster.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/members/cluster_key.h"
#include "replication/fabric/tcp/socket.h"

namespace alpheus::demo {
namespace {

// Generous: the machine may be busy with other things.
constexpr int64_t kReadyNanosMax = 300'000'000'000;
constexpr int64_t kTerminateNanosMax = 300'000'000'000;
constexpr int64_t kNanosPerMilli = 1'000'000;
// A port that no other program uses on the machines whose addresses are given.
constexpr int kRdmaPort = 7400;
// Beside the cluster file.
constexpr char kKeyName[] = "cluster.key";
// Bytes of a node's output in a failure report.
constexpr size_t kStoryBytesMax = 1500;

std::string DrawUuid(RandomSource* random) {
  const uint64_t high = random->Next();
  const uint64_t low = random->Next();
  return absl::StrFormat("%08x-%04x-4%03x-8%03x-%012x", high >> 32,
                         high >> 16 & 0xffff, high & 0xfff, low >> 52,
                         low & 0xffffffffffff);
}

std::string Last(const std::string& text) {
  if (text.size() <= kStoryBytesMax) return text;
  return absl::StrCat("...", text.substr(text.size() - kStoryBytesMax));
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

absl::Status WriteSecret(const std::string& path, const std::string& text) {
  ALPHEUS_RETURN_IF_ERROR(WriteText(path, text));
  std::error_code error;
  std::filesystem::permissions(
      path,
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
      error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Create(
    const ClusterOptions& options) {
  std::unique_ptr<Cluster> cluster(new Cluster(options));
  ALPHEUS_RETURN_IF_ERROR(cluster->DrawAddresses());
  EntropyRandom entropy;
  cluster->cluster_id_ = DrawUuid(&entropy);
  std::vector<std::string> addresses;
  for (const Node& node : cluster->nodes_) addresses.push_back(node.address);
  ALPHEUS_RETURN_IF_ERROR(
      quorum::MakeClusterKeyFile(cluster->key_file(), entropy));
  if (!options.zookeeper_identity.empty()) {
    ALPHEUS_RETURN_IF_ERROR(
        WriteSecret(cluster->identity_file(), options.zookeeper_identity));
  }
  ALPHEUS_RETURN_IF_ERROR(
      cluster->WriteFile(cluster->file(), addresses, options.zookeeper));
  for (int node = 1; node <= cluster->node_count(); ++node) {
    std::error_code error;
    std::filesystem::create_directories(cluster->node_directory(node), error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat(cluster->node_directory(node), ": ", error.message()));
    }
  }
  return cluster;
}

absl::Status Cluster::DrawAddresses() {
  for (const std::string& host : options_.rdma_hosts) {
    Node node;
    node.address = absl::StrCat(host, ":", kRdmaPort);
    nodes_.push_back(std::move(node));
  }
  if (!nodes_.empty()) return absl::OkStatus();
  EntropyRandom entropy;
  const std::string host = absl::StrCat("127.", 1 + entropy.Below(254), ".",
                                        entropy.Below(256), ".1:0");
  // All are held until the last one is drawn, so that they differ.
  std::vector<fabric::tcp::Listener> held;
  for (int i = 0; i < options_.node_count; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(fabric::tcp::Listener listener,
                             fabric::tcp::ListenOn(host));
    Node node;
    node.address = listener.address;
    nodes_.push_back(std::move(node));
    held.push_back(std::move(listener));
  }
  return absl::OkStatus();
}

absl::Status Cluster::WriteFile(
    const std::string& path, const std::vector<std::string>& addresses,
    const std::vector<std::string>& zookeeper) const {
  std::string text =
      absl::StrCat("cluster_id = \"", cluster_id_, "\"\nkey_file = \"",
                   std::filesystem::absolute(key_file()).string(), "\"\n");
  if (!options_.rdma_hosts.empty()) {
    absl::StrAppend(&text, "fabric = \"verbs\"\n");
  }
  if (options_.write_quorum != 0) {
    absl::StrAppend(&text, "write_quorum = ", options_.write_quorum, "\n");
  }
  if (!zookeeper.empty()) {
    absl::StrAppend(
        &text, "membership = \"zookeeper\"\n\n[zookeeper]\nservers = [\"",
        absl::StrJoin(zookeeper, "\", \""),
        "\"]\nsession_timeout_ms = ", options_.session_timeout_ms, "\n");
    if (!options_.zookeeper_identity.empty()) {
      absl::StrAppend(&text, "identity_file = \"",
                      std::filesystem::absolute(identity_file()).string(),
                      "\"\n");
    }
    if (!options_.zookeeper_admin.empty()) {
      absl::StrAppend(&text, "admin = \"", options_.zookeeper_admin, "\"\n");
    }
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    absl::StrAppend(&text, "\n[[member]]\nnode = ", i + 1, "\naddress = \"",
                    addresses[i], "\"\n");
    const auto clients =
        options_.client_addresses.find(static_cast<int>(i + 1));
    if (clients != options_.client_addresses.end()) {
      absl::StrAppend(&text, "clients = \"", clients->second, "\"\n");
    }
  }
  return WriteText(path, text);
}

int Cluster::write_quorum() const {
  return options_.write_quorum != 0 ? options_.write_quorum
                                    : node_count() / 2 + 1;
}

int Cluster::spare_count() const {
  return node_count() - std::max(read_quorum(), write_quorum());
}

std::string Cluster::file() const {
  return absl::StrCat(options_.directory, "/cluster.toml");
}

std::string Cluster::key_file() const {
  return absl::StrCat(options_.directory, "/", kKeyName);
}

std::string Cluster::identity_file() const {
  return absl::StrCat(options_.directory, "/zookeeper.identity");
}

std::string Cluster::node_directory(int node) const {
  return absl::StrCat(options_.directory, "/node-", node);
}

std::string Cluster::region(int node, const std::string& log) const {
  return absl::StrCat(node_directory(node), "/", log, ".alpheus");
}

absl::Status Cluster::StartAll() {
  for (int node = 1; node <= node_count(); ++node) {
    ALPHEUS_RETURN_IF_ERROR(Start(node));
  }
  return absl::OkStatus();
}

absl::Status Cluster::Start(int node) {
  if (is_paused(node)) Continue(node);
  if (is_running(node)) return absl::OkStatus();
  Program program;
  const auto wrapper = options_.wrappers.find(node);
  if (wrapper != options_.wrappers.end()) program.argv = wrapper->second;
  program.argv.insert(
      program.argv.end(),
      {options_.alpheusd, "--cluster", file(), "--node", absl::StrCat(node),
       "--directory", node_directory(node)});
  const auto more = options_.node_options.find(node);
  if (more != options_.node_options.end()) {
    program.argv.insert(program.argv.end(), more->second.begin(),
                        more->second.end());
  }
  program.dies_with_starter = true;
  ALPHEUS_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(program));
  // Large, since the node drops output that does not fit.
  (void)fcntl(process.error().get(), F_SETPIPE_SZ, kPipeBytesMax);
  At(node).process.emplace(std::move(process));
  return AwaitReady(node);
}

absl::Status Cluster::AwaitReady(int node_number) {
  Node& node = At(node_number);
  const std::string line = absl::StrCat("node ", node_number, " listens on ");
  const size_t before = node.said.size();
  const int64_t end = Clock::Real().NowNanos() + kReadyNanosMax;
  while (node.said.find(line, before) == std::string::npos) {
    const int64_t left = end - Clock::Real().NowNanos();
    pollfd fd = {node.process->error().get(), POLLIN, 0};
    if (left <= 0) {
      return absl::DeadlineExceededError(absl::StrCat(
          "node ", node_number, " did not say that it listens: ", node.said));
    }
    if (poll(&fd, 1, static_cast<int>(left / kNanosPerMilli) + 1) <= 0) {
      continue;
    }
    if (ReadSome(fd.fd, &node.said)) continue;
    const ProcessEnd ended = node.process->Wait();
    node.process.reset();
    return absl::DataLossError(
        absl::StrCat("node ", node_number, " ended (", ended.ToString(),
                     ") instead of listening: ", node.said));
  }
  return absl::OkStatus();
}

void Cluster::Kill(int node) {
  if (!is_running(node)) return;
  Node& killed = At(node);
  killed.process->Kill();
  killed.process->Wait();
  ReadWhatItSaid(&killed);
  killed.process.reset();
  killed.is_paused = false;
}

void Cluster::Pause(int node) {
  At(node).process->Pause();
  At(node).is_paused = true;
}

void Cluster::Continue(int node) {
  At(node).process->Continue();
  At(node).is_paused = false;
}

absl::Status Cluster::Terminate(int node) {
  Node& ending = At(node);
  ending.process->Signal(SIGTERM);
  const auto end = ending.process->WaitFor(kTerminateNanosMax);
  ReadWhatItSaid(&ending);
  if (!end) {
    return absl::DeadlineExceededError(absl::StrCat(
        "node ", node, " does not end when it is asked to: ", ending.said));
  }
  ending.process.reset();
  if (end->exit_status == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("node ", node, " ended with ",
                                          end->ToString(), ": ", ending.said));
}

bool Cluster::is_running(int node) const {
  return At(node).process.has_value();
}

bool Cluster::is_paused(int node) const { return At(node).is_paused; }

absl::Status Cluster::AwaitServed(const std::string& log) {
  const int64_t end = Clock::Real().NowNanos() + kReadyNanosMax;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const ProgramResult result,
        RunProgram(Alpheus("status", {"--all", "--log", log})));
    ALPHEUS_RETURN_IF_ERROR(CheckHealth());
    if (result.end.exit_status == 0) return absl::OkStatus();
    if (Clock::Real().NowNanos() < end) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        "log ", log, " is not served by all nodes: ", result.output,
        result.error));
  }
}

void Cluster::ReadWhatItSaid(Node* node) {
  size_t before = 0;
  do {
    before = node->said.size();
    if (!ReadSome(node->process->error().get(), &node->said)) return;
    // Standard output carries nothing, but must not get full either.
    std::string unused;
    ReadSome(node->process->output().get(), &unused);
  } while (node->said.size() > before);
}

void Cluster::Listen() {
  for (Node& node : nodes_) {
    if (node.process) ReadWhatItSaid(&node);
  }
}

absl::Status Cluster::CheckHealth() {
  Listen();
  for (int number = 1; number <= node_count(); ++number) {
    Node& node = At(number);
    if (!node.process) continue;
    const auto end = node.process->WaitFor(0);
    if (!end) continue;
    ReadWhatItSaid(&node);
    node.process.reset();
    return absl::DataLossError(absl::StrCat("node ", number,
                                            " ended by itself with ",
                                            end->ToString(), ": ", node.said));
  }
  return absl::OkStatus();
}

std::string Cluster::Story() {
  Listen();
  std::string story;
  for (int node = 1; node <= node_count(); ++node) {
    absl::StrAppend(&story, "--- node ", node,
                    is_paused(node)    ? " (paused)"
                    : is_running(node) ? ""
                                       : " (not running)",
                    " said:\n", Last(At(node).said));
  }
  return story;
}

Program Cluster::Alpheus(const std::string& command,
                         const std::vector<std::string>& arguments) const {
  Program program;
  program.argv = {options_.alpheus, command, "--cluster", file()};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  program.dies_with_starter = true;
  return program;
}

absl::StatusOr<std::string> Cluster::MustSucceed(
    const std::string& command, const std::vector<std::string>& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(ProgramResult result,
                           RunProgram(Alpheus(command, arguments)));
  Listen();
  if (result.end.exit_status == 0) return std::move(result.output);
  return absl::DataLossError(
      absl::StrCat("alpheus ", command, " ", absl::StrJoin(arguments, " "),
                   ": ", result.end.ToString(), ": ", result.error));
}

}  // namespace alpheus::demo
