// SPDX-License-Identifier: Apache-2.0
#include "tests/recovery/opening/opening_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/core/ring/format_region.h"
#include "log/format/checksum.h"
#include "log/format/record.h"
#include "quorum/membership/static_membership.h"
#include "tests/recovery/opening/lent_replica.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {

using recovery::EpochOpeningOptions;

namespace {

constexpr uint64_t kTableEntries = 102;
constexpr int64_t kIdleNanos = 100'000;

model::SimOptions NetworkOptions(const OpeningWorld::Options& options) {
  model::SimOptions network;
  network.seed = options.seed;
  network.hosts = options.members + options.spares + 2 + options.onlookers;
  network.limits.message_bytes_max = options.message_bytes_max;
  network.limits.retry_ns = 2'000'000;
  return network;
}

quorum::QuorumSizes SizesOf(const OpeningWorld::Options& options) {
  return *quorum::MakeQuorumSizes(static_cast<uint32_t>(options.members),
                                  static_cast<uint32_t>(options.write_quorum));
}

}  // namespace

// Passes events at a primary's host to that host's node, if it has one.
class OpeningWorld::OthersOf final : public replication::Replicator::Observer {
 public:
  explicit OthersOf(Node* node) : node_(node) {}

  void OnCompletion(const fabric::Completion& completion) override {
    if (node_ == nullptr || node_->real_server->OnCompletion(completion))
      return;
  }
  void OnConnectionEvent(const fabric::ConnectionEvent& event) override {
    if (node_ == nullptr || node_->real_server->OnConnectionEvent(event))
      return;
  }

 private:
  Node* const node_;
};

// A waiting primary lets the other hosts go on.
class OpeningWorld::DrivenReplication final : public ReplicationSink {
 public:
  DrivenReplication(OpeningWorld& world, int host, ReplicationSink& inner)
      : world_(world), host_(host), inner_(inner) {}

  void Advance(const RingEnd& finished) override { inner_.Advance(finished); }
  void LocalPersisted(Lsn lsn) override { inner_.LocalPersisted(lsn); }
  void AdvanceBounds(const RingBounds& bounds) override {
    inner_.AdvanceBounds(bounds);
  }
  void AnnounceDurable() override { inner_.AnnounceDurable(); }
  void BeginConfirmation() override { inner_.BeginConfirmation(); }
  void End(const absl::Status& why) override { inner_.End(why); }
  Polled Poll() override { return inner_.Poll(); }
  ReplicationState replication_state() const override {
    return inner_.replication_state();
  }
  absl::Status status() const override { return inner_.status(); }
  void WaitForActivity(Deadline /*deadline*/) override {
    world_.StepOthers(host_);
  }
  void Wake() override {}

 private:
  OpeningWorld& world_;
  const int host_;
  ReplicationSink& inner_;
};

OpeningWorld::OpeningWorld(const Options& options,
                           std::span<const std::vector<std::byte>> images)
    : options_(options),
      sizes_(SizesOf(options)),
      layout_(*Layout::ForRing(options.ring_capacity, kTableEntries)),
      network_(std::make_unique<model::SimNetwork>(NetworkOptions(options))) {
  for (const std::vector<std::byte>& image : images) {
    nodes_.push_back(std::make_unique<Node>(image));
    nodes_.back()->host = static_cast<int>(nodes_.size()) - 1;
    network_->Crash(nodes_.back()->host);
  }
}

OpeningWorld::OpeningWorld(const Options& options)
    : options_(options),
      sizes_(SizesOf(options)),
      layout_(*Layout::ForRing(options.ring_capacity, kTableEntries)),
      network_(std::make_unique<model::SimNetwork>(NetworkOptions(options))) {
  for (int node = 1; node <= options.members; ++node) {
    MakeNode(IdentityOf(node));
  }
  for (int i = 1; i <= options.spares; ++i) {
    FormatIdentity identity = IdentityOf(1);
    identity.node = NodeId(static_cast<uint64_t>(options.members + i));
    identity.incarnation = 500 + identity.node.value;
    MakeNode(identity);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) Restart(static_cast<int>(i) + 1);
}

void OpeningWorld::MakeNode(const FormatIdentity& identity) {
  nodes_.push_back(std::make_unique<Node>(layout_.region_bytes));
  nodes_.back()->host = static_cast<int>(nodes_.size()) - 1;
  Model& pmem = nodes_.back()->pmem;
  ALPHEUS_CHECK(FormatRegion(pmem, pmem.region(), layout_, identity).ok(),
                "modelled memory does not fail unasked");
}

