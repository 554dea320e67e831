// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fabrics/scripted_replica.h"

#include <algorithm>
#include <utility>

#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/state_report_wire.h"
#include "recovery/server/served_log.h"

namespace alpheus::testing {

using fabric::ConnectionId;

void ScriptedReplica::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (event.kind == fabric::ConnectionEvent::Kind::kRequested) {
    OnRequested(event);
  } else if (event.kind == fabric::ConnectionEvent::Kind::kDisconnected &&
             connections_.contains(event.connection)) {
    Close(event.connection);
  }
}

void ScriptedReplica::Close(ConnectionId id) {
  const auto connection = connections_.extract(id);
  fabric_.Close(id).IgnoreError();
  for (const fabric::RegionKey key : connection.mapped().keys) {
    fabric_.Deregister(key).IgnoreError();
  }
}

void ScriptedReplica::Fence(ConnectionId keep) {
  std::vector<ConnectionId> others;
  for (const auto& [id, connection] : connections_) {
    // Only what ever held a promise can write.
    if (id != keep && !connection.keys.empty()) others.push_back(id);
  }
  for (const ConnectionId id : others) Close(id);
}

int ScriptedReplica::sessions() const {
  return static_cast<int>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& c) { return c.second.session != nullptr; }));
}

void ScriptedReplica::OnRequested(const fabric::ConnectionEvent& event) {
  if (on_connect != nullptr) {
    const absl::Status status = on_connect();
    if (!status.ok()) {
      fabric_.Reject(event.connection, recovery::EncodeRejection(status))
          .IgnoreError();
      return;
    }
  }
  const auto hello = recovery::DecodeHello(event.private_data);
  ALPHEUS_CHECK(hello.ok(), "a test's primary says hello");
  Connection& connection = connections_[event.connection];
  connection.hello = *hello;
  connection.slots =
      *replication::MessageSlots::Make(fabric_, 2, recovery::kMessageBytesMax);
  recovery::ServerHello server_hello;
  server_hello.node = node_;
  if (replica_ != nullptr) {
    const Superline& own = replica_->superline();
    server_hello.incarnation = own.incarnation;
    server_hello.ring_capacity = own.ring_capacity;
    server_hello.promised = own.promised_epoch;
    server_hello.configuration_id = own.configuration.id;
  }
  if (on_server_hello != nullptr) on_server_hello(server_hello);
  const bool accepted =
      fabric_
          .PostReceive(event.connection, fabric::WorkId(1),
                       connection.slots->At(0))
          .ok() &&
      fabric_
          .Accept(event.connection, recovery::EncodeServerHello(server_hello))
          .ok();
  if (!accepted) Close(event.connection);
}

void ScriptedReplica::OnCompletion(const fabric::Completion& completion) {
  const auto found = connections_.find(completion.connection);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (completion.status != fabric::CompletionStatus::kOk) {
    return Close(completion.connection);
  }
  if (connection.session != nullptr) {
    // The reply's own completion is not the session's.
    if (completion.work == fabric::WorkId(~uint64_t{0})) return;
    if (!connection.session->OnCompletion(completion).ok())
      Close(completion.connection);
    return;
  }
  if (completion.operation != fabric::Operation::kReceive) return;
  const auto request = recovery::DecodeMessage(
      connection.hello.log_id,
      connection.slots->At(0).bytes.first(completion.bytes));
  ALPHEUS_CHECK(request.ok(), "a test's primary sends messages");
  if (on_request != nullptr && !on_request(*request)) return;
  std::vector<std::byte> reply = recovery::EncodeMessage(
      connection.hello.log_id,
      Reply(completion.connection, connection, *request));
  if (on_reply != nullptr) on_reply(reply);
  if (connection.session == nullptr) {
    fabric_
        .PostReceive(completion.connection, fabric::WorkId(1),
                     connection.slots->At(0))
        .IgnoreError();
  }
  const fabric::LocalBytes slot = connection.slots->At(1);
  std::copy(reply.begin(), reply.end(), slot.bytes.begin());
  fabric_
      .PostSend(completion.connection, fabric::WorkId(~uint64_t{0}),
                {slot.key, slot.bytes.first(reply.size())})
      .IgnoreError();
}

