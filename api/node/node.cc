// SPDX-License-Identifier: Apache-2.0
#include "api/node/node.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "api/node/node_directory.h"
#include "api/wiring/background_thread.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/status_macros.h"
#include "log/pmem/libpmem_persistence.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/cluster/host_numbers.h"
#include "replication/fabric/socket_address.h"
#include "replication/persist/plan/planner.h"
#include "replication/persist/platform/platform_declaration.h"

namespace alpheus {

using quorum::ClusterConfiguration;

namespace {

// Returns whether it is a port; 0 takes any free one.
bool IsPortToListenOn(absl::string_view text) {
  uint32_t port = 0;
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, &port) && port <= 65'535;
}

absl::Status BadListenAddress(const std::string& listen, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--listen ", listen, ": ", why,
                   ". Write host:port, or [host]:port for an IPv6 number"));
}

// Returns how many cores this process may use.
uint32_t OwnCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<uint32_t>(std::max(CPU_COUNT(&cores), 1));
}

// Passes sentences on, one at a time: several threads tell some.
NodeOptions OneAtATime(NodeOptions options) {
  options.say = [mutex = std::make_shared<Mutex>(),
                 say = std::move(options.say)](const std::string& sentence) {
    const MutexLock lock(*mutex);
    say(sentence);
  };
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Start(NodeOptions options) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  std::unique_ptr<Node> node(new Node(std::move(options), std::move(cluster)));
  ALPHEUS_RETURN_IF_ERROR(node->Begin());
  return node;
}

Node::Node(NodeOptions options, ClusterConfiguration cluster)
    : options_(OneAtATime(std::move(options))), cluster_(std::move(cluster)) {}

Node::~Node() = default;

absl::StatusOr<std::string> Node::Check(const NodeOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  const Node node(options, cluster);
  ALPHEUS_ASSIGN_OR_RETURN(const std::string address, node.OwnAddress());
  ALPHEUS_RETURN_IF_ERROR(CheckIsOfThisMachine(address));
  ALPHEUS_RETURN_IF_ERROR(node.Threads().status());
  ALPHEUS_RETURN_IF_ERROR(
      replication::MakeRecordPlan(options.platform).status());
  if (cluster.encryption) {
    ALPHEUS_RETURN_IF_ERROR(NodeTls::Load(*cluster.encryption,
                                          cluster.cluster_id,
                                          NodeId(options.node))
                                .status());
  }
  std::error_code error;
  if (!std::filesystem::is_directory(options.directory, error) ||
      access(options.directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat(options.directory,
                     ": the directory of the replicas must exist, and this "
                     "user must be able to write there"));
  }
  ALPHEUS_RETURN_IF_ERROR(CheckOwnReplicas(
      options.directory, cluster.cluster_id, NodeId(options.node)));
  return absl::StrCat("node ", options.node, " of cluster ",
                      cluster.cluster_id.ToString(), ", ",
                      cluster.members.size(), " members, at ", address, ", ",
                      cluster.key.is_set() ? "with" : "without", " a key");
}

absl::StatusOr<std::string> Node::OwnAddress() const {
  const quorum::ClusterMember* const self =
      quorum::FindMember(cluster_, NodeId(options_.node));
  if (self == nullptr) {
    return absl::NotFoundError(absl::StrCat(options_.cluster_file, ": node ",
                                            options_.node,
                                            " is not a member of the cluster"));
  }
  if (options_.listen.empty()) return self->address.ToString();
  const size_t colon = options_.listen.rfind(':');
  if (colon == std::string::npos) {
    return BadListenAddress(options_.listen, "it has no port");
  }
  if (!IsPortToListenOn(options_.listen.substr(colon + 1))) {
    return BadListenAddress(options_.listen, "the port is not 0 to 65535");
  }
  const std::string host(fabric::HostOf(options_.listen));
  if (host.empty()) return BadListenAddress(options_.listen, "it has no host");
  const absl::StatusOr<std::vector<std::string>> numbers =
      quorum::LookUpHost(host);
  if (!numbers.ok()) {
    return absl::Status(
        numbers.status().code(),
        absl::StrCat("--listen ", options_.listen, ": ",
                     numbers.status().message(),
                     ". Write the number of one of this machine's addresses"));
  }
  if (!cluster_.key.is_set() && !cluster_.insecure_without_key &&
      !std::ranges::all_of(*numbers, quorum::IsLoopbackNumber)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--listen ", options_.listen, ": other machines reach this, and ",
        options_.cluster_file,
        " names no key_file: anyone who reaches the node could open its logs. "
        "Make a key with `alpheus key new FILE`, copy it to all nodes and name "
        "it (key_file); or set insecure_without_key = true there, if the "
        "network keeps unauthenticated clients out"));
  }
  const std::string& number = numbers->front();
  return number.find(':') == std::string::npos
             ? absl::StrCat(number, options_.listen.substr(colon))
             : absl::StrCat("[", number, "]", options_.listen.substr(colon));
}

