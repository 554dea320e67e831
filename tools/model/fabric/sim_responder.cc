// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/sim_responder.h"

#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/fabric/work_request.h"
#include "tools/model/fabric/sim_fabric.h"

namespace alpheus::model {

using fabric::CompletionStatus;
using fabric::Operation;

namespace {

fabric::RemoteAccess AccessFor(Operation operation) {
  switch (operation) {
    case Operation::kRead:
    case Operation::kFlush:
      return fabric::RemoteAccess::kRead;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return fabric::RemoteAccess::kAll;
    default:
      return fabric::RemoteAccess::kWrite;
  }
}

bool TakesReceive(Operation operation) {
  return operation == Operation::kWriteImmediate ||
         operation == Operation::kSend;
}

// Returns the length of what an operation touches here.
uint64_t RemoteBytes(const fabric::WorkRequest& work) {
  return work.operation == Operation::kFlush ? work.range_bytes
                                             : work.local.bytes.size();
}

bool IsWrite(Operation operation) {
  return operation == Operation::kWrite ||
         operation == Operation::kWriteImmediate;
}

}  // namespace

absl::Status SimResponder::PostReceive(fabric::ConnectionId connection,
                                       fabric::WorkId work,
                                       fabric::LocalBytes into) {
  QueuePair* pair = adapter_.FindOpen(connection);
  const auto where = [&] {
    return absl::StrCat("simulated fabric: post receive on connection ",
                        connection.value, ": ");
  };
  if (pair == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(where(), "there is no such connection"));
  }
  if (pair->state == QueuePairState::kBroken) {
    return absl::FailedPreconditionError(
        absl::StrCat(where(), "it is broken; close it"));
  }
  if (into.bytes.size() > adapter_.limits().message_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(where(), into.bytes.size(), " bytes, at most ",
                     adapter_.limits().message_bytes_max));
  }
  ALPHEUS_RETURN_IF_ERROR(regions_.CheckLocal(into));
  if (pair->receives.size() >= adapter_.limits().receives_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(where(), pair->receives.size(),
                     " receives are posted; poll their completions"));
  }
  pair->receives.push_back({work, into});
  return absl::OkStatus();
}

void SimResponder::OnRequest(fabric::ConnectionId connection,
                             const Request& request) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr) return;
  pair->inbound.push_back(request);
  if (pair->inbound.size() == 1) NextRequest(*pair);
}

void SimResponder::NextRequest(QueuePair& pair) {
  if (pair.inbound.empty()) return;
  pair.answered = false;
  pair.receive_used = false;
  pair.staged_bytes = 0;
  pair.retries_left = network_.options().receiver_retries;
  ScheduleStart(pair, network_.StepDelay());
}

void SimResponder::ScheduleStart(const QueuePair& pair, int64_t after_ns) {
  adapter_.After(after_ns, [id = pair.id](SimFabric& self) {
    self.responder().Start(id);
  });
}

void SimResponder::ScheduleStep(const QueuePair& pair) {
  adapter_.After(network_.StepDelay(), [id = pair.id](SimFabric& self) {
    self.responder().Step(id);
  });
}

void SimResponder::Start(fabric::ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr) return;
  const fabric::WorkRequest& work = pair->inbound.front().work;
  const bool is_broken = pair->state == QueuePairState::kBroken;
  if (is_broken && !IsWrite(work.operation)) return;
  if (work.operation == Operation::kSend) {
    StartSend(*pair);
    return;
  }
  const auto target =
      regions_.Find(work.remote, RemoteBytes(work), AccessFor(work.operation));
  if (!target.ok()) {
    Refuse(*pair, CompletionStatus::kRemoteAccess);
    return;
  }
  pair->landing_key = work.remote.key;
  if (IsWrite(work.operation)) {
    network_.MayFlip(host_, pair->peer.host, SimNetwork::Flips::kWrite,
                     pair->inbound.front().data);
  }
  if (!IsWrite(work.operation)) stages_.PushForRead(connection.value);  // SM5
  switch (work.operation) {
    case Operation::kFlush:
      Answer(*pair);
      break;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      ExecuteAtomic(*pair, *target);
      break;
    case Operation::kRead:
      pair->inbound.front().data.resize(RemoteBytes(work));
      StartLanding(*pair, *target);
      break;
    default:
      StartLanding(*pair, *target);
  }
}