recovery::Message ScriptedReplica::Reply(ConnectionId id,
                                         Connection& connection,
                                         const recovery::Message& request) {
  auto reply = TryReply(id, connection, request);
  if (reply.ok()) return *std::move(reply);
  const auto current = quorum::RefusingPromise(reply.status());
  if (current) return recovery::Refused{*current};
  return recovery::Failed{reply.status()};
}

absl::StatusOr<recovery::Message> ScriptedReplica::TryReply(
    ConnectionId id, Connection& connection, const recovery::Message& request) {
  const bool is_proof = std::holds_alternative<recovery::Challenge>(request) ||
                        std::holds_alternative<recovery::Prove>(request);
  if (is_proof && on_proof != nullptr) return on_proof(request);
  if (const auto* format = std::get_if<recovery::Format>(&request)) {
    ALPHEUS_RETURN_IF_ERROR(format_(*format));
    return recovery::Formatted{};
  }
  if (std::holds_alternative<recovery::AskCreation>(request)) {
    return recovery::CreatedOf(replica_->superline());
  }
  const Ring ring = replica_->ring();
  const std::span<std::byte> ring_bytes(ring.data(), ring.capacity());
  if (const auto* ask = std::get_if<recovery::Prepare>(&request)) {
    ALPHEUS_RETURN_IF_ERROR(replica_->AcceptPromise(ask->promise).status());
    Fence(id);
    ALPHEUS_ASSIGN_OR_RETURN(recovery::StateReport report,
                             replica_->MakeStateReport(ask->from_head));
    if (on_report != nullptr) on_report(report);
    connection.report =
        recovery::EncodeStateReport(connection.hello.log_id, report);
    const auto report_key =
        *fabric_.Register(connection.report, fabric::RemoteAccess::kRead);
    const auto ring_key =
        *fabric_.Register(ring_bytes, fabric::RemoteAccess::kRead);
    connection.keys = {report_key, ring_key};
    return recovery::Promised{report_key, connection.report.size(), ring_key};
  }
  if (const auto* open = std::get_if<recovery::OpenForRepair>(&request)) {
    if (open->set_repairing) {
      ALPHEUS_RETURN_IF_ERROR(replica_->BeginRepair(open->epoch));
    }
    ALPHEUS_RETURN_IF_ERROR(replica_->RaiseCeiling(open->epoch, open->ceiling));
    for (const fabric::RegionKey key : connection.keys) {
      fabric_.Deregister(key).IgnoreError();
    }
    const auto ring_key =
        *fabric_.Register(ring_bytes, fabric::RemoteAccess::kReadWrite);
    connection.keys = {ring_key};
    return recovery::RepairOpened{ring_key};
  }
  const auto* install = std::get_if<recovery::Install>(&request);
  ALPHEUS_CHECK(install != nullptr, "a primary asks no more than this");
  const recovery::Installation& log = install->installation;
  ALPHEUS_RETURN_IF_ERROR(replica_->Install(log));
  ALPHEUS_ASSIGN_OR_RETURN(connection.session,
                           replication::BackupSession<Model>::Start(
                               pmem_,
                               {replica_->region(), ring, &replica_->table(),
                                replica_->superline().log_id},
                               {.epoch = log.epoch,
                                .session = install->session,
                                .next = log.end,
                                .credits = install->credits,
                                .ceiling = log.ceiling},
                               fabric_, id));
  return recovery::Installed{};
}

void ScriptedReplica::Step() {
  std::vector<ConnectionId> broken;
  for (auto& [id, connection] : connections_) {
    if (connection.session != nullptr && !connection.session->Step().ok()) {
      broken.push_back(id);
    }
  }
  for (const ConnectionId id : broken) Close(id);
}

}  // namespace alpheus::testing
