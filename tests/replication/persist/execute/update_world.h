// SPDX-License-Identifier: Apache-2.0
// update_world: both executors of a row (update_requester.h,
// update_responder.h) on any fabric, and on a simulated network whose
// responder's power may be cut.
#ifndef ALPHEUS_TESTS_REPLICATION_PERSIST_EXECUTE_UPDATE_WORLD_H_
#define ALPHEUS_TESTS_REPLICATION_PERSIST_EXECUTE_UPDATE_WORLD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "replication/persist/execute/message_log.h"
#include "replication/persist/execute/update_requester.h"
#include "replication/persist/execute/update_responder.h"
#include "tools/model/fabric/sim_network.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

// Updates: the n-th (from 1) has n in all words of its own a, and in b, which
// is one word for all, as a tail pointer is. So memory says which are there.
inline constexpr uint64_t kUpdateWordsOfA = 3;
inline constexpr uint64_t kUpdatesMax = 16;
inline constexpr uint64_t kPlaceOfUpdates = 2 * kLineBytes;
inline constexpr size_t kUpdateSlotBytes = 2 * kLineBytes;
inline constexpr uint32_t kUpdateCredits = 2;
inline constexpr replication::SessionId kUpdateSession{0x5e55};

inline constexpr size_t kUpdateRegionBytes =
    kPlaceOfUpdates + kUpdatesMax * kLineBytes;
inline constexpr size_t kUpdateBuffersBytes =
    replication::MessageLog<model::ModelPersistence>::AreaBytes(
        kUpdateCredits, kUpdateSlotBytes);
// The region, and behind it buffers in persistent memory.
inline constexpr size_t kUpdateMemoryBytes =
    kUpdateRegionBytes + kUpdateBuffersBytes;

inline uint64_t PlaceOfUpdateA(uint64_t update) {
  return kPlaceOfUpdates + (update - 1) * kLineBytes;
}

// The updates that memory shows, after recovery.
struct FoundUpdates {
  uint64_t whole = 0;  // 1 up to this one are
  uint64_t b = 0;
};
inline FoundUpdates FindUpdates(std::span<const std::byte> memory) {
  const auto word = [memory](uint64_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, memory.data() + offset, sizeof value);
    return value;
  };
  FoundUpdates found;
  found.b = word(0);
  for (uint64_t update = 1; update <= kUpdatesMax; ++update) {
    for (uint64_t i = 0; i < kUpdateWordsOfA; ++i) {
      if (word(PlaceOfUpdateA(update) + 8 * i) != update) return found;
    }
    found.whole = update;
  }
  return found;
}

// The requester's memory, and what it posts.
class UpdateSource {
 public:
  explicit UpdateSource(fabric::Fabric& fabric)
      : key_(*fabric.Register(std::as_writable_bytes(std::span(words_)),
                              fabric::RemoteAccess::kNone)) {}

  replication::UpdateRequester::Update Make(uint64_t update,
                                            fabric::RegionKey there,
                                            bool is_compound) {
    std::ranges::fill(words_, update);
    const auto bytes = std::as_writable_bytes(std::span(words_));
    replication::UpdateRequester::Update made = {
        .a = {{key_, bytes.first(8 * kUpdateWordsOfA)},
              {there, PlaceOfUpdateA(update)}}};
    if (is_compound) {
      made.b = {{key_, bytes.last(8)}, {there, 0}};
    }
    return made;
  }

 private:
  std::array<uint64_t, kUpdateWordsOfA + 1> words_ = {};
  fabric::RegionKey key_;
};

// The terms that both ends are started with.
struct UpdateTerms {
  bool pmem_buffers = false;
  uint32_t credits = kUpdateCredits;

  replication::UpdateRequester::Options ForRequester(
      fabric::RegionKey key) const {
    return {.session = kUpdateSession,
            .credits = credits,
            .message_bytes_max = kUpdateSlotBytes,
            .buffers = {key, kUpdateRegionBytes},
            .buffers_bytes = kUpdateBuffersBytes};
  }
  replication::UpdateResponder<model::ModelPersistence>::Options ForResponder(
      fabric::RegionKey key, std::span<std::byte> memory) const {
    return {
        .session = kUpdateSession,
        .credits = credits,
        .message_bytes_max = kUpdateSlotBytes,
        .region = memory.first(kUpdateRegionBytes),
        .buffers =
            pmem_buffers
                ? fabric::LocalBytes{key, memory.subspan(kUpdateRegionBytes)}
                : fabric::LocalBytes{}};
  }
};

// A row's updates from host 0 to host 1 of a simulated network.
class SimUpdates {
 public:
  // `truth` is what host 1 is; the steps may be made for another one.
  SimUpdates(uint64_t seed, const replication::Platform& truth,
             std::span<const alpheus::replication::Step> steps,
             replication::UpdateKind kind, uint64_t updates);

  // From now on messages that nobody must apply are left where they are.
  void LeaveMessages() { applies_sometimes_ = false; }
  // Lets something happen; false: all is done, or nothing can happen.
  bool Step();
  uint64_t posted() const { return requester_->posted(); }
  uint64_t persisted() const { return requester_->persisted(); }
  replication::UpdateResponder<model::ModelPersistence>& responder() {
    return *responder_;
  }

  // Returns what recovery finds in several of the images that a power cut may
  // leave now; nothing is cut.
  std::vector<FoundUpdates> FindAfterCut();
  // Is called before each primitive of the responder's memory.
  void SetOnPrimitive(std::function<void()> on_primitive) {
    memory_.SetHook([call = std::move(on_primitive)](
                        const model::ModelPersistence::Event&) { call(); });
  }
  // The power of host 1 goes; the same for one image. Nothing is called after.
  FoundUpdates Cut();
  const model::SimNetwork& network() const { return *network_; }

 private:
  fabric::ConnectionId Await(int host, fabric::ConnectionEvent::Kind kind);
  // The responder's program is late, or it takes what came.
  void Poll(bool is_late);
  std::vector<std::vector<std::byte>> Images();
  FoundUpdates Recover(std::span<const std::byte> image) const;

  const bool is_compound_;
  const bool applies_messages_;
  bool applies_sometimes_ = true;
  int idle_ = 0;
  const uint64_t updates_;
  Random random_;
  model::ModelPersistence memory_{kUpdateMemoryBytes};
  std::unique_ptr<model::SimNetwork> network_;
  std::unique_ptr<UpdateSource> source_;
  fabric::RegionKey key_;
  std::unique_ptr<replication::UpdateRequester> requester_;
  std::unique_ptr<replication::UpdateResponder<model::ModelPersistence>>
      responder_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_PERSIST_EXECUTE_UPDATE_WORLD_H_
