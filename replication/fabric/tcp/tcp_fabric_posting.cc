// SPDX-License-Identifier: Apache-2.0
// Posting: what is checked, and when it leaves.
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/tcp_fabric_lock.h"

namespace alpheus {

using tcp::Connection;
using tcp::Request;

namespace {

// Posts behind each other that are sent without waiting for Poll.
constexpr size_t kBatchMax = 64;

bool IsAtomic(Operation operation) {
  return operation == Operation::kCompareSwap ||
         operation == Operation::kFetchAdd;
}

}  // namespace

absl::Status TcpFabric::PostWrite(ConnectionId connection, WorkId work,
                                  LocalBytes from, RemoteAddress to) {
  return Post(connection, {.operation = Operation::kWrite,
                           .work = work,
                           .local = from,
                           .remote = to});
}

absl::Status TcpFabric::PostWriteImmediate(ConnectionId connection, WorkId work,
                                           LocalBytes from, RemoteAddress to,
                                           uint32_t immediate) {
  return Post(connection, {.operation = Operation::kWriteImmediate,
                           .work = work,
                           .local = from,
                           .remote = to,
                           .immediate = immediate});
}

absl::Status TcpFabric::PostRead(ConnectionId connection, WorkId work,
                                 LocalBytes into, RemoteAddress from) {
  return Post(connection, {.operation = Operation::kRead,
                           .work = work,
                           .local = into,
                           .remote = from});
}

absl::Status TcpFabric::PostCompareSwap(ConnectionId connection, WorkId work,
                                        LocalBytes into, RemoteAddress word,
                                        uint64_t expected, uint64_t desired) {
  return Post(connection, {.operation = Operation::kCompareSwap,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {expected, desired}});
}

absl::Status TcpFabric::PostFetchAdd(ConnectionId connection, WorkId work,
                                     LocalBytes into, RemoteAddress word,
                                     uint64_t add) {
  return Post(connection, {.operation = Operation::kFetchAdd,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {add, 0}});
}

absl::Status TcpFabric::PostFlush(ConnectionId connection, WorkId work,
                                  RemoteAddress range, uint64_t bytes) {
  return Post(connection, {.operation = Operation::kFlush,
                           .work = work,
                           .remote = range,
                           .range_bytes = bytes});
}

absl::Status TcpFabric::PostSend(ConnectionId connection, WorkId work,
                                 LocalBytes from) {
  return Post(connection,
              {.operation = Operation::kSend, .work = work, .local = from});
}

absl::Status TcpFabric::CheckPost(ConnectionId id, const Request& request) {
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (!connection->is_established()) {
    return absl::FailedPreconditionError(
        absl::StrCat("connection ", id.value, " to ", connection->peer(),
                     " is not established, or broken; see its events"));
  }
  if (connection->requester().posted() >= options_.limits.sends_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "connection ", id.value, ": ", options_.limits.sends_max,
        " sends are posted and not completed; poll for completions first"));
  }
  if (!request.local.bytes.empty()) {
    ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(request.local));
  }
  if (request.local.bytes.size() > connection->message_bytes_max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("connection ", id.value, ": a message of ",
                     request.local.bytes.size(), " bytes, but at most ",
                     connection->message_bytes_max(), " are taken; split it"));
  }
  if (IsAtomic(request.operation) &&
      (request.local.bytes.size() != sizeof(uint64_t) ||
       request.remote.offset % sizeof(uint64_t) != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an atomic on offset ", request.remote.offset, " into ",
                     request.local.bytes.size(),
                     " bytes; it takes a word of 8 bytes on a multiple of 8"));
  }
  return absl::OkStatus();
}

absl::Status TcpFabric::Post(ConnectionId id, const Request& request) {
  Lock lock(*this);
  ALPHEUS_RETURN_IF_ERROR(CheckPost(id, request));
  Connection& connection = *Find(id);
  connection.requester().Post(request);
  // A thread that waits won't poll until something comes.
  if (waiters_ > 0 || connection.requester().unsent() >= kBatchMax) {
    connection.Send(clock_.NowNanos());
    if (HasNews()) WakeWaiters();
  } else {
    MarkForSending(id);
  }
  return absl::OkStatus();
}

absl::Status TcpFabric::PostReceive(ConnectionId id, WorkId work,
                                    LocalBytes into) {
  Lock lock(*this);
  Connection* const connection = Find(id);
  if (connection == nullptr) return NoConnection(id);
  if (connection->state() == Connection::State::kBroken) {
    return absl::FailedPreconditionError(absl::StrCat(
        "connection ", id.value, " to ", connection->peer(), " is broken"));
  }
  if (connection->responder().receives() >= options_.limits.receives_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("connection ", id.value, ": ",
                     options_.limits.receives_max, " receives are posted"));
  }
  if (!into.bytes.empty()) ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(into));
  const size_t before = shared_.completions.size();
  connection->PostReceive(work, into, clock_.NowNanos());
  MarkForSending(id);
  if (shared_.completions.size() != before) WakeWaiters();
  return absl::OkStatus();
}

void TcpFabric::MarkForSending(ConnectionId id) {
  if (sending_.empty() || sending_.back() != id) sending_.push_back(id);
}

}  // namespace alpheus
