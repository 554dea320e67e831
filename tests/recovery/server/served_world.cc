// SPDX-License-Identifier: Apache-2.0
#include "tests/recovery/server/served_world.h"

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/core/ring/format_region.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using fabric::RegionKey;
using fabric::WorkId;
using model::ModelPersistence;
using recovery::Message;

namespace {

constexpr NodeId kPrimaryNode{2};

std::unique_ptr<recovery::LocalReplica<ModelPersistence>> Opened(
    ModelPersistence& pmem) {
  auto replica = recovery::LocalReplica<ModelPersistence>::Open(
      pmem, pmem.region(), {.name = "model"});
  ALPHEUS_CHECK(replica.ok(), "a formatted region opens");
  return *std::move(replica);
}

}  // namespace

Configuration MembersOf() {
  return {{1, 2, 1, {{kNode, 101}, {kPrimaryNode, 102}}}};
}

std::unique_ptr<ModelPersistence> FormattedRegion(Uuid log_id, NodeId node,
                                                  uint64_t configuration_id) {
  Configuration configuration = MembersOf();
  configuration.id = configuration_id;
  const Layout layout = *Layout::ForRing(kRingBytes, 64);
  auto pmem = std::make_unique<ModelPersistence>(layout.region_bytes);
  const absl::Status formatted = FormatRegion(
      *pmem, pmem->region(), layout, {kCluster, log_id, node, configuration});
  ALPHEUS_CHECK(formatted.ok(), "modelled memory does not fail unasked");
  return pmem;
}

// Raises the ceiling, as an opening does that is to copy the whole ring.
void RaiseCeilingByALap(ModelPersistence& pmem) {
  const RegionState state = *ReadRegionState(pmem.region(), "log");
  Superline raised = state.superline;
  raised.ceiling = raised.head_offset + kRingBytes;
  const bool is_written = WriteCell(
      pmem, SuperlinePlace(pmem.region()), state.superline_cell.newest,
      state.superline_cell.copies[*state.superline_cell.newest].seq + 1,
      EncodeSuperline(raised));
  ALPHEUS_CHECK(is_written, "modelled memory does not fail unasked");
}

// --- PrimaryLog --------------------------------------------------------------

PrimaryLog::PrimaryLog(Uuid log_id)
    : pmem_(FormattedRegion(log_id, kPrimaryNode)) {
  const RegionState state = *ReadRegionState(pmem_->region(), "primary");
  installation_.table = state.table;
  installation_.head = state.head();
}

PrimaryLog::~PrimaryLog() = default;

Ring PrimaryLog::ring() const {
  const RegionState state = *ReadRegionState(pmem_->region(), "primary");
  return RingOf(pmem_->region(), state.superline);
}

LogPosition PrimaryLog::WalkToTheEnd() const {
  const Ring walked = ring();
  const LogPosition& head = installation_.head;
  RecordCursor cursor(walked, installation_.table, head,
                      head.offset + walked.capacity());
  while (cursor.Next() == RecordCursor::Step::kRecord) {
  }
  return cursor.position();
}

RingEnd PrimaryLog::End() const {
  const LogPosition end = WalkToTheEnd();
  return {end.lsn - 1, end.offset};
}

std::vector<std::byte> PrimaryLog::Image() const {
  return {pmem_->region().begin(), pmem_->region().end()};
}

void PrimaryLog::OpenEpoch(Epoch epoch) {
  log_.reset();
  const LogPosition end = WalkToTheEnd();
  installation_.epoch = epoch;
  installation_.configuration = MembersOf();
  installation_.end = end;
  installation_.ceiling = installation_.head.offset + ring().capacity();
  installation_.table = installation_.table.With(
      {epoch, epoch.value * 1'000'003, end.lsn, end.offset, end.chain},
      installation_.head.lsn);
  const auto replica = Opened(*pmem_);
  ALPHEUS_CHECK(replica->AcceptPromise({epoch, {kPrimaryNode, 1}}).ok(),
                "epochs of a test increase");
  const absl::Status installed = replica->Install(installation_);
  ALPHEUS_CHECK(installed.ok(), "the log is there");
  log_ = std::make_unique<RingLog<ModelPersistence>>(
      *pmem_, pmem_->region(), replica->StartOfLog(),
      RingLogOptions{"primary", 256}, clock_, waiter_);
}

