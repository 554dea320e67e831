// SPDX-License-Identifier: Apache-2.0
#include "api/node/node.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "api/node/node_directory.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/membership.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "log/core/read/region_check.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/pmem/file_lock.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/cluster/host_numbers.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/superline_report.h"
#include "replication/fabric/socket_address.h"
#include "replication/persist/plan/planner.h"
#include "replication/persist/platform/platform_declaration.h"

namespace alpheus {

using quorum::ClusterConfiguration;
using quorum::LogIdOf;

namespace {

// Interval of tries for a file that another process has.
constexpr int64_t kRecheckNanos = 200'000'000;
// From when a replica is served until the other nodes are asked whether its log
// was deleted.
constexpr int64_t kFirstInquiryNanos = 1'000'000'000;
// How often the node looks whether the membership service has answered: it
// sleeps in the fabric.
constexpr int64_t kRegistrationLookNanos = 10'000'000;
// Interval of checks of served files.
constexpr int64_t kCheckFilesNanos = 500'000'000;
// Turns between checks in a node that never idles.
constexpr uint32_t kBusyTurns = 4096;
// Idle turns per reading of the clock.
constexpr uint32_t kTurnsPerCheck = 4;
// Time for the process that asked for a file to take its lock; after it a
// request for the log may retry, and after the second time the node does by
// itself.
constexpr int64_t kReleasedNanos = 100'000'000;
constexpr int64_t kReleasedCheckNanos = 2'000'000'000;
// Interval of checks of the directory while there is activity.
constexpr int64_t kDirectoryCheckNanos = 1'000'000'000;
// Ten years: in nanoseconds it fits 64 bits.
constexpr uint64_t kScrubIntervalSecondsMax = 315'360'000;

// Returns whether this is a link to a device-DAX that is not formatted yet. (A
// file of zeros instead has lost its content.)
bool IsBlankDevice(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_character_file(path, error)) return false;
  const absl::StatusOr<Region> region = Region::OpenForReading(path.string());
  return region.ok() && region->bytes().size() > kTableOffset &&
         std::ranges::all_of(
             region->bytes().first(kTableOffset),
             [](std::byte byte) { return byte == std::byte{0}; });
}

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

// Returns zeros if there is no file.
std::pair<dev_t, ino_t> InodeOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino};
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
    : options_(std::move(options)), cluster_(std::move(cluster)) {}

recovery::ReplicaServerOptions Node::ServerOptions() {
  recovery::ReplicaServerOptions server;
  server.cluster_id = cluster_.cluster_id;
  server.node = NodeId(options_.node);
  server.platform = options_.platform;
  server.credentials = {cluster_.key, &random_};
  server.unproved_connections_max = options_.unproved_max;
  server.waiting_connections_max = options_.waiting_max;
  server.followers_max = options_.followers_max;
  server.scrubbing = Scrubbing();
  server.creator = this;
  server.warn = options_.say;
  server.note = options_.say;
  server.name_of = [this](Uuid log_id) {
    for (const auto& [log_name, hosted] : files_) {
      if (LogIdOf(cluster_.cluster_id, log_name) == log_id) return log_name;
    }
    return log_id.ToString();
  };
  server.regions = this;
  server.certificate_end_s = [this] {
    return tls_ == nullptr ? 0 : tls_->end_s();
  };
  server.inquiry.first_ns = kFirstInquiryNanos;
  server.inquiry.peers = server.scrubbing.peers;
  return server;
}

Node::~Node() = default;

