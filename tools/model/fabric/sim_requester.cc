// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/sim_requester.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/work_request.h"
#include "tools/model/fabric/sim_fabric.h"

namespace alpheus::model {

using fabric::CompletionStatus;
using fabric::ConnectionId;

namespace {

absl::Status PostError(absl::StatusCode code, ConnectionId connection,
                       fabric::Operation operation, std::string_view why) {
  return absl::Status(
      code,
      absl::StrCat("simulated fabric: post ", fabric::OperationName(operation),
                   " on connection ", connection.value, ": ",
                   absl::string_view(why.data(), why.size())));
}

}  // namespace

// An atomic write is a write here: no operation passes another in this network.
absl::Status SimRequester::Post(ConnectionId connection,
                                const fabric::WorkRequest& request) {
  const auto error = [&](absl::StatusCode code, std::string_view why) {
    return PostError(code, connection, request.operation, why);
  };
  QueuePair* pair = adapter_.FindOpen(connection);
  if (pair == nullptr) {
    return error(absl::StatusCode::kNotFound, "there is no such connection");
  }
  if (pair->state != QueuePairState::kEstablished) {
    return error(absl::StatusCode::kFailedPrecondition,
                 pair->state == QueuePairState::kBroken
                     ? "it is broken; close it"
                     : "it is not established yet");
  }
  ALPHEUS_RETURN_IF_ERROR(
      fabric::CheckWorkRequest(request, adapter_.limits().message_bytes_max));
  ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(request.local));
  if (pair->sends.size() >= adapter_.limits().sends_max) {
    return error(
        absl::StatusCode::kResourceExhausted,
        absl::StrCat(pair->sends.size(),
                     " operations are posted; poll their completions"));
  }
  pair->sends.push_back(request);
  adapter_.After(network_.StepDelay(), [connection](SimFabric& self) {
    self.requester().Depart(connection);
  });
  return absl::OkStatus();
}

// Sends the first posted operation that has not left.
void SimRequester::Depart(ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kEstablished ||
      pair->halted) {
    return;
  }
  const fabric::WorkRequest& work = pair->sends[pair->departed];
  if (!regions_.CheckLocal(work.local).ok()) {
    pair->halted = true;
    FailFirstIfItLostItsBytes(*pair);
    return;
  }
  if (network_.Breaks()) {
    FailFirstSend(*pair, CompletionStatus::kPeerGone, Break::kNotifyPeer);
    return;
  }
  Transmit(*pair, work);
  if (pair->departed == 0) pair->progress_at = network_.clock().NowNanos();
  ++pair->departed;
  Watch(*pair);
}

void SimRequester::Transmit(QueuePair& pair, const fabric::WorkRequest& work) {
  Request request;
  request.sequence = pair.first_sequence + pair.departed;
  request.work = work;
  if (!fabric::Fetches(work.operation)) {
    request.data.assign(work.local.bytes.begin(), work.local.bytes.end());
  }
  adapter_.ToPeer(
      pair, fabric::OperationName(work.operation), /*beside=*/false,
      [id = pair.peer.connection, request = std::move(request)](
          SimFabric& peer) { peer.responder().OnRequest(id, request); });
}

// Schedules a check for when the peer would have been silent too long.
void SimRequester::Watch(QueuePair& pair) {
  if (pair.watched) return;
  pair.watched = true;
  const int64_t at = pair.progress_at + adapter_.limits().retry_ns;
  adapter_.After(
      at - network_.clock().NowNanos(),
      [id = pair.id](SimFabric& self) { self.requester().OnSilence(id); });
}

void SimRequester::OnSilence(ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kEstablished) return;
  pair->watched = false;
  if (pair->departed == 0) return;
  const int64_t silent_ns = network_.clock().NowNanos() - pair->progress_at;
  if (silent_ns < adapter_.limits().retry_ns) {
    Watch(*pair);
  } else {
    FailFirstSend(*pair, CompletionStatus::kPeerGone, Break::kNotifyPeer);
  }
}

void SimRequester::OnAlive(ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair != nullptr) pair->progress_at = network_.clock().NowNanos();
}

void SimRequester::OnResponse(ConnectionId connection,
                              const Response& response) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kEstablished) return;
  pair->progress_at = network_.clock().NowNanos();
  if (response.status != CompletionStatus::kOk) {
    FailFirstSend(*pair, response.status, Break::kSilent);
    return;
  }
  const fabric::LocalBytes& local = pair->sends.front().local;
  if (!response.data.empty()) {
    if (!regions_.CheckLocal(local).ok()) {
      FailFirstSend(*pair, CompletionStatus::kLocalAccess, Break::kNotifyPeer);
      return;
    }
    std::memcpy(local.bytes.data(), response.data.data(), response.data.size());
  }
  CompleteFirstSend(*pair, CompletionStatus::kOk);
  FailFirstIfItLostItsBytes(*pair);
}

void SimRequester::CompleteFirstSend(QueuePair& pair, CompletionStatus status) {
  const fabric::WorkRequest& work = pair.sends.front();
  adapter_.Complete(pair, {.connection = pair.id,
                           .work = work.work,
                           .operation = work.operation,
                           .status = status});
  pair.sends.pop_front();
  ++pair.first_sequence;
  if (pair.departed > 0) --pair.departed;
}

void SimRequester::FailFirstSend(QueuePair& pair, CompletionStatus status,
                                 Break news) {
  CompleteFirstSend(pair, status);
  adapter_.BreakPair(pair, news);
}

// Fails in its turn: earlier work completes first (FB3).
void SimRequester::FailFirstIfItLostItsBytes(QueuePair& pair) {
  if (!pair.halted || pair.departed > 0) return;
  FailFirstSend(pair, CompletionStatus::kLocalAccess, Break::kNotifyPeer);
}

}  // namespace alpheus::model
