// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/persist/execute/update_world.h"

#include <string>
#include <utility>

#include "replication/persist/platform/method_table.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;

namespace {

constexpr int kImagesDrawn = 4;

model::SimOptions NetworkOf(uint64_t seed, const replication::Platform& truth) {
  model::SimOptions options;
  options.seed = seed;
  options.hosts = 2;
  options.packet_bytes = 16;
  options.stage_words = 1;
  options.limits.atomic_write = true;
  if (seed % 2 == 1) {  // messages are faster than words
    options.delay_ns_min = 10;
    options.delay_ns_max = 100;
  }
  options.platforms = {replication::Platform(), truth};
  return options;
}

}  // namespace

SimUpdates::SimUpdates(uint64_t seed, const replication::Platform& truth,
                       std::span<const alpheus::replication::Step> steps,
                       replication::UpdateKind kind, uint64_t updates)
    : is_compound_(kind == replication::UpdateKind::kCompound),
      applies_messages_(replication::NeedsMessagesApplied(steps)),
      updates_(updates),
      random_(seed),
      network_(std::make_unique<model::SimNetwork>(NetworkOf(seed, truth))) {
  network_->AttachMemory(1, memory_);
  fabric::Fabric& here = network_->fabric(0);
  fabric::Fabric& there = network_->fabric(1);
  source_ = std::make_unique<UpdateSource>(here);
  key_ = *there.Register(memory_.region(), fabric::RemoteAccess::kReadWrite);
  const std::string address = *there.Listen(model::SimNetwork::Address(1, 0));
  const fabric::ConnectionId at_here = *here.Connect(address, "", Deadline());
  const fabric::ConnectionId at_there =
      Await(1, ConnectionEvent::Kind::kRequested);
  const UpdateTerms terms = {.pmem_buffers =
                                 truth.receive_buffers ==
                                 replication::ReceiveBuffers::kPmem};
  responder_ = *replication::UpdateResponder<model::ModelPersistence>::Start(
      memory_, steps, terms.ForResponder(key_, memory_.region()), there,
      at_there);
  EXPECT_TRUE(there.Accept(at_there, "").ok());
  Await(0, ConnectionEvent::Kind::kEstablished);
  requester_ = *replication::UpdateRequester::Start(
      steps, terms.ForRequester(key_), here, at_here);
}

fabric::ConnectionId SimUpdates::Await(int host, ConnectionEvent::Kind kind) {
  do {
    std::vector<ConnectionEvent> events;
    network_->fabric(host).Poll({}, &events);
    for (const ConnectionEvent& event : events) {
      if (event.kind == kind) return event.connection;
    }
  } while (network_->Step());
  ADD_FAILURE() << "no event";
  return {};
}

void SimUpdates::Poll(bool is_late) {
  std::array<fabric::Completion, 16> some;
  size_t count = is_late ? 0 : network_->fabric(1).Poll(some, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const absl::Status taken = responder_->OnCompletion(some[i]);
    EXPECT_TRUE(taken.ok()) << taken;
  }
  // Sometimes soon, always if its buffers are all that could be sent to.
  const bool is_full = responder_->unapplied() == kUpdateCredits;
  if (applies_sometimes_ && (is_full || random_.Next() % 16 == 0)) {
    EXPECT_TRUE(responder_->ApplyReceived().ok());
  }
  count = network_->fabric(0).Poll(some, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const absl::Status taken = requester_->OnCompletion(some[i]);
    EXPECT_TRUE(taken.ok()) << taken;
  }
}

bool SimUpdates::Step() {
  if (requester_->CanPost()) {
    if (requester_->posted() == updates_) return false;
    const absl::Status posted = requester_->Post(
        source_->Make(requester_->posted() + 1, key_, is_compound_));
    EXPECT_TRUE(posted.ok()) << posted;
  }
  const bool goes_on = network_->Step();
  Poll(/*is_late=*/goes_on && random_.Next() % 4 != 0);
  idle_ = goes_on ? 0 : idle_ + 1;
  if (idle_ < 2) return true;
  EXPECT_FALSE(applies_sometimes_) << "an update that never ends";
  return false;
}

// Caches and adapter keep as much as the domain says.
std::vector<std::vector<std::byte>> SimUpdates::Images() {
  const model::StagedMemory& stages = network_->stages(1);
  if (stages.options().domain != replication::PersistenceDomain::kMemory) {
    std::vector<std::byte> image = memory_.CutKeepingAll();
    if (stages.options().domain == replication::PersistenceDomain::kSystem) {
      stages.LandInto(image, memory_);
    }
    return {std::move(image)};
  }
  std::vector<std::vector<std::byte>> images = {memory_.CutKeepingNone(),
                                                memory_.CutKeepingAll()};
  for (int i = 0; i < kImagesDrawn; ++i) {
    images.push_back(memory_.CutDrawing(random_));
  }
  return images;
}

FoundUpdates SimUpdates::Recover(std::span<const std::byte> image) const {
  model::ModelPersistence left(image);
  const std::span<std::byte> region = left.region();
  if (applies_messages_) {
    EXPECT_TRUE(replication::ApplyMessages(
                    left, region.subspan(kUpdateRegionBytes), kUpdateSlotBytes,
                    region.first(kUpdateRegionBytes))
                    .ok());
  }
  return FindUpdates(left.CutKeepingNone());
}

std::vector<FoundUpdates> SimUpdates::FindAfterCut() {
  std::vector<FoundUpdates> found;
  for (const std::vector<std::byte>& image : Images()) {
    found.push_back(Recover(image));
  }
  return found;
}

FoundUpdates SimUpdates::Cut() {
  memory_.SetHook({});
  responder_.reset();  // DRAM only
  network_->LosePower(1);
  return Recover(memory_.persistent());
}

}  // namespace alpheus::testing