absl::StatusOr<uint32_t> Node::Threads() const {
  if (options_.threads > kNodeThreadsMax) {
    return absl::InvalidArgumentError(absl::StrCat("threads ", options_.threads,
                                                   ": a node has at most ",
                                                   kNodeThreadsMax));
  }
  // Several adapters with RDMA have no address in common.
  if (cluster_.fabric == quorum::ClusterFabric::kVerbs) return 1;
  if (options_.threads > 0) return options_.threads;
  return std::min(OwnCores(), kThreadsByItself);
}

absl::Status Node::Begin() {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own, OwnAddress());
  ALPHEUS_ASSIGN_OR_RETURN(const uint32_t threads, Threads());
  if (cluster_.encryption) {
    ALPHEUS_ASSIGN_OR_RETURN(
        shared_.tls, NodeTls::Load(*cluster_.encryption, cluster_.cluster_id,
                                   NodeId(options_.node), options_.say));
  }
  if (threads > 1) {
    shared_.exchange = std::make_shared<fabric::tcp::SocketExchange>(threads);
  }
  for (uint32_t number = 0; number < threads; ++number) {
    threads_.push_back(
        std::make_unique<NodeThread>(options_, cluster_, shared_, number));
    ALPHEUS_RETURN_IF_ERROR(threads_.back()->OpenAdapter());
  }
  ALPHEUS_RETURN_IF_ERROR(ReportPlatform());
  ReportKey(cluster_);
  ReportThreads();
  ALPHEUS_ASSIGN_OR_RETURN(directory_lock_,
                           LockNodeDirectory(options_.directory));
  for (const auto& thread : threads_) {
    ALPHEUS_RETURN_IF_ERROR(thread->FindFiles());
  }
  // Before files are opened: peers that connect wait for the first turn of Run.
  ALPHEUS_ASSIGN_OR_RETURN(address_, threads_.front()->adapter().Listen(own));
  for (const auto& thread : threads_) thread->OpenFiles(address_);
  return absl::OkStatus();
}

absl::Status Node::ReportPlatform() const {
  ALPHEUS_ASSIGN_OR_RETURN(const replication::Plan plan,
                           replication::MakeSessionPlan(options_.platform));
  options_.say(absl::StrCat("platform ",
                            replication::PlatformToString(options_.platform),
                            "; a record: ", replication::PlanToString(plan)));
  const fabric::Fabric::Limits limits = threads_.front()->adapter().limits();
  const bool is_verbs = cluster_.fabric == quorum::ClusterFabric::kVerbs;
  const replication::Shown shown = {
      .caches_persist = LibpmemPersistence::DetectAutoFlush(),
      .transport = is_verbs ? replication::Transport::kInfiniBand
                            : replication::Transport::kTcp,
      .native_flush = limits.native_flush,
      .atomic_write = limits.atomic_write};
  for (const std::string& warning :
       replication::PlatformWarnings(options_.platform, shown)) {
    options_.say(warning);
  }
  return absl::OkStatus();
}

void Node::ReportKey(const ClusterConfiguration& cluster) const {
  std::string members;
  for (const quorum::ClusterMember& member : cluster.members) {
    absl::StrAppend(&members, members.empty() ? "" : ", ", "node ",
                    member.node.value, " at ", member.address.ToString());
  }
  options_.say(absl::StrCat("cluster ", cluster.cluster_id.ToString(),
                            ", configuration ", cluster.id, ": ", members));
  options_.say(cluster.key.is_set()
                   ? absl::StrCat("cluster key: ", cluster.key_file)
                   : "cluster key: none. Anyone who reaches this node's "
                     "address can open its logs, read them, and end their "
                     "primaries; name a key_file in the cluster file");
  if (!cluster.encryption) return;
  options_.say(absl::StrCat("encryption: TLS 1.3; the authorities are in ",
                            cluster.encryption->authorities_file));
}

void Node::ReportThreads() const {
  if (cluster_.fabric == quorum::ClusterFabric::kVerbs) {
    if (options_.threads == 1) return;
    options_.say(
        "threads: 1. With adapters for RDMA a node has no more, whatever "
        "`threads` says");
  } else if (threads_.size() > 1) {
    options_.say(absl::StrCat("threads: ", threads_.size(),
                              ", over which the logs are spread"));
  }
}

