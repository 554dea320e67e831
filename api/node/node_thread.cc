// SPDX-License-Identifier: Apache-2.0
#include "api/node/node_thread.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/membership.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "recovery/protocol/superline_report.h"

namespace alpheus {
namespace {

// From when a replica is served until the other nodes are asked whether its log
// was deleted.
constexpr int64_t kFirstInquiryNanos = 1'000'000'000;
// How often the node looks whether the membership service has answered: it
// sleeps in the fabric.
constexpr int64_t kRegistrationLookNanos = 10'000'000;
// Interval of readings of the epochs that are registered.
constexpr int64_t kRegisterNanos = 500'000'000;
// Turns between checks in a node that never idles.
constexpr uint32_t kBusyTurns = 4096;
// Idle turns per reading of the clock.
constexpr uint32_t kTurnsPerCheck = 4;
// Ten years: in nanoseconds it fits 64 bits.
constexpr uint64_t kScrubIntervalSecondsMax = 315'360'000;

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

NodeThread::NodeThread(const NodeOptions& options,
                       const quorum::ClusterConfiguration& cluster,
                       const NodeThreadsShared& shared, uint32_t number)
    : number_(number),
      shared_(shared),
      options_(options),
      cluster_(cluster),
      logs_({.cluster_file = options.cluster_file,
             .cluster_id = cluster.cluster_id,
             .node = NodeId(options.node),
             .directory = options.directory,
             .platform = options.platform,
             .sync = options.sync,
             .threads = shared.threads(),
             .number = number,
             .say = options.say}) {}

// --- Start -------------------------------------------------------------------

absl::Status NodeThread::OpenAdapter() {
  AdapterOptions adapter;
  adapter.say = options_.say;
  adapter.on_rejected =
      [this](std::string_view peer, fabric::UnauthenticatedEnd why,
             std::string_view detail) { NoteRejected(peer, why, detail); };
  adapter.unopened_max = static_cast<uint32_t>(options_.unopened_max);
  adapter.tls = shared_.tls;
  adapter.exchange = shared_.exchange;
  adapter.number = number_;
  ALPHEUS_ASSIGN_OR_RETURN(
      fabric_,
      options_.open_adapter(cluster_, NodeId(options_.node), random_, adapter));
  return absl::OkStatus();
}

// Called only after server_ exists: nobody connects before.
void NodeThread::NoteRejected(std::string_view peer,
                              fabric::UnauthenticatedEnd why,
                              std::string_view detail) {
  server_->NoteRejected(std::string(peer), RejectionOf(why, detail));
}

absl::Status NodeThread::FindFiles() {
  server_ = std::make_unique<recovery::ReplicaServer>(*fabric_, Clock::Real(),
                                                      ServerOptions());
  logs_.ServeBy(*fabric_, *server_);
  return logs_.FindFiles();
}

void NodeThread::OpenFiles(const std::string& address) {
  address_ = address;
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
}

// NTH1.
uint64_t NodeThread::PartOf(uint64_t of_the_node) const {
  const uint64_t threads = shared_.threads();
  return of_the_node / threads + (of_the_node % threads == 0 ? 0 : 1);
}

uint64_t NodeThread::PlacesOf(uint64_t of_the_node) const {
  return std::max(PartOf(of_the_node), std::min(of_the_node, kPlacesMin));
}

recovery::ReplicaServerOptions NodeThread::ServerOptions() {
  recovery::ReplicaServerOptions server;
  server.cluster_id = cluster_.cluster_id;
  server.node = NodeId(options_.node);
  server.platform = options_.platform;
  server.credentials = {cluster_.key, &random_};
  server.unproved_connections_max = PlacesOf(options_.unproved_max);
  server.waiting_connections_max = PlacesOf(options_.waiting_max);
  server.followers_max = PlacesOf(options_.followers_max);
  server.scrubbing = Scrubbing();
  server.creator = &logs_;
  server.warn = options_.say;
  server.note = options_.say;
  server.name_of = [this](Uuid log_id) { return logs_.NameOf(log_id); };
  server.regions = &logs_;
  server.inquiry.first_ns = kFirstInquiryNanos;
  server.inquiry.peers = server.scrubbing.peers;
  return server;
}

recovery::ScrubbingOptions NodeThread::Scrubbing() const {
  recovery::ScrubbingOptions scrubbing;
  scrubbing.bytes_per_second = PartOf(options_.scrub_bytes_per_second);
  scrubbing.interval_ns = static_cast<int64_t>(
      std::min(options_.scrub_interval_seconds, kScrubIntervalSecondsMax) *
      uint64_t{1'000'000'000});
  for (const quorum::ClusterMember& member : cluster_.members) {
    scrubbing.peers.push_back({member.node, member.address.ToString()});
  }
  return scrubbing;
}

// --- Registrations -----------------------------------------------------------

void NodeThread::UpdateRegistrations() {
  if (!registrations_.has_value()) return;
  registrations_->KeepOnly(
      [this](const std::string& log_name) { return logs_.IsServed(log_name); });
  const int64_t now = Clock::Real().NowNanos();
  const bool is_due = now >= registrations_due_at_;
  if (is_due) registrations_due_at_ = now + kRegisterNanos;
  logs_.ForEach([&](const std::string& log_name, Uuid log_id,
                    std::span<std::byte> region) {
    if (region.empty()) return;
    if (is_due || !registrations_->IsRegistered(log_name)) {
      Register(log_name, log_id, region);
    }
  });
}

void NodeThread::Register(const std::string& log_name, Uuid log_id,
                          std::span<std::byte> region) {
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

// --- What others ask for -----------------------------------------------------

void NodeThread::Take(Change change) {
  {
    const MutexLock lock(change_mutex_);
    change_ = std::move(change);
  }
  has_news_.store(true, std::memory_order_release);
  fabric_->Wake();
}

void NodeThread::MakeChange() {
  std::optional<Change> change;
  {
    const MutexLock lock(change_mutex_);
    change = std::exchange(change_, std::nullopt);
  }
  if (!change.has_value()) return;
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
  if (const absl::Status found = logs_.FindFiles(); !found.ok()) {
    options_.say(std::string(found.message()));
  }
  logs_.RecheckUnserved();
  change->made();
}

uint64_t NodeThread::AskStatus() {
  uint64_t question = 0;
  {
    const std::lock_guard lock(status_mutex_);
    question = ++asked_;
  }
  has_news_.store(true, std::memory_order_release);
  fabric_->Wake();
  return question;
}

std::optional<NodeStatus> NodeThread::AwaitStatus(uint64_t question,
                                                  Deadline deadline) {
  std::unique_lock lock(status_mutex_);
  const auto is_over = [&] {
    return told_ >= question || stopped_.load(std::memory_order_acquire);
  };
  const int64_t left = deadline.at_nanos() - Clock::Real().NowNanos();
  (void)answered_.wait_for(
      lock, std::chrono::nanoseconds(std::max<int64_t>(left, 0)), is_over);
  if (told_ < question) return std::nullopt;
  return status_;
}

void NodeThread::AnswerQuestions() {
  const std::lock_guard lock(status_mutex_);
  if (told_ == asked_) return;
  status_ = StatusNow();
  told_ = asked_;
  answered_.notify_all();
}

NodeStatus NodeThread::StatusNow() const {
  NodeStatus status;
  std::map<Uuid, recovery::ReplicaServer::ReplicaState> served;
  for (auto& replica : server_->replicas()) {
    const Uuid log_id = replica.log_id;
    served.emplace(log_id, std::move(replica));
  }
  logs_.ForEach([&](const std::string& log_name, Uuid log_id,
                    std::span<std::byte> /*region*/) {
    NodeStatus::Replica replica{.log = log_name};
    const auto found = served.find(log_id);
    if (found != served.end()) {
      replica.is_served = true;
      replica.followed = std::move(found->second.followed);
      replica.scrubbed = std::move(found->second.scrubbed);
    }
    status.replicas.push_back(std::move(replica));
  });
  status.connections = server_->connection_count();
  status.rejected = server_->rejects().counts();
  return status;
}

// --- Turns -------------------------------------------------------------------

void NodeThread::Recheck() {
  logs_.Recheck();
  UpdateRegistrations();
}

Deadline NodeThread::NextPoll() const {
  int64_t next =
      std::min(server_->NextPoll().at_nanos(), logs_.NextCheck().at_nanos());
  if (registrations_.has_value()) {
    next = std::min(next, registrations_->NextPoll().at_nanos());
  }
  return Deadline::AtNanos(next);
}

absl::Status NodeThread::Run() {
  return WithinMemory([this] {
    Loop();
    return absl::OkStatus();
  });
}

void NodeThread::Loop() {
  FabricPump pump(*fabric_);
  uint32_t idle_turns = 0;
  uint32_t busy_turns = 0;
  // Time at which work is due without any arrival; 0: perhaps now.
  int64_t due_at = 0;
  while (!stopped_.load(std::memory_order_acquire)) {
    if (has_news_.exchange(false, std::memory_order_acquire)) {
      AnswerQuestions();
      MakeChange();
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
      logs_.CloseStarved();
      if (logs_.has_asked()) logs_.ReleaseAsked();
      // A busy machine may never have this many idle turns.
      const bool is_due =
          any ? ++busy_turns % kBusyTurns == 0
              : logs_.NextCheck().HasPassed(Clock::Real().NowNanos());
      if (logs_.TakeRechecksSoon() || is_due) Recheck();
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

void NodeThread::Stop() {
  stopped_.store(true, std::memory_order_release);
  fabric_->Wake();
  answered_.notify_all();  // one that misses it waits for its patience
}

}  // namespace alpheus