recovery::ScrubbingOptions Node::Scrubbing() const {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.bytes_per_second = options_.scrub_bytes_per_second;
  scrubbing.interval_ns = static_cast<int64_t>(
      std::min(options_.scrub_interval_seconds, kScrubIntervalSecondsMax) *
      uint64_t{1'000'000'000});
  for (const quorum::ClusterMember& member : cluster_.members) {
    scrubbing.peers.push_back({member.node, member.address.ToString()});
  }
  return scrubbing;
}

absl::StatusOr<std::string> Node::Check(const NodeOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  const Node node(options, cluster);
  ALPHEUS_ASSIGN_OR_RETURN(const std::string address, node.OwnAddress());
  ALPHEUS_RETURN_IF_ERROR(CheckIsOfThisMachine(address));
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

absl::Status Node::Begin() {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own, OwnAddress());
  AdapterOptions adapter;
  adapter.say = options_.say;
  adapter.on_rejected =
      [this](std::string_view peer, fabric::UnauthenticatedEnd why,
             std::string_view detail) { NoteRejected(peer, why, detail); };
  adapter.unopened_max = static_cast<uint32_t>(options_.unopened_max);
  if (cluster_.encryption) {
    ALPHEUS_ASSIGN_OR_RETURN(
        tls_, NodeTls::Load(*cluster_.encryption, cluster_.cluster_id,
                            NodeId(options_.node), options_.say));
    adapter.tls = tls_;
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      fabric_,
      options_.open_adapter(cluster_, NodeId(options_.node), random_, adapter));
  ALPHEUS_RETURN_IF_ERROR(ReportPlatform());
  ReportKey();
  ALPHEUS_ASSIGN_OR_RETURN(directory_lock_,
                           LockNodeDirectory(options_.directory));
  server_ = std::make_unique<recovery::ReplicaServer>(*fabric_, Clock::Real(),
                                                      ServerOptions());
  ALPHEUS_RETURN_IF_ERROR(FindFiles());
  // Before files are opened: peers that connect wait for the first turn of Run.
  ALPHEUS_ASSIGN_OR_RETURN(address_, fabric_->Listen(own));
  if (cluster_.zookeeper.has_value()) {
    registrations_.emplace(
        [this](const std::string& log_name) {
          return OpenMembership(
              cluster_,
              {.log_name = log_name,
               .self = {NodeId(options_.node), random_.Next() | 1},
               .look_ns = kRegistrationLookNanos},
              random_);
        },
        options_.say);
  }
  Recheck();
  return absl::OkStatus();
}

absl::Status Node::ReportPlatform() const {
  ALPHEUS_ASSIGN_OR_RETURN(const replication::Plan plan,
                           replication::MakeSessionPlan(options_.platform));
  options_.say(absl::StrCat("platform ",
                            replication::PlatformToString(options_.platform),
                            "; a record: ", replication::PlanToString(plan)));
  const fabric::Fabric::Limits limits = fabric_->limits();
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

void Node::ReportKey() const {
  std::string members;
  for (const quorum::ClusterMember& member : cluster_.members) {
    absl::StrAppend(&members, members.empty() ? "" : ", ", "node ",
                    member.node.value, " at ", member.address.ToString());
  }
  options_.say(absl::StrCat("cluster ", cluster_.cluster_id.ToString(),
                            ", configuration ", cluster_.id, ": ", members));
  options_.say(cluster_.key.is_set()
                   ? absl::StrCat("cluster key: ", cluster_.key_file)
                   : "cluster key: none. Anyone who reaches this node's "
                     "address can open its logs, read them, and end their "
                     "primaries; name a key_file in the cluster file");
  if (!cluster_.encryption) return;
  options_.say(absl::StrCat("encryption: TLS 1.3; the authorities are in ",
                            cluster_.encryption->authorities_file));
}

namespace {

absl::Status RejectionOf(fabric::UnauthenticatedEnd why,
                         std::string_view detail) {
  using recovery::Rejection;
  using recovery::RejectReason;
  switch (why) {
    case fabric::UnauthenticatedEnd::kSaidNothing:
      return Rejection(RejectReason::kTooSlow,
                       absl::DeadlineExceededError(
                           "it sent nothing in time, or was closed to make "
                           "room for others"));
    case fabric::UnauthenticatedEnd::kNotUnderstood:
      break;
    case fabric::UnauthenticatedEnd::kNotTrusted:
      return Rejection(RejectReason::kWrongKey,
                       absl::PermissionDeniedError(
                           absl::string_view(detail.data(), detail.size())));
  }
  return Rejection(RejectReason::kMalformed,
                   absl::InvalidArgumentError(
                       "it sent something that is not a message of a node or "
                       "a primary"));
}

}  // namespace

// Called only after server_ exists: nobody connects before.
void Node::NoteRejected(std::string_view peer, fabric::UnauthenticatedEnd why,
                        std::string_view detail) {
  server_->NoteRejected(std::string(peer), RejectionOf(why, detail));
}

absl::Status Node::FindFiles() {
  std::error_code error;
  // First: a file that comes during the reading is found the next time.
  directory_time_ = std::filesystem::last_write_time(options_.directory, error);
  error.clear();
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.directory, error)) {
    const std::filesystem::path& path = entry.path();
    const std::string log_name = path.stem().string();
    if (path.extension() != kReplicaExtension || files_.contains(log_name))
      continue;
    std::string why;
    if (absl::Status good = quorum::CheckLogName(log_name); !good.ok()) {
      why = absl::StrCat(path.string(), ": not served: ", good.message());
    } else if (IsBlankDevice(path)) {
      why = absl::StrCat(
          "log ", log_name, ": ", path.string(),
          ": a blank device: no replica yet; `alpheus format --cluster ",
          options_.cluster_file, " --log ", log_name,
          " --size 0` makes one, or `alpheus replace --cluster ",
          options_.cluster_file, " --log ", log_name, " --node ", options_.node,
          "` in the place of one that was lost");
    }
    if (why.empty()) {
      files_[log_name].recheck_at = Clock::Real().NowNanos();
    } else if (passed_over_.insert(log_name).second) {
      options_.say(why);
    }
  }
  if (!error) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(options_.directory, ": ", error.message(),
                   "; the directory of the replicas must exist"));
}