Lsn PrimaryLog::Append(std::string_view text) {
  const std::span<const std::byte> part = AsBytes(text);
  const absl::StatusOr<Lsn> lsn = log_->Append({&part, 1}, 1, Deadline());
  ALPHEUS_CHECK(lsn.ok(), "the append of a test's set-up succeeds");
  return *lsn;
}

// --- Peer --------------------------------------------------------------------

void Peer::Connect(const std::string& address, const recovery::Hello& hello) {
  log_id_ = hello.log_id;
  ConnectSaying(address, recovery::EncodeHello(hello));
}

void Peer::ConnectSaying(const std::string& address, std::string_view bytes) {
  slots_ =
      *replication::MessageSlots::Make(fabric_, 2, recovery::kMessageBytesMax);
  connection_ = *fabric_.Connect(address, bytes, Deadline());
}

void Peer::PostReceive() {
  EXPECT_TRUE(
      fabric_.PostReceive(connection_, WorkId(1000), slots_->At(0)).ok());
}

void Peer::Send(const Message& message) {
  SendBytes(recovery::EncodeMessage(log_id_, message));
  ;
}

void Peer::SendBytes(std::span<const std::byte> bytes) {
  PostReceive();
  fabric::LocalBytes slot = slots_->At(1);
  std::ranges::copy(bytes, slot.bytes.begin());
  slot.bytes = slot.bytes.first(bytes.size());
  EXPECT_TRUE(fabric_.PostSend(connection_, WorkId(1001), slot).ok());
}

absl::Status Peer::Write(RegionKey key, uint64_t offset,
                         std::span<std::byte> bytes) {
  const RegionKey own = *fabric_.Register(bytes, fabric::RemoteAccess::kNone);
  return fabric_.PostWrite(connection_, WorkId(1002), {own, bytes},
                           {key, offset});
}

absl::Status Peer::Read(RegionKey key, uint64_t offset,
                        std::span<std::byte> into) {
  const RegionKey own = *fabric_.Register(into, fabric::RemoteAccess::kNone);
  return fabric_.PostRead(connection_, WorkId(1002), {own, into},
                          {key, offset});
}

absl::Status Peer::Announce(uint32_t immediate) {
  return fabric_.PostWriteImmediate(connection_, WorkId(1002), {}, {},
                                    immediate);
}

void Peer::OnConnectionEvent(const ConnectionEvent& event) {
  switch (event.kind) {
    case ConnectionEvent::Kind::kEstablished:
      established = true;
      server_hello = *recovery::DecodeServerHello(event.private_data);
      break;
    case ConnectionEvent::Kind::kRejected:
      ended = true;
      rejection = recovery::DecodeRejection(event.private_data);
      rejection_bytes = event.private_data;
      break;
    default:
      ended = true;
  }
}

void Peer::OnCompletion(const fabric::Completion& completion) {
  if (completion.work == WorkId(1000)) {
    if (completion.status != fabric::CompletionStatus::kOk) return;
    const auto reply = recovery::DecodeMessage(
        log_id_, slots_->At(0).bytes.first(completion.bytes));
    EXPECT_TRUE(reply.ok());
    if (reply.ok()) replies.push_back(*reply);
  } else if (completion.work == WorkId(1002)) {
    done.push_back(completion.status);
  } else if (completion.work != WorkId(1001) && session != nullptr &&
             session_status.ok()) {
    session_status = session->OnCompletion(completion);
  }
}

// --- WatchedLog --------------------------------------------------------------

