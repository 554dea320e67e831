// SPDX-License-Identifier: Apache-2.0
#include "api/node/node.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/node/fabric_pump.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "quorum/cluster_file.h"
#include "quorum/log_id.h"
#include "replication/persist/declaration.h"
#include "replication/persist/planner.h"

namespace alpheus {
namespace {

constexpr char kExtension[] = ".alpheus";
// How often a file that another process has is tried.
constexpr int64_t kLookAgainNanos = 200'000'000;
// How often it is looked whether a served file is what it was.
constexpr int64_t kLookAtFilesNanos = 500'000'000;
// A node that never idles looks after so many turns.
constexpr uint32_t kBusyTurns = 4096;
// Of idle turns, one in so many looks at the clock.
constexpr uint32_t kTurnsPerLook = 4;
// Whoever asked for a file has so long to take its lock.
constexpr int64_t kReleasedNanos = 2'000'000'000;
// Ten years: its nanoseconds are a number.
constexpr uint64_t kScrubIntervalSecondsMax = 315'360'000;

// A device-DAX, to which a link in the directory leads, is there before it is
// formatted. What a file of zeros held was lost.
bool IsBlankDevice(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_character_file(path, error)) return false;
  const absl::StatusOr<Region> region = Region::OpenForReading(path.string());
  return region.ok() && region->bytes().size() > kTableOffset &&
         std::ranges::all_of(
             region->bytes().first(kTableOffset),
             [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Start(NodeOptions options) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           LoadClusterFile(options.cluster_file));
  std::unique_ptr<Node> node(new Node(std::move(options), std::move(cluster)));
  ALPHEUS_RETURN_IF_ERROR(node->Begin());
  return node;
}

Node::Node(NodeOptions options, ClusterConfiguration cluster)
    : options_(std::move(options)), cluster_(std::move(cluster)) {}

ReplicaServerOptions Node::ServerOptions() {
  ReplicaServerOptions server;
  server.cluster_id = cluster_.cluster_id;
  server.node = NodeId(options_.node);
  server.platform = options_.platform;
  server.credentials = {cluster_.key, &random_};
  server.scrubbing = Scrubbing();
  server.creator = this;
  server.report = options_.tell;
  server.release = [this](Uuid log_id) { to_release_.push_back(log_id); };
  server.unserved = [this](Uuid log_id) { return Unserved(log_id); };
  server.held = [this](Uuid log_id) { return WelcomeOfHeld(log_id); };
  server.let_go = [this](Uuid log_id) { LookSoon(log_id); };
  return server;
}

Node::~Node() = default;

ScrubbingOptions Node::Scrubbing() const {
  ScrubbingOptions scrubbing;
  scrubbing.bytes_per_second = options_.scrub_bytes_per_second;
  scrubbing.interval_ns = static_cast<int64_t>(
      std::min(options_.scrub_interval_seconds, kScrubIntervalSecondsMax) *
      uint64_t{1'000'000'000});
  for (const ClusterMember& member : cluster_.members) {
    scrubbing.peers.push_back({member.node, member.address.ToString()});
  }
  return scrubbing;
}

absl::Status Node::Begin() {
  const ClusterMember* const self = FindMember(cluster_, NodeId(options_.node));
  if (self == nullptr) {
    return absl::NotFoundError(absl::StrCat(options_.cluster_file, ": node ",
                                            options_.node,
                                            " is no member of the cluster"));
  }
  const std::string own =
      options_.listen.empty() ? self->address.ToString() : options_.listen;
  ALPHEUS_ASSIGN_OR_RETURN(
      fabric_,
      options_.open_adapter(cluster_, self->node, random_, options_.tell));
  ALPHEUS_RETURN_IF_ERROR(TellPlatform());
  TellKey();
  server_ =
      std::make_unique<ReplicaServer>(*fabric_, Clock::Real(), ServerOptions());
  ALPHEUS_RETURN_IF_ERROR(FindFiles());
  ALPHEUS_ASSIGN_OR_RETURN(address_, fabric_->Listen(own));
  return absl::OkStatus();
}

absl::Status Node::TellPlatform() const {
  ALPHEUS_ASSIGN_OR_RETURN(const Plan plan, MakeRecordPlan(options_.platform));
  options_.tell(absl::StrCat("platform ", PlatformToString(options_.platform),
                             "; a record: ", PlanToString(plan)));
  const Fabric::Limits limits = fabric_->limits();
  const bool is_verbs = cluster_.fabric == ClusterFabric::kVerbs;
  const Shown shown = {
      .caches_persist = LibpmemPersistence::DetectAutoFlush(),
      .transport = is_verbs ? Transport::kInfiniBand : Transport::kTcp,
      .native_flush = limits.native_flush,
      .atomic_write = limits.atomic_write};
  for (const std::string& warning :
       DeclarationWarnings(options_.platform, shown)) {
    options_.tell(warning);
  }
  return absl::OkStatus();
}

void Node::TellKey() const {
  options_.tell(
      cluster_.key.is_set()
          ? absl::StrCat("cluster key: ", cluster_.key_file)
          : "cluster key: none. Whoever reaches this node's address may open "
            "its logs, read them, and end their primaries; name a key_file in "
            "the cluster file");
}

absl::Status Node::FindFiles() {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(options_.directory, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != kExtension) continue;
    const std::string log_name = path.stem().string();
    if (absl::Status good = CheckLogName(log_name); !good.ok()) {
      options_.tell(
          absl::StrCat(path.string(), ": not served: ", good.message()));
      continue;
    }
    if (IsBlankDevice(path)) {
      options_.tell(absl::StrCat(
          "log ", log_name, ": ", path.string(),
          ": a blank device: no replica yet; `alpheus format --cluster` makes "
          "one, or `alpheus replace` in the place of one that was lost"));
      continue;
    }
    TryToServe(log_name);
  }
  if (!error) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(options_.directory, ": ", error.message(),
                   "; the directory of the replicas must exist"));
}

std::string Node::PathOf(const std::string& log_name) const {
  return absl::StrCat(options_.directory, "/", log_name, kExtension);
}

absl::StatusOr<std::unique_ptr<ServedLog>> Node::Open(
    const std::string& log_name, Held& held) {
  if (held.file == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(
        held.file,
        ReplicaFile::Open(PathOf(log_name),
                          {.fabric = fabric_.get(), .sync = options_.sync}));
  } else {
    held.file->ForgetFailure();
  }
  return held.file->Serve(
      {cluster_.cluster_id, LogIdOf(cluster_.cluster_id, log_name),
       NodeId(options_.node)},
      held.suspect);
}

void Node::TryToServe(const std::string& log_name) {
  Held& held = files_[log_name];
  const int64_t now = Clock::Real().NowNanos();
  absl::StatusOr<std::unique_ptr<ServedLog>> log = Open(log_name, held);
  absl::Status status = log.status();
  if (log.ok()) status = server_->AddLog(*std::move(log));
  if (status.ok()) {
    options_.tell(
        absl::StrCat("log ", log_name, ": serving ", PathOf(log_name)));
    TellMemory(log_name, held);
    held.why = absl::OkStatus();
    held.is_served = true;
    held.is_lost = false;
    held.suspect = false;  // its superline says so now
    return;
  }
  held.suspect |= held.file != nullptr && held.file->medium_failed();
  // It was told when it went; nobody wants to hear more of it.
  if (held.is_lost && absl::IsNotFound(status)) {
    held.look_again_at = held.retries.AfterFailureAt(now);
    return;
  }
  held.is_lost = false;
  // K2: to make a copy of it takes time.
  const bool is_costly = held.file != nullptr && !held.file->landing().empty();
  if (!held.suspect) held.file.reset();
  held.look_again_at = held.suspect || is_costly
                           ? held.retries.AfterFailureAt(now)
                           : now + kLookAgainNanos;
  // Tried again and again: said once.
  if (status != held.why) {
    options_.tell(
        absl::StrCat("log ", log_name, ": not served: ", status.message()));
  }
  held.why = status;
}

// Said once; a copy in memory is made each time that the file is taken back.
void Node::TellMemory(const std::string& log_name, Held& held) {
  if (std::exchange(held.memory_told, true)) return;
  for (const std::string& sentence :
       {held.file->landing(), held.file->region().warning(),
        ReplicaWarning(options_.platform, held.file->medium())}) {
    if (!sentence.empty() && !IsMutant("kLandsUntold")) {
      options_.tell(absl::StrCat("log ", log_name, ": ", sentence));
    }
  }
}

absl::StatusOr<std::unique_ptr<ServedLog>> Node::Create(Uuid log_id,
                                                        const Format& format) {
  const ReplicaIdentity identity{cluster_.cluster_id, log_id,
                                 NodeId(options_.node)};
  if (log_id != LogIdOf(cluster_.cluster_id, format.log_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("log ", log_id.ToString(), " is not log '",
                     format.log_name, "' of this cluster"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaFile> file,
      ReplicaFile::Create(PathOf(format.log_name), identity, format,
                          {.fabric = fabric_.get(), .sync = options_.sync}));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ServedLog> log,
                           file->Serve(identity));
  Held& held = files_[format.log_name];
  held.file = std::move(file);
  held.is_served = true;
  held.is_lost = false;
  options_.tell(absl::StrCat("log ", format.log_name, ": formatted ",
                             PathOf(format.log_name)));
  TellMemory(format.log_name, held);
  return log;
}

// As much as a rejection holds.
absl::Status Node::Unserved(Uuid log_id) const {
  for (const auto& [log_name, held] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
    // As after a start without the file.
    if (held.is_lost) return absl::OkStatus();
    return absl::IsDataLoss(held.why)
               ? absl::DataLossError("the node's replica can't be read")
               : absl::UnavailableError("the node does not serve its replica");
  }
  return absl::OkStatus();
}

absl::StatusOr<Welcome> Node::WelcomeOfHeld(Uuid log_id) const {
  const absl::Status unserved = Unserved(log_id);
  if (!absl::IsUnavailable(unserved)) return unserved;
  for (const auto& [log_name, held] : files_) {
    if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
    const absl::StatusOr<Region> region =
        Region::OpenForReading(PathOf(log_name));
    if (!region.ok()) return unserved;
    const std::optional<Welcome> welcome = alpheus::WelcomeOfHeld(
        region->bytes(), cluster_.cluster_id, log_id, NodeId(options_.node));
    if (!welcome) return unserved;
    return *welcome;
  }
  return unserved;
}

// Whoever had the file may have let go of it.
void Node::LookSoon(Uuid log_id) {
  for (auto& [log_name, held] : files_) {
    if (!held.is_served && !held.suspect &&
        LogIdOf(cluster_.cluster_id, log_name) == log_id) {
      held.look_again_at = Clock::Real().NowNanos();
      looks_soon_ = true;
    }
  }
}

bool Node::IsLookDue() const {
  const int64_t now = Clock::Real().NowNanos();
  for (const auto& [log_name, held] : files_) {
    const int64_t due = held.is_served ? files_due_at_ : held.look_again_at;
    if (due <= now) return true;
  }
  return false;
}

void Node::ReleaseAsked() {
  for (const Uuid& log_id : std::exchange(to_release_, {})) {
    for (auto& [log_name, held] : files_) {
      if (!held.is_served || LogIdOf(cluster_.cluster_id, log_name) != log_id) {
        continue;
      }
      // The served log before the file that it lies in.
      server_->RemoveLog(log_id).IgnoreError();
      held.is_served = false;
      held.file.reset();
      held.look_again_at = Clock::Real().NowNanos() + kReleasedNanos;
      options_.tell(absl::StrCat("log ", log_name,
                                 ": released to a process of this machine"));
    }
  }
}

// K4. What was found out then fails the replica's fences.
void Node::LookAtFiles() {
  const int64_t now = Clock::Real().NowNanos();
  if (now < files_due_at_) return;
  files_due_at_ = now + kLookAtFilesNanos;
  for (const auto& [log_name, held] : files_) {
    if (held.is_served) held.file->region().CheckFile();
  }
}

void Node::CloseLost(const std::string& log_name, Held& held) {
  held.is_served = false;
  held.why = held.file->region().alarm()->status();
  held.is_lost = absl::IsNotFound(held.why);
  held.file.reset();
  held.look_again_at = held.retries.AfterFailureAt(Clock::Real().NowNanos());
  options_.tell(absl::StrCat(
      "log ", log_name, ": not served: ", held.why.message(),
      "; `alpheus replace` makes the replica anew from the others"));
}

void Node::CloseFailed() {
  LookAtFiles();
  for (const Uuid& log_id : server_->LogsWithFailedMedium()) {
    for (auto& [log_name, held] : files_) {
      if (LogIdOf(cluster_.cluster_id, log_name) != log_id) continue;
      server_->RemoveLog(log_id).IgnoreError();
      if (held.file->region().alarm()->is_raised()) {
        CloseLost(log_name, held);
        continue;
      }
      held.is_served = false;
      held.suspect = true;
      if (IsMutant("kFailedMediumUnlocked")) held.file.reset();
      held.look_again_at =
          held.retries.AfterFailureAt(Clock::Real().NowNanos());
      held.why = absl::UnavailableError(absl::StrCat(
          PathOf(log_name),
          ": its medium failed. It is tried again at most once a minute, and "
          "gets all records anew in the next epoch; see the kernel's log"));
      options_.tell(
          absl::StrCat("log ", log_name, ": not served: ", held.why.message()));
    }
  }
}

void Node::LookAgain() {
  CloseFailed();
  const int64_t now = Clock::Real().NowNanos();
  for (auto& [log_name, held] : files_) {
    if (!held.is_served && held.look_again_at <= now) {
      TryToServe(log_name);
    }
  }
}

Deadline Node::NextDeadline() const {
  Deadline next = server_->NextDeadline();
  for (const auto& [log_name, held] : files_) {
    const int64_t due = held.is_served ? files_due_at_ : held.look_again_at;
    if (due < next.at_nanos()) next = Deadline::AtNanos(due);
  }
  return next;
}

void Node::Run() {
  FabricPump pump(*fabric_);
  pump.Add({[this](const ConnectionEvent& e) { return server_->Take(e); },
            [this](const Completion& c) { return server_->Take(c); }});
  uint32_t idle_turns = 0;
  uint32_t busy_turns = 0;
  // When there is something to do though nothing comes; 0: perhaps now.
  int64_t due_at = 0;
  while (!stopped_.load(std::memory_order_acquire)) {
    const bool any = pump.Turn();
    // Whoever waits for the next record only looks for it.
    const bool looks_at_clock = idle_turns % kTurnsPerLook == 0;
    if (any || due_at == 0 ||
        (looks_at_clock && Clock::Real().NowNanos() >= due_at)) {
      server_->Poll();
      if (!to_release_.empty()) ReleaseAsked();
      // On a machine that is busy it may never be idle for so many turns.
      const bool is_due = any ? ++busy_turns % kBusyTurns == 0 : IsLookDue();
      if (std::exchange(looks_soon_, false) || is_due) LookAgain();
      due_at = any ? 0 : NextDeadline().at_nanos();
    }
    if (any) {
      idle_turns = 0;
    } else if (++idle_turns < options_.yield_turns) {
      sched_yield();
    } else {
      LookAgain();
      pump.Sleep(NextDeadline());
      due_at = 0;
    }
  }
}

void Node::Stop() {
  stopped_.store(true, std::memory_order_release);
  fabric_->Wake();
}

}  // namespace alpheus