bool Node::HasDirectoryChanged() {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(options_.directory, error);
  return !error && time != directory_time_;
}

bool Node::IsReplaced(const std::string& log_name,
                      const HostedFile& hosted) const {
  return hosted.file != nullptr && InodeOf(PathOf(log_name)) != hosted.inode;
}

std::string Node::PathOf(const std::string& log_name) const {
  return absl::StrCat(options_.directory, "/", log_name, kReplicaExtension);
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Node::Open(
    const std::string& log_name, HostedFile& hosted) {
  if (IsReplaced(log_name, hosted)) {  // ND4
    hosted.file.reset();
    hosted.suspect = false;
  }
  if (hosted.file == nullptr) {
    auto opened = ReplicaFile::Open(
        PathOf(log_name), {.fabric = fabric_.get(), .sync = options_.sync});
    if (absl::IsFailedPrecondition(opened.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(PathOf(log_name),
                       ": another process of this machine has it open, as a "
                       "primary with this node's replica does. The node serves "
                       "it again when that process ends"));
    }
    ALPHEUS_RETURN_IF_ERROR(opened.status());
    hosted.file = *std::move(opened);
    hosted.inode = InodeOf(PathOf(log_name));
  } else {
    hosted.file->ForgetFailure();
  }
  return hosted.file->Serve(
      {cluster_.cluster_id, LogIdOf(cluster_.cluster_id, log_name),
       NodeId(options_.node)},
      hosted.suspect);
}

void Node::TryToServe(const std::string& log_name) {
  HostedFile& hosted = files_[log_name];
  const int64_t now = Clock::Real().NowNanos();
  const absl::Status status = WithinMemory([&]() -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<recovery::ServedLog> log,
                             Open(log_name, hosted));
    ALPHEUS_ASSIGN_OR_RETURN(log,
                             FinishRemoval(log_name, hosted, std::move(log)));
    return server_->AddLog(std::move(log));
  });
  if (status.ok()) {
    options_.say(
        absl::StrCat("log ", log_name, ": serving ", PathOf(log_name)));
    ReportMemory(log_name, hosted);
    hosted.why = absl::OkStatus();
    hosted.why_not_own.clear();
    hosted.is_served = true;
    hosted.is_lost = false;
    hosted.suspect = false;  // its superline says so now
    return;
  }
  hosted.suspect |= hosted.file != nullptr && hosted.file->medium_failed();
  // ND2: copying it into memory takes time.
  const bool is_costly =
      hosted.file != nullptr && !hosted.file->shadow().empty();
  if (!hosted.suspect || absl::IsNotFound(status)) hosted.file.reset();
  if (absl::IsNotFound(status)) {  // ND4
    is_gone_ = true;
    if (hosted.is_lost) return;  // reported when it went
    options_.say(
        absl::StrCat("log ", log_name, ": ", PathOf(log_name),
                     " is gone, and is no longer served. Put it back, or make "
                     "the replica again by `alpheus replace --cluster ",
                     options_.cluster_file, " --log ", log_name, " --node ",
                     options_.node, "`"));
    return;
  }
  hosted.is_lost = false;
  hosted.recheck_at = hosted.suspect || is_costly
                          ? hosted.retries.AfterFailureAt(now)
                          : now + kRecheckNanos;
  // Many tries, one report.
  if (status != hosted.why) {
    options_.say(
        absl::StrCat("log ", log_name, ": not served: ", status.message()));
  }
  if (status == std::exchange(hosted.why, status)) return;
  hosted.why_not_own = WhyNotOwn(PathOf(log_name), cluster_.cluster_id,
                                 log_name, NodeId(options_.node));
}