WatchedLog::WatchedLog(ModelPersistence& pmem,
                       std::function<void()> while_scanning)
    : inner_(pmem, Opened(pmem)), while_scanning_(std::move(while_scanning)) {}

absl::StatusOr<bool> WatchedLog::Continue(uint64_t bytes_max) {
  // Fails as a container does when memory runs out.
  if (starves) std::string().reserve(std::string().max_size() + 1);
  ++slices;
  return inner_.Continue(bytes_max);
}

recovery::StateReport WatchedLog::TakeStateReport() {
  seen.assign(ring().begin(), ring().end());
  if (while_scanning_) while_scanning_();
  return inner_.TakeStateReport();
}

// --- ServedWorld -------------------------------------------------------------

bool FakeRegions::ReleaseRegion(Uuid log_id) {
  if (!release) return false;
  release(log_id);
  return true;
}

absl::Status FakeRegions::WhyUnserved(Uuid log_id) {
  if (when_asked) when_asked();
  return log_id == taken_ ? absl::UnavailableError("another process has it")
                          : absl::OkStatus();
}

absl::StatusOr<recovery::ServerHello> FakeRegions::ReadServerHello(
    Uuid log_id) {
  return server_hello ? server_hello(log_id)
                      : recovery::LocalRegions::ReadServerHello(log_id);
}

absl::StatusOr<recovery::Followed> FakeRegions::ReadFollowed(Uuid log_id) {
  return followed ? followed(log_id)
                  : recovery::LocalRegions::ReadFollowed(log_id);
}

void FakeRegions::OnLockHolderGone(Uuid log_id) {
  if (owner_gone) owner_gone(log_id);
}

ServedWorld::ServedWorld(Options options)
    : network_(options.network),
      adapter_(network_.fabric(0)),
      pmem_a_(FormattedRegion(kLogA, kNode, options.configuration_id)),
      pmem_b_(FormattedRegion(kLogB, kNode)) {
  if (options.is_written) RaiseCeilingByALap(*pmem_a_);
  options.server.cluster_id = kCluster;
  options.server.node = kNode;
  options.server.warn = [this](const std::string& text) {
    reports_.push_back(text);
  };
  server_ = std::make_unique<recovery::ReplicaServer>(
      adapter_, network_.clock(), options.server);
  std::function<void()> scan;
  if (options.scan_ns > 0) {
    scan = [this, ns = options.scan_ns] { network_.Run(ns); };
  }
  auto log_a = std::make_unique<WatchedLog>(*pmem_a_, scan);
  log_a_ = log_a.get();
  EXPECT_TRUE(server_->AddLog(std::move(log_a)).ok());
  if (options.serve_b) {
    auto log_b = std::make_unique<WatchedLog>(*pmem_b_, scan);
    log_b_ = log_b.get();
    EXPECT_TRUE(server_->AddLog(std::move(log_b)).ok());
  }
  address_ = *network_.fabric(0).Listen(model::SimNetwork::Address(0, 1));
}

RegionState ServedWorld::State(Uuid log_id) {
  return *ReadRegionState(pmem(log_id).region(), "node");
}

Peer& ServedWorld::NewPeer(int host, uint64_t incarnation) {
  const NodeId node(static_cast<uint64_t>(host) + 1);
  return *peers_.emplace_back(std::make_unique<Peer>(
      network_.fabric(host), quorum::PrimaryId{node, incarnation}));
}

