// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/sim_staging.h"

#include <algorithm>
#include <utility>
#include <vector>

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

void SimStaging::ReceiveBeforeLastPacket(QueuePair& pair,
                                         std::span<std::byte> target) {
  Receive(pair, target,
          BytesBeforeLastPacket(target, network_.options().packet_bytes));
}

void SimStaging::ReceiveAll(QueuePair& pair, std::span<std::byte> target) {
  Receive(pair, target, target.size());
}

// Receives the next bytes, up to `end`.
void SimStaging::Receive(QueuePair& pair, std::span<std::byte> target,
                         uint64_t end) {
  if (end <= pair.staged_bytes) return;
  const uint64_t first = std::exchange(pair.staged_bytes, end);
  const std::span<const std::byte> data = pair.inbound.front().data;
  stages_.Receive(WriteOf(pair), target.subspan(first, end - first),
                  data.subspan(first, end - first));
  ScheduleMoves();
}

StagedMemory::Write SimStaging::WriteOf(const QueuePair& pair) {
  network_.hosts_[host_].writers.emplace(pair.id.value, pair.peer);
  return {.channel = pair.id.value, .region = pair.landing_key.value};
}

void SimStaging::ReceiveWord(const QueuePair& pair, std::span<std::byte> word,
                             uint64_t value) {
  stages_.Receive(WriteOf(pair), word, std::as_bytes(std::span(&value, 1)));
  stages_.PushForReceive(pair.id.value);
  ScheduleMoves();
}

void SimStaging::AwaitVisible(QueuePair& pair) {
  pair.awaits_visible = true;
  ScheduleMoves();
}

void SimStaging::ScheduleMoves() {
  if (moves_scheduled_) return;
  moves_scheduled_ = true;
  adapter_.After(network_.StepDelay(),
                 [](SimFabric& self) { self.staging().MakeMoves(); });
}

void SimStaging::MakeMoves() {
  moves_scheduled_ = false;
  const uint64_t words = network_.options().stage_words;
  stages_.MakeSome(1 + network_.random_.Below(3 * words), network_.random_);
  std::vector<fabric::ConnectionId> waiting;
  for (const auto& [id, pair] : adapter_.pairs()) {
    if (pair.awaits_visible) waiting.push_back(id);
  }
  for (const fabric::ConnectionId id : waiting) ContinueIfVisible(id);
  const bool some_wait =
      std::any_of(adapter_.pairs().begin(), adapter_.pairs().end(),
                  [](const auto& pair) { return pair.second.awaits_visible; });
  if (some_wait || stages_.move_count() > 0) ScheduleMoves();
}

void SimStaging::ContinueIfVisible(fabric::ConnectionId connection) {
  QueuePair* pair = adapter_.Find(connection);
  if (pair == nullptr || !stages_.IsVisible(connection.value)) return;
  pair->awaits_visible = false;
  adapter_.responder().OnVisible(connection);
}

}  // namespace alpheus::model