// Reports once; a shadow is made each time that the file is taken back.
void Node::ReportMemory(const std::string& log_name, HostedFile& hosted) {
  if (std::exchange(hosted.is_memory_reported, true)) return;
  for (const std::string& sentence :
       {hosted.file->shadow(), hosted.file->region().warning(),
        replication::ReplicaWarning(options_.platform,
                                    hosted.file->medium())}) {
    if (!sentence.empty()) {
      options_.say(absl::StrCat("log ", log_name, ": ", sentence));
    }
  }
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Node::Create(
    Uuid log_id, const recovery::Format& format) {
  const ReplicaIdentity identity{cluster_.cluster_id, log_id,
                                 NodeId(options_.node)};
  if (log_id != LogIdOf(cluster_.cluster_id, format.log_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("log ", log_id.ToString(), " is not log '",
                     format.log_name, "' of this cluster"));
  }
  if (format.replaces != 0) {
    // If the creation fails the old replica is still there, and is served
    // again.
    HostedFile& replaced = files_[format.log_name];
    replaced.is_served = false;
    replaced.recheck_at = Clock::Real().NowNanos();
    rechecks_soon_ = true;
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaFile> file,
      ReplicaFile::Create(PathOf(format.log_name), identity, format,
                          {.fabric = fabric_.get(), .sync = options_.sync}));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<recovery::ServedLog> log,
                           file->Serve(identity));
  HostedFile& hosted = files_[format.log_name];
  hosted.file = std::move(file);
  hosted.inode = InodeOf(PathOf(format.log_name));
  hosted.is_served = true;
  hosted.is_lost = false;
  options_.say(absl::StrCat(
      "log ", format.log_name, ": formatted ", PathOf(format.log_name),
      format.replaces == 0 ? "" : ", in the place of one that nobody opened"));
  ReportMemory(format.log_name, hosted);
  return log;
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Node::RemoveRecords(
    Uuid log_id) {
  for (auto& [log_name, hosted] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
    if (hosted.file == nullptr) continue;
    auto removed = RemoveRecords(log_name, hosted);
    if (removed.ok()) return removed;
    // The replica is still there, with its mark, and is served again.
    hosted.is_served = false;
    hosted.recheck_at = Clock::Real().NowNanos();
    rechecks_soon_ = true;
    return removed;
  }
  return absl::NotFoundError(
      absl::StrCat("log ", log_id.ToString(), ": this node has no file of it"));
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Node::RemoveRecords(
    const std::string& log_name, HostedFile& hosted) {
  const ReplicaIdentity identity{cluster_.cluster_id,
                                 LogIdOf(cluster_.cluster_id, log_name),
                                 NodeId(options_.node)};
  const Region& region = hosted.file->region();
  ALPHEUS_ASSIGN_OR_RETURN(const RegionState state,
                           ReadRegionState(region.bytes(), region.path()));
  const bool has_records =
      state.superline.region_bytes != LayoutOfRemoved().region_bytes;
  std::error_code error;
  const bool is_device =
      std::filesystem::is_character_file(PathOf(log_name), error);
  if (has_records && !is_device) {
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<ReplicaFile> left,
        ReplicaFile::CreateRemoved(
            PathOf(log_name), state.superline,
            {.fabric = fabric_.get(), .sync = options_.sync}));
    hosted.file = std::move(left);
    hosted.inode = InodeOf(PathOf(log_name));
    options_.say(absl::StrCat("log ", log_name, ": deleted; the records in ",
                              PathOf(log_name),
                              " are removed, and the file keeps the mark"));
  }
  hosted.is_deleted = true;
  hosted.remove_at = 0;
  return hosted.file->Serve(identity);
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Node::FinishRemoval(
    const std::string& log_name, HostedFile& hosted,
    std::unique_ptr<recovery::ServedLog> log) {
  if (log->deletion().deletion != Deletion::kDecided) return log;
  log.reset();
  auto removed = RemoveRecords(log_name, hosted);
  if (removed.ok()) return removed;
  hosted.remove_at = hosted.retries.AfterFailureAt(Clock::Real().NowNanos());
  // Many tries, one report.
  if (removed.status() != std::exchange(hosted.why_kept, removed.status())) {
    options_.say(absl::StrCat(
        "log ", log_name, ": deleted, but its records can't be removed: ",
        removed.status().message(), ". The node tries it again"));
  }
  return hosted.file->Serve({cluster_.cluster_id,
                             LogIdOf(cluster_.cluster_id, log_name),
                             NodeId(options_.node)});
}

// Ends the connections of the log: whoever asks for it comes again.
void Node::RetryRemovals() {
  const int64_t now = Clock::Real().NowNanos();
  for (auto& [log_name, hosted] : files_) {
    if (!hosted.is_served || hosted.remove_at == 0) continue;
    if (hosted.remove_at > now) continue;
    auto log = server_->RemoveLog(LogIdOf(cluster_.cluster_id, log_name));
    if (!log.ok()) continue;
    const absl::Status served = WithinMemory([&]() -> absl::Status {
      ALPHEUS_ASSIGN_OR_RETURN(
          std::unique_ptr<recovery::ServedLog> left,
          FinishRemoval(log_name, hosted, *std::move(log)));
      return server_->AddLog(std::move(left));
    });
    if (served.ok()) continue;
    hosted.is_served = false;  // the next try to serve it says why
    hosted.recheck_at = now;
  }
}

// ND4: a request for an unknown log may mean a file that has just come.
absl::Status Node::WhyUnserved(Uuid log_id) {
  RecheckNow(log_id);
  const absl::Status why = UnservedReason(log_id);
  if (!why.ok() || !HasDirectoryChanged()) return why;
  // Errors are reported by the periodic check.
  FindFiles().IgnoreError();
  rechecks_soon_ = true;
  return UnservedReason(log_id);
}

// Retries at once. A locked file costs microseconds, so that even
// unauthenticated clients may cause it. A released file is left to the process
// that asked for it until that had it.
void Node::RecheckNow(Uuid log_id) {
  const int64_t now = Clock::Real().NowNanos();
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    const HostedFile& hosted = file->second;
    const bool was_locked =
        hosted.why.ok() || absl::IsFailedPrecondition(hosted.why);
    if (LogIdOf(cluster_.cluster_id, file->first) != log_id) continue;
    if (hosted.is_served || hosted.suspect || !was_locked) return;
    if (now < hosted.left_until && !WasTaken(file->first, hosted)) return;
    is_gone_ = false;
    TryToServe(file->first);
    if (std::exchange(is_gone_, false)) files_.erase(file);
    return;
  }
}

// A primary that took it installed an epoch, however briefly it ran.
bool Node::WasTaken(const std::string& log_name,
                    const HostedFile& hosted) const {
  const absl::StatusOr<Region> region =
      Region::OpenForReading(PathOf(log_name));
  if (!region.ok()) return false;
  const std::optional<recovery::Followed> now =
      alpheus::recovery::FollowedOfClaimed(
          region->bytes(), cluster_.cluster_id,
          LogIdOf(cluster_.cluster_id, log_name), NodeId(options_.node));
  return now.has_value() && now->log_epoch > hosted.left_epoch;
}

// Returns a reason short enough for a rejection.
absl::Status Node::UnservedReason(Uuid log_id) const {
  for (const auto& [log_name, hosted] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
    if (!hosted.why_not_own.empty()) {
      return absl::FailedPreconditionError(hosted.why_not_own);
    }
    return absl::IsDataLoss(hosted.why)
               ? absl::DataLossError("the node's replica can't be read")
               : absl::UnavailableError("the node does not serve its replica");
  }
  return absl::OkStatus();
}

template <class Said>
absl::StatusOr<Said> Node::OfClaimed(
    Uuid log_id,
    std::optional<Said> (*read)(std::span<std::byte> region, Uuid cluster_id,
                                Uuid log_id, NodeId node)) const {
  const absl::Status unserved = UnservedReason(log_id);
  if (!absl::IsUnavailable(unserved)) return unserved;
  for (const auto& [log_name, hosted] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
    const absl::StatusOr<Region> region =
        Region::OpenForReading(PathOf(log_name));
    if (!region.ok()) return unserved;
    const std::optional<Said> said = read(region->bytes(), cluster_.cluster_id,
                                          log_id, NodeId(options_.node));
    if (!said) return unserved;
    return *said;
  }
  return unserved;
}

bool Node::ReleaseRegion(Uuid log_id) {
  to_release_.push_back(log_id);
  return true;
}

absl::StatusOr<recovery::ServerHello> Node::ReadServerHello(Uuid log_id) {
  return OfClaimed<recovery::ServerHello>(log_id,
                                          recovery::ServerHelloOfClaimed);
}

absl::StatusOr<recovery::Followed> Node::ReadFollowed(Uuid log_id) {
  return OfClaimed<recovery::Followed>(log_id, recovery::FollowedOfClaimed);
}

std::string Node::DescribeLockHolder(Uuid log_id) {
  for (const auto& [log_name, hosted] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) == log_id) {
      return alpheus::DescribeLockHolder(PathOf(log_name));
    }
  }
  return "";
}