void SimResponder::StartLanding(QueuePair& pair, std::span<std::byte> target) {
  const Operation operation = pair.inbound.front().work.operation;
  if (operation != Operation::kRead) {
    if (stages_.Models(target)) {
      StartStaged(pair, target);
      return;
    }
    stages_.PushForReceive(pair.id.value);  // visible at once, so in order
  }
  pair.landing =
      Landing(target, network_.options().packet_bytes, network_.random_);
  ScheduleStep(pair);
}

// May be called again, after waiting for a receive.
void SimResponder::StartStaged(QueuePair& pair, std::span<std::byte> target) {
  const Operation operation = pair.inbound.front().work.operation;
  if (pair.state == QueuePairState::kBroken) {
    if (pair.late_parts_left == 0) return;
    --pair.late_parts_left;
    ++network_.late_landings_;
    adapter_.Trace(pair, "late");
    adapter_.staging().ReceiveAll(pair, target);
    stages_.Abandon(pair.id.value, network_.random_);
    adapter_.staging().AwaitVisible(pair);
    return;
  }
  if (operation == Operation::kWriteImmediate && !HasReceive(pair) &&
      !pair.receive_used) {
    // The last packet is refused (FB6).
    adapter_.staging().ReceiveBeforeLastPacket(pair, target);
    RetryReceiver(pair, /*landing=*/false);
    return;
  }
  adapter_.staging().ReceiveAll(pair, target);
  if (transport_ == replication::Transport::kInfiniBand) {
    stages_.Acknowledge(pair.id.value);
    if (operation == Operation::kWrite) {
      Answer(pair);
      return;
    }
    Respond(pair, CompletionStatus::kOk);
  }
  adapter_.staging().AwaitVisible(pair);
}

void SimResponder::StartSend(QueuePair& pair) {
  if (!HasReceive(pair)) {
    RetryReceiver(pair, /*landing=*/false);
    return;
  }
  const fabric::LocalBytes& into = pair.receives.front().into;
  const uint64_t bytes = RemoteBytes(pair.inbound.front().work);
  if (bytes > into.bytes.size()) {
    CompleteReceive(pair, CompletionStatus::kReceiveTooSmall);
    Refuse(pair, CompletionStatus::kReceiveTooSmall);
    return;
  }
  if (!regions_.CheckLocal(into).ok()) {
    CompleteReceive(pair, CompletionStatus::kLocalAccess);
    Refuse(pair, CompletionStatus::kRemoteAccess);
    return;
  }
  pair.landing_key = into.key;
  network_.MayFlip(host_, pair.peer.host, SimNetwork::Flips::kSend,
                   pair.inbound.front().data);
  StartLanding(pair, into.bytes.first(bytes));
}

void SimResponder::ExecuteAtomic(QueuePair& pair, std::span<std::byte> word) {
  Request& request = pair.inbound.front();
  uint64_t before = 0;
  std::memcpy(&before, word.data(), sizeof(before));
  const auto& [first, second] = request.work.operands;
  uint64_t after = before + first;
  if (request.work.operation == Operation::kCompareSwap) {
    after = before == first ? second : before;
  }
  if (stages_.Models(word)) {
    adapter_.staging().ReceiveWord(pair, word, after);
  } else {
    std::memcpy(word.data(), &after, sizeof(after));
    network_.NoteLanding({host_, pair.peer, word});
  }
  request.data.resize(sizeof(before));
  std::memcpy(request.data.data(), &before, sizeof(before));
  Answer(pair);
}

bool SimResponder::HasReceive(const QueuePair& pair) const {
  return !pair.receives.empty() && !network_.hosts_[host_].hides_receives;
}

// The last part needs the receive: parts before it have landed by then (FB6).
bool SimResponder::NeedsReceiveNow(const QueuePair& pair) const {
  return pair.inbound.front().work.operation == Operation::kWriteImmediate &&
         pair.state != QueuePairState::kBroken &&
         pair.landing.parts_left() <= 1 && !HasReceive(pair) &&
         !pair.receive_used;
}