FormatIdentity OpeningWorld::IdentityOf(int node) const {
  FormatIdentity identity;
  identity.cluster_id = kOpeningCluster;
  identity.log_id = kOpeningLog;
  identity.node = NodeId(static_cast<uint64_t>(node));
  identity.configuration.replica_count = sizes_.replica_count;
  identity.configuration.write_quorum = sizes_.write_quorum;
  for (uint64_t member = 1; member <= sizes_.replica_count; ++member) {
    identity.configuration.members.push_back({NodeId(member), 100 + member});
  }
  return identity;
}

void OpeningWorld::Restart(int number, bool suspect) {
  Node& node = node_at(number);
  if (!network_->IsUp(node.host)) network_->Restart(node.host);
  fabric::Fabric& fabric = network_->fabric(node.host);
  OpenReplica(node, suspect);
  node.server = std::make_unique<ScriptedReplica>(
      fabric, NodeId(static_cast<uint64_t>(number)), node.pmem,
      node.replica.get());
  Serve(node);
  ALPHEUS_CHECK(fabric.Listen(model::SimNetwork::Address(node.host, 1)).ok(),
                "a new adapter listens");
}

void OpeningWorld::OpenReplica(Node& node, bool suspect) {
  recovery::LocalReplicaOptions options;
  options.name = absl::StrCat("replica of node ", node.host + 1);
  options.suspect = suspect;
  options.read_whole_bytes_max = options_.read_whole_bytes_max;
  node.replica = *recovery::LocalReplica<Model>::Open(
      node.pmem, node.pmem.region(), options);
}

void OpeningWorld::Serve(Node& node) {
  if (!options_.real_server) return;
  recovery::ReplicaServerOptions options;
  options.cluster_id = kOpeningCluster;
  options.node = NodeId(static_cast<uint64_t>(node.host) + 1);
  const auto other = options_.other_keys.find(node.host + 1);
  options.credentials = {
      other == options_.other_keys.end() ? options_.key : other->second,
      &node.random};
  options.inquiry.first_ns = options_.inquires_ns;
  options.inquiry.again_ns_max = options_.inquires_again_ns_max;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    options.inquiry.peers.push_back(AddressOf(static_cast<int>(i) + 1));
  }
  node.real_server = std::make_unique<recovery::ReplicaServer>(
      network_->fabric(node.host), network_->clock(), options);
  ALPHEUS_CHECK(
      node.real_server
          ->AddLog(std::make_unique<LentReplica>(node.pmem, *node.replica))
          .ok(),
      "a new server has no log");
}

// Does the same as a process that promised its own replica to itself.
void OpeningWorld::Fence(Node& node) {
  node.server->Fence();
  if (node.real_server == nullptr) return;
  auto log = node.real_server->RemoveLog(kOpeningLog);
  ALPHEUS_CHECK(log.ok(), "the log is served");
  ALPHEUS_CHECK(node.real_server->AddLog(*std::move(log)).ok(),
                "it was just removed");
}

void OpeningWorld::Crash(int number, bool power_cut) {
  Node& node = node_at(number);
  node.real_server.reset();
  node.server.reset();  // closes nothing: nobody is told
  network_->Crash(node.host);
  node.replica.reset();
  if (power_cut) node.pmem.Reset(node.pmem.CutKeepingNone());
}

void OpeningWorld::Reformat(int number) {
  Crash(number);
  Node& node = node_at(number);
  const std::vector<std::byte> zeros(layout_.region_bytes);
  node.pmem.Reset(zeros);
  // Formatted by hand: the configuration still names the one before.
  FormatIdentity identity = IdentityOf(number);
  for (Member& member : identity.configuration.members) {
    if (member.node == identity.node) member.incarnation = 900;
  }
  ALPHEUS_CHECK(
      FormatRegion(node.pmem, node.pmem.region(), layout_, identity).ok(),
      "modelled memory does not fail unasked");
  Restart(number);
}

void OpeningWorld::Replace(int number, int like) {
  FormatIdentity identity = IdentityOf(number);
  identity.configuration = replica(like).superline().configuration;
  identity.incarnation = 600 + next_incarnation_++;
  Crash(number);
  Node& node = node_at(number);
  node.pmem.Reset(std::vector<std::byte>(layout_.region_bytes));
  ALPHEUS_CHECK(
      FormatRegion(node.pmem, node.pmem.region(), layout_, identity).ok(),
      "modelled memory does not fail unasked");
  Restart(number);
}

