// SPDX-License-Identifier: Apache-2.0
// Updates and swaps of a client whose node loses its power, in each state of a
// run: what the client was told of is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/platform.h"
#include "tests/api/remote/memory_world.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::testing {

using replication::PersistenceDomain;
using replication::Platform;
using replication::Transport;

namespace {

constexpr uint64_t kUpdates = 4;
constexpr uint64_t kSeedsOfCrashes = 4;
constexpr int kImagesOfACut = 4;
constexpr size_t kWordsOfAnUpdate = 3;
constexpr uint64_t kPlaceOfSwaps = 1024;

// Steps of a client, one after the other: an update of its own line,
// then a swap of one word from n - 1 to n, which it makes persistent.
class ClientAtWork {
 public:
  ClientAtWork(uint64_t seed, const Platform& truth, const Platform& declared)
      : world_({.seed = seed, .platform = truth, .declared = declared}) {
    client_ = world_.Open(world_.Updating(world_.writer.token));
    EXPECT_TRUE(client_->is_open()) << client_->status();
  }

  MemoryWorld& world() { return world_; }
  bool is_done() const { return swapped_ == kUpdates; }
  // Lets something happen.
  void Step() {
    if (client_->in_flight() == 0 && !is_done()) Begin();
    world_.Step();
  }

  // Whether all that has ended well is in this image of the inbox.
  bool IsKeptIn(std::span<const std::byte> inbox) const {
    for (uint64_t n = 1; n <= updated_; ++n) {
      for (size_t i = 0; i < kWordsOfAnUpdate; ++i) {
        if (WordOf(inbox, 64 * n + 8 * i) != n) return false;
      }
    }
    return WordOf(inbox, kPlaceOfSwaps) >= swapped_;
  }

 private:
  static uint64_t WordOf(std::span<const std::byte> bytes, size_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
  }
  void Begin() {
    const auto update = [this](const absl::Status& end) {
      ASSERT_TRUE(end.ok()) << end;
      ++updated_;
    };
    const auto persisted = [this](const absl::Status& end) {
      ASSERT_TRUE(end.ok()) << end;
      ++swapped_;
    };
    if (updated_ == swapped_) {
      const std::vector<uint64_t> words(kWordsOfAnUpdate, updated_ + 1);
      ASSERT_TRUE(client_
                      ->Update(64 * (updated_ + 1),
                               std::as_bytes(std::span(words)), update)
                      .ok());
      return;
    }
    ASSERT_TRUE(
        client_
            ->CompareAndSwap(
                kPlaceOfSwaps, swapped_, swapped_ + 1,
                [this, persisted](const absl::StatusOr<uint64_t>& found) {
                  ASSERT_TRUE(found.ok() && *found == swapped_);
                  ASSERT_TRUE(
                      client_->Persist(kPlaceOfSwaps, 8, persisted).ok());
                })
            .ok());
  }

  MemoryWorld world_;
  ClientInWorld client_{nullptr, EndClient{&world_}};
  uint64_t updated_ = 0;
  uint64_t swapped_ = 0;
};

// Images that a power cut may leave now.
std::vector<std::vector<std::byte>> ImagesOf(MemoryWorld& world) {
  const model::StagedMemory& stages = world.network->stages(kNodeHost);
  const PersistenceDomain domain = stages.options().domain;
  if (domain != PersistenceDomain::kMemory) {
    std::vector<std::byte> image = world.memory.CutKeepingAll();
    if (domain == PersistenceDomain::kSystem) {
      stages.LandInto(image, world.memory);
    }
    return {std::move(image)};
  }
  std::vector<std::vector<std::byte>> images = {world.memory.CutKeepingNone()};
  for (int i = 0; i < kImagesOfACut; ++i) {
    images.push_back(world.memory.CutDrawing(world.randomness));
  }
  return images;
}

// Returns the number of images in which something is missing.
uint64_t LossesOf(uint64_t seed, const Platform& truth,
                  const Platform& declared) {
  ClientAtWork work(seed, truth, declared);
  uint64_t losses = 0;
  const auto look = [&] {
    for (const std::vector<std::byte>& image : ImagesOf(work.world())) {
      losses += work.IsKeptIn(std::span(image).subspan(kRingBytes)) ? 0 : 1;
    }
  };
  work.world().memory.SetHook(
      [&](const model::ModelPersistence::Event&) { look(); });
  for (int steps = 0; steps < 100'000 && !work.is_done(); ++steps) {
    work.Step();
    look();
  }
  EXPECT_TRUE(work.is_done());
  work.world().memory.SetHook({});
  return losses;
}

TEST(MemoryCrashTest, WhatHasEndedOutlivesACutInEveryState) {
  for (const auto domain :
       {PersistenceDomain::kMemory, PersistenceDomain::kHierarchy,
        PersistenceDomain::kSystem}) {
    for (const bool ddio : {true, false}) {
      for (const auto transport : {Transport::kTcp, Transport::kInfiniBand}) {
        const Platform platform = {
            .domain = domain, .ddio = ddio, .transport = transport};
        SCOPED_TRACE(replication::PlatformToString(platform));
        for (uint64_t seed = 1; seed <= kSeedsOfCrashes; ++seed) {
          EXPECT_EQ(LossesOf(seed, platform, platform), 0U) << "seed " << seed;
        }
      }
    }
  }
}

// The look itself: where a platform is declared stronger than it is, something
// is lost.
TEST(MemoryCrashTest, FalseDeclarationLosesSomething) {
  const Platform weak = {.transport = Transport::kInfiniBand};
  for (const auto domain :
       {PersistenceDomain::kHierarchy, PersistenceDomain::kSystem}) {
    uint64_t losses = 0;
    for (uint64_t seed = 1; seed <= 20 && losses == 0; ++seed) {
      losses += LossesOf(
          seed, weak, {.domain = domain, .transport = Transport::kInfiniBand});
    }
    EXPECT_GT(losses, 0U);
  }
}

}  // namespace
}  // namespace alpheus::testing