// The process that had the file may have released it.
void Node::OnLockHolderGone(Uuid log_id) {
  for (auto& [log_name, hosted] : files_) {
    if (!hosted.is_served && !hosted.suspect &&
        LogIdOf(cluster_.cluster_id, log_name) == log_id) {
      hosted.recheck_at = Clock::Real().NowNanos();
      rechecks_soon_ = true;
    }
  }
}

bool Node::IsCheckDue() const {
  const int64_t now = Clock::Real().NowNanos();
  for (const auto& [log_name, hosted] : files_) {
    const int64_t due = hosted.is_served ? files_due_at_ : hosted.recheck_at;
    if (due <= now) return true;
  }
  return false;
}

void Node::ReleaseAsked() {
  for (const Uuid& log_id : std::exchange(to_release_, {})) {
    for (auto& [log_name, hosted] : files_) {
      if (!hosted.is_served ||
          LogIdOf(cluster_.cluster_id, log_name) != log_id) {
        continue;
      }
      // First the served log, then its file.
      if (const auto removed = server_->RemoveLog(log_id); removed.ok()) {
        hosted.left_epoch = (*removed)->followed().log_epoch;
      }
      hosted.is_served = false;
      hosted.file.reset();
      hosted.left_until = Clock::Real().NowNanos() + kReleasedNanos;
      hosted.recheck_at = Clock::Real().NowNanos() + kReleasedCheckNanos;
      rechecks_soon_ = true;
      options_.say(absl::StrCat("log ", log_name,
                                ": released to a process of this machine"));
    }
  }
}