void SimResponder::Step(fabric::ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr) return;
  Request& request = pair->inbound.front();
  const Operation operation = request.work.operation;
  if (pair->state == QueuePairState::kBroken) {
    if (!IsWrite(operation) || pair->late_parts_left == 0) return;
    --pair->late_parts_left;
    ++network_.late_landings_;
    adapter_.Trace(*pair, "late");
  }
  if (NeedsReceiveNow(*pair)) {
    RetryReceiver(*pair, /*landing=*/true);
    return;
  }
  if (pair->landing.parts_left() > 0) {
    if (!regions_.Holds(pair->landing_key)) {
      RefuseLanding(*pair);
      return;
    }
    if (operation == Operation::kRead) {
      pair->landing.Read(request.data);
    } else {
      network_.NoteLanding(
          {host_, pair->peer, pair->landing.Write(request.data)});
    }
  }
  if (pair->landing.parts_left() > 0) {
    ScheduleStep(*pair);
  } else {
    FinishLanding(*pair);
  }
}

// Fails a landing whose region is gone.
void SimResponder::RefuseLanding(QueuePair& pair) {
  if (pair.inbound.front().work.operation == Operation::kSend) {
    CompleteReceive(pair, CompletionStatus::kLocalAccess);
  }
  Refuse(pair, CompletionStatus::kRemoteAccess);
}

void SimResponder::RetryReceiver(QueuePair& pair, bool landing) {
  ++network_.receivers_not_ready_;
  if (!pair.receives.empty()) ++network_.hosts_[host_].receives_hidden;
  if (pair.retries_left == 0) {
    Refuse(pair, CompletionStatus::kReceiverNotReady);
    return;
  }
  --pair.retries_left;
  adapter_.Trace(pair, "receiver not ready");
  adapter_.ToPeer(pair, "receiver not ready", /*beside=*/false,
                  [id = pair.peer.connection](SimFabric& peer) {
                    peer.requester().OnAlive(id);
                  });
  adapter_.After(network_.options().receiver_retry_ns,
                 [id = pair.id, landing](SimFabric& self) {
                   landing ? self.responder().Step(id)
                           : self.responder().Start(id);
                 });
}

void SimResponder::FinishLanding(QueuePair& pair) {
  if (TakesReceive(pair.inbound.front().work.operation) &&
      !pair.receives.empty() && !pair.receive_used) {
    CompleteReceive(pair, CompletionStatus::kOk);
  }
  Answer(pair);
}

void SimResponder::OnVisible(fabric::ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  adapter_.Trace(*pair, "visible");
  // Acknowledged bytes had landed before the region was gone (SM6).
  if (!pair->answered && !regions_.Holds(pair->landing_key) &&
      pair->state != QueuePairState::kBroken) {
    RefuseLanding(*pair);
    return;
  }
  FinishLanding(*pair);
}

void SimResponder::CompleteReceive(QueuePair& pair, CompletionStatus status) {
  const fabric::WorkRequest& work = pair.inbound.front().work;
  adapter_.Complete(pair, {.connection = pair.id,
                           .work = pair.receives.front().work,
                           .operation = work.operation == Operation::kSend
                                            ? Operation::kReceive
                                            : Operation::kReceiveImmediate,
                           .status = status,
                           .bytes = RemoteBytes(work),
                           .immediate = work.immediate});
  pair.receives.pop_front();
  pair.receive_used = true;
}

// Requests after the refused one are not executed, not even late.
void SimResponder::Refuse(QueuePair& pair, CompletionStatus status) {
  Respond(pair, status);
  adapter_.BreakPair(pair, Break::kSilent);
  pair.late_parts_left = 0;
}

void SimResponder::Answer(QueuePair& pair) {
  Respond(pair, CompletionStatus::kOk);
  pair.inbound.pop_front();
  NextRequest(pair);
}

// A broken connection answers nothing.
void SimResponder::Respond(QueuePair& pair, CompletionStatus status) {
  if (pair.state == QueuePairState::kBroken || pair.answered) return;
  pair.answered = true;
  Response response = {
      .sequence = pair.inbound.front().sequence, .status = status, .data = {}};
  if (fabric::Fetches(pair.inbound.front().work.operation)) {
    response.data = std::move(pair.inbound.front().data);
  }
  adapter_.ToPeer(
      pair, fabric::CompletionStatusName(status), /*beside=*/false,
      [id = pair.peer.connection, response = std::move(response)](
          SimFabric& peer) { peer.requester().OnResponse(id, response); });
}

}  // namespace alpheus::model
