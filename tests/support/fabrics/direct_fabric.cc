// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fabrics/direct_fabric.h"

#include <algorithm>
#include <cstring>

#include "log/base/status_macros.h"
#include "replication/fabric/work_request.h"

namespace alpheus::testing {

using fabric::CompletionStatus;
using fabric::ConnectionId;
using fabric::Operation;

namespace {

absl::Status NotHere() {
  return absl::UnimplementedError("the direct fabric has no such thing");
}

}  // namespace

ConnectionId DirectFabric::Join(DirectFabric& a, DirectFabric& b) {
  const ConnectionId id(std::max(a.connections_.size(), b.connections_.size()) +
                        1);
  a.connections_[id].peer = &b;
  b.connections_[id].peer = &a;
  return id;
}

size_t DirectFabric::Run() {
  const size_t operations = posted_.size();
  for (size_t i = 0; i < operations; ++i) {
    const Posted posted = posted_.front();
    posted_.pop_front();
    const auto found = connections_.find(posted.connection);
    if (found == connections_.end()) continue;
    const CompletionStatus status =
        found->second.broken ? CompletionStatus::kFlushed : Execute(posted);
    found->second.broken |= status != CompletionStatus::kOk;
    --found->second.sends;
    const fabric::WorkRequest& request = posted.request;
    ++executed_[request.operation];
    completions_.push_back(
        {posted.connection, request.work, request.operation, status, 0, 0});
  }
  return operations;
}

void DirectFabric::Break(ConnectionId connection) {
  connections_.at(connection).broken = true;
}

std::vector<fabric::Completion> DirectFabric::DrainCompletions() {
  std::vector<fabric::Completion> taken(completions_.begin(),
                                        completions_.end());
  completions_.clear();
  return taken;
}

absl::Status DirectFabric::Close(ConnectionId connection) {
  connections_.erase(connection);
  return absl::OkStatus();
}

absl::Status DirectFabric::Post(ConnectionId connection,
                                const fabric::WorkRequest& request) {
  if (fabric::Fetches(request.operation)) return NotHere();
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return absl::NotFoundError("connection");
  if (found->second.refuses) return absl::FailedPreconditionError("is broken");
  if (found->second.sends == limits_.sends_max) {
    return absl::ResourceExhaustedError("sends_max");
  }
  if (!request.local.bytes.empty()) {
    ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(request.local));
  }
  ALPHEUS_RETURN_IF_ERROR(
      fabric::CheckWorkRequest(request, limits_.message_bytes_max));
  ++found->second.sends;
  posted_.push_back({connection, request});
  return absl::OkStatus();
}

CompletionStatus DirectFabric::Execute(const Posted& posted) {
  const fabric::WorkRequest& request = posted.request;
  DirectFabric& peer = *connections_.at(posted.connection).peer;
  if (request.operation == Operation::kSend) {
    return Announce(posted, Operation::kReceive);
  }
  if (request.operation == Operation::kFlush) {  // all is visible at once
    const auto range = peer.regions_.Find(request.remote, request.range_bytes,
                                          fabric::RemoteAccess::kRead);
    return range.ok() ? CompletionStatus::kOk : CompletionStatus::kRemoteAccess;
  }
  const std::span<const std::byte> bytes = request.local.bytes;
  const auto target = peer.regions_.Find(request.remote, bytes.size(),
                                         fabric::RemoteAccess::kWrite);
  if (!target.ok()) return CompletionStatus::kRemoteAccess;
  std::memcpy(target->data(), bytes.data(), bytes.size());
  if (request.operation == Operation::kWrite) return CompletionStatus::kOk;
  return Announce(posted, Operation::kReceiveImmediate);
}

CompletionStatus DirectFabric::Announce(const Posted& posted,
                                        Operation operation) {
  const std::span<const std::byte> bytes = posted.request.local.bytes;
  DirectFabric& peer = *connections_.at(posted.connection).peer;
  const auto there = peer.connections_.find(posted.connection);
  if (there == peer.connections_.end()) return CompletionStatus::kPeerGone;
  auto& receives = there->second.receives;
  if (receives.empty()) return CompletionStatus::kReceiverNotReady;
  const Receive receive = receives.front();
  receives.pop_front();
  if (operation == Operation::kReceive) {
    if (receive.into.bytes.size() < bytes.size()) {
      return CompletionStatus::kReceiveTooSmall;
    }
    std::ranges::copy(bytes, receive.into.bytes.begin());
  }
  peer.completions_.push_back({posted.connection, receive.work, operation,
                               CompletionStatus::kOk, bytes.size(),
                               posted.request.immediate});
  return CompletionStatus::kOk;
}

absl::Status DirectFabric::PostReceive(ConnectionId connection,
                                       fabric::WorkId work,
                                       fabric::LocalBytes into) {
  if (connections_.at(connection).refuses) {
    return absl::FailedPreconditionError("is broken");
  }
  auto& receives = connections_.at(connection).receives;
  if (receives.size() == limits_.receives_max) {
    return absl::ResourceExhaustedError("receives_max");
  }
  receives.push_back({work, into});
  return absl::OkStatus();
}

size_t DirectFabric::Poll(std::span<fabric::Completion> completions,
                          std::vector<fabric::ConnectionEvent>* events) {
  Run();
  events->insert(events->end(), events_.begin(), events_.end());
  events_.clear();
  const size_t count = std::min(completions.size(), completions_.size());
  for (fabric::Completion& completion : completions.first(count)) {
    completion = completions_.front();
    completions_.pop_front();
  }
  return count;
}

absl::StatusOr<std::string> DirectFabric::Listen(std::string_view /*address*/) {
  return NotHere();
}
absl::StatusOr<ConnectionId> DirectFabric::Connect(
    std::string_view /*address*/, std::string_view /*private_data*/,
    Deadline /*deadline*/) {
  return NotHere();
}
absl::Status DirectFabric::Accept(ConnectionId /*connection*/,
                                  std::string_view /*private_data*/) {
  return NotHere();
}
absl::Status DirectFabric::Reject(ConnectionId /*connection*/,
                                  std::string_view /*private_data*/) {
  return NotHere();
}

}  // namespace alpheus::testing