// ND6. A failed check makes the replica's fences fail.
void Node::CheckFiles() {
  const int64_t now = Clock::Real().NowNanos();
  if (now < files_due_at_) return;
  files_due_at_ = now + kCheckFilesNanos;
  for (const auto& [log_name, hosted] : files_) {
    if (!hosted.is_served) continue;
    CheckRegionFile(hosted.file->region(),
                    LogIdOf(cluster_.cluster_id, log_name));
  }
}

void Node::CloseLost(const std::string& log_name, HostedFile& hosted) {
  hosted.is_served = false;
  hosted.why = hosted.file->region().alarm()->status();
  hosted.is_lost = absl::IsNotFound(hosted.why);
  hosted.file.reset();
  const int64_t now = Clock::Real().NowNanos();
  hosted.recheck_at = hosted.is_lost ? now : hosted.retries.AfterFailureAt(now);
  options_.say(absl::StrCat(
      "log ", log_name, ": not served: ", hosted.why.message(),
      ". Do not put an older copy in its place: `alpheus replace --cluster ",
      options_.cluster_file, " --node ", options_.node, " --log ", log_name,
      "` makes the replica again from the others"));
}

void Node::CloseFailed() {
  CheckFiles();
  for (const Uuid& log_id : server_->LogsWithFailedMedium()) {
    for (auto& [log_name, hosted] : files_) {
      if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
      server_->RemoveLog(log_id).IgnoreError();
      if (hosted.file->region().alarm()->is_raised()) {
        CloseLost(log_name, hosted);
        continue;
      }
      hosted.is_served = false;
      hosted.suspect = true;
      hosted.recheck_at =
          hosted.retries.AfterFailureAt(Clock::Real().NowNanos());
      hosted.why = absl::UnavailableError(
          absl::StrCat(PathOf(log_name),
                       ": its medium failed. The node tries it again at most "
                       "once a minute, and it gets all records again in the "
                       "next epoch; see the kernel's log"));
      options_.say(absl::StrCat("log ", log_name,
                                ": not served: ", hosted.why.message()));
    }
  }
}

