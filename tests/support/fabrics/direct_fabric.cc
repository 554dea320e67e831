// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fabrics/direct_fabric.h"

#include <algorithm>
#include <cstring>

#include "log/base/status_macros.h"

namespace alpheus::testing {
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
    const Work work = posted_.front();
    posted_.pop_front();
    const auto found = connections_.find(work.connection);
    if (found == connections_.end()) continue;
    const CompletionStatus status =
        found->second.broken ? CompletionStatus::kFlushed : Execute(work);
    found->second.broken |= status != CompletionStatus::kOk;
    --found->second.sends;
    ++executed_[work.operation];
    completions_.push_back(
        {work.connection, work.work, work.operation, status, 0, 0});
  }
  return operations;
}

void DirectFabric::Break(ConnectionId connection) {
  connections_.at(connection).broken = true;
}

std::vector<Completion> DirectFabric::TakeCompletions() {
  std::vector<Completion> taken(completions_.begin(), completions_.end());
  completions_.clear();
  return taken;
}

absl::Status DirectFabric::Close(ConnectionId connection) {
  connections_.erase(connection);
  return absl::OkStatus();
}

absl::Status DirectFabric::Post(const Work& work) {
  const auto found = connections_.find(work.connection);
  if (found == connections_.end()) return absl::NotFoundError("connection");
  if (found->second.refuses) return absl::FailedPreconditionError("is broken");
  if (found->second.sends == limits_.sends_max) {
    return absl::ResourceExhaustedError("sends_max");
  }
  if (!work.local.bytes.empty()) {
    ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(work.local));
  }
  if (work.local.bytes.size() > limits_.message_bytes_max) {
    return absl::InvalidArgumentError("message_bytes_max");
  }
  ++found->second.sends;
  posted_.push_back(work);
  return absl::OkStatus();
}

CompletionStatus DirectFabric::Execute(const Work& work) {
  DirectFabric& peer = *connections_.at(work.connection).peer;
  if (work.operation == Operation::kSend) {
    return Announce(work, Operation::kReceive);
  }
  if (work.operation == Operation::kFlush) {
    const auto range =
        peer.regions_.Find(work.remote, work.range_bytes, RemoteAccess::kRead);
    return range.ok() ? CompletionStatus::kOk : CompletionStatus::kRemoteAccess;
  }
  const auto target = peer.regions_.Find(work.remote, work.local.bytes.size(),
                                         RemoteAccess::kWrite);
  if (!target.ok()) return CompletionStatus::kRemoteAccess;
  std::memcpy(target->data(), work.local.bytes.data(), work.local.bytes.size());
  if (work.operation == Operation::kWrite) return CompletionStatus::kOk;
  return Announce(work, Operation::kReceiveImmediate);
}

CompletionStatus DirectFabric::Announce(const Work& work, Operation operation) {
  DirectFabric& peer = *connections_.at(work.connection).peer;
  const auto there = peer.connections_.find(work.connection);
  if (there == peer.connections_.end()) return CompletionStatus::kPeerGone;
  auto& receives = there->second.receives;
  if (receives.empty()) return CompletionStatus::kReceiverNotReady;
  const Receive receive = receives.front();
  receives.pop_front();
  if (operation == Operation::kReceive) {
    if (receive.into.bytes.size() < work.local.bytes.size()) {
      return CompletionStatus::kReceiveTooSmall;
    }
    std::ranges::copy(work.local.bytes, receive.into.bytes.begin());
  }
  peer.completions_.push_back({work.connection, receive.work, operation,
                               CompletionStatus::kOk, work.local.bytes.size(),
                               work.immediate});
  return CompletionStatus::kOk;
}

absl::Status DirectFabric::PostWrite(ConnectionId connection, WorkId work,
                                     LocalBytes from, RemoteAddress to) {
  return Post({connection, work, Operation::kWrite, from, to, 0});
}

absl::Status DirectFabric::PostWriteImmediate(ConnectionId connection,
                                              WorkId work, LocalBytes from,
                                              RemoteAddress to,
                                              uint32_t immediate) {
  return Post(
      {connection, work, Operation::kWriteImmediate, from, to, immediate});
}

absl::Status DirectFabric::PostSend(ConnectionId connection, WorkId work,
                                    LocalBytes from) {
  return Post({connection, work, Operation::kSend, from, {}, 0});
}

absl::Status DirectFabric::PostReceive(ConnectionId connection, WorkId work,
                                       LocalBytes into) {
  auto& receives = connections_.at(connection).receives;
  if (receives.size() == limits_.receives_max) {
    return absl::ResourceExhaustedError("receives_max");
  }
  receives.push_back({work, into});
  return absl::OkStatus();
}

size_t DirectFabric::Poll(std::span<Completion> completions,
                          std::vector<ConnectionEvent>* events) {
  Run();
  events->insert(events->end(), events_.begin(), events_.end());
  events_.clear();
  const size_t count = std::min(completions.size(), completions_.size());
  for (Completion& completion : completions.first(count)) {
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
absl::Status DirectFabric::PostRead(ConnectionId /*connection*/,
                                    WorkId /*work*/, LocalBytes /*into*/,
                                    RemoteAddress /*from*/) {
  return NotHere();
}
absl::Status DirectFabric::PostCompareSwap(ConnectionId /*connection*/,
                                           WorkId /*work*/, LocalBytes /*into*/,
                                           RemoteAddress /*word*/,
                                           uint64_t /*expected*/,
                                           uint64_t /*desired*/) {
  return NotHere();
}
absl::Status DirectFabric::PostFetchAdd(ConnectionId /*connection*/,
                                        WorkId /*work*/, LocalBytes /*into*/,
                                        RemoteAddress /*word*/,
                                        uint64_t /*add*/) {
  return NotHere();
}
// All is visible at once: there is nothing to do.
absl::Status DirectFabric::PostFlush(ConnectionId connection, WorkId work,
                                     RemoteAddress range, uint64_t bytes) {
  return Post({connection, work, Operation::kFlush, {}, range, 0, bytes});
}

}  // namespace alpheus::testing