recovery::PeerAddress OpeningWorld::AddressOf(int node) const {
  return {NodeId(static_cast<uint64_t>(node)),
          model::SimNetwork::Address(node - 1, 1)};
}

EpochOpeningOptions OpeningWorld::OpeningOptions(
    int host, uint64_t id, const std::vector<int>& nodes,
    const quorum::QuorumSizes& sizes) {
  EpochOpeningOptions options = OpeningOptions(host);
  options.configuration_id = id;
  options.sizes = sizes;
  options.peers.clear();
  for (const int node : nodes) {
    if (node != host + 1) options.peers.push_back(AddressOf(node));
  }
  return options;
}

EpochOpeningOptions OpeningWorld::OpeningOptions(int host) {
  EpochOpeningOptions options;
  options.cluster_id = kOpeningCluster;
  options.log_id = kOpeningLog;
  options.key = options_.key;
  options.sizes = sizes_;
  for (int node = 1; node <= options_.members; ++node) {
    if (node != host + 1) options.peers.push_back(AddressOf(node));
  }
  options.gather_ns = 1'000'000;
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 500'000;
  options.credits = 4;
  options.copy_bytes_max = 256;
  return options;
}

std::unique_ptr<OpeningWorld::Primary> OpeningWorld::Begin(
    int host, const EpochOpeningOptions& asked, uint64_t incarnation) {
  auto primary = std::make_unique<Primary>();
  primary->host = host;
  const uint64_t serial = next_incarnation_++;
  if (incarnation == 0) incarnation = serial << 48 | 1;
  EpochOpeningOptions options = asked;
  options.self = {NodeId(static_cast<uint64_t>(host) + 1), incarnation};
  primary->asked = options;
  primary->random.emplace(options_.seed * 1000 + next_incarnation_);
  primary->ballots = make_ballots
                         ? make_ballots(options.self)
                         : std::make_unique<quorum::StaticMembership>(
                               *quorum::StaticMembership::Make(options.self));
  fabric::Fabric& fabric = network_->fabric(host);
  const auto member = static_cast<size_t>(host);
  if (member < nodes_.size()) {
    Node* const node = nodes_[member].get();
    primary->opening = *recovery::EpochOpening::Start(
        fabric, network_->clock(), *primary->random, *primary->ballots, options,
        recovery::AsOpenersReplica(*node_at(host + 1).replica,
                                   [this, node] { Fence(*node); }));
    return primary;
  }
  Primary* const p = primary.get();
  recovery::WorkingCopyFactory cache = [this, p](uint64_t capacity,
                                                 const Configuration&)
      -> absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>> {
    const Layout layout = *Layout::ForRing(capacity, kTableEntries);
    p->cache_pmem = std::make_unique<Model>(layout.region_bytes);
    // The only member of its own configuration.
    FormatIdentity identity = IdentityOf(p->host + 1);
    identity.configuration.replica_count = 1;
    identity.configuration.write_quorum = 1;
    identity.configuration.members = {{identity.node, 55}};
    ALPHEUS_CHECK(
        FormatRegion(*p->cache_pmem, p->cache_pmem->region(), layout, identity)
            .ok(),
        "modelled memory does not fail unasked");
    p->cache = *recovery::LocalReplica<Model>::Open(
        *p->cache_pmem, p->cache_pmem->region(), {.name = "working copy"});
    return recovery::AsOpenersReplica(*p->cache);
  };
  primary->opening = *recovery::EpochOpening::Start(
      fabric, network_->clock(), *primary->random, *primary->ballots, options,
      std::move(cache));
  return primary;
}

OpeningWorld::Primary* OpeningWorld::PrimaryAt(
    const std::vector<Primary*>& primaries, int host) {
  for (Primary* primary : primaries) {
    if (primary->host == host) return primary;
  }
  return nullptr;
}

