// SPDX-License-Identifier: Apache-2.0
// Posting: checks, and the time of sending.
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/tcp/tcp_fabric_lock.h"
#include "replication/fabric/work_request.h"

namespace alpheus {

using tcp::Connection;

namespace {

// Posts in a row that are sent without waiting for Poll.
constexpr size_t kBatchMax = 64;

}  // namespace

absl::Status TcpFabric::CheckPost(ConnectionId id, const WorkRequest& request) {
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
  return CheckWorkRequest(request, connection->message_bytes_max());
}

absl::Status TcpFabric::Post(ConnectionId id, const WorkRequest& request) {
  Lock lock(*this);
  ALPHEUS_RETURN_IF_ERROR(CheckPost(id, request));
  Connection& connection = *Find(id);
  connection.requester().Post(request);
  // A waiting thread won't poll until something comes.
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
