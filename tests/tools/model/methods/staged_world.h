// SPDX-License-Identifier: Apache-2.0
// staged_world: modelled memory at the end of its stages.
#ifndef ALPHEUS_TESTS_TOOLS_MODEL_METHODS_STAGED_WORLD_H_
#define ALPHEUS_TESTS_TOOLS_MODEL_METHODS_STAGED_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/model/memory/crash_model.h"
#include "tools/model/memory/staged_memory.h"

namespace alpheus::testing {

// Domain and DDIO: what decides without a program. In the order of Table 1.
inline std::vector<model::StagedMemory::Options> StagedPlatforms() {
  std::vector<model::StagedMemory::Options> all;
  for (const auto domain : {replication::PersistenceDomain::kMemory,
                            replication::PersistenceDomain::kHierarchy,
                            replication::PersistenceDomain::kSystem}) {
    for (const bool ddio : {true, false}) {
      all.push_back({.domain = domain, .ddio = ddio});
    }
  }
  return all;
}

inline std::string StagedPlatformName(
    const model::StagedMemory::Options& options) {
  constexpr const char* kNames[] = {"Dmp", "Mhp", "Wsp"};
  return absl::StrCat(kNames[static_cast<int>(options.domain)],
                      options.ddio ? "Ddio" : "NoDdio");
}

// Tests write 1 to words that are 0; an image is a digit for each word.
struct StagedWorld {
  explicit StagedWorld(const model::StagedMemory::Options& options,
                       size_t words = 2)
      : shown(words), staged(options) {
    staged.Attach(model);
  }

  std::span<std::byte> Words(size_t first, size_t count) {
    return model.region().subspan(first * 8, count * 8);
  }
  void Receive(size_t first, size_t count, uint64_t channel = 1,
               uint64_t region = 1) {
    const std::vector<uint64_t> ones(count, 1);
    staged.Receive({.channel = channel, .region = region}, Words(first, count),
                   std::as_bytes(std::span(ones)));
  }
  // The responder's processor.
  void FlushAndFence() {
    model.Flush(model.region().data(), shown * 8);
    model.Fence();
  }

  std::string Image(std::span<const std::byte> image) const {
    std::string digits;
    for (size_t word = 0; word < shown; ++word) {
      uint64_t value = 0;
      std::memcpy(&value, image.data() + word * 8, 8);
      absl::StrAppend(&digits, value);
    }
    return digits;
  }
  std::string Visible() { return Image(model.region()); }

  // The images that a power cut may leave. Nothing goes on after it.
  std::set<std::string> Cut() {
    staged.LosePower();
    const auto words = model.DirtyWords();
    std::set<std::string> images;
    std::vector<uint8_t> choices(words.size(), 0);
    size_t i = 0;
    do {
      images.insert(Image(model.CutChoosing(words, choices)));
      for (i = 0; i < words.size(); ++i) {
        if (++choices[i] < words[i].values.size()) break;
        choices[i] = 0;
      }
    } while (i < words.size());
    return images;
  }

  const size_t shown;
  model::ModelPersistence model{kLineBytes};
  model::StagedMemory staged;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TOOLS_MODEL_METHODS_STAGED_WORLD_H_
