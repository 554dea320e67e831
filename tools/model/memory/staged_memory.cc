// SPDX-License-Identifier: Apache-2.0
#include "tools/model/memory/staged_memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "log/base/check.h"

namespace alpheus::model {
namespace {

size_t Misalignment(const std::byte* at) {
  return reinterpret_cast<uintptr_t>(at) % ModelPersistence::kWordBytes;
}

// Order doesn't matter there.
template <typename T>
T Take(std::vector<T>& all, size_t index) {
  std::swap(all.at(index), all.back());
  T taken = all.back();
  all.pop_back();
  return taken;
}

}  // namespace

void StagedMemory::Detach(const ModelPersistence& model) {
  std::erase(models_, &model);
  std::erase_if(open_, [&](const Open& open) { return open.model == &model; });
  for (auto channel = inbound_.begin(); channel != inbound_.end();) {
    std::erase_if(channel->second, [&](const Inbound& inbound) {
      return inbound.model == &model;
    });
    channel =
        channel->second.empty() ? inbound_.erase(channel) : std::next(channel);
  }
}

ModelPersistence* StagedMemory::ModelOf(
    std::span<const std::byte> bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  for (ModelPersistence* model : models_) {
    const std::span<std::byte> region = model->region();
    const auto start = reinterpret_cast<uintptr_t>(region.data());
    if (first >= start && first - start < region.size() &&
        bytes.size() <= region.size() - (first - start)) {
      return model;
    }
  }
  return nullptr;
}

bool StagedMemory::Models(std::span<const std::byte> bytes) const {
  return !bytes.empty() && ModelOf(bytes) != nullptr;
}

void StagedMemory::Receive(const Write& write, std::span<std::byte> target,
                           std::span<const std::byte> bytes) {
  ALPHEUS_CHECK(target.size() == bytes.size(),
                "a write has one length (staged_memory.h)");
  if (bytes.empty()) return;
  Inbound inbound;
  inbound.write = write;
  inbound.target = target.data();
  inbound.bytes.assign(bytes.begin(), bytes.end());
  inbound.model = ModelOf(target);
  const size_t words = (Misalignment(target.data()) + bytes.size() +
                        ModelPersistence::kWordBytes - 1) /
                       ModelPersistence::kWordBytes;
  inbound.at_adapter.resize(words);
  std::iota(inbound.at_adapter.begin(), inbound.at_adapter.end(), 0u);
  inbound_[write.channel].push_back(std::move(inbound));
}

void StagedMemory::Acknowledge(uint64_t channel) {
  const auto found = inbound_.find(channel);
  if (found == inbound_.end()) return;
  for (Inbound& inbound : found->second) inbound.is_acknowledged = true;
}

// Words as the memory is divided, not as the write is.
StagedMemory::Span StagedMemory::WordOf(const Inbound& inbound, uint32_t word) {
  const size_t before = Misalignment(inbound.target);
  const size_t first =
      std::max(word * ModelPersistence::kWordBytes, before) - before;
  const size_t end = std::min(
      (word + 1) * ModelPersistence::kWordBytes - before, inbound.bytes.size());
  return {first, end - first};
}

// SM2 says which writes of a channel may move: those without an earlier one in
// the way. Moves are numbered channel by channel, then the open words.
size_t StagedMemory::move_count() const {
  size_t count = open_.size();
  for (const auto& [id, channel] : inbound_) {
    bool adapter_is_free = true;
    bool iio_is_free = true;
    for (const Inbound& inbound : channel) {
      if (adapter_is_free) count += inbound.at_adapter.size();
      if (iio_is_free) count += inbound.at_iio.size();
      if (options_.relaxed_ordering) continue;
      adapter_is_free = adapter_is_free && inbound.at_adapter.empty();
      iio_is_free = false;  // part of it is not visible
      if (!adapter_is_free) break;
    }
  }
  return count;
}

StagedMemory::Place StagedMemory::Find(size_t index) const {
  for (const auto& [id, channel] : inbound_) {
    bool iio_is_free = true;
    for (size_t i = 0; i < channel.size(); ++i) {
      const Inbound& inbound = channel[i];
      if (index < inbound.at_adapter.size()) {
        return {Stage::kAdapter, id, i, index};
      }
      index -= inbound.at_adapter.size();
      if (iio_is_free) {
        if (index < inbound.at_iio.size()) {
          return {Stage::kIio, id, i, index};
        }
        index -= inbound.at_iio.size();
      }
      if (options_.relaxed_ordering) continue;
      iio_is_free = false;
      if (!inbound.at_adapter.empty()) break;
    }
  }
  ALPHEUS_CHECK(index < open_.size(), "a move that is possible");
  return {Stage::kVisible, 0, 0, index};
}

StagedMemory::Move StagedMemory::MoveAt(size_t index) const {
  const Place place = Find(index);
  if (place.from == Stage::kVisible) {
    const Open& open = open_[place.index];
    return {open.channel, open.at, Stage::kVisible};
  }
  const Inbound& inbound = inbound_.find(place.channel)->second[place.inbound];
  const auto& words =
      place.from == Stage::kAdapter ? inbound.at_adapter : inbound.at_iio;
  return {inbound.write.channel,
          inbound.target + WordOf(inbound, words[place.index]).offset,
          place.from};
}

void StagedMemory::Make(size_t index) {
  const Place place = Find(index);
  if (place.from == Stage::kVisible) {
    Accept(place.index);
    return;
  }
  Inbound& inbound = inbound_.find(place.channel)->second[place.inbound];
  if (place.from == Stage::kAdapter) {
    inbound.at_iio.push_back(Take(inbound.at_adapter, place.index));
    return;
  }
  Land(inbound, Take(inbound.at_iio, place.index));
  if (inbound.at_iio.empty() && inbound.at_adapter.empty()) {
    RemoveLanded(inbound.write.channel);
  }
}

size_t StagedMemory::MakeSome(size_t moves, RandomSource& random) {
  size_t made = 0;
  for (; made < moves; ++made) {
    const size_t possible = move_count();
    if (possible == 0) break;
    Make(random.Below(possible));
  }
  return made;
}

void StagedMemory::Land(Inbound& inbound, uint32_t word) {
  const Span span = WordOf(inbound, word);
  std::byte* at = inbound.target + span.offset;
  const std::byte* bytes = inbound.bytes.data() + span.offset;
  if (inbound.model == nullptr) {
    std::memcpy(at, bytes, span.bytes);
    return;
  }
  const uint64_t store = inbound.model->StoreByDevice(at, bytes, span.bytes);
  if (on_landing_) on_landing_(inbound.write, {at, span.bytes});
  if (options_.ddio) return;
  open_.push_back(
      {inbound.write.channel, inbound.model, at, span.bytes, store});
}

void StagedMemory::LandAll(Inbound& inbound) {
  for (std::vector<uint32_t>* words : {&inbound.at_iio, &inbound.at_adapter}) {
    for (const uint32_t word : *words) Land(inbound, word);
    words->clear();
  }
}

void StagedMemory::Accept(size_t index) {
  const Open open = Take(open_, index);
  open.model->AcceptDeviceStore(open.at, open.bytes, open.store);
}

void StagedMemory::AcceptAllOf(uint64_t channel) {
  std::erase_if(open_, [channel](const Open& open) {
    if (open.channel != channel) return false;
    open.model->AcceptDeviceStore(open.at, open.bytes, open.store);
    return true;
  });
}

void StagedMemory::RemoveLanded(uint64_t channel) {
  const auto found = inbound_.find(channel);
  if (found == inbound_.end()) return;
  std::erase_if(found->second, [](const Inbound& inbound) {
    return inbound.at_adapter.empty() && inbound.at_iio.empty();
  });
  if (found->second.empty()) inbound_.erase(found);
}

size_t StagedMemory::WordsAt(Stage stage) const {
  if (stage == Stage::kVisible) return open_.size();
  size_t count = 0;
  for (const auto& [id, channel] : inbound_) {
    for (const Inbound& inbound : channel) {
      if (stage == Stage::kAdapter) count += inbound.at_adapter.size();
      if (stage == Stage::kIio) count += inbound.at_iio.size();
    }
  }
  return count;
}

void StagedMemory::LandInto(std::span<std::byte> image,
                            ModelPersistence& model) const {
  for (const auto& [id, channel] : inbound_) {
    for (const Inbound& inbound : channel) {
      if (inbound.model != &model) continue;
      const auto start =
          static_cast<size_t>(inbound.target - model.region().data());
      for (const auto* words : {&inbound.at_iio, &inbound.at_adapter}) {
        for (const uint32_t word : *words) {
          const Span span = WordOf(inbound, word);
          std::memcpy(image.data() + start + span.offset,
                      inbound.bytes.data() + span.offset, span.bytes);
        }
      }
    }
  }
}

void StagedMemory::PushForReceive(uint64_t channel) {
  const auto found = inbound_.find(channel);
  if (found == inbound_.end()) return;
  for (Inbound& inbound : found->second) LandAll(inbound);
  inbound_.erase(found);
}

void StagedMemory::PushForRead(uint64_t channel) {
  PushForReceive(channel);
  AcceptAllOf(channel);
}

void StagedMemory::Abandon(uint64_t channel, RandomSource& random) {
  const auto found = inbound_.find(channel);
  if (found == inbound_.end()) return;
  for (Inbound& inbound : found->second) {
    if (inbound.is_acknowledged) continue;
    for (size_t lost = random.Below(inbound.at_adapter.size() + 1); lost > 0;
         --lost) {
      Take(inbound.at_adapter, random.Below(inbound.at_adapter.size()));
    }
  }
  RemoveLanded(channel);
}

void StagedMemory::End(const Filter& ends) {
  std::vector<uint64_t> channels;
  for (auto& [id, channel] : inbound_) {
    channels.push_back(id);
    const auto ends_here = [&](const Inbound& inbound) {
      return ends(inbound.write);
    };
    // Everything before the last of them goes first (SM2).
    const auto rest =
        std::find_if(channel.rbegin(), channel.rend(), ends_here).base();
    for (auto inbound = channel.begin(); inbound != rest; ++inbound) {
      if (ends_here(*inbound) && !inbound->is_acknowledged) {
        inbound->at_adapter.clear();
      }
      LandAll(*inbound);
    }
  }
  for (const uint64_t channel : channels) RemoveLanded(channel);
}

void StagedMemory::EndChannel(uint64_t channel) {
  End([channel](const Write& write) { return write.channel == channel; });
}

void StagedMemory::EndRegion(uint64_t region) {
  End([region](const Write& write) { return write.region == region; });
}

void StagedMemory::EndAll() {
  End([](const Write& /*write*/) { return true; });
}

void StagedMemory::LosePower() {
  if (options_.domain == replication::PersistenceDomain::kSystem) {
    for (auto& [id, channel] : inbound_) {
      for (Inbound& inbound : channel) LandAll(inbound);
    }
  }
  inbound_.clear();
  open_.clear();
  if (options_.domain == replication::PersistenceDomain::kMemory) return;
  for (ModelPersistence* model : models_) model->PersistVisible();
}

}  // namespace alpheus::model