// ND5.
void Node::CloseStarved() {
  for (const Uuid& log_id : server_->StarvedLogs()) {
    for (auto& [log_name, hosted] : files_) {
      if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
      server_->RemoveLog(log_id).IgnoreError();
      hosted.is_served = false;
      hosted.file.reset();
      hosted.recheck_at =
          hosted.retries.AfterFailureAt(Clock::Real().NowNanos());
      options_.say(absl::StrCat(
          "log ", log_name,
          ": the node ran out of memory for it, and opens its file again"));
    }
  }
}

void Node::Recheck() {
  CloseFailed();
  const int64_t now = Clock::Real().NowNanos();
  if (now >= check_directory_at_) {
    check_directory_at_ = now + kDirectoryCheckNanos;
    if (HasDirectoryChanged()) FindFiles().IgnoreError();
  }
  for (auto next = files_.begin(); next != files_.end();) {
    const auto file = next++;
    if (file->second.is_served || file->second.recheck_at > now) continue;
    is_gone_ = false;
    TryToServe(file->first);
    if (std::exchange(is_gone_, false)) files_.erase(file);
  }
  RetryRemovals();
  UpdateRegistrations();
}

void Node::UpdateRegistrations() {
  if (!registrations_.has_value()) return;
  registrations_->KeepOnly([this](const std::string& log_name) {
    const auto found = files_.find(log_name);
    return found != files_.end() && found->second.is_served &&
           !found->second.is_deleted;
  });
  const int64_t now = Clock::Real().NowNanos();
  const bool is_due = now >= registrations_due_at_;
  if (is_due) registrations_due_at_ = now + kCheckFilesNanos;
  for (const auto& [log_name, hosted] : files_) {
    if (!hosted.is_served || hosted.is_deleted) continue;
    if (is_due || !registrations_->IsRegistered(log_name)) {
      Register(log_name, hosted);
    }
  }
}

void Node::Register(const std::string& log_name, const HostedFile& hosted) {
  const std::span<std::byte> region = hosted.file->region().bytes();
  const Uuid log_id = LogIdOf(cluster_.cluster_id, log_name);
  const NodeId self(options_.node);
  const auto hello =
      recovery::ServerHelloOfClaimed(region, cluster_.cluster_id, log_id, self);
  const auto followed =
      recovery::FollowedOfClaimed(region, cluster_.cluster_id, log_id, self);
  // In the middle of an update neither can be read: the next time.
  if (!hello.has_value() || !followed.has_value()) return;
  registrations_->Register(
      log_name, {self, hello->incarnation, address_, followed->log_epoch});
}

// --- What an operator changes
// -------------------------------------------------

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
  add(options.unopened_max != options_.unopened_max, "unopened-max");
  return absl::StrJoin(names, ", ");
}

// Reads cluster_id, fabric and node only, which never change.
absl::Status Node::Reload(const NodeOptions& options) {
  // A cluster file of no use does not keep a certificate from being revoked.
  if (tls_ != nullptr) tls_->Reload();
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster, LoadAgain(options));
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
  {
    MutexLock lock(change_mutex_);
    change_ = {options, std::move(cluster)};
  }
  has_change_.store(true, std::memory_order_release);
  fabric_->Wake();
  return absl::OkStatus();
}

std::optional<NodeStatus> Node::Observe(int64_t patience_ms) {
  std::unique_lock lock(observe_mutex_);
  const uint64_t number = ++observers_asked_;
  has_change_.store(true, std::memory_order_release);
  fabric_->Wake();
  const auto is_over = [&] {
    return observers_told_ >= number ||
           stopped_.load(std::memory_order_acquire);
  };
  (void)observed_.wait_for(lock, std::chrono::milliseconds(patience_ms),
                           is_over);
  if (observers_told_ < number) return std::nullopt;
  return observed_status_;
}

void Node::AnswerObservers() {
  const std::lock_guard lock(observe_mutex_);
  if (observers_told_ == observers_asked_) return;
  observed_status_ = StatusNow();
  observers_told_ = observers_asked_;
  observed_.notify_all();
}