ReplicationSink& OpeningWorld::MakeReplication(
    Primary& primary, const replication::Replicator::Options& replicator) {
  recovery::EpochOpened& opened = *primary.opened;
  fabric::Fabric& fabric = network_->fabric(primary.host);
  recovery::ResyncOptions resync;
  resync.opening = primary.asked;
  resync.retry_ns = 200'000;
  resync.slice_bytes = 64;  // comparing takes its time
  if (options_.succeeds) {
    primary.succession = std::make_unique<recovery::EpochSuccession>(
        fabric, network_->clock(), *primary.random,
        recovery::SuccessionOptions{.replicator = replicator,
                                    .resync = resync,
                                    .drain_ns = 5'000'000,
                                    .open_ns = 100'000'000,
                                    .rest_ns = 200'000,
                                    .open_ballots = options_.open_ballots},
        opened, primary.others.get());
    return *primary.succession;
  }
  if (options_.resyncs) {
    primary.upkeep = std::make_unique<recovery::MemberUpkeep>(
        fabric, network_->clock(), *primary.random, replicator, resync, opened,
        primary.others.get());
    return primary.upkeep->replicator();
  }
  primary.replicator = std::make_unique<replication::Replicator>(
      fabric, network_->clock(), replicator,
      RingEnd{opened.start.end.lsn - 1, opened.start.end.offset},
      primary.others.get());
  for (recovery::OpenedBackup& backup : opened.backups) {
    primary.replicator->Add(backup.name, backup.connection,
                            std::move(backup.session));
  }
  return *primary.replicator;
}

void OpeningWorld::StartLog(Primary& primary) {
  recovery::EpochOpened& opened = *primary.opened;
  const auto member = static_cast<size_t>(primary.host);
  Node* const node = member < nodes_.size() ? nodes_[member].get() : nullptr;
  replication::Replicator::Options replicator;
  replicator.write_quorum = primary.asked.sizes.write_quorum;
  replicator.replica_count = primary.asked.sizes.replica_count;
  replicator.has_local_replica = node != nullptr;
  replicator.lag_bytes_max = options_.ring_capacity;
  replicator.ack_timeout_ns = 5'000'000;
  primary.others = std::make_unique<OthersOf>(node);
  primary.sink = std::make_unique<DrivenReplication>(
      *this, primary.host, MakeReplication(primary, replicator));
  RingLogOptions log;
  log.name = "log";
  log.exposure_records_max = 64;
  log.sink = primary.sink.get();
  Model& pmem = node != nullptr ? node->pmem : *primary.cache_pmem;
  primary.log =
      std::make_unique<RingLog<Model>>(pmem, pmem.region(), opened.start, log,
                                       primary.log_clock, primary.log_waiter);
}

void OpeningWorld::StepOthers(int host) {
  if (!network_->Step()) network_->Run(kIdleNanos);
  Poll({}, host);
  if (on_event) on_event();
}

void OpeningWorld::Poll(const std::vector<Primary*>& primaries, int but_not) {
  const int served = static_cast<int>(nodes_.size());
  for (int host = 0; host < served + 2; ++host) {
    if (host == but_not || host == paused_host) continue;
    if (!network_->IsUp(host)) continue;
    fabric::Fabric& fabric = network_->fabric(host);
    Primary* const primary = PrimaryAt(primaries, host);
    ScriptedReplica* const server =
        host < served ? nodes_[host]->server.get() : nullptr;
    recovery::ReplicaServer* const real =
        host < served ? nodes_[host]->real_server.get() : nullptr;
    if (primary != nullptr && primary->log != nullptr) {
      primary->log->Poll();
      continue;
    }
    fabric::Completion completions[64];
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric.Poll(completions, &events);
    for (const fabric::ConnectionEvent& event : events) {
      if (primary != nullptr && primary->opening->OnConnectionEvent(event))
        continue;
      if (real != nullptr && real->OnConnectionEvent(event)) continue;
      if (server != nullptr) server->OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) {
      if (primary != nullptr &&
          primary->opening->OnCompletion(completions[i])) {
        continue;
      }
      if (primary != nullptr && primary->opened) {
        for (recovery::OpenedBackup& backup : primary->opened->backups) {
          if (backup.connection == completions[i].connection) {
            primary->of_sessions.push_back(completions[i]);
            backup.session->OnCompletion(completions[i]).IgnoreError();
          }
        }
      }
      if (real != nullptr && real->OnCompletion(completions[i])) continue;
      if (server != nullptr) server->OnCompletion(completions[i]);
    }
    if (server != nullptr) server->Step();
    if (real != nullptr) real->Poll();
    if (primary != nullptr && !primary->opened &&
        primary->opening->Poll() == Polled::kDone && primary->status().ok()) {
      primary->opened = primary->opening->TakeOpened();
    }
  }
}

bool OpeningWorld::Step(const std::vector<Primary*>& primaries) {
  if (!network_->Step()) network_->Run(kIdleNanos);
  Poll(primaries);
  if (on_event) on_event();
  for (Primary* primary : primaries) {
    if (!primary->opening->is_over()) return true;
  }
  return false;
}