absl::StatusOr<ClusterConfiguration> Node::LoadAgain(
    const NodeOptions& options) const {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  const bool is_other = cluster.cluster_id != cluster_.cluster_id;
  if (is_other || cluster.fabric != cluster_.fabric) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.cluster_file, ": it has another ",
                     is_other ? "cluster_id" : "fabric",
                     " than when the node started. This change needs a "
                     "restart; the node continues as it was"));
  }
  if (quorum::FindMember(cluster, NodeId(options_.node)) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.cluster_file, ": node ", options_.node,
                     " is no longer a member, by configuration ", cluster.id,
                     ". The node continues as it was: stop it when `alpheus "
                     "reconfigure` has changed all logs to that list"));
  }
  return cluster;
}

// Returns the options that changed and need a restart.
std::string Node::OptionsOfAStart(const NodeOptions& options) const {
  std::vector<std::string> names;
  const auto add = [&](bool is_changed, const char* name) {
    if (is_changed) names.emplace_back(name);
  };
  add(options.node != options_.node, "node");
  add(options.directory != options_.directory, "directory");
  add(options.listen != options_.listen, "listen");
  add(options.platform != options_.platform, "platform");
  add(options.threads != options_.threads, "threads");
  add(options.unopened_max != options_.unopened_max, "unopened-max");
  return absl::StrJoin(names, ", ");
}

absl::Status Node::Reload(const NodeOptions& options) {
  // A cluster file of no use does not keep a certificate from being revoked.
  if (shared_.tls != nullptr) shared_.tls->Reload();
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           LoadAgain(options));
  std::string names = OptionsOfAStart(options);
  if (cluster.zookeeper != cluster_.zookeeper) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", "membership");
  }
  if (cluster.encryption != cluster_.encryption) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", "encryption");
  }
  if (!names.empty()) {
    options_.say(absl::StrCat(
        "reload: these changes take effect only after a restart: ", names));
  }
  // The last thread says that it is done (NTH2).
  const auto left = std::make_shared<std::atomic<size_t>>(threads_.size());
  for (const auto& thread : threads_) {
    thread->Take({options, cluster, [this, cluster, left] {
                    if (left->fetch_sub(1) != 1) return;
                    ReportKey(cluster);
                    options_.say(
                        absl::StrCat("reloaded ", options_.cluster_file));
                  }});
  }
  return absl::OkStatus();
}

std::optional<NodeStatus> Node::Observe(int64_t patience_ms) {
  std::vector<uint64_t> questions;
  for (const auto& thread : threads_) questions.push_back(thread->AskStatus());
  const Deadline deadline =
      Deadline::AtNanos(Clock::Real().NowNanos() + patience_ms * 1'000'000);
  NodeStatus all;
  for (size_t i = 0; i < threads_.size(); ++i) {
    std::optional<NodeStatus> status =
        threads_[i]->AwaitStatus(questions[i], deadline);
    if (!status) return std::nullopt;
    std::ranges::move(status->replicas, std::back_inserter(all.replicas));
    all.connections += status->connections;
    std::ranges::transform(all.rejected, status->rejected, all.rejected.begin(),
                           std::plus<>());
  }
  std::ranges::sort(all.replicas, {}, &NodeStatus::Replica::log);
  if (shared_.tls != nullptr) all.certificate_end_s = shared_.tls->end_s();
  return all;
}

absl::Status Node::Run() {
  std::vector<BackgroundThread> others(threads_.size() - 1);
  for (size_t i = 0; i < others.size(); ++i) {
    NodeThread& thread = *threads_[i + 1];
    const absl::Status started =
        others[i].Start([this, &thread] { RunThread(thread); });
    if (started.ok()) continue;
    Fail(absl::ResourceExhaustedError(
        absl::StrCat("thread ", i + 2, " of ", threads_.size(),
                     " could not be started; raise the limit on processes "
                     "(ulimit -u), or give the node fewer by `threads`")));
    break;
  }
  RunThread(*threads_.front());
  for (BackgroundThread& other : others) other.Join();
  const MutexLock lock(failure_mutex_);
  return failure_;
}

void Node::RunThread(NodeThread& thread) {
  const absl::Status ended = thread.Run();
  if (!ended.ok()) Fail(ended);
}

// NOD1.
void Node::Fail(const absl::Status& why) {
  {
    const MutexLock lock(failure_mutex_);
    if (failure_.ok()) {
      failure_ = absl::Status(
          why.code(), absl::StrCat("a thread of the node failed, and so the "
                                   "node ends: ",
                                   why.message()));
    }
  }
  Stop();
}

void Node::Stop() {
  for (const auto& thread : threads_) thread->Stop();
}

}  // namespace alpheus
