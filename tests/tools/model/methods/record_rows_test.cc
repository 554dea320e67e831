// SPDX-License-Identifier: Apache-2.0
// Records by the rows that end at the requester, many under way, at a responder
// whose program does nothing: with a power cut in every state of a run.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/execute/persist_requester.h"
#include "replication/persist/plan/planner.h"
#include "replication/persist/platform/method_steps.h"
#include "tests/replication/persist/execute/update_world.h"
#include "tools/model/fabric/sim_network.h"

namespace alpheus::testing {

using replication::Platform;

namespace {

constexpr uint64_t kRecordSeeds = 20;
// So that an update is a write and a write with immediate.
constexpr uint64_t kPieceBytes = 16;

class SimRecords {
 public:
  SimRecords(uint64_t seed, const Platform& truth,
             const replication::Plan& plan)
      : random_(seed), network_(OptionsOf(seed, truth)) {
    network_.AttachMemory(1, memory_);
    key_ =
        *there().Register(memory_.region(), fabric::RemoteAccess::kReadWrite);
    const std::string address =
        *there().Listen(model::SimNetwork::Address(1, 0));
    const fabric::ConnectionId at_here =
        *here().Connect(address, "", Deadline());
    const fabric::ConnectionId at_there = Await(1);
    for (uint64_t i = 0; i < kUpdatesMax; ++i) {
      EXPECT_TRUE(there().PostReceive(at_there, fabric::WorkId(i), {}).ok());
    }
    EXPECT_TRUE(there().Accept(at_there, "").ok());
    Await(0);
    requester_ =
        std::make_unique<replication::PersistRequester>(plan, here(), at_here);
    for (uint64_t update = 1; update <= kUpdatesMax; ++update) {
      words_[update - 1].fill(update);
    }
    own_key_ = *here().Register(std::as_writable_bytes(std::span(words_)),
                                fabric::RemoteAccess::kNone);
  }

  // How often what was persisted is not whole after a cut.
  uint64_t Run() {
    uint64_t lost = 0;
    do {
      if (requester_->posted() < kUpdatesMax && random_.Next() % 4 == 0) {
        Post(requester_->posted() + 1);
      }
      std::array<fabric::Completion, 16> some;
      const size_t count = here().Poll(some, nullptr);
      for (size_t i = 0; i < count; ++i) requester_->OnCompletion(some[i]);
      lost += FindUpdates(Image()).whole < requester_->persisted() ? 1 : 0;
    } while (network_.Step() || requester_->posted() < kUpdatesMax);
    EXPECT_EQ(requester_->persisted(), kUpdatesMax);
    EXPECT_EQ(requester_->posts_in_flight(), 0u);
    return lost;
  }

 private:
  static model::SimOptions OptionsOf(uint64_t seed, const Platform& truth) {
    model::SimOptions options;
    options.seed = seed;
    options.hosts = 2;
    options.stage_words = 1;
    options.limits.message_bytes_max = kPieceBytes;
    options.platforms = {Platform(), truth};
    if (seed % 2 == 1) {  // messages are faster than words
      options.delay_ns_min = 10;
      options.delay_ns_max = 100;
    }
    return options;
  }
  fabric::Fabric& here() { return network_.fabric(0); }
  fabric::Fabric& there() { return network_.fabric(1); }
  fabric::ConnectionId Await(int host) {
    do {
      std::vector<fabric::ConnectionEvent> events;
      network_.fabric(host).Poll({}, &events);
      if (!events.empty()) return events.front().connection;
    } while (network_.Step());
    ADD_FAILURE() << "no event";
    return {};
  }
  void Post(uint64_t update) {
    const replication::PersistRequester::Range range = {
        {own_key_, std::as_writable_bytes(std::span(words_[update - 1]))},
        {key_, PlaceOfUpdateA(update)}};
    EXPECT_TRUE(
        requester_->Post({&range, 1}, static_cast<uint32_t>(update)).ok());
  }
  // The least that a cut leaves.
  std::vector<std::byte> Image() {
    const model::StagedMemory& stages = network_.stages(1);
    if (stages.options().domain == replication::PersistenceDomain::kMemory) {
      return memory_.CutKeepingNone();
    }
    std::vector<std::byte> image = memory_.CutKeepingAll();
    if (stages.options().domain == replication::PersistenceDomain::kSystem) {
      stages.LandInto(image, memory_);
    }
    return image;
  }

  Random random_;
  model::ModelPersistence memory_{kUpdateMemoryBytes};
  model::SimNetwork network_;
  std::array<std::array<uint64_t, kUpdateWordsOfA>, kUpdatesMax> words_ = {};
  fabric::RegionKey own_key_;
  fabric::RegionKey key_;
  std::unique_ptr<replication::PersistRequester> requester_;
};

uint64_t LostOn(const Platform& truth, const replication::Plan& plan) {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= kRecordSeeds; ++seed) {
    lost += SimRecords(seed, truth, plan).Run();
  }
  return lost;
}

Platform On(const char* words) { return *replication::ParsePlatform(words); }

// Those on which the primary does not wait for the backup's program.
constexpr const char* kWithoutAck[] = {
    "mhp",
    "mhp,infiniband",
    "mhp,no-ddio,infiniband",
    "wsp",
    "wsp,no-ddio",
    "wsp,infiniband",
    "wsp,no-ddio,infiniband",
    "dmp,no-ddio,infiniband",
};

TEST(RecordRowsTest, PersistedRecordsNeedNoProgramOfTheBackup) {
  for (const char* words : kWithoutAck) {
    const replication::Plan plan = *replication::MakeRecordPlan(On(words));
    EXPECT_NE(plan.steps.back(), replication::steps::kReceiveAck) << words;
    EXPECT_EQ(LostOn(On(words), plan), 0u)
        << words << replication::PlanToString(plan);
  }
}

// A platform that is less than was declared.
TEST(RecordRowsTest, WrongDeclarationsLose) {
  struct Pair {
    const char* declared;
    const char* truth;
  };
  for (const auto& [declared, truth] :
       {Pair{"mhp,infiniband", "dmp,infiniband"}, Pair{"mhp", "dmp"},
        Pair{"wsp,infiniband", "mhp,infiniband"},
        Pair{"wsp,infiniband", "dmp,no-ddio,infiniband"},
        Pair{"dmp,no-ddio,infiniband", "dmp,infiniband"}}) {
    EXPECT_GT(LostOn(On(truth), *replication::MakeRecordPlan(On(declared))), 0u)
        << declared << " on " << truth;
  }
}

}  // namespace
}  // namespace alpheus::testing