NodeStatus Node::StatusNow() const {
  NodeStatus status;
  std::map<Uuid, recovery::ReplicaServer::ReplicaState> served;
  for (auto& replica : server_->replicas()) {
    const Uuid log_id = replica.log_id;
    served.emplace(log_id, std::move(replica));
  }
  for (const auto& [log_name, hosted] : files_) {
    if (hosted.is_deleted) continue;
    NodeStatus::Replica replica{.log = log_name};
    const auto found = served.find(LogIdOf(cluster_.cluster_id, log_name));
    if (found != served.end()) {
      replica.is_served = true;
      replica.followed = std::move(found->second.followed);
      replica.scrubbed = std::move(found->second.scrubbed);
    }
    status.replicas.push_back(std::move(replica));
  }
  status.connections = server_->connection_count();
  status.rejected = server_->rejects().counts();
  if (tls_ != nullptr) status.certificate_end_s = tls_->end_s();
  return status;
}

void Node::TakeChange() {
  std::optional<Change> change;
  {
    MutexLock lock(change_mutex_);
    change = std::exchange(change_, std::nullopt);
  }
  if (!change.has_value()) return;
  // The other fields are unchanged; other threads read them.
  cluster_.id = change->cluster.id;
  cluster_.members = std::move(change->cluster.members);
  cluster_.key_file = std::move(change->cluster.key_file);
  cluster_.key = change->cluster.key;
  options_.yield_turns = change->options.yield_turns;
  options_.scrub_bytes_per_second = change->options.scrub_bytes_per_second;
  options_.scrub_interval_seconds = change->options.scrub_interval_seconds;
  options_.unproved_max = change->options.unproved_max;
  options_.waiting_max = change->options.waiting_max;
  options_.followers_max = change->options.followers_max;
  server_->Reconfigure(ServerOptions());
  ReportKey();
  if (const absl::Status found = FindFiles(); !found.ok()) {
    options_.say(std::string(found.message()));
  }
  for (auto& [log_name, hosted] : files_) {
    if (!hosted.is_served) hosted.recheck_at = Clock::Real().NowNanos();
  }
  rechecks_soon_ = true;
  options_.say(absl::StrCat("reloaded ", options_.cluster_file));
}

Deadline Node::NextPoll() const {
  Deadline next = server_->NextPoll();
  for (const auto& [log_name, hosted] : files_) {
    const int64_t due = hosted.is_served ? files_due_at_ : hosted.recheck_at;
    if (due < next.at_nanos()) next = Deadline::AtNanos(due);
  }
  if (registrations_.has_value()) {
    next = Deadline::AtNanos(
        std::min(next.at_nanos(), registrations_->NextPoll().at_nanos()));
  }
  return next;
}

void Node::Run() {
  FabricPump pump(*fabric_);
  uint32_t idle_turns = 0;
  uint32_t busy_turns = 0;
  // Time at which work is due without any arrival; 0: perhaps now.
  int64_t due_at = 0;
  while (!stopped_.load(std::memory_order_acquire)) {
    if (has_change_.exchange(false, std::memory_order_acquire)) {
      AnswerObservers();
      TakeChange();
      due_at = 0;
    }
    bool any = true;
    const absl::Status turned = WithinMemory([&] {
      any = pump.Turn(*server_);
      return absl::OkStatus();
    });
    turned.IgnoreError();  // peers send it again
    // Turns that wait for the next record do no more than look for it.
    const bool reads_clock = idle_turns % kTurnsPerCheck == 0;
    if (any || due_at == 0 ||
        (reads_clock && Clock::Real().NowNanos() >= due_at)) {
      server_->Poll();
      CloseStarved();
      if (!to_release_.empty()) ReleaseAsked();
      // A busy machine may never have this many idle turns.
      const bool is_due = any ? ++busy_turns % kBusyTurns == 0 : IsCheckDue();
      if (std::exchange(rechecks_soon_, false) || is_due) Recheck();
      if (registrations_.has_value() && (!any || is_due)) {
        registrations_->Poll(Clock::Real().NowNanos());
      }
      due_at = any ? 0 : NextPoll().at_nanos();
    }
    if (any) {
      idle_turns = 0;
    } else if (++idle_turns < options_.yield_turns) {
      sched_yield();
    } else {
      Recheck();
      pump.Sleep(NextPoll());
      due_at = 0;
    }
  }
}

void Node::Stop() {
  stopped_.store(true, std::memory_order_release);
  fabric_->Wake();
  observed_.notify_all();  // one that misses it waits for its patience
}

}  // namespace alpheus