Peer& ServedWorld::Connected(int host, uint64_t incarnation, Uuid log_id) {
  Peer& peer = NewPeer(host, incarnation);
  peer.Connect(address_, peer.HelloOf(log_id));
  Run(100'000);
  EXPECT_TRUE(peer.established) << peer.rejection;
  return peer;
}

void ServedWorld::Crash(int host) {
  std::erase_if(peers_, [&](const std::unique_ptr<Peer>& peer) {
    return &peer->fabric() == &network_.fabric(host);
  });
  network_.Crash(host);
}

void ServedWorld::PollNode() {
  std::vector<fabric::Completion> completions(16);
  std::vector<ConnectionEvent> events;
  const size_t count = network_.fabric(0).Poll(completions, &events);
  for (const ConnectionEvent& event : events) server_->OnConnectionEvent(event);
  for (size_t i = 0; i < count; ++i) server_->OnCompletion(completions[i]);
  server_->Poll();
}

void ServedWorld::PollPeers() {
  std::vector<fabric::Completion> completions(16);
  for (const int host : {1, 2}) {
    if (!network_.IsUp(host)) continue;
    std::vector<ConnectionEvent> events;
    const size_t count = network_.fabric(host).Poll(completions, &events);
    for (const auto& peer : peers_) {
      if (&peer->fabric() != &network_.fabric(host)) continue;
      for (const ConnectionEvent& event : events) {
        if (event.connection == peer->connection())
          peer->OnConnectionEvent(event);
      }
      for (size_t i = 0; i < count; ++i) {
        if (completions[i].connection == peer->connection()) {
          peer->OnCompletion(completions[i]);
        }
      }
    }
  }
}

void ServedWorld::Run(int64_t ns) {
  const int64_t end = network_.clock().NowNanos() + ns;
  for (;;) {
    PollNode();
    PollPeers();
    if (also) also();
    const int64_t now = network_.clock().NowNanos();
    if (now >= end) break;
    network_.Run(std::min<int64_t>(200, end - now));
  }
}

std::optional<Message> ServedWorld::Ask(Peer& peer, const Message& message) {
  peer.Send(message);
  for (int i = 0; i < 100 && peer.replies.empty() && !peer.ended; ++i) {
    Run(10'000);
  }
  if (peer.replies.empty()) return std::nullopt;
  Message reply = peer.replies.front();
  peer.replies.pop_front();
  return reply;
}

recovery::Promised ServedWorld::GetPromise(Peer& peer, Epoch epoch) {
  const auto reply = Ask(peer, recovery::Prepare{{epoch, peer.self()}});
  EXPECT_TRUE(reply && std::holds_alternative<recovery::Promised>(*reply));
  return std::get<recovery::Promised>(*reply);
}

recovery::RepairOpened ServedWorld::GetRepairOpened(Peer& peer, Epoch epoch) {
  const auto reply = Ask(peer, recovery::OpenForRepair{epoch, false});
  EXPECT_TRUE(reply && std::holds_alternative<recovery::RepairOpened>(*reply));
  return std::get<recovery::RepairOpened>(*reply);
}

void ServedWorld::GetInstalled(Peer& peer, PrimaryLog& log, uint32_t credits) {
  const recovery::Installation& installation = log.installation();
  GetPromise(peer, installation.epoch);
  const recovery::RepairOpened opened =
      GetRepairOpened(peer, installation.epoch);
  const Ring ring = log.ring();
  // A test's log has not gone round.
  const uint64_t bytes = installation.end.offset.value;
  if (bytes > 0) {
    ASSERT_TRUE(peer.Write(opened.ring_key, 0, {ring.data(), bytes}).ok());
  }
  const auto reply =
      Ask(peer, recovery::Install{installation, kTheSession, credits});
  ASSERT_TRUE(reply.has_value());
  ASSERT_EQ(*reply, Message(recovery::Installed{})) << reports_.size();
  const RegionKey own = *peer.fabric().Register({ring.data(), ring.capacity()},
                                                fabric::RemoteAccess::kNone);
  peer.session =
      *replication::PrimarySession::Start({ring, own, opened.ring_key},
                                          {.epoch = installation.epoch,
                                           .session = kTheSession,
                                           .next = installation.end,
                                           .credits = credits,
                                           .ceiling = installation.ceiling},
                                          peer.fabric(), peer.connection());
}

}  // namespace alpheus::testing