void OpeningWorld::Drive(const std::vector<Primary*>& primaries) {
  for (int i = 0; i < 1'000'000; ++i) {
    if (!Step(primaries)) return;
  }
  ALPHEUS_CHECK(false, "an opening comes to an end");
}

std::unique_ptr<OpeningWorld::Primary> OpeningWorld::Open(int host) {
  return Open(host, OpeningOptions(host));
}

std::unique_ptr<OpeningWorld::Primary> OpeningWorld::Open(
    int host, const EpochOpeningOptions& options) {
  auto primary = Begin(host, options);
  Drive({primary.get()});
  // A replica that is a log's now is opened again by whoever opens next.
  const auto member = static_cast<size_t>(host);
  if (member < nodes_.size()) {
    Node& node = *nodes_[member];
    // Sessions of its server end, too: it has a new process.
    node.real_server.reset();
    OpenReplica(node);
    node.server->SetReplica(node.replica.get());
    Serve(node);
  }
  return primary;
}

void OpeningWorld::Append(Primary& primary, std::string_view payload,
                          const std::vector<int>& nodes) {
  RingLogStart& start = primary.opened->start;
  LogPosition& next = start.end;
  const EpochEntry& owner = start.table.entries().back();
  const EpochKey& key = start.table.KeyOf(&owner);
  std::vector<std::byte> ring_bytes(options_.ring_capacity);
  const Ring ring(ring_bytes.data(), options_.ring_capacity);
  const uint64_t bytes = RecordBytes(payload.size());
  const auto put = [&](RingOffset at, RecordType type, uint64_t length,
                       uint32_t crc) {
    RecordHeader header{};
    header.lsn = next.lsn.value;
    header.epoch = owner.epoch.value;
    header.payload_bytes = static_cast<uint32_t>(length);
    header.magic = kRecordMagic;
    header.type = static_cast<uint8_t>(type);
    header.payload_crc = crc;
    header.header_crc = HeaderChecksum(key.Seed(next.lsn, at), header);
    std::memcpy(ring.At(at), &header, sizeof(header));
    return header.header_crc;
  };
  const auto copy_to_nodes = [&](RingOffset at, uint64_t length) {
    for (const int number : nodes) {
      Model& pmem = number == 0 ? *primary.cache_pmem : node_at(number).pmem;
      std::byte* const to =
          pmem.region().data() + layout_.ring_offset + ring.Place(at);
      pmem.Copy(to, ring.At(at), length);
      pmem.Flush(to, length);
      ALPHEUS_CHECK(pmem.Fence(), "modelled memory does not fail unasked");
    }
  };
  if (const uint64_t gap = ring.UntilEnd(next.offset); bytes > gap) {
    put(next.offset, RecordType::kPad, gap - kRecordHeaderBytes, 0);
    copy_to_nodes(next.offset, kLineBytes);
    next.offset = next.offset + gap;
  }
  const uint64_t seed = key.Seed(next.lsn, next.offset);
  std::memcpy(ring.At(next.offset) + kRecordHeaderBytes, payload.data(),
              payload.size());
  const uint32_t sum =
      put(next.offset, RecordType::kData, payload.size(),
          PayloadChecksum(seed, Crc32c(kCrcStart, AsBytes(payload))));
  copy_to_nodes(next.offset, bytes);
  positions.push_back(next);
  next.chain = ExtendChain(next.chain, sum);
  next.offset = next.offset + bytes;
  next.lsn = next.lsn + 1;
}

void OpeningWorld::Damage(int number, const LogPosition& at) {
  Node& node = node_at(number);
  const Ring ring(node.pmem.region().data() + layout_.ring_offset,
                  options_.ring_capacity);
  std::byte* const byte = ring.At(at.offset) + kRecordHeaderBytes;
  *byte ^= std::byte{1};
  node.pmem.Flush(byte, 1);
  ALPHEUS_CHECK(node.pmem.Fence(), "modelled memory does not fail unasked");
}

std::vector<std::string> OpeningWorld::Payloads(int node) {
  std::vector<std::byte> image = node_at(node).pmem.CutKeepingNone();
  return LivePayloads(image);
}

std::string OpeningWorld::Describe() {
  std::string text = absl::StrCat("seed ", options_.seed, ":");
  for (int node = 1; node <= options_.members; ++node) {
    absl::StrAppend(&text, " node ", node, " [");
    for (const std::string& p : Payloads(node)) absl::StrAppend(&text, p, " ");
    absl::StrAppend(&text, "]");
  }
  return text;
}

}  // namespace alpheus::testing
