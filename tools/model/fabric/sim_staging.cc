// SPDX-License-Identifier: Apache-2.0
// Stages: writes and sends into attached memory.
//
// When its turn has come, a request is in the adapter as a whole. From there
// its words move in steps of all connections together. Where the adapter
// acknowledges by itself (InfiniBand) the next request's turn comes at once,
// unless a receive must complete: that comes after the words (SM4).
#include <algorithm>
#include <utility>

#include "tools/model/fabric/sim_fabric.h"

namespace alpheus::model {
namespace {

// Returns the bytes of `target` before the last packet, in whole words.
uint64_t BytesBeforeLastPacket(std::span<const std::byte> target,
                               uint64_t packet_bytes) {
  if (target.size() <= packet_bytes) return 0;
  const uint64_t before = target.size() - packet_bytes;
  const uint64_t over = (reinterpret_cast<uintptr_t>(target.data()) + before) %
                        ModelPersistence::kWordBytes;
  return over < before ? before - over : 0;
}

}  // namespace

// May be called again, after waiting for a receive.
void SimFabric::StartStaged(QueuePair& pair, std::span<std::byte> target) {
  const fabric::Operation operation = pair.inbound.front().work.operation;
  if (pair.state == QueuePairState::kBroken) {
    if (pair.late_parts_left == 0) return;
    --pair.late_parts_left;
    ++network_.late_landings_;
    Trace(pair, "late");
    ReceiveStaged(pair, target, target.size());
    stages_.Abandon(pair.id.value, network_.random_);
    AwaitVisible(pair);
    return;
  }
  if (operation == fabric::Operation::kWriteImmediate && !HasReceive(pair) &&
      !pair.receive_used) {
    // The last packet is refused (FB6).
    ReceiveStaged(
        pair, target,
        BytesBeforeLastPacket(target, network_.options().packet_bytes));
    RetryReceiver(pair, /*landing=*/false);
    return;
  }
  ReceiveStaged(pair, target, target.size());
  if (transport_ == replication::Transport::kInfiniBand) {
    stages_.Acknowledge(pair.id.value);
    if (operation == fabric::Operation::kWrite) {
      Answer(pair);
      return;
    }
    Respond(pair, fabric::CompletionStatus::kOk);
  }
  AwaitVisible(pair);
}

// Receives the next bytes, up to `end`.
void SimFabric::ReceiveStaged(QueuePair& pair, std::span<std::byte> target,
                              uint64_t end) {
  if (end <= pair.staged_bytes) return;
  const uint64_t first = std::exchange(pair.staged_bytes, end);
  const std::span<const std::byte> data = pair.inbound.front().data;
  stages_.Receive(StagedWrite(pair), target.subspan(first, end - first),
                  data.subspan(first, end - first));
  ScheduleMoves();
}

StagedMemory::Write SimFabric::StagedWrite(const QueuePair& pair) {
  network_.hosts_[host_].writers.emplace(pair.id.value, pair.peer);
  return {.channel = pair.id.value, .region = pair.landing_key.value};
}

void SimFabric::AwaitVisible(QueuePair& pair) {
  pair.awaits_visible = true;
  ScheduleMoves();
}

void SimFabric::ScheduleMoves() {
  if (moves_scheduled_) return;
  moves_scheduled_ = true;
  After(network_.StepDelay(), [](SimFabric& self) { self.MakeMoves(); });
}

void SimFabric::MakeMoves() {
  moves_scheduled_ = false;
  const uint64_t words = network_.options().stage_words;
  stages_.MakeSome(1 + network_.random_.Below(3 * words), network_.random_);
  std::vector<fabric::ConnectionId> waiting;
  for (const auto& [id, pair] : pairs_) {
    if (pair.awaits_visible) waiting.push_back(id);
  }
  for (const fabric::ConnectionId id : waiting) ContinueIfVisible(id);
  const bool some_wait =
      std::any_of(pairs_.begin(), pairs_.end(),
                  [](const auto& pair) { return pair.second.awaits_visible; });
  if (some_wait || stages_.move_count() > 0) ScheduleMoves();
}

void SimFabric::ContinueIfVisible(fabric::ConnectionId connection) {
  QueuePair* pair = Find(connection);
  if (pair == nullptr || !stages_.IsVisible(connection.value)) return;
  pair->awaits_visible = false;
  Trace(*pair, "visible");
  // Acknowledged bytes had landed before the region was gone (SM6).
  if (!pair->answered && !regions_.Holds(pair->landing_key) &&
      pair->state != QueuePairState::kBroken) {
    RefuseLanding(*pair);
    return;
  }
  FinishLanding(*pair);
}

}  // namespace alpheus::model
